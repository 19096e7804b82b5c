"""Closed-form objectness (beyond the paper): what counts as an object, told by the shots.

A class-agnostic objectness vetoes what people bring: parts, textures, crowds. Each shot that comes
with its picture shows the RPN both sides at once: cells whose box covers the shot are positive, the
other cells of that picture are not. A linear discriminant between the two is a term of the RPN's
logit for that class; it costs a few milliseconds when a class is registered, and no gradient.

    w = (S + ridge·I)⁻¹ (μ₊ − μ₋),   b = −w·(μ₊ + μ₋)/2,   S the pooled covariance

A shot given as a bare crop has no surroundings: the cells of training pictures, kept as a mean and a
covariance in the model, are its negatives.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from tenet.errors import InputError

POSITIVE_IOU, NEGATIVE_IOU, RIDGE = 0.55, 0.3, 0.05
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
