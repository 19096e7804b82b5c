"""A large picture with small things, cut into overlapping tiles that are looked at one by one.

A thing that is no larger than the overlap lies whole in at least one tile, wherever it is; larger ones are
found in the whole picture, which is looked at as well. Sizes are (width, height), tiles are xyxy, both in
whole pixels of the picture.
"""

import math
from collections.abc import Sequence

from tenet.looks.sizes import LARGEST, SeenSize, expected_side

TOO_SMALL = 32.0
"""Expected side, in pixels of the largest working picture, below which a picture is cut."""
IN_TILE = 64.0
"""Side that a thing should have in a tile's working picture: a compromise of sight and time."""
SMALLEST_TILE = 320
"""Pixels of the picture: a smaller tile would be enlarged more than three times and show nothing new."""
OVERLAP = 1.5
"""Overlap of neighbours, in sides of the thing."""
MOST_TILES = 64

Tile = tuple[int, int, int, int]


def needs_tiles(picture: tuple[int, int], seen: Sequence[SeenSize]) -> bool:
    """Whether the things would be too small even at the largest working size."""
    return expected_side(picture, seen) * LARGEST / max(picture) < TOO_SMALL


def longest_side(picture: tuple[int, int], seen: Sequence[SeenSize]) -> float:
    """The longest side that any of the shots would have in that picture, in its pixels."""
    sides = []
    for one in seen:
        width, height = (max(side, 1e-6) for side in one.thing)
        sides.append(one.side_in(picture) * max(width, height) / math.sqrt(width * height))
    return max(sides, default=1.0)


def plan_tiles(picture: tuple[int, int], seen: Sequence[SeenSize]) -> tuple[list[Tile], int]:
    """Tiles for things that were seen at those sizes, row by row, and their overlap in pixels.

    There are at most `MOST_TILES`: for things smaller still, tiles grow and things stay small in them.
    """
    side = expected_side(picture, seen)
    tile = max(SMALLEST_TILE, math.ceil(side * LARGEST / IN_TILE))
    # A shot much larger than the others must not make the tiles mostly overlap; the whole picture is
    # looked at for such things.
    wanted = OVERLAP * max(side, longest_side(picture, seen))
    while True:
        overlap = max(1, math.ceil(min(wanted, tile / 2)), math.ceil(OVERLAP * side))
        tiles = cut(picture, tile, overlap)
        if len(tiles) <= MOST_TILES:
            return tiles, overlap
        tile = math.ceil(tile * 1.1)


def cut(picture: tuple[int, int], tile: int, overlap: int) -> list[Tile]:
    """Tiles of at most `tile` × `tile` that cover the picture, neighbours sharing at least `overlap`."""
    columns, rows = (_spans(length, tile, overlap) for length in picture)
    return [(x1, y1, x2, y2) for y1, y2 in rows for x1, x2 in columns]


def _spans(length: int, tile: int, overlap: int) -> list[tuple[int, int]]:
    """(start, end) along one axis, evenly spread."""
    if length <= tile:
        return [(0, length)]
    step = max(1, tile - overlap)
    count = math.ceil((length - tile) / step) + 1
    # Rounding down keeps every step at most `step`: two floors differ by at most the ceiling of their step,
    # and `step` is whole.
    starts = [place * (length - tile) // (count - 1) for place in range(count)]
    return [(start, start + tile) for start in starts]
