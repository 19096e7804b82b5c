"""Which rows and regions training learns from (spec of the ancestor, FSOD).

Everything is drawn from torch's global generator, so `torch.manual_seed` fixes it.
"""

import torch
from torch import Tensor

from tenet.models.proposals import Proposals, pad_rows
from tenet.models.targets import QueryTarget, best_iou
from tenet.ops import clip_boxes, decode_boxes

JITTER_MOVE, JITTER_SCALE = 0.2, 0.3
"""Standard deviations of a jittered box: of its centre, in sides, and of the logarithm of its sides."""


def draw_rows(labels: Tensor, count: int, positive_share: float) -> tuple[Tensor, Tensor]:
    """Rows of up to `count` labels, at most `positive_share` of them 1, the rest 0; −1 is left out."""
    positive, negative = (labels == 1).nonzero().flatten(), (labels == 0).nonzero().flatten()
    most = min(len(positive), int(count * positive_share))
    positive = positive[torch.randperm(len(positive), device=labels.device)[:most]]
    negative = negative[torch.randperm(len(negative), device=labels.device)[: count - most]]
    return positive, negative


def sample_regions(boxes: Tensor, wanted: Tensor, *, count: int, share: float, iou: float) -> Tensor:
    """Proposals (n, 4) and objects (g, 4) of a picture → up to `count` regions to learn from, (m, 4).

    The objects themselves join the proposals, so that there is always something right to see.
    """
    candidates = torch.cat([boxes, wanted])
    labels = (best_iou(candidates, wanted)[0] >= iou).float()
    return candidates[torch.cat(draw_rows(labels, count, share))].detach()


def sample_proposals(
    proposals: Proposals, targets: list[QueryTarget], *, shared: bool, count: int, share: float, iou: float
) -> tuple[Tensor, Tensor]:
    """Regions of every picture to learn from, (E, K', P, 4) and their mask; `shared`: the same for all
    classes, and every object is one of them."""
    lists = [
        sample_regions(
            proposals.boxes[e, k][proposals.mask[e, k]],
            target.of_class(None if shared else k)[0],
            count=count,
            share=share,
            iou=iou,
        )
        for e, target in enumerate(targets)
        for k in range(proposals.boxes.shape[1])
    ]
    boxes, mask = pad_rows(lists)
    return boxes.unflatten(0, (len(targets), -1)), mask.unflatten(0, (len(targets), -1))


def jitter_boxes(boxes: Tensor, count: int, size: tuple[int, int]) -> Tensor:
    """About `count` boxes: objects (g, 4) moved and scaled at random, cut to a picture of `size` (H, W)."""
    if len(boxes) == 0 or count == 0:
        return boxes[:0]
    own = boxes.repeat(-(-count // len(boxes)), 1)[:count]
    deltas = torch.randn_like(own) * own.new_tensor([JITTER_MOVE, JITTER_MOVE, JITTER_SCALE, JITTER_SCALE])
    moved = clip_boxes(decode_boxes(deltas, own), size)
    return moved[(moved[:, 2:] - moved[:, :2] >= 1).all(1)]
