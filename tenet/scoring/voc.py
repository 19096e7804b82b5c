"""PASCAL VOC's average precision, by the devkit's rules.

- Detections of a class are taken by falling score over the whole set. Each looks at the object of its
  picture that it overlaps most. From the threshold on, it is right if that object is free, a duplicate
  and so wrong if it is taken, and left out of the count if the object is `difficult`.
- Overlap is counted in pixels that a box includes: its width is x2 − x1 + 1, with x1 and x2 its first
  and its last pixel.
- `voc07`: the mean of the best precision at recall of at least 0, 0.1, …, 1. `voc12`: the area under the
  precision made monotonous.

Boxes of this house are edges, (x, y, x + width, y + height), whose first pixel is x + 1 and whose last is
x + width when one counts from 1 as the devkit does: `to_devkit` says so, and `overlap` is the devkit's.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tenet.errors import InputError
from tenet.scoring.detections import GroundTruth, Results
from tenet.scoring.report import ClassScore, Scores

Floats = NDArray[np.float64]


def to_devkit(boxes: Floats) -> Floats:
    """Edges (n, 4), xyxy from 0, as the devkit's first and last pixels, from 1."""
    return boxes + np.array([1, 1, 0, 0])


def overlap(a: Floats, b: Floats) -> Floats:
    """(n, m) intersection over union of boxes a (n, 4) and b (m, 4), given by first and last pixels."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, 2:], b[None, :, 2:])
    sides = np.maximum(high - low + 1, 0)
    inner = sides[..., 0] * sides[..., 1]
    area_a, area_b = ((box[:, 2] - box[:, 0] + 1) * (box[:, 3] - box[:, 1] + 1) for box in (a, b))
    union = area_a[:, None] + area_b[None] - inner
    return np.where(union > 0, inner / np.maximum(union, 1e-12), 0)


def eleven_point_ap(recall: Floats, precision: Floats) -> float:
    """VOC2007's: the mean over eleven recalls of the best precision from there on."""
    best = [precision[recall >= level].max(initial=0) for level in np.linspace(0, 1, 11)]
    return float(np.mean(best))


def every_point_ap(recall: Floats, precision: Floats) -> float:
    """VOC2010's and later: the area under the precision made monotonous."""
    steps = np.concatenate([[0.0], recall, [1.0]])
    envelope = np.maximum.accumulate(np.concatenate([[0.0], precision, [0.0]])[::-1])[::-1]
    rises = np.flatnonzero(steps[1:] != steps[:-1])
    return float(((steps[rises + 1] - steps[rises]) * envelope[rises + 1]).sum())


RULES = {"voc07": eleven_point_ap, "voc12": every_point_ap}


def score_voc(
    truth: GroundTruth,
    found: Results,
    metric: str = "voc07",
    classes: Sequence[str] | None = None,
    iou: float = 0.5,
) -> Scores:
    """VOC AP of each class and their mean. `difficult` and crowd boxes are neither right nor wrong."""
    if metric not in RULES:
        raise InputError(f"metric: expected one of {', '.join(RULES)}; got {metric!r}")
    if not 0 < iou <= 1:
        raise InputError(f"iou: expected more than 0 and at most 1, got {iou}")
    scores = []
    for row in truth.rows_of(classes):
        recall, precision, positives = class_curve(truth, found, row, iou)
        value = RULES[metric](recall, precision) if positives else float("nan")
        name = truth.classes[row]
        scores.append(ClassScore(name, {"AP": value}, positives, recall, precision))
    defined = [score.values["AP"] for score in scores if score.positives]
    mean = float(np.mean(defined)) if defined else float("nan")
    return Scores(metric, iou, {"AP": mean}, tuple(scores))


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What became of the detections of one class, n of them by falling score.

    order      (n,) int64, rows in the results
    right, wrong  (n,) bool; neither for one that is not counted
    objects    (n,) int64, row in the ground truth of the object that a right one found, else -1
    positives  objects to find
    """

    order: NDArray[np.int64]
    right: NDArray[np.bool_]
    wrong: NDArray[np.bool_]
    objects: NDArray[np.int64]
    positives: int


def judge_class(truth: GroundTruth, found: Results, row: int, iou: float) -> Outcomes:
    """Each detection of class `row`, judged by the devkit's rule."""
    objects = np.flatnonzero(truth.labels == row)
    ignored = truth.difficult | truth.crowd
    detections = np.flatnonzero(found.labels == row)
    order = detections[np.argsort(-found.scores[detections], kind="stable")]
    nearest, shares = _nearest(truth, found, objects, order)
    right = np.zeros(len(order), np.bool_)
    wrong = shares < iou
    taken: set[int] = set()
    for place in np.flatnonzero(~wrong).tolist():
        target = int(nearest[place])
        if ignored[target]:
            continue
        if target in taken:
            wrong[place] = True
        else:
            right[place] = True
            taken.add(target)
    return Outcomes(order, right, wrong, np.where(right, nearest, -1), int((~ignored[objects]).sum()))


def class_curve(truth: GroundTruth, found: Results, row: int, iou: float) -> tuple[Floats, Floats, int]:
    """(recall, precision, number of objects to find) of one class, a point for each detection counted."""
    judged = judge_class(truth, found, row, iou)
    counted = judged.right | judged.wrong
    hits, misses = np.cumsum(judged.right[counted]), np.cumsum(judged.wrong[counted])
    recall = hits / max(judged.positives, 1)
    return recall, hits / np.maximum(hits + misses, 1), judged.positives


def _nearest(
    truth: GroundTruth, found: Results, objects: NDArray[np.int64], detections: NDArray[np.int64]
) -> tuple[NDArray[np.int64], Floats]:
    """For each detection the object of its picture that it overlaps most (-1 for none), and how much."""
    nearest = np.full(len(detections), -1, np.int64)
    shares = np.zeros(len(detections))
    own_images, images = truth.images[objects], found.images[detections]
    by_image = np.argsort(images, kind="stable")
    starts = np.searchsorted(images[by_image], own_images, side="left")
    ends = np.searchsorted(images[by_image], own_images, side="right")
    for image, start, end in sorted(
        set(zip(own_images.tolist(), starts.tolist(), ends.tolist(), strict=True))
    ):
        places = by_image[start:end]
        own = objects[own_images == image]
        boxes = found.boxes[detections[places]]
        values = overlap(to_devkit(boxes), to_devkit(truth.boxes[own]))
        best = values.argmax(axis=1)
        nearest[places] = own[best]
        shares[places] = values[np.arange(len(places)), best]
    return nearest, shares
