"""Queries that are more than a picture: cut-outs show things large, mosaics show them small.

A detector meets things of every size, but a set of photographs shows most of them at one. Pure functions
over numpy; no argument is changed.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

VISIBLE = 0.4
"""An object of which less than this share is left after a cut is neither to be found nor wrong to find."""
GREY = 127
"""Between the pictures of a mosaic; the encoders' zero."""


class Query(NamedTuple):
    """picture (H, W, 3) uint8; boxes (G, 4) float32 xyxy in its pixels; labels and ignore (G,)."""

    picture: NDArray[np.uint8]
    boxes: NDArray[np.float32]
    labels: NDArray[np.int64]
    ignore: NDArray[np.bool_]


def cut_out(query: Query, rng: np.random.Generator, share: float) -> Query:
    """A window with `share` of the picture's sides that holds the centre of one of its objects, if any.

    Boxes are cut at the window's edge; those outside it go, and those of which little is left are ignored.
    """
    height, width = query.picture.shape[:2]
    size = np.maximum(1, np.round(np.array([width, height]) * share)).astype(np.int64)
    free = np.array([width, height]) - size
    if len(query.boxes):
        x1, y1, x2, y2 = query.boxes[int(rng.integers(len(query.boxes)))]
        centre = np.array([(x1 + x2) / 2, (y1 + y2) / 2])
        low = np.clip(np.ceil(centre - size), 0, free).astype(np.int64)
        high = np.clip(np.floor(centre), 0, free).astype(np.int64)
    else:
        low, high = np.zeros(2, np.int64), free
    left, top = (int(rng.integers(a, max(a, b) + 1)) for a, b in zip(low, high, strict=True))
    right, bottom = left + int(size[0]), top + int(size[1])
    shift = np.array([left, top, left, top], np.float32)
    limits = np.array([right - left, bottom - top] * 2, np.float32)
    boxes = np.clip(query.boxes - shift, 0, limits)
    left_over = _area(boxes) / np.maximum(_area(query.boxes), 1e-6)
    kept = _area(boxes) >= 1
    return Query(
        np.ascontiguousarray(query.picture[top:bottom, left:right]),
        boxes[kept],
        query.labels[kept],
        query.ignore[kept] | (left_over[kept] < VISIBLE),
    )


def mosaic(parts: Sequence[Query]) -> Query:
    """Four queries around a common corner: upper left, upper right, lower left, lower right."""
    sizes = [part.picture.shape[:2] for part in parts]
    top, left = max(sizes[0][0], sizes[1][0]), max(sizes[0][1], sizes[2][1])
    height, width = top + max(sizes[2][0], sizes[3][0]), left + max(sizes[1][1], sizes[3][1])
    canvas = np.full((height, width, 3), GREY, np.uint8)
    boxes = []
    for place, (part, (h, w)) in enumerate(zip(parts, sizes, strict=True)):
        y = top - h if place < 2 else top
        x = left - w if place % 2 == 0 else left
        canvas[y : y + h, x : x + w] = part.picture
        boxes.append(part.boxes + np.array([x, y, x, y], np.float32))
    return Query(
        canvas,
        np.concatenate(boxes),
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.ignore for part in parts]),
    )


def ways_of(labels: NDArray[np.int64], classes: Sequence[int]) -> NDArray[np.int64]:
    """(G,) the way of each object: its class's place in `classes`, −1 for a class that is no way."""
    ways = np.full(len(labels), -1, np.int64)
    for way, label in enumerate(classes):
        ways[labels == label] = way
    return ways


def _area(boxes: NDArray[np.float32]) -> NDArray[np.float32]:
    area: NDArray[np.float32] = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    return area
