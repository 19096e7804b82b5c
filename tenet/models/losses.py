"""What training minimises (spec of the ancestor, FSOD): RPN, relation head and box quality.

Predictions and targets in, scalars out; what is drawn comes from torch's global
generator (`tenet.models.sampling`), so `torch.manual_seed` fixes it. A picture or class without any object
is normal and gives a loss of its background alone; nothing at all gives zero, with a gradient.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tenet.models.box_quality import DELTA_SCALES, BoxQualityHead, Refined
from tenet.models.common_objectness import assign_cells
from tenet.models.rpn import RPNOutput
from tenet.models.sampling import draw_rows, jitter_boxes
from tenet.models.targets import QueryTarget, best_iou
from tenet.ops import box_iou, encode_boxes, paired_iou

QUALITY_NEAR_IOU = 0.3
"""A box overlapping an object at least this much teaches the second estimate of its IoU."""


def label_anchors(
    anchors: Tensor, boxes: Tensor, ignore: Tensor, iou: tuple[float, float]
) -> tuple[Tensor, Tensor]:
    """1 positive, 0 negative, −1 neither, and the row of the box; every box gets its best anchor."""
    value, row = best_iou(anchors, boxes)
    labels = torch.full((len(anchors),), -1.0, device=anchors.device)
    labels[value < iou[0]] = 0
    if len(ignore):
        labels[best_iou(anchors, ignore)[0] >= iou[0]] = -1
    labels[value >= iou[1]] = 1
    if len(boxes) and len(anchors):
        overlap = box_iou(anchors, boxes)
        best = overlap.max(0).values
        lent = torch.where((overlap == best) & (best > 0), overlap, -1.0).max(
            1
        )  # to a box with no better anchor
        rescued = (lent.values > 0) & (value < iou[1])
        labels[rescued] = 1
        row = torch.where(rescued, lent.indices, row)
    return labels, row


def rpn_loss(
    output: RPNOutput,
    targets: list[QueryTarget],
    *,
    batch: int,
    positive_share: float,
    iou: tuple[float, float],
    negative_branch: bool,
    class_agnostic: bool,
    focal: bool = False,
    judge: Callable[[Tensor], tuple[Tensor, Tensor]] | None = None,
) -> dict[str, Tensor]:
    """Objectness and boxes on sampled anchors, for every picture and every class that is in it
    (`negative_branch`: for absent classes too). `class_agnostic`: all objects at once, K' = 1.

    `focal`: half of the negatives are the hardest, easy ones count little, sums are divided by the positives.
    `judge` computes logits (n,) and deltas (n, 4) of the sampled rows (n, 3), picture, class, anchor, where
    `output` has them without a gradient. Where classes have boxes in common, those are learned elsewhere
    (`common_loss`), and a class learns what it adds to the common logit, which this leaves as it is.
    """
    rows, labels, wanted = [], [], []
    for e, target in enumerate(targets):
        real = output.real[e].nonzero().flatten()
        for k in range(output.logits.shape[1]):
            boxes, ignore = target.of_class(None if class_agnostic else k)
            if len(boxes) == 0 and not (negative_branch or class_agnostic):
                continue
            if output.common is None:
                label, row = label_anchors(output.anchors[real], boxes, ignore, iou)
            else:
                assigned = assign_cells(output.anchors[real], boxes, ignore)
                label, row = assigned.labels, assigned.row
            positive, negative = draw_rows(label, batch, positive_share)
            if focal:
                negative = _half_hardest(output.logits[e, k, real].detach(), label, negative)
            both = real[torch.cat([positive, negative])]
            rows.append(torch.stack([torch.full_like(both, e), torch.full_like(both, k), both], 1))
            labels.append(torch.cat([torch.ones(len(positive)), torch.zeros(len(negative))]).to(boxes))
            wanted.append(encode_boxes(boxes[row[positive]], output.anchors[real[positive]]))
    nothing = 0 * (output.logits.sum() + output.deltas.sum())
    if output.shared is not None:
        nothing = 0 * output.shared.sum()
    if not rows:
        return {"rpn_objectness": nothing, **({} if output.common is not None else {"rpn_box": nothing})}
    sampled, label = torch.cat(rows), torch.cat(labels)
    logits, deltas = _look_up(output, sampled) if judge is None else judge(sampled)
    if output.common is not None and judge is not None:
        logits = logits + output.common[sampled[:, 0], 0, sampled[:, 2]].detach()
    counted = label.sum().clamp(min=1) if focal else len(label)
    objectness = _focal_loss(logits, label) if focal else _cross_entropy(logits, label)
    if output.common is not None:
        return {"rpn_objectness": objectness / counted}
    if not label.any():
        return {"rpn_objectness": objectness / counted, "rpn_box": nothing}
    box = F.smooth_l1_loss(deltas[label == 1], torch.cat(wanted), beta=1 / 9, reduction="sum")
    return {"rpn_objectness": objectness / counted, "rpn_box": box / counted}


def _cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    return F.binary_cross_entropy_with_logits(logits, labels, reduction="sum")


def _focal_loss(logits: Tensor, labels: Tensor, gamma: float = 2.0) -> Tensor:
    """Cross-entropy times (1 − p)^γ of the right answer's probability p (Lin et al., 2017), summed."""
    losses = F.binary_cross_entropy_with_logits(logits, labels, reduction="none")
    return (losses * (1 - torch.exp(-losses)) ** gamma).sum()


def _half_hardest(logits: Tensor, labels: Tensor, drawn: Tensor) -> Tensor:
    """Half of the drawn negatives, and as many of all negatives with the highest logits; each row once."""
    half = len(drawn) // 2
    hardest = logits.masked_fill(labels != 0, -torch.inf).topk(min(half, len(logits))).indices
    return torch.cat([hardest[labels[hardest] == 0], drawn[half:]]).unique()


def _look_up(output: RPNOutput, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Logits (n,) and deltas (n, 4) of rows (n, 3) of the RPN's output."""
    e, k, anchor = rows.unbind(1)
    return output.logits[e, k, anchor], output.deltas[e, k, anchor]


class RegionLabels(NamedTuple):
    """Which class each region is: positive (E, K, P) bool, counts (E, K, P) bool (false: left out),
    present (E, K) bool whether the class is in the picture, boxes (E, K, P, 4) of the object."""

    positive: Tensor
    counts: Tensor
    present: Tensor
    boxes: Tensor


def label_regions(
    boxes: Tensor, mask: Tensor, targets: list[QueryTarget], classes: int, iou: float, exclusive: bool
) -> RegionLabels:
    """Regions (E, K', P, 4), real where `mask`, against every class's objects; K' is K or 1.

    `exclusive`: a region is of one class at most, the one that it overlaps best.
    """
    pictures, groups, count = mask.shape
    shape = (pictures, classes, count)
    overlap = boxes.new_zeros(shape)
    counts = mask.expand(shape).clone()
    present = torch.zeros(pictures, classes, dtype=torch.bool, device=boxes.device)
    matched = boxes.expand(*shape, 4).clone()
    for e, target in enumerate(targets):
        for k in range(classes):
            wanted, ignore = target.of_class(k)
            own = boxes[e, k if groups > 1 else 0]
            overlap[e, k], row = best_iou(own, wanted)
            present[e, k] = len(wanted) > 0
            if len(wanted):
                matched[e, k] = wanted[row]
            counts[e, k] &= (overlap[e, k] >= iou) | (best_iou(own, ignore)[0] < iou)
    positive = (overlap >= iou) & counts
    if exclusive:
        positive &= overlap == overlap.amax(1, keepdim=True)
    return RegionLabels(positive, counts, present, matched)


def relation_loss(
    logits: Tensor,
    deltas: Tensor,
    regions: Tensor,
    labels: RegionLabels,
    *,
    hard_ratio: tuple[int, int, int],
    competing: bool,
) -> dict[str, Tensor]:
    """Log-odds (E, K, P) and deltas (E, K, P, 4) of regions (E, K', P, 4): classification on the hard
    subset (foreground, + branch) : (background, + branch) : (anything, − branch), box on foreground."""
    classify = _competing_loss if competing else _binary_loss
    classification = classify(logits, labels, hard_ratio)
    foreground = labels.positive & labels.counts
    if not foreground.any():
        return {"head_class": classification, "head_box": 0 * deltas.sum()}
    given = regions.expand(*labels.boxes.shape)[foreground]
    wanted = encode_boxes(labels.boxes[foreground], given, DELTA_SCALES)
    box = F.smooth_l1_loss(deltas[foreground], wanted, reduction="sum") / foreground.sum()
    return {"head_class": classification, "head_box": box}


def _hardest(losses: Tensor, allowed: Tensor, count: int) -> Tensor:
    """The `count` largest of the allowed losses, as a flat tensor."""
    values = losses[allowed]
    return values.topk(min(count, len(values))).values


def _binary_loss(logits: Tensor, labels: RegionLabels, ratio: tuple[int, int, int]) -> Tensor:
    """One log-odds for each pair of region and class."""
    losses = F.binary_cross_entropy_with_logits(logits, labels.positive.to(logits.dtype), reduction="none")
    chosen = []
    for e in range(len(logits)):
        present = labels.present[e].unsqueeze(-1)
        right = labels.positive[e] & labels.counts[e]
        wrong = ~labels.positive[e] & labels.counts[e]
        unit = max(1, int(right.sum()) // max(1, ratio[0]))
        chosen += [
            losses[e][right],
            _hardest(losses[e], wrong & present, ratio[1] * unit),
            _hardest(losses[e], wrong & ~present, ratio[2] * unit),
        ]
    picked = torch.cat(chosen)
    return picked.mean() if len(picked) else 0 * logits.sum()


def _competing_loss(logits: Tensor, labels: RegionLabels, ratio: tuple[int, int, int]) -> Tensor:
    """A softmax over the K classes and a background of log-odds 0, for each region."""
    scores = torch.cat([torch.zeros_like(logits[:, :1]), logits], 1)  # (E, 1 + K, P)
    is_class = labels.positive.any(1)
    answer = torch.where(is_class, labels.positive.float().argmax(1) + 1, 0)  # (E, P)
    counts = labels.counts.all(1) | is_class
    losses = F.cross_entropy(scores, answer, reduction="none")
    chosen = []
    for e in range(len(logits)):
        right = is_class[e] & counts[e]
        unit = max(1, int(right.sum()) // max(1, ratio[0]))
        chosen += [
            losses[e][right],
            _hardest(losses[e], ~is_class[e] & counts[e], (ratio[1] + ratio[2]) * unit),
        ]
    picked = torch.cat(chosen)
    return picked.mean() if len(picked) else 0 * logits.sum()


def learn_quality(
    head: BoxQualityHead,
    pictures: Sequence[tuple[list[Tensor], tuple[int, int]]],
    regions: tuple[Tensor, Tensor],
    targets: list[QueryTarget],
    jittered: int,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Regions (E, K', P, 4) with their mask, as the head moves them, and its losses on these and on about
    `jittered` moved objects of each picture, which is given by its levels and its size (H, W)."""
    boxes, mask = regions
    moved, parts = boxes.clone(), []
    for e, ((pyramid, size), target) in enumerate(zip(pictures, targets, strict=True)):
        own = boxes[e][mask[e]]
        around = jitter_boxes(target.of_class(None)[0], jittered, size)
        passes: list[Refined] = head(pyramid, torch.cat([own, around]), size)
        moved[e][mask[e]] = passes[-1].boxes[: len(own)]
        parts.append(quality_loss(passes, target))
    return moved, {name: torch.stack([part[name] for part in parts]).mean() for name in parts[0]}


def quality_loss(passes: list[Refined], target: QueryTarget) -> dict[str, Tensor]:
    """IoU of the moved boxes and the moves themselves, for the regions of one picture."""
    wanted, ignore = target.of_class(None)
    iou_losses, box_losses = [], []
    for refined in passes:
        value, row = best_iou(refined.given, wanted)
        counts = (value >= QUALITY_NEAR_IOU) | (best_iou(refined.given, ignore)[0] < QUALITY_NEAR_IOU)
        truth = paired_iou(refined.boxes, wanted[row]) if len(wanted) else torch.zeros_like(value)
        both = F.binary_cross_entropy_with_logits(
            refined.iou_logits, truth.unsqueeze(1).expand(-1, 2), reduction="none"
        )
        near = counts & (value >= QUALITY_NEAR_IOU)
        iou_losses += [_mean(both[counts, 0]), _mean(both[near, 1])]
        if len(wanted):
            moves = encode_boxes(wanted[row], refined.given, DELTA_SCALES)
            box_losses.append(_mean(F.smooth_l1_loss(refined.deltas, moves, reduction="none").sum(1)[near]))
        else:
            box_losses.append(0 * refined.deltas.sum())
    return {"quality_iou": torch.stack(iou_losses).mean(), "quality_box": torch.stack(box_losses).mean()}


def _mean(values: Tensor) -> Tensor:
    return values.mean() if len(values) else values.sum()
