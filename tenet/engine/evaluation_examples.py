"""Pictures worth looking at: the best, the worst false alarms, the objects that were missed.

Average precision takes every box down to a score of almost nothing; a person looks at those above a bar.
Each class has its own here: the score with the best F1 on this very draw, which flatters the detector a
little and is said so in the report. Loads no torch.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tenet.data.dataset import Record
from tenet.engine.evaluation_result import Evaluation
from tenet.scoring.voc import judge_class

RIGHT, WRONG, MISSED = "right", "wrong", "missed"


@dataclass(frozen=True)
class Mark:
    """A box of a picture, xyxy in its pixels: what became of it, its class, and its score (-1: missed)."""

    kind: str
    name: str
    box: tuple[float, float, float, float]
    score: float = -1.0


@dataclass(frozen=True, eq=False)
class Scene:
    """A test picture with its marks, and the class that it was chosen for."""

    record: Record
    marks: tuple[Mark, ...]
    focus: str
    caption: str


def all_marks(evaluation: Evaluation) -> dict[int, list[Mark]]:
    """By row of the example's ground truth: every box above its class's bar, and every object missed."""
    truth, found = evaluation.example.truth, evaluation.example.found
    marks: dict[int, list[Mark]] = {}
    for row, name in enumerate(truth.classes):
        judged = judge_class(truth, found, row, evaluation.settings.iou)
        shown = _best_prefix(judged.right, judged.wrong, judged.positives)
        for place in range(shown):
            detection = int(judged.order[place])
            if judged.right[place] or judged.wrong[place]:
                kind = RIGHT if judged.right[place] else WRONG
                mark = Mark(kind, name, _corners(found.boxes[detection]), float(found.scores[detection]))
                marks.setdefault(int(found.images[detection]), []).append(mark)
        hit = set(judged.objects[:shown].tolist())
        for number in np.flatnonzero((truth.labels == row) & ~truth.difficult & ~truth.crowd).tolist():
            if number not in hit:
                mark = Mark(MISSED, name, _corners(truth.boxes[number]))
                marks.setdefault(int(truth.images[number]), []).append(mark)
    return marks


def _best_prefix(right: NDArray[np.bool_], wrong: NDArray[np.bool_], positives: int) -> int:
    """How many of the best detections to show: those up to the best F1; none where nothing is right."""
    if not right.any():
        return min(len(right), 1)
    hits = np.cumsum(right)
    f1 = 2 * hits / (np.cumsum(right | wrong) + max(positives, 1))
    return int(f1.argmax()) + 1


def choose_scenes(evaluation: Evaluation, count: int = 4) -> dict[str, list[Scene]]:
    """Title → scenes, `count` of each kind at most; a picture is shown once."""
    marks = all_marks(evaluation)
    truth, plan = evaluation.example.truth, evaluation.plan
    left_out = evaluation.example.draw.left_out
    record_of = [record for record in plan.test.records if record.id not in left_out]
    assert len(record_of) == len(truth.image_ids)
    used: set[int] = set()

    def take(ranked: list[tuple[float, int, Mark, str]]) -> list[Scene]:
        scenes: list[Scene] = []
        for _, row, mark, caption in sorted(ranked, key=lambda item: (-item[0], item[1])):
            if len(scenes) < count and row not in used:
                used.add(row)
                scenes.append(Scene(record_of[row], tuple(marks[row]), mark.name, caption))
        return scenes

    best, alarms, misses = [], [], []
    for row, own in marks.items():
        right, wrong, missed = ([m for m in own if m.kind == kind] for kind in (RIGHT, WRONG, MISSED))
        if right:
            share = len(right) / len(own)
            caption = f"{len(right)} right, {len(wrong)} wrong, {len(missed)} missed"
            best.append((share + min(len(right), 9) / 100, row, max(right, key=lambda m: m.score), caption))
        if wrong:
            worst = max(wrong, key=lambda m: m.score)
            alarms.append((worst.score, row, worst, f"{worst.name}, wrong at {worst.score:.2f}"))
        if missed:
            frame = record_of[row].width * record_of[row].height
            largest = max(missed, key=lambda m: _area(m) / frame)
            share = _area(largest) / frame
            misses.append((share, row, largest, f"{largest.name}, {share:.0%} of the picture"))
    return {
        "The best": take(best),
        "The worst false alarms": take(alarms),
        "The largest misses": take(misses),
    }


def _corners(box: NDArray[np.float64]) -> tuple[float, float, float, float]:
    x1, y1, x2, y2 = (float(value) for value in box)
    return x1, y1, x2, y2


def _area(mark: Mark) -> float:
    x1, y1, x2, y2 = mark.box
    return (x2 - x1) * (y2 - y1)
