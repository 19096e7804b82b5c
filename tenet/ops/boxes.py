"""Box arithmetic. Every box is xyxy in pixels, (…, 4) floating; a box with x2 ≤ x1 or y2 ≤ y1 is empty."""

import math

import torch
from torch import Tensor

from tenet.errors import InputError
from tenet.ops.checks import check_tensor, check_whole

MAX_LOG_SCALE = math.log(1000 / 16)
"""Most that a delta may enlarge an anchor, so that exp cannot overflow."""

NMS_BLOCK = 256
"""Boxes whose mutual overlaps are held in memory at once by `nms`."""


def check_boxes(boxes: Tensor, name: str = "boxes") -> None:
    """Refuse what is not (n, 4) floating."""
    check_tensor(name, boxes, "(n, 4)", ndim=2)
    if boxes.shape[1] != 4:
        raise InputError(f"{name}: expected xyxy boxes of shape (n, 4), got {tuple(boxes.shape)}")


def box_area(boxes: Tensor) -> Tensor:
    """(…, 4) → (…); an empty box has area 0."""
    return (boxes[..., 2:] - boxes[..., :2]).clamp(min=0).prod(-1)


def _intersection(a: Tensor, b: Tensor) -> Tensor:
    top_left = torch.maximum(a[..., :2], b[..., :2])
    bottom_right = torch.minimum(a[..., 2:], b[..., 2:])
    return (bottom_right - top_left).clamp(min=0).prod(-1)


def paired_iou(a: Tensor, b: Tensor) -> Tensor:
    """IoU of boxes that stand beside each other: (…, 4), (…, 4) → (…), with broadcasting."""
    inter = _intersection(a, b)
    union = box_area(a) + box_area(b) - inter
    return inter / union.clamp(min=torch.finfo(union.dtype).tiny)


def paired_giou(a: Tensor, b: Tensor) -> Tensor:
    """Generalised IoU (Rezatofighi et al., 2019) of boxes beside each other: (…, 4), (…, 4) → (…) in (−1, 1].

    IoU less the share of the smallest box around both that neither fills: boxes apart differ too.
    """
    inter = _intersection(a, b)
    union = box_area(a) + box_area(b) - inter
    around = torch.cat([torch.minimum(a[..., :2], b[..., :2]), torch.maximum(a[..., 2:], b[..., 2:])], -1)
    tiny = torch.finfo(union.dtype).tiny
    return inter / union.clamp(min=tiny) - 1 + union / box_area(around).clamp(min=tiny)


def box_iou(a: Tensor, b: Tensor) -> Tensor:
    """IoU of every box of `a` with every box of `b`: (…, n, 4), (…, m, 4) → (…, n, m)."""
    return paired_iou(a.unsqueeze(-2), b.unsqueeze(-3))


def clip_boxes(boxes: Tensor, size: tuple[float, float]) -> Tensor:
    """Boxes cut to a picture of `size` = (height, width)."""
    height, width = size
    limit = boxes.new_tensor([width, height, width, height])
    return torch.minimum(boxes.clamp(min=0), limit)


def enlarge_boxes(boxes: Tensor, factor: float) -> Tensor:
    """Boxes scaled about their centres; nothing is cut at the picture's border."""
    centre = (boxes[..., :2] + boxes[..., 2:]) / 2
    half = (boxes[..., 2:] - boxes[..., :2]) * (factor / 2)
    return torch.cat([centre - half, centre + half], -1)


def _centre_size(boxes: Tensor) -> tuple[Tensor, Tensor]:
    size = (boxes[..., 2:] - boxes[..., :2]).clamp(min=1e-3)
    return (boxes[..., :2] + boxes[..., 2:]) / 2, size


def encode_boxes(boxes: Tensor, anchors: Tensor, scales: tuple[float, float] = (1.0, 1.0)) -> Tensor:
    """Faster R-CNN's deltas (dx, dy, dw, dh) that take `anchors` to `boxes`, centre and size scaled."""
    centre, size = _centre_size(boxes)
    anchor_centre, anchor_size = _centre_size(anchors)
    shift = (centre - anchor_centre) / anchor_size / scales[0]
    return torch.cat([shift, (size / anchor_size).log() / scales[1]], -1)


def decode_boxes(deltas: Tensor, anchors: Tensor, scales: tuple[float, float] = (1.0, 1.0)) -> Tensor:
    """The inverse of `encode_boxes`; sizes grow at most by exp(MAX_LOG_SCALE)."""
    anchor_centre, anchor_size = _centre_size(anchors)
    centre = anchor_centre + deltas[..., :2] * scales[0] * anchor_size
    half = (deltas[..., 2:] * scales[1]).clamp(max=MAX_LOG_SCALE).exp() * anchor_size / 2
    return torch.cat([centre - half, centre + half], -1)


def nms(
    boxes: Tensor,
    scores: Tensor,
    iou_threshold: float,
    groups: Tensor | None = None,
    limit: int | None = None,
) -> Tensor:
    """Greedy non-maximum suppression, exact: indices of the boxes that stay, best first.

    A box goes when a better box that stays overlaps it with IoU above `iou_threshold`. Boxes of
    different `groups` (n,) never suppress each other. Equal scores keep their order. With `limit` only
    the best that many are looked for, which ends the search early.

    Boxes are taken best first in blocks. What earlier blocks kept suppresses at once; inside a block
    `keep = not (some better kept box overlaps)` is iterated from "keep all" until nothing changes:
    the system is triangular, so its only fixed point is the greedy answer.
    """
    _check_nms(boxes, scores, iou_threshold, groups, limit)
    boxes, scores = boxes.detach(), scores.detach()
    order = scores.argsort(descending=True, stable=True)
    kept = order[:0]
    for start in range(0, len(order), NMS_BLOCK):
        block = order[start : start + NMS_BLOCK]
        block = block[~_overlaps(boxes, groups, block, kept, iou_threshold).any(1)]
        block = block[_keep_within(_overlaps(boxes, groups, block, block, iou_threshold))]
        kept = torch.cat([kept, block])
        if limit is not None and len(kept) >= limit:
            break
    return kept[:limit]


def _check_nms(
    boxes: Tensor, scores: Tensor, iou_threshold: float, groups: Tensor | None, limit: int | None
) -> None:
    check_boxes(boxes)
    check_tensor("scores", scores, f"({len(boxes)},)", ndim=1)
    if groups is not None and not isinstance(groups, Tensor):
        raise InputError(f"groups: expected a tensor of shape ({len(boxes)},), got {type(groups).__name__}")
    for name, value in (("scores", scores), ("groups", groups)):
        if value is not None and value.shape != boxes.shape[:1]:
            raise InputError(
                f"{name}: expected shape ({len(boxes)},) to match boxes, got {tuple(value.shape)}"
            )
    if not (torch.isfinite(boxes).all() and torch.isfinite(scores).all()):
        raise InputError("nms: expected finite boxes and scores, got NaN or infinity")
    if not isinstance(iou_threshold, (int, float)):
        raise InputError(f"iou_threshold: expected a number, got {iou_threshold!r}")
    if limit is not None:
        check_whole("limit", limit, 0)


def _overlaps(boxes: Tensor, groups: Tensor | None, a: Tensor, b: Tensor, threshold: float) -> Tensor:
    over = box_iou(boxes[a], boxes[b]) > threshold
    return over if groups is None else over & (groups[a].unsqueeze(1) == groups[b])


def _keep_within(over: Tensor) -> Tensor:
    """`over` (n, n) among boxes that stand best first → which of them the greedy rule keeps."""
    over = over.tril(-1).float()
    keep = over.new_ones(len(over))
    while True:
        after = (over @ keep == 0).float()
        if torch.equal(after, keep):
            return keep.bool()
        keep = after
