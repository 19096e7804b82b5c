"""Closed-form box fit (beyond the paper): how boxes sit on a class, told by its shots.

The box-quality head learned on whole things how to move a box, and how well it fits. People bring others:
cells that touch, masks on faces. A shot that comes with its picture shows one right box; what the head makes
of boxes around it, in a fixed pattern, shows where it errs on this class. A ridge regression from its hidden
features to these errors is the class's own correction of a last pass:

    W = (XᵀX/n + ridge/Z·I)⁻¹ XᵀY/n,   X hidden features and 1,   Y what was missed: IoU's logit, four deltas

It costs milliseconds when a class is registered, no gradient, and next to nothing when it is looked for.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from tenet.models.box_quality import DELTA_SCALES, BoxQualityHead, Cells, Refined
from tenet.ops import box_iou, clip_boxes, decode_boxes, encode_boxes

OUTPUTS = 5
"""Corrections of a box: the IoU's logit and four deltas."""
RIDGE_IOU, RIDGE_DELTAS = 2.0, 20.0
"""For one shot, of features whose mean square is 1; the constant is held a tenth as much."""
NEAR_IOU, MOST_DELTA, IOU_LIMITS = 0.3, 5.0, (0.05, 0.95)
"""Boxes that overlap the shot less teach no deltas; errors and IoUs beyond these are cut."""
SMALL, LARGE = (96, 0.2, 0.3), (48, 0.35, 0.5)
"""Two rings of boxes around a shot: how many, and by what share of its sides they are moved and (as a
logarithm) scaled, as standard deviations."""


def boxes_around(shot: Tensor, size: tuple[int, int]) -> Tensor:
    """Boxes (n, 4) around a shot (4,), always in the same pattern, cut to a picture of `size` (H, W)."""
    generator = torch.Generator().manual_seed(0)
    deltas = torch.cat(
        [
            torch.randn(count, 4, generator=generator) * torch.tensor([move, move, scale, scale])
            for count, move, scale in (SMALL, LARGE)
        ]
    ).to(shot)
    boxes = clip_boxes(decode_boxes(deltas, shot.expand(len(deltas), 4)), size)
    return boxes[(boxes[:, 2:] - boxes[:, :2] >= 1).all(1)]


def learn_boxes(
    head: BoxQualityHead, pictures: Sequence[tuple[list[Tensor], tuple[int, int]]], shots: Sequence[Tensor]
) -> Tensor:
    """Pictures, as levels and size (H, W), that show a class at shots (G, 4) each → weights (c + 1, 5)."""
    lessons = [
        lesson
        for (pyramid, size), own in zip(pictures, shots, strict=True)
        for lesson in lessons_around(head, head.prepare(pyramid), size, own)
    ]
    return fit_boxes(lessons, sum(len(own) for own in shots))


def lessons_around(
    head: BoxQualityHead, cells: Cells, size: tuple[int, int], shots: Tensor
) -> list[tuple[Refined, Tensor]]:
    """What the head makes of boxes around shots (G, 4) of one picture, in all its passes and one more."""
    lessons: list[tuple[Refined, Tensor]] = []
    for shot in shots:
        given = boxes_around(shot, size)
        for _ in range(head.passes + 1):
            lessons.append((head.refine(cells, given, size), shot))
            given = lessons[-1][0].boxes
    return lessons


def fit_boxes(lessons: Sequence[tuple[Refined, Tensor]], shots: int) -> Tensor:
    """Passes over boxes around `shots` shots, each with its shot (4,) → weights (c + 1, 5), the constant
    last."""
    hidden = torch.cat([refined.hidden for refined, _ in lessons])
    missed = torch.cat([_missed_iou(refined, shot) for refined, shot in lessons])
    moves = torch.cat([_missed_deltas(refined, shot) for refined, shot in lessons])
    if not len(hidden):  # shots of less than a pixel: no box lies around them
        return hidden.new_zeros(hidden.shape[1] + 1, OUTPUTS)
    near = torch.cat([box_iou(refined.given, shot[None])[:, 0] >= NEAR_IOU for refined, shot in lessons])
    scale = hidden.square().mean().sqrt().clamp(min=1e-6)
    features = torch.cat([hidden / scale, hidden.new_ones(len(hidden), 1)], 1)
    weights = torch.cat(
        [
            _ridge(features, missed[:, None], RIDGE_IOU / shots),
            _ridge(features[near], moves[near], RIDGE_DELTAS / shots),
        ],
        1,
    )
    return torch.cat([weights[:-1] / scale, weights[-1:]])


def correct(
    refined: Refined, weights: Tensor, lead: tuple[int, int], size: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    """Boxes (K, P, 4) and quality (K, P) of one pass over K'·P boxes (`lead` is (K', P), K' is K or 1), as
    weights (K, c + 1, 5) of K classes correct them."""
    hidden, deltas, logits, given = (
        part.unflatten(0, lead)
        for part in (refined.hidden, refined.deltas, refined.iou_logits, refined.given)
    )
    missed = hidden @ weights[:, :-1] + weights[:, -1:]  # (K, P, 5)
    moved = deltas + missed[..., 1:]
    boxes = clip_boxes(decode_boxes(moved, given.expand_as(moved), DELTA_SCALES), size)
    # Shots may lower what a box is worth, but not raise it: that would also raise it where nothing is.
    value = (logits + missed[..., :1].clamp(max=0)).sigmoid().prod(-1).clamp(min=1e-12).sqrt()
    return boxes, value


def _ridge(features: Tensor, wanted: Tensor, ridge: float) -> Tensor:
    """(n, c + 1) and (n, m) → (c + 1, m); without a row nothing is corrected."""
    penalty = features.new_full((features.shape[1],), ridge)
    penalty[-1] *= 0.1
    count = max(1, len(features))
    return torch.linalg.solve(features.T @ features / count + penalty.diag(), features.T @ wanted / count)


def _missed_iou(refined: Refined, shot: Tensor) -> Tensor:
    """(n,) by how much the mean of the IoU's two logits is too low for the boxes that the pass gives."""
    truth = box_iou(refined.boxes, shot[None])[:, 0].clamp(*IOU_LIMITS)
    return truth.logit() - refined.iou_logits.mean(1)


def _missed_deltas(refined: Refined, shot: Tensor) -> Tensor:
    """(n, 4) what the pass's deltas lack of those that lead to the shot."""
    right = encode_boxes(shot.expand_as(refined.given), refined.given, DELTA_SCALES)
    return (right - refined.deltas).clamp(-MOST_DELTA, MOST_DELTA)
