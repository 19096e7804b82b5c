"""Box-quality head (beyond the paper): how well a box fits its object, whatever the object is.

A part of a bus looks like a bus: boxes of the wrong extent outrank the right one. This head sees a
box with its surroundings, moves it, and predicts the IoU of the moved box, class-agnostically; it is
applied twice, and its value multiplies the score. The relation head says what, this says how well.

Two estimates of the IoU are averaged geometrically: one learns from all boxes and is better on whole
objects, the other from boxes near an object only and carries over to other domains.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tenet.models.neck import Level, start_relu
from tenet.ops import clip_boxes, decode_boxes, enlarge_boxes, roi_align_levels

CELLS = 7
DELTA_SCALES = (0.1, 0.2)


class Refined(NamedTuple):
    """One pass: the boxes it was given, its deltas (n, 4), IoU logits (n, 2), the boxes it gives, and the
    hidden features (n, hidden) behind them."""

    given: Tensor
    deltas: Tensor
    iou_logits: Tensor
    boxes: Tensor
    hidden: Tensor


class Cells(NamedTuple):
    """A picture's levels, reduced: rows (N, c) of all positions, level after level, and the maps' shapes."""

    rows: Tensor
    shapes: list[tuple[int, int]]


class BoxQualityHead(nn.Module):
    """1×1 convolution, two fully connected layers, IoU and deltas."""

    def __init__(
        self, d: int, levels: tuple[Level, ...], *, passes: int, context: float, channels: int, hidden: int
    ) -> None:
        super().__init__()
        self.levels, self.passes, self.context, self.hidden = levels, passes, context, hidden
        self.reduce = nn.Conv2d(d, channels, 1)
        self.body = nn.Sequential(
            nn.Linear(channels * CELLS**2, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.iou = nn.Linear(hidden, 2)
        self.deltas = nn.Linear(hidden, 4)
        start_relu(self.reduce, *self.body)
        nn.init.normal_(self.deltas.weight, std=1e-3)
        nn.init.zeros_(self.deltas.bias)

    def forward(self, pyramid: list[Tensor], boxes: Tensor, size: tuple[int, int]) -> list[Refined]:
        """Every pass over boxes (n, 4) of one picture, whose levels are each (1, d, h, w)."""
        cells = self.prepare(pyramid)
        passes: list[Refined] = []
        for _ in range(self.passes):
            passes.append(self.refine(cells, passes[-1].boxes if passes else boxes, size))
        return passes

    def prepare(self, pyramid: list[Tensor]) -> Cells:
        """A picture's levels as `refine` takes them, once for all passes."""
        rows = torch.cat([level[0].flatten(1) for level in pyramid], 1).T  # (N, d)
        reduced = torch.relu(F.linear(rows, self.reduce.weight.flatten(1), self.reduce.bias))
        return Cells(reduced, [(level.shape[2], level.shape[3]) for level in pyramid])

    def refine(self, cells: Cells, boxes: Tensor, size: tuple[int, int]) -> Refined:
        """One pass over boxes (n, 4), xyxy in pixels of a picture of `size` (H, W)."""
        hidden = self.body(self._pool(cells, enlarge_boxes(boxes, self.context)).flatten(1))
        deltas, iou_logits = self.deltas(hidden), self.iou(hidden)
        moved = clip_boxes(decode_boxes(deltas.detach(), boxes, DELTA_SCALES), size)
        return Refined(boxes, deltas, iou_logits, moved, hidden)

    def _pool(self, cells: Cells, boxes: Tensor) -> Tensor:
        """RoIAlign from the level on which a box spans about `CELLS` to twice as many cells."""
        side = (boxes[:, 2:] - boxes[:, :2]).clamp(min=1).prod(1).sqrt()
        finest = math.log2(self.levels[0].stride * CELLS)
        level = (side.log2() - finest).floor().long().clamp(0, len(self.levels) - 1)
        shifts = boxes.new_tensor([level.shift for level in self.levels])[level]
        scales = [1 / level.stride for level in self.levels]
        return roi_align_levels(cells.rows, cells.shapes, scales, boxes - shifts.unsqueeze(1), level, CELLS)


def quality(refined: Refined) -> Tensor:
    """√(i1·i2) in [0, 1], (n,): what multiplies the score."""
    return refined.iou_logits.sigmoid().prod(1).clamp(min=1e-12).sqrt()
