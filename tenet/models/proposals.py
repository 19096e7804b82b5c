"""Proposal filtering (Sec. 4.1): many scored boxes → the best few that do not repeat each other; and at the
end of the figure the detections.

In a crowd (beyond the paper) a few are too few: with `crowd` the boxes after them stay too, as long as they
are still good. A picture of one thing has none of these, and costs what it did.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from tenet.config import HeadConfig
from tenet.models.rivals import match_with_rivals
from tenet.ops import clip_boxes, nms
from tenet.structures import Detections

GOOD_OBJECTNESS, GOOD_VALUE = 0.1, 0.05
"""A box beyond the usual number stays from this objectness, and once refined from this objectness times
quality."""


class Proposals(NamedTuple):
    """Candidate boxes, for each picture and class; short lists are padded and `mask` tells which are real.

    boxes      (E, K', P, 4) xyxy in pixels of the picture; K' is K, or 1 where all classes share them
    objectness (E, K, P) the RPN's logit for each class
    quality    (E, K', P) value of the box-quality head, 1 without it
    mask       (E, K', P) bool
    """

    boxes: Tensor
    objectness: Tensor
    quality: Tensor
    mask: Tensor


class Filter(NamedTuple):
    """Boxes kept before and after NMS, the IoU of NMS, the least side of a box in pixels, and how many boxes
    a crowd may have after NMS."""

    pre_nms: int
    post_nms: int
    iou: float
    min_size: float
    crowd: int = 0


def best_boxes(
    boxes: Tensor, scores: Tensor, objectness: Tensor, size: tuple[int, int], rule: Filter
) -> tuple[Tensor, Tensor]:
    """Boxes (n, 4) of one picture, best by scores (n,), with logits of objectness (n,) → the kept boxes, cut
    to the picture, and their rows."""
    rows = scores.topk(min(rule.pre_nms, len(scores)), sorted=True).indices
    kept = clip_boxes(boxes[rows], size)
    large = ((kept[:, 2:] - kept[:, :2]) >= rule.min_size).all(1) & torch.isfinite(kept).all(1)
    kept, rows = kept[large], rows[large]
    best = nms(kept, scores[rows], rule.iou, limit=max(rule.post_nms, rule.crowd))
    best = best[_few_or_good(objectness[rows][best].sigmoid() >= GOOD_OBJECTNESS, rule.post_nms)]
    return kept[best], rows[best]


def _few_or_good(good: Tensor, few: int) -> Tensor:
    """(n,) bool, of boxes best first: whether each is among the first few, or good (n,) bool."""
    return good | (torch.arange(len(good), device=good.device) < few)


def best_proposals(proposals: Proposals, few: int, iou: float, crowd: int = 0) -> Proposals:
    """At most `few` proposals of each picture that all classes share (K' = 1), of a crowd up to `crowd`,
    thinned out once more.

    Refined boxes lie on each other; of those that overlap by more than `iou` the one stays whose best
    rank in any class, by objectness times quality, is the best.
    """
    value = proposals.objectness.sigmoid() * proposals.quality * proposals.mask  # (E, K, P)
    ranks = value.argsort(dim=-1, descending=True, stable=True).argsort(dim=-1).amin(1)
    rows = []
    for e, rank in enumerate(ranks):
        boxes = proposals.boxes[e, 0]
        kept = nms(boxes, -rank.float(), iou, limit=max(few, crowd))
        kept = kept[_few_or_good(value[e, :, kept].amax(0) >= GOOD_VALUE, few)]
        rows.append(kept[proposals.mask[e, 0][kept]])
    chosen, mask = pad_rows(rows)  # (E, P')
    index = chosen.unsqueeze(1)
    return Proposals(
        proposals.boxes.gather(2, index.unsqueeze(-1).expand(-1, -1, -1, 4)),
        proposals.objectness.gather(2, index.expand(-1, proposals.objectness.shape[1], -1)),
        proposals.quality.gather(2, index),
        mask.unsqueeze(1),
    )


def pad_rows(items: list[Tensor], value: float = 0.0) -> tuple[Tensor, Tensor]:
    """Tensors (n_i, …) → (I, max n, …) and a mask (I, max n); at least one row, so that nothing is empty."""
    longest = max(1, max((len(item) for item in items), default=0))
    shape = (len(items), longest, *items[0].shape[1:])
    padded = items[0].new_full(shape, value)
    mask = torch.zeros(len(items), longest, dtype=torch.bool, device=padded.device)
    for i, item in enumerate(items):
        padded[i, : len(item)] = item
        mask[i, : len(item)] = True
    return padded, mask


def score(logits: Tensor, proposals: Proposals, head: HeadConfig, rivals: Tensor | None = None) -> Tensor:
    """Log-odds (E, K, P) of the classes (as `rivals`, if they differ), objectness and quality as one number
    in [0, 1]; padding scores 0."""
    if head.competing and rivals is not None:
        match = match_with_rivals(logits, rivals)
    elif head.competing:
        background = torch.zeros_like(logits[:, :1])
        match = torch.cat([background, logits], 1).softmax(1)[:, 1:]
    else:
        match = logits.sigmoid()
    factor = proposals.objectness.sigmoid() ** head.objectness_power
    return match * factor * proposals.quality**head.quality_power * proposals.mask


class Selection(NamedTuple):
    """Least score, IoU of NMS within a class, and most detections of a picture."""

    threshold: float
    iou: float
    most: int


def select(
    boxes: Tensor, scores: Tensor, shots: Tensor, size: tuple[int, int], rule: Selection
) -> Detections:
    """What is told of one picture of that size (height, width), best first: boxes (K or 1, P, 4) xyxy in its
    pixels, with scores (K, P) and the shot (K, P) of each class that is most alike."""
    labels = torch.arange(len(scores), device=scores.device).unsqueeze(1).expand_as(scores)
    boxes = clip_boxes(boxes.expand(*scores.shape, 4), size)
    good = (scores > rule.threshold) & (boxes[..., 2:] > boxes[..., :2]).all(-1)
    boxes, scores, labels, shots = (x[good].detach() for x in (boxes, scores, labels, shots))
    keep = nms(boxes, scores, rule.iou, labels, rule.most)
    boxes, scores, labels, shots = (x[keep].cpu() for x in (boxes, scores, labels, shots))
    return Detections(boxes.float().numpy(), scores.float().numpy(), labels.numpy(), shots.numpy())
