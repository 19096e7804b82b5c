"""The model tried as a user would use it: shots from an annotated set, then boxes in its other pictures.

`tenet evaluate` measures a detector by the papers' protocols, at one size of picture. This goes through
bank and predictor, with working sizes from the shots, and asks what users ask: how good is it, what is
a score worth, and what does it find where there is nothing?
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenet.bank import ClassBank
from tenet.data.dataset import Dataset, Record
from tenet.data.shots import ShotList, draw_shots
from tenet.errors import DataError
from tenet.predictor import Tenet
from tenet.scoring.detections import GroundTruth, Results
from tenet.scoring.report import Scores
from tenet.scoring.voc import judge_class, score_voc
from tenet.structures import Detections
from tenet.trials.wide import wide_views

Progress = Callable[[Iterable[Any], int], Iterable[Any]]
Adapt = Callable[[Dataset, ShotList], Tenet]
RIGHT_IOU = 0.5


@dataclass(frozen=True, eq=False)
class Trial:
    """One set, one number of shots, one draw.

    scores      VOC every-point AP at IoU 0.5 of each class
    confidence  (n,) float64 scores of all detections that count, and right (n,) bool whether they are
    absent      (n,) bool of the same, those in pictures that do not show their class at all
    pictures    (n,) int64 of the same, row of the picture in `tested`
    tested      ids of the test pictures
    looks_in    (P,) int64, classes that each test picture does not show
    objects_in  (P,) int64, objects to find in each
    """

    set_name: str
    shots: int
    seed: int
    scores: Scores
    confidence: NDArray[np.float64]
    right: NDArray[np.bool_]
    absent: NDArray[np.bool_]
    pictures: NDArray[np.int64]
    tested: tuple[str, ...]
    looks_in: NDArray[np.int64]
    objects_in: NDArray[np.int64]

    @property
    def looks(self) -> int:
        """Pairs of a picture and a class that it does not show."""
        return int(self.looks_in.sum())

    @property
    def objects(self) -> int:
        """Objects to find."""
        return int(self.objects_in.sum())

    def of_pictures(self, ids: Collection[str]) -> "Trial":
        """What was found in these pictures alone. `scores` stay those of all."""
        kept = np.array([picture in ids for picture in self.tested], np.bool_)
        rows = kept[self.pictures]
        return replace(
            self,
            confidence=self.confidence[rows],
            right=self.right[rows],
            absent=self.absent[rows],
            pictures=(np.cumsum(kept) - 1)[self.pictures[rows]],
            tested=tuple(picture for picture in self.tested if picture in ids),
            looks_in=self.looks_in[kept],
            objects_in=self.objects_in[kept],
        )

    @property
    def ap50(self) -> float:
        """Mean over the classes."""
        return self.scores.values["AP"]


def try_set(
    model: Tenet,
    dataset: Dataset,
    shots: int,
    seed: int,
    *,
    min_side: float = 24,
    limit: int = 0,
    bare: bool = False,
    size: Any = "auto",
    wide: int = 1,
    adapt: Adapt | None = None,
    progress: Progress | None = None,
) -> Trial:
    """Register `shots` boxes of each class, drawn by seed, and look for all classes in the other pictures; a
    class that has fewer boxes is shown them all.

    min_side  boxes with a side below this many pixels are not drawn
    limit     only so many test pictures, the first; 0 takes all
    bare      show crops without their pictures
    wide      look at so many times so many test pictures put together, as in a wide view
    adapt     makes the model that learned the shots, before they are shown to it
    """
    drawn = draw_shots(dataset, shots, seed, min_side=min_side)
    for name, refs in drawn.classes.items():
        if not refs:
            raise DataError(
                f"{dataset.name}: expected boxes of {name} with sides of at least {min_side:g} px as shots, "
                "found none; lower --min-side, or leave the class out of the set"
            )
    used = {record.identity for record in dataset.subset(drawn.pictures()).records}
    test = [record for record in dataset.records if record.identity not in used]
    if wide > 1:
        test = wide_views(test[: limit * wide**2 or None], wide)
    test = test[: limit or None]
    if not test:
        raise DataError(f"{dataset.name}: expected pictures beside those of the shots, found none")
    model = model if adapt is None else adapt(dataset, drawn)
    records = {record.id: record for record in dataset.records}
    bank = ClassBank(model)
    for name, refs in drawn.classes.items():
        bank.register(name, [_shot(records[ref.picture], ref.box, bare) for ref in refs])
    truth = _truth(dataset, test)
    found = []
    for record in progress(test, len(test)) if progress is not None else test:
        found.append(model.detect(record.picture(), bank, threshold=0.0, size=size))
    return _judge(dataset.name, shots, seed, truth, _results(found))


def _shot(record: Record, row: int, bare: bool) -> Any:
    picture, box = record.picture(), record.target.boxes[row]
    if not bare:
        return picture, tuple(float(value) for value in box)
    x1, y1 = np.floor(box[:2]).astype(int).clip(0)
    x2, y2 = np.ceil(box[2:]).astype(int)
    return picture[y1:y2, x1:x2]


def _truth(dataset: Dataset, test: Sequence[Record]) -> GroundTruth:
    counts = [len(record.target) for record in test]
    boxes = np.concatenate([record.target.boxes for record in test]).astype(np.float64)
    return GroundTruth(
        classes=dataset.classes,
        category_rows={row: row for row in range(len(dataset.classes))},
        image_ids=tuple(record.id for record in test),
        sizes=np.array([(record.width, record.height) for record in test], np.int64),
        images=np.repeat(np.arange(len(test)), counts),
        labels=np.concatenate([record.target.labels for record in test]),
        boxes=boxes,
        areas=np.prod(boxes[:, 2:] - boxes[:, :2], axis=1),
        crowd=np.concatenate([record.target.crowd for record in test]),
        difficult=np.concatenate([record.target.ignore for record in test]),
    )


def _results(found: Sequence[Detections]) -> Results:
    return Results(
        np.repeat(np.arange(len(found)), [len(one) for one in found]),
        np.concatenate([one.labels for one in found]),
        np.concatenate([one.boxes for one in found]).astype(np.float64),
        np.concatenate([one.scores for one in found]).astype(np.float64),
    )


def _judge(name: str, shots: int, seed: int, truth: GroundTruth, found: Results) -> Trial:
    confidence, right, absent, pictures = [], [], [], []
    looks, objects = (np.zeros(len(truth.image_ids), np.int64) for _ in range(2))
    counted_objects = ~(truth.difficult | truth.crowd)
    for row in range(len(truth.classes)):
        judged = judge_class(truth, found, row, RIGHT_IOU)
        counted = judged.right | judged.wrong
        rows = judged.order[counted]
        shown = np.zeros(len(truth.image_ids), np.bool_)
        shown[truth.images[truth.labels == row]] = True
        confidence.append(found.scores[rows])
        right.append(judged.right[counted])
        absent.append(~shown[found.images[rows]])
        pictures.append(found.images[rows])
        looks += ~shown
        np.add.at(objects, truth.images[(truth.labels == row) & counted_objects], 1)
    return Trial(
        name,
        shots,
        seed,
        score_voc(truth, found, "voc12", iou=RIGHT_IOU),
        np.concatenate(confidence),
        np.concatenate(right),
        np.concatenate(absent),
        np.concatenate(pictures),
        tuple(map(str, truth.image_ids)),
        looks,
        objects,
    )
