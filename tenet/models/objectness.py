"""Closed-form objectness (beyond the paper): what counts as an object, told by the shots.

A class-agnostic objectness vetoes what people bring: parts, textures, crowds. Each shot that comes
with its picture shows the RPN both sides at once: cells whose box covers the shot are positive, the
other cells of that picture are not. A linear discriminant between the two is a term of the RPN's
logit for that class; it costs a few milliseconds when a class is registered, and no gradient.

    w = (S + ridge·I)⁻¹ (μ₊ − μ₋),   b = −w·(μ₊ + μ₋)/2,   S the pooled covariance

A shot given as a bare crop has no surroundings: the cells of training pictures, kept as a mean and a
covariance in the model, are its negatives.

The picture of a shot often shows more of the same that nobody marked. So it is fitted twice: negatives
that the first fit places on the side of the positives are left out of the second.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from tenet.errors import InputError
from tenet.ops import box_iou, nms

POSITIVE_IOU, NEGATIVE_IOU, RIDGE = 0.55, 0.3, 0.05
MOST = 2.0
"""The most that the term gives to the logit of the mean positive cell; a mean negative one loses as much."""
COVERED_IOU, LOOKED_AT = 0.5, 100
"""A shot is covered by a box that overlaps it this much; boxes that are looked at, after NMS at 0.7."""
BACKGROUND_CELLS = 1000
"""Cells for which a background stands beside the positives of a bare crop."""


class Background(NamedTuple):
    """Cells that are no object: mean (q,) and covariance (q, q) of their features."""

    mean: Tensor
    covariance: Tensor


def closed_form_objectness(
    positive: Tensor, negative: Tensor, background: Background | None = None, ridge: float = RIDGE
) -> Tensor:
    """Features of positive cells (n, q) and negative cells (m, q) → (q + 1,): the weights w, then b.

    With no negative cell, `background` stands for them. The covariance is scaled to a mean variance of
    1, so that `ridge` means the same for every network.
    """
    if positive.ndim != 2 or negative.ndim != 2 or positive.shape[1] != negative.shape[1]:
        shapes = f"{tuple(positive.shape)} and {tuple(negative.shape)}"
        raise InputError(f"expected cells of shapes (n, q) and (m, q), got {shapes}")
    if len(positive) == 0:
        raise InputError("closed-form objectness: expected at least one cell that covers a shot, got none")
    if len(negative):
        background = cell_statistics(negative)
    elif background is None:
        raise InputError("closed-form objectness: expected negative cells or a background, got neither")
    own = cell_statistics(positive)
    n, m = float(len(positive)), float(len(negative) or BACKGROUND_CELLS)
    covariance = (n * own.covariance + m * background.covariance) / (n + m)
    scale = covariance.diagonal().mean().clamp(min=1e-12)
    identity = torch.eye(len(covariance), dtype=covariance.dtype, device=covariance.device)
    w = torch.linalg.solve(covariance / scale + ridge * identity, (own.mean - background.mean) / scale)
    b = -(w * (own.mean + background.mean)).sum() / 2
    return torch.cat([w, b.reshape(1)])


def cell_statistics(cells: Tensor) -> Background:
    """Mean and covariance of cells (n, q)."""
    mean = cells.mean(0)
    centred = cells - mean
    return Background(mean, centred.T @ centred / len(cells))


class Cells(NamedTuple):
    """What the RPN says of one picture for one class: features (M, q), the last of them its logit, and boxes
    (M, 4), xyxy in pixels of the picture."""

    features: Tensor
    boxes: Tensor


def fit_cells(
    cells: list[Cells], shots: list[Tensor], background: Background | None, bare: bool = False
) -> Tensor:
    """Closed-form weights (q + 1,) from the cells of pictures that show a class at boxes (G, 4) each.

    `bare`: the pictures are crops without surroundings, and the background stands for all negatives.
    """
    parts = [_split(picture, own) for picture, own in zip(cells, shots, strict=True)]
    positive = torch.cat([positive for positive, _ in parts])
    negative = torch.cat([negative for _, negative in parts])
    if bare:
        return _bounded(closed_form_objectness(positive, negative[:0], background), positive)
    weights = closed_form_objectness(positive, negative, background)
    unlike = negative @ weights[:-1] + weights[-1] < 0
    if unlike.any():
        negative = negative[unlike]
        weights = closed_form_objectness(positive, negative, background)
    return _bounded(weights, positive)


def _bounded(weights: Tensor, positive: Tensor) -> Tensor:
    """Weights (q + 1,) scaled down where the mean positive cell would gain more than `MOST`.

    A few shots say where to look, not with what certainty: unbounded, the term drowned what was learned.
    """
    gain = positive.mean(0) @ weights[:-1] + weights[-1]
    return weights * (MOST / gain.clamp(min=MOST))


def _split(cells: Cells, own: Tensor) -> tuple[Tensor, Tensor]:
    """Features of the cells that cover a shot, and of those that cover none."""
    overlap = box_iou(cells.boxes, own)
    value = overlap.max(1).values
    # Every shot has a positive: the boxes that cover it, or else the best there is.
    positive = (value >= POSITIVE_IOU) | (overlap == overlap.max(0).values).any(1)
    return cells.features[positive], cells.features[(value < NEGATIVE_IOU) & ~positive]


def ranked_boxes(cells: Cells, weights: Tensor | None) -> Tensor:
    """The boxes that are looked at, (n, 4), best first: by the RPN's logit, with the closed-form term of
    `weights` (q + 1,) if there are any."""
    scores = cells.features[:, -1]
    if weights is not None:
        scores = scores + cells.features @ weights[:-1] + weights[-1]
    best = scores.topk(min(20 * LOOKED_AT, len(scores))).indices
    return cells.boxes[best[nms(cells.boxes[best], scores[best], 0.7, limit=LOOKED_AT)]]


def covering_rank(boxes: Tensor, alike: Tensor, shot: Tensor) -> int:
    """The rank, from 1, of the first box (of (n, 4), best first) that covers a shot (4,); 0 where none does.

    Boxes that are `alike` (n,) the class and stand before it do not count: they may be others of its kind.
    """
    covering = (box_iou(boxes, shot.unsqueeze(0)).squeeze(1) >= COVERED_IOU).nonzero()
    return 1 + int((~alike[: int(covering[0])]).sum()) if len(covering) else 0
