"""YOLO text: `class x y width height score` on a line, in shares of the picture, (x, y) the centre."""

from collections.abc import Sequence
from typing import TypeGuard

from tenet.data.yolo import format_line, parse_line
from tenet.errors import DataError
from tenet.results.fields import finite
from tenet.results.pictures import best_first
from tenet.structures import Detections


def to_yolo(found: Detections, width: int, height: int, scores: bool = True) -> str:
    """The text file of one picture of that size; without `scores` it is an annotation file. Boxes of
    `found` are xyxy in pixels of the picture."""
    lines = []
    for box, label, score in zip(found.boxes.tolist(), found.labels.tolist(), found.scores, strict=True):
        line = format_line(box, label, width, height)
        lines.append(f"{line} {float(score):.6f}\n" if scores else f"{line}\n")
    return "".join(lines)


def from_yolo(
    text: str, width: int, height: int, classes: Sequence[str], name: str = "YOLO text"
) -> Detections:
    """The detections of a text file, boxes xyxy in pixels of a picture of that size; a line without a score
    has score 1. Polygons give their boxes."""
    boxes, scores, labels = [], [], []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words:
            continue
        # Class and four numbers, or class and pairs: a line with an even number of words ends with a score.
        scored = len(words) % 2 == 0
        box, label = parse_line(" ".join(words[:-1] if scored else words), width, height)
        score = _score(words[-1]) if scored else 1.0
        if not _is_box(box) or score is None or not 0 <= label < len(classes):
            raise DataError(
                f"{name}, line {number}: expected `class x y width height score` with a class from 0 to "
                f"{len(classes) - 1}, got {line[:60]!r}"
            )
        boxes.append(box)
        scores.append(score)
        labels.append(label)
    return best_first(boxes, scores, labels, [0] * len(boxes), classes)


def _is_box(box: Sequence[float] | None) -> TypeGuard[Sequence[float]]:
    """Whether a line had a box, of numbers that float32 can hold."""
    return box is not None and all(map(finite, box))


def _score(word: str) -> float | None:
    try:
        score = float(word)
    except ValueError:
        return None
    return score if 0 <= score <= 1 else None
