"""Several looks at one picture, put together: numpy alone, because the light half of the house has no torch.

Boxes are (n, 4) float32 xyxy in pixels of one picture, the same for all that are put together.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tenet.structures import Detections, FloatArray

SAME = 0.5
"""Overlap (IoU) from which two boxes of one class are one thing: that of the network's own NMS."""
WITHIN = 0.6
"""Share of a cut box inside a whole one from which it is a piece of the same thing."""
COMPARABLE = np.float32(0.5)
"""Share of a cut box's score from which a whole one may explain it: noise explains nothing away."""
MOST = 300
"""Detections kept in one picture."""

HALF = np.float32(0.5)
AGREED = 0.55
"""Overlap (IoU) from which boxes of two networks are one."""

Look = tuple[Detections, NDArray[np.bool_]]
"""What was found in a part of a picture, and (n,) which boxes an inner border of the part cut."""


def intersections(boxes: FloatArray, others: FloatArray) -> NDArray[np.float64]:
    """(n, m) common area of each box (n, 4) with each other one (m, 4), xyxy in pixels of one picture."""
    one, two = boxes[:, None].astype(np.float64), others[None].astype(np.float64)
    sides = np.minimum(one[..., 2:], two[..., 2:]) - np.maximum(one[..., :2], two[..., :2])
    return np.asarray(np.clip(sides, 0, None).prod(-1), np.float64)


def areas(boxes: FloatArray) -> NDArray[np.float64]:
    """(n,) area of each box (n, 4), xyxy in pixels of one picture."""
    return np.asarray(np.clip(boxes[:, 2:] - boxes[:, :2], 0, None).astype(np.float64).prod(-1))


def iou(boxes: FloatArray, others: FloatArray) -> NDArray[np.float64]:
    """(n, m) intersection over union of boxes (n, 4) and others (m, 4), xyxy in pixels of one picture."""
    common = intersections(boxes, others)
    union = areas(boxes)[:, None] + areas(others)[None] - common
    return np.divide(common, union, out=np.zeros_like(common), where=union > 0)


def nms(
    boxes: FloatArray, scores: FloatArray, labels: NDArray[np.int64], overlap: float = SAME, most: int = MOST
) -> NDArray[np.int64]:
    """Rows that stay, best first, `most` at most: of boxes of a class that overlap more than that, the best.

    boxes (n, 4) xyxy in pixels of one picture; of equal scores the first one wins.
    """
    order = np.argsort(-scores, kind="stable")
    kept: list[int] = []
    gone = np.zeros(len(order), np.bool_)
    for place, row in enumerate(order.tolist()):
        if gone[place]:
            continue
        kept.append(row)
        if len(kept) == most:
            break
        rest = order[place + 1 :]
        same_class = labels[rest] == labels[row]
        gone[place + 1 :] |= same_class & (iou(boxes[row : row + 1], boxes[rest])[0] > overlap)
    return np.array(kept, np.int64)


def without_pieces(found: Detections, cut: NDArray[np.bool_]) -> tuple[Detections, NDArray[np.bool_]]:
    """Leave out boxes that a tile's inner border cut, where another tile has the same thing whole.

    cut (n,) bool: the box ends at an inner border. A cut box stays that no whole one explains whose score is
    like its own.
    """
    wholes = np.flatnonzero(~cut)
    needed = WITHIN * areas(found.boxes)
    stays = np.ones(len(found), np.bool_)
    for row in np.flatnonzero(cut).tolist():  # one by one: all against all would not fit in memory
        common = intersections(found.boxes[row : row + 1], found.boxes[wholes])[0]
        explains = (common >= needed[row]) & (found.labels[wholes] == found.labels[row])
        stays[row] = not (explains & (found.scores[wholes] >= COMPARABLE * found.scores[row])).any()
    return found.select(stays), cut[stays]


def join(parts: Sequence[Detections], classes: Sequence[str] = ()) -> Detections:
    """All rows of all parts, best first; of equal scores the first part's come first."""
    if not parts:
        return Detections.empty(classes)
    found = Detections(
        np.concatenate([part.boxes for part in parts]),
        np.concatenate([part.scores for part in parts]),
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.shots for part in parts]),
        tuple(classes),
    )
    return found.select(np.argsort(-found.scores, kind="stable"))


def merge(looks: Sequence[Look], most: int = MOST) -> Detections:
    """Looks at parts of one picture that overlap, as one result without doubles, the best `most` first.

    A look has boxes in pixels of the whole picture, and says which of them an inner border of its part cut
    (`without_pieces`). One look is itself.
    """
    everything = join([found for found, _ in looks])
    if len(looks) == 1:
        return everything
    scores = np.concatenate([found.scores for found, _ in looks])
    cut = np.concatenate([cut for _, cut in looks])[np.argsort(-scores, kind="stable")]
    found, _ = without_pieces(everything, cut)
    return found.select(nms(found.boxes, found.scores, found.labels, most=most))


def agree(one: Detections, two: Detections) -> Detections:
    """What two networks found in one picture, best first: boxes of a class that both gave become one, their
    mean weighted by score; a score is the mean of both, and 0 from the one that does not give the box.

    The best box chooses its partner first, and each box has one at most. The shot is that of the better one.
    """
    overlap = np.where(one.labels[:, None] == two.labels[None], iou(one.boxes, two.boxes), 0.0)
    rows, others = np.nonzero(overlap >= AGREED)
    better = np.maximum(one.scores[rows], two.scores[others])
    partner: dict[int, int] = {}
    taken: set[int] = set()
    for place in np.lexsort((-overlap[rows, others], -better)).tolist():
        row, other = int(rows[place]), int(others[place])
        if row not in partner and other not in taken:
            partner[row] = other
            taken.add(other)
    first = one.select(np.array(list(partner), np.int64))
    second = two.select(np.array(list(partner.values()), np.int64))
    share = first.scores / np.maximum(first.scores + second.scores, np.finfo(np.float32).tiny)
    both = Detections(
        (second.boxes + share[:, None] * (first.boxes - second.boxes)).astype(np.float32),
        HALF * (first.scores + second.scores),
        first.labels,
        np.where(first.scores >= second.scores, first.shots, second.shots),
    )
    alone = [
        one.select(np.setdiff1d(np.arange(len(one)), list(partner))),
        two.select(np.setdiff1d(np.arange(len(two)), list(taken))),
    ]
    return join([both, *(replace(part, scores=HALF * part.scores) for part in alone)], one.classes)
