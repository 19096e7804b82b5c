"""What is to be found in a query picture, and which box overlaps which."""

from typing import NamedTuple

import torch
from torch import Tensor

from tenet.errors import InputError
from tenet.ops import box_iou
from tenet.ops.boxes import check_boxes


class QueryTarget(NamedTuple):
    """The objects of one query picture.

    boxes  (G, 4) xyxy in pixels of the picture
    ways   (G,) int64: which of the episode's K classes, or −1 for an object of another class
    ignore (G,) bool: neither right nor wrong to find (VOC's `difficult`, COCO's `iscrowd`)
    """

    boxes: Tensor
    ways: Tensor
    ignore: Tensor

    def check(self, classes: int) -> None:
        check_boxes(self.boxes, "target.boxes")
        if self.ignore.dtype != torch.bool or self.ways.is_floating_point():
            raise InputError(
                f"target: expected whole ways and bool ignore, got {self.ways.dtype} and {self.ignore.dtype}"
            )
        if self.ways.shape != self.boxes.shape[:1] or self.ignore.shape != self.boxes.shape[:1]:
            raise InputError(
                f"target: expected {len(self.boxes)} ways and ignore flags, one for each box; "
                f"got {tuple(self.ways.shape)} and {tuple(self.ignore.shape)}"
            )
        if len(self.ways) and (int(self.ways.max()) >= classes or int(self.ways.min()) < -1):
            raise InputError(
                f"target.ways: expected numbers from -1 to {classes - 1}, got {self.ways.tolist()}"
            )
        if not torch.isfinite(self.boxes).all() or (self.boxes[:, 2:] <= self.boxes[:, :2]).any():
            raise InputError("target.boxes: expected finite boxes with x1 < x2 and y1 < y2")

    def of_class(self, way: int | None) -> tuple[Tensor, Tensor]:
        """Boxes to find and boxes to ignore of a class, or of all objects with `way` None."""
        mine = torch.ones_like(self.ignore) if way is None else self.ways == way
        return self.boxes[mine & ~self.ignore], self.boxes[mine & self.ignore]


def check_targets(targets: list[QueryTarget], pictures: int, classes: int) -> None:
    """Refuse anything but one sound target for each picture."""
    if not pictures or len(targets) != pictures:
        raise InputError(f"targets: expected one for each of the {pictures} pictures, got {len(targets)}")
    for target in targets:
        if not isinstance(target, QueryTarget):
            raise InputError(f"targets: expected QueryTarget, got {type(target).__name__}")
        target.check(classes)


def best_iou(boxes: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
    """For each box its largest IoU with `others` and that other's row; zeros where there is none."""
    if len(others) == 0:
        return boxes.new_zeros(len(boxes)), torch.zeros(len(boxes), dtype=torch.long, device=boxes.device)
    best = box_iou(boxes, others).max(1)
    return best.values, best.indices
