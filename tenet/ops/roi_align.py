"""RoIAlign (He et al., 2017), forward and backward, without compiled extensions.

A region's cell is the mean of sampling_ratio² bilinear samples. RoIAlign is separable: along each
axis a cell is a weighted sum of 2·sampling_ratio rows (or columns). Two exact ways follow from that,
chosen by the map's size (`tenet bench ops` shows where they cross):
  * small maps: two dense products with (cells, H) and (cells, W) interpolation matrices;
  * large maps: a cell is a weighted bag of map positions, so the whole operator is one
    `embedding_bag` over the map laid out as (positions, C), which reads a position's channels at once.

Rules, as in the reference implementations: with `aligned` the map's pixel centres lie at half-integer
positions; a sample more than one cell outside the map counts as zero, one within is clamped to the
border; an empty box list gives an empty result.
"""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from tenet.errors import InputError
from tenet.ops.boxes import check_boxes
from tenet.ops.checks import check_tensor, check_whole

DENSE_UP_TO = 32 * 32
"""Positions of a map up to which the dense products are the faster way."""


DENSE_NUMBERS = 2**25
"""Numbers that the dense products may hold at a time (128 MB in float32)."""


def roi_align(
    features: Tensor,
    boxes: Tensor | list[Tensor],
    output_size: int | tuple[int, int],
    spatial_scale: float = 1.0,
    sampling_ratio: int = 2,
    aligned: bool = True,
) -> Tensor:
    """Regions' features: (B, C, H, W) and boxes → (R, C, *output_size).

    `boxes` are xyxy in pixels of the picture, `spatial_scale` takes them to the map: either a list of
    B tensors (n_i, 4), or one (R, 5) tensor whose first column is the row of `features`.
    """
    height, width = _check(features, output_size, spatial_scale, sampling_ratio)
    rois = _as_rois(features, boxes)
    batch, channels, map_height, map_width = features.shape
    if len(rois) == 0 or batch == 0:
        return features.new_zeros(0, channels, height, width) + 0 * features.sum()

    corners = rois[:, 1:] * spatial_scale - (0.5 if aligned else 0.0)
    start, extent = corners[:, :2], corners[:, 2:] - corners[:, :2]
    if not aligned:
        extent = extent.clamp(min=1.0)
    x_taps = _axis_taps(start[:, 0], extent[:, 0], width, map_width, sampling_ratio)
    y_taps = _axis_taps(start[:, 1], extent[:, 1], height, map_height, sampling_ratio)
    way = _by_dense_products if map_height * map_width <= DENSE_UP_TO else _by_bags
    return way(features, rois[:, 0].long(), y_taps, x_taps)


def roi_align_levels(
    table: Tensor,
    shapes: Sequence[tuple[int, int]],
    scales: Sequence[float],
    boxes: Tensor,
    level: Tensor,
    output_size: int,
    sampling_ratio: int = 2,
) -> Tensor:
    """Regions of one picture, each from a map of its own in a pyramid, in one product: (R, C, S, S).

    table   (N, C): the maps of all levels as rows of positions, one level after the other
    shapes  (height, width) of each level's map; scales take pixels of the picture to its cells
    boxes   (R, 4) xyxy in pixels of the picture; level (R,) which map each is taken from
    `roi_align` with `aligned` on the box's own map gives the same.
    """
    check_boxes(boxes)
    check_tensor("table", table, "(N, C)", ndim=2)
    counts = [height * width for height, width in shapes]
    if len(table) != sum(counts) or len(scales) != len(shapes) or level.shape != boxes.shape[:1]:
        raise InputError(
            f"roi_align_levels: expected {sum(counts)} rows for maps of {list(shapes)}, a scale for each map "
            f"and a level for each box; got {len(table)}, {len(scales)} and {tuple(level.shape)}"
        )
    if len(boxes) == 0:
        return table.new_zeros(0, table.shape[1], output_size, output_size) + 0 * table.sum()
    limits = torch.tensor([(h, w, sum(counts[:i])) for i, (h, w) in enumerate(shapes)], device=table.device)[
        level
    ]  # (R, 3): height, width, first row
    corners = boxes.detach() * boxes.new_tensor(scales)[level].unsqueeze(1) - 0.5
    start, extent = corners[:, :2], corners[:, 2:] - corners[:, :2]
    height, width, first = limits.unsqueeze(-1).unbind(1)
    x_index, x_weight = _axis_taps(start[:, 0], extent[:, 0], output_size, width, sampling_ratio)
    y_index, y_weight = _axis_taps(start[:, 1], extent[:, 1], output_size, height, sampling_ratio)
    line = y_index * width.unsqueeze(-1) + first.unsqueeze(-1)
    return _bags(table, line, y_weight, x_index, x_weight)


Taps = tuple[Tensor, Tensor]
"""Along one axis: map rows (R, cells, taps) and their weights, of the same shape."""


def _by_dense_products(features: Tensor, rows: Tensor, y_taps: Taps, x_taps: Taps) -> Tensor:
    """(R, cells, H) and (R, cells, W) interpolation matrices, applied one picture at a time."""
    _, channels, map_height, map_width = features.shape
    vertical, horizontal = _dense(y_taps, map_height, features), _dense(x_taps, map_width, features)
    height = vertical.shape[1]
    at_once = max(1, DENSE_NUMBERS // (height * channels * map_width))
    pooled = []
    for picture in range(len(features)):
        mine = rows == picture
        y, x = vertical[mine], horizontal[mine]
        lines = features[picture].transpose(0, 1).reshape(map_height, channels * map_width)
        for some_y, some_x in zip(y.split(at_once), x.split(at_once), strict=True):
            columns = (some_y.reshape(-1, map_height) @ lines).reshape(len(some_y), -1, map_width)
            pooled.append((columns @ some_x.mT).reshape(len(some_y), height, channels, -1).transpose(1, 2))
    regions = torch.cat(pooled)  # in the order of the pictures
    if len(features) == 1:
        return regions
    return regions[rows.argsort(stable=True).argsort()]


def _dense(taps: Taps, size: int, like: Tensor) -> Tensor:
    index, weight = taps
    matrix = torch.zeros(*index.shape[:2], size, dtype=like.dtype, device=like.device)
    return matrix.scatter_add_(2, index, weight.to(like.dtype))


def _by_bags(features: Tensor, rows: Tensor, y_taps: Taps, x_taps: Taps) -> Tensor:
    """Every pair of a row tap and a column tap is one position in a cell's bag."""
    _, channels, map_height, map_width = features.shape
    (y_index, y_weight), (x_index, x_weight) = y_taps, x_taps
    line = (rows[:, None, None] * map_height + y_index) * map_width
    table = features.permute(0, 2, 3, 1).reshape(-1, channels)
    return _bags(table, line, y_weight, x_index, x_weight)


def _bags(table: Tensor, line: Tensor, y_weight: Tensor, x_index: Tensor, x_weight: Tensor) -> Tensor:
    """Rows of `table` at `line` + column, weighted and summed: (R, C, height, width)."""
    index = line[:, :, None, :, None] + x_index[:, None, :, None, :]  # (R, height, width, taps, taps)
    weight = y_weight[:, :, None, :, None] * x_weight[:, None, :, None, :]
    regions, height, width = index.shape[:3]
    bags = index.reshape(regions * height * width, -1)
    cells = F.embedding_bag(
        bags, table, mode="sum", per_sample_weights=weight.reshape_as(bags).to(table.dtype)
    )
    return cells.reshape(regions, height, width, table.shape[1]).permute(0, 3, 1, 2)


def _check(
    features: Tensor, output_size: int | tuple[int, int], spatial_scale: float, sampling_ratio: int
) -> tuple[int, int]:
    """Refuse a map or a size that makes no sense; the cells' (height, width)."""
    check_tensor("features", features, "(B, C, H, W)", ndim=4)
    if 0 in features.shape[2:]:
        raise InputError(f"features: expected (B, C, H, W) with H, W >= 1, got {tuple(features.shape)}")
    check_whole("sampling_ratio", sampling_ratio, 1)
    size = output_size if isinstance(output_size, tuple) else (output_size, output_size)
    if len(size) != 2:
        raise InputError(f"output_size: expected one number or (height, width), got {output_size!r}")
    for side in size:
        check_whole("output_size", side, 1)
    if not (math.isfinite(spatial_scale) and spatial_scale > 0):
        raise InputError(f"spatial_scale: expected a positive number, got {spatial_scale!r}")
    return size


def _as_rois(features: Tensor, boxes: Tensor | list[Tensor]) -> Tensor:
    """Boxes as (R, 5) rows (row of the map, x1, y1, x2, y2), without gradient."""
    if isinstance(boxes, Tensor):
        check_tensor("boxes", boxes, "(R, 5)")
        if boxes.ndim != 2 or boxes.shape[1] != 5:
            raise InputError(
                f"boxes: expected (R, 5) rows of (map, x1, y1, x2, y2), got {tuple(boxes.shape)}"
            )
        rois = boxes.detach()
    else:
        if not isinstance(boxes, (list, tuple)) or len(boxes) != len(features):
            came = f"{len(boxes)}" if isinstance(boxes, (list, tuple)) else type(boxes).__name__
            raise InputError(
                f"boxes: expected {len(features)} tensors of shape (n, 4), one for each map, got {came}"
            )
        for own in boxes:
            check_boxes(own)
        rows = [torch.cat([b.new_full((len(b), 1), i), b], 1) for i, b in enumerate(boxes)]
        rois = torch.cat(rows).detach() if rows else features.new_zeros(0, 5)
    if len(rois) and not ((rois[:, 0] >= 0) & (rois[:, 0] < len(features))).all():
        raise InputError(f"boxes: expected map numbers from 0 to {len(features) - 1} in the first column")
    if not torch.isfinite(rois).all():
        raise InputError("boxes: expected finite coordinates, got NaN or infinity")
    return rois


def _axis_taps(start: Tensor, extent: Tensor, cells: int, size: int | Tensor, samples: int) -> Taps:
    """Which map rows make up each cell along one axis, and with what weight; `size` may be (R, 1)."""
    offsets = (torch.arange(cells * samples, device=start.device, dtype=start.dtype) + 0.5) / (
        cells * samples
    )
    at = start[:, None] + extent[:, None] * offsets  # (R, cells·samples), in map cells
    inside = (at >= -1.0) & (at <= size)
    last = torch.as_tensor(size - 1, dtype=at.dtype, device=at.device)
    at = torch.minimum(at.clamp(min=0), last)
    low = torch.minimum(at.floor(), (last - 1).clamp(min=0))
    share = at - low
    high = torch.minimum(low + 1, last)
    weight = torch.stack([1 - share, share], -1) * (inside / samples).unsqueeze(-1)
    index = torch.stack([low, high], -1).long()
    shape = (len(start), cells, 2 * samples)
    return index.reshape(shape), weight.reshape(shape)
