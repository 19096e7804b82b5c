"""At which size a picture is looked at: things should be neither dots nor larger than the network can see.

A few shots tell how large the thing is. The working size brings it to about `OBJECT` pixels, within
limits: below `SMALLEST` a picture loses what surrounds the thing, above `LARGEST` the network has never
been trained, and it costs time; what is still too small then is looked for in tiles (`tenet.looks.tiles`).

Sizes are (width, height) in pixels.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tenet.errors import InputError

OBJECT = 96.0
"""Side (square root of the area) that a thing should have, in pixels of the working picture."""
LARGE_ENOUGH = 1.5 * OBJECT
"""The same, from which on a larger side shows nothing more."""
SMALLEST, LARGEST = 480, 960
"""Limits of a working picture's longer side, in pixels."""


@dataclass(frozen=True)
class SeenSize:
    """How large a shot was: the object (width, height) in pixels, and its picture's size; for a bare crop
    (0, 0). `scene` tells pictures apart: a number that shots of one picture share, 0 for a bare crop."""

    thing: tuple[float, float]
    picture: tuple[int, int] = (0, 0)
    scene: int = field(default=0, compare=False)

    @property
    def share(self) -> float:
        """Of its picture's longer side that the thing's side takes up; 0 for a bare crop."""
        return math.sqrt(self.thing[0] * self.thing[1]) / max(self.picture) if max(self.picture) else 0.0

    def side_in(self, picture: tuple[int, int]) -> float:
        """The thing's expected side in another picture, in that picture's pixels.

        A shot with its picture tells the share of the picture that the thing takes up; a bare crop tells
        its pixels only, and the camera is taken to be the same.
        """
        side = math.sqrt(self.thing[0] * self.thing[1])
        if self.picture == (0, 0):
            return min(side, float(max(picture)))
        return side * max(picture) / max(self.picture)


def all_bare(seen: Sequence[SeenSize]) -> bool:
    """Whether no shot came with its picture, so that what they say of sizes is a guess."""
    return all(one.picture == (0, 0) for one in seen)


def expected_side(picture: tuple[int, int], seen: Sequence[SeenSize]) -> float:
    """The geometric mean of what the shots say, in pixels of the picture."""
    if not seen:
        raise InputError("size: expected at least one shot to tell how large the thing is, got none")
    return math.exp(sum(math.log(max(1.0, one.side_in(picture))) for one in seen) / len(seen))


def working_size(picture: tuple[int, int], seen: Sequence[SeenSize]) -> tuple[int, int]:
    """The size at which a picture is looked at for things that were seen at those sizes."""
    longer = max(picture)
    wanted = longer * OBJECT / expected_side(picture, seen)
    return scaled_to(picture, min(max(wanted, SMALLEST), LARGEST))


def seen_well(picture: tuple[int, int], seen: Sequence[SeenSize]) -> tuple[float, float]:
    """Least and largest side, in pixels of the picture, of things that are seen well at its working size: as
    large there as the shots were, or within what the network sees best."""
    scale = max(working_size(picture, seen)) / max(picture)
    side = expected_side(picture, seen)
    return min(side, LARGE_ENOUGH / scale), max(side, OBJECT / scale)


def scaled_to(picture: tuple[int, int], longer: float) -> tuple[int, int]:
    """A picture's size with its longer side at `longer`."""
    width, height = picture
    if width < 1 or height < 1:
        raise InputError(f"size: expected a picture of at least 1 x 1 px, got {width} x {height}")
    scale = longer / max(width, height)
    return max(1, round(width * scale)), max(1, round(height * scale))
