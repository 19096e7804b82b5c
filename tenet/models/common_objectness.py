"""Common objectness (beyond the paper): where things are, learned from every object of a picture.

An episode marks the objects of a few classes, and an RPN that learns from those alone sees little: its
100 best boxes found 79 % of VOC's objects. Boxes and the common part of the logit are read from the cells
before they meet a class, and every annotated object teaches them; what a class adds is learned beside it.

A cell answers for an object whose centre is near and whose size suits the cell's level (Tian et al., 2019).
The logit learns the IoU of the cell's own box (Li et al., 2020): how well a box sits carries over to new
things better than whether it is one of the old (Kim et al., 2022). Cells on parts of an object count little
as negatives: a part may be what somebody looks for.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tenet.models.rpn import RPNOutput
from tenet.models.targets import QueryTarget
from tenet.ops import box_area, decode_boxes, paired_giou, paired_iou

CELLS = 4.0
"""Side of a cell's square anchor, in strides."""
OCTAVES = 0.75
"""An object belongs to a level if its side is this many octaves from the anchor's, or less."""
CENTRE, LEAST_CENTRE = 0.25, 0.6
"""A cell is near an object's centre if it is not further than this share of its side, or of a stride."""
WEIGHT = 2.0
"""Of both parts of the loss, beside those of the heads."""
PART, INSIDE, LARGER = 0.25, 0.6, 1.5
"""Weight of a negative cell that shows a part: its anchor lies inside an object by that share at least, and
the object's side is that many times as large."""


class CellTargets(NamedTuple):
    """For each cell the row of its object, −1 for none; and how much the cell counts."""

    row: Tensor
    weight: Tensor

    @property
    def labels(self) -> Tensor:
        """1 positive, 0 negative, −1 neither."""
        doubtful = (self.row < 0) & (self.weight < 1)
        return (self.row >= 0).float() - doubtful.float()


def assign_cells(anchors: Tensor, boxes: Tensor, ignore: Tensor) -> CellTargets:
    """Square anchors (M, 4), objects (G, 4) and boxes to ignore (I, 4), all xyxy in pixels of the picture.

    Of several objects a cell answers for the smallest.
    """
    weight = anchors.new_ones(len(anchors))
    if len(ignore):
        weight[_share_inside(anchors, ignore).amax(1) >= INSIDE] = 0
    if len(boxes) == 0 or len(anchors) == 0:
        return CellTargets(torch.full_like(weight, -1, dtype=torch.long), weight)
    centre, side = (anchors[:, None, :2] + anchors[:, None, 2:]) / 2, anchors[:, 2] - anchors[:, 0]
    middle, extent = (boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]
    size = extent.prod(1).clamp(min=1e-6).sqrt()
    reach = torch.maximum(CENTRE * extent, LEAST_CENTRE / CELLS * side[:, None, None])
    near = ((centre - middle).abs() <= reach).all(-1)  # (M, G)
    octaves = (size / side[:, None]).log2()
    octaves = torch.where(side[:, None] == side.min(), octaves.clamp(min=0), octaves)
    octaves = torch.where(side[:, None] == side.max(), octaves.clamp(max=0), octaves)
    mine = near & (octaves.abs() <= OCTAVES)
    mine |= _nearest(centre, middle, octaves) & ~mine.any(0)  # an object that no cell answers for
    smallest = torch.where(mine, size, torch.inf).min(1)
    row = torch.where(mine.any(1), smallest.indices, -1)
    part = (_share_inside(anchors, boxes) >= INSIDE) & (size > LARGER * side[:, None])
    weight = torch.where(part.any(1) & (row < 0), weight * PART, weight)
    return CellTargets(row, torch.where(row >= 0, 1.0, weight))


def _nearest(centre: Tensor, middle: Tensor, octaves: Tensor) -> Tensor:
    """(M, G) bool: the cell of the best level that lies nearest to the object's centre."""
    apart = (centre - middle).pow(2).sum(-1).sqrt() + 1e6 * octaves.abs().round()
    return apart == apart.min(0).values


def _share_inside(anchors: Tensor, boxes: Tensor) -> Tensor:
    """(M, G): the share of each anchor that lies inside each box."""
    low = torch.maximum(anchors[:, None, :2], boxes[:, :2])
    high = torch.minimum(anchors[:, None, 2:], boxes[:, 2:])
    return (high - low).clamp(min=0).prod(-1) / box_area(anchors).clamp(min=1e-6)[:, None]


def common_loss(output: RPNOutput, targets: list[QueryTarget]) -> dict[str, Tensor]:
    """Objectness on every cell, boxes on those with an object; divided by the number of the latter."""
    assert output.common is not None
    losses, boxes_lost, count = [], [], 0
    for e, target in enumerate(targets):
        real = output.real[e]
        anchors, logits = output.anchors[real], output.common[e, 0, real]
        wanted, ignore = target.of_class(None)
        row, weight = assign_cells(anchors, wanted, ignore)
        positive = (row >= 0).nonzero().squeeze(1)
        value = torch.zeros_like(logits)
        if len(positive):
            found = decode_boxes(output.deltas[e, 0, real][positive], anchors[positive])
            mine = wanted[row[positive]]
            value[positive] = paired_iou(found, mine).detach()
            boxes_lost.append((1 - paired_giou(found, mine)).sum())
        lost = F.binary_cross_entropy_with_logits(logits, value, reduction="none")
        losses.append((lost * (logits.detach().sigmoid() - value).abs().pow(2) * weight).sum())
        count += len(positive)
    nothing = 0 * output.deltas.sum()
    scale = WEIGHT / max(1, count)
    return {
        "common_objectness": torch.stack(losses).sum() * scale,
        "common_box": (torch.stack(boxes_lost).sum() if boxes_lost else nothing) * scale,
    }
