"""Anchors of the RPN: boxes of a few sizes and shapes, centred on the cells of a map."""

import torch
from torch import Tensor

from tenet.models.neck import Level


def base_anchors(sizes: tuple[float, ...], ratios: tuple[float, ...]) -> Tensor:
    """(A, 4) xyxy about the origin: each size is the root of the area, each ratio height over width."""
    size = torch.tensor(sizes, dtype=torch.float32).repeat_interleave(len(ratios))
    root = torch.tensor(ratios, dtype=torch.float32).sqrt().repeat(len(sizes))
    width, height = size / root, size * root
    return torch.stack([-width, -height, width, height], 1) / 2


def level_anchors(level: Level, shape: tuple[int, int], base: Tensor) -> Tensor:
    """Anchors (cells, A, 4), xyxy in pixels of the picture, for a map of `shape` = (height, width)."""
    rows, columns = (
        (torch.arange(n, device=base.device, dtype=base.dtype) + 0.5) * level.stride + level.shift
        for n in shape
    )
    y, x = torch.meshgrid(rows, columns, indexing="ij")
    centres = torch.stack([x, y, x, y], -1).reshape(-1, 1, 4)
    return centres + base
