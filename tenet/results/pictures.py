"""Detections together with the picture they are of: what a file of results is made from."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from unicodedata import category

import numpy as np

from tenet.data.dataset import Dataset, Record
from tenet.errors import InputError
from tenet.looks.frames import FolderDetections, Frame
from tenet.structures import Detections, Target


@dataclass(frozen=True, eq=False)
class PictureResult:
    """What was found in one picture: its name, its size in pixels, and the detections with their class
    names; boxes are xyxy in its pixels."""

    file_name: str
    width: int
    height: int
    detections: Detections

    def __post_init__(self) -> None:
        if self.width < 1 or self.height < 1:
            raise InputError(
                f"{self.file_name}: expected a size of at least 1 x 1 px, got {self.width} x {self.height}"
            )
        if len(self.detections) and not self.detections.classes:
            raise InputError(
                f"{self.file_name}: expected detections with class names; set them with `with_classes`"
            )


def picture_results(
    found: FolderDetections | Iterable[Frame], root: Path | str | None = None
) -> list[PictureResult]:
    """The results of a folder or of a stream, without pictures that could not be read.

    Names are relative to `root` where it is given; frames of a video and pictures in memory are numbered.
    """
    base = None if root is None else Path(root)
    if isinstance(found, FolderDetections):
        return [PictureResult(_name(path, base), *found.sizes[path], one) for path, one in found.items()]
    results = []
    for frame in found:
        if frame.picture is not None:
            height, width = frame.picture.shape[:2]
            results.append(PictureResult(frame_name(frame, base), width, height, frame.detections))
    return results


def frame_name(frame: Frame, root: Path | None = None) -> str:
    """A frame's file, or a name with its number: `film.mp4_000012.jpg`."""
    if frame.path is not None and frame.time is None:
        return _name(frame.path, root)
    stem = "picture" if frame.path is None else _name(frame.path, root)
    return f"{stem}_{frame.number:06d}.jpg"


def _name(path: Path, root: Path | None) -> str:
    inside = root is not None and path.is_relative_to(root)
    return plain((path.relative_to(root) if root is not None and inside else path).as_posix())


def plain(text: str) -> str:
    """The text without control characters and broken bytes, which a file's name may have: terminals obey
    them, and XML and UTF-8 cannot hold them."""
    return "".join("?" if category(letter) in ("Cc", "Cs") else letter for letter in text)


def classes_of(results: Sequence[PictureResult]) -> tuple[str, ...]:
    """The classes that all results were asked for."""
    lists = {one.detections.classes for one in results if one.detections.classes}
    if len(lists) > 1:
        first, second = sorted(lists)[:2]
        raise InputError(
            f"results: expected the same classes in all pictures, got {', '.join(first[:5])} and "
            f"{', '.join(second[:5])}; write them apart"
        )
    return lists.pop() if lists else ()


def as_dataset(results: Sequence[PictureResult]) -> Dataset:
    """The same boxes as if they were annotations, for the writers of `tenet.data`."""
    records = [
        Record(
            id=one.file_name,
            path=Path(one.file_name),
            file_name=one.file_name,
            width=one.width,
            height=one.height,
            target=Target.of(one.detections.boxes, one.detections.labels),
            box_ids=np.zeros(len(one.detections), np.int64),
        )
        for one in results
    ]
    return Dataset("detections", classes_of(results), tuple(records))


def best_first(
    boxes: Iterable[Iterable[float]],
    scores: Iterable[float],
    labels: Iterable[int],
    shots: Iterable[int],
    classes: Sequence[str],
) -> Detections:
    """Detections of rows in any order; boxes xyxy in pixels of the picture."""
    found = Detections(
        np.array([list(box) for box in boxes], np.float32).reshape(-1, 4),
        np.array(list(scores), np.float32),
        np.array(list(labels), np.int64),
        np.array(list(shots), np.int64),
        tuple(classes),
    )
    return found.select(np.argsort(-found.scores, kind="stable"))
