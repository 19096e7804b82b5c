"""A second look, where a picture shows its things smaller or larger than the shots did (beyond the paper).

The shots tell at which size a picture is looked at (`tenet.looks.sizes`). In a wide view things are smaller
than that, in a close-up larger; what the first look finds tells by how much:

    away   = log side of a box − log side that the shots of its class let expect
    shift  = argmax  Σ score² · like(away − shift) / (1 + (shift / REACH)²)

summed over the boxes of all classes, because it is the camera that is nearer or farther. If no look was made
for such a size, the picture is looked at again, scaled by e^−shift, so that things are as large as the
shots were; and once more, if that shows still smaller ones. All looks count. What is in tiles is not looked
at again.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tenet.looks.merging import join
from tenet.looks.usual_size import best_shift
from tenet.looks.views import LEAST_SIDE, View
from tenet.structures import Detections, FloatArray

MOST_LOOKS = 3
"""Looks at a picture, the first one among them."""
EVIDENCE = 0.2
"""Least score, as it is told, of a picture's best box: where nothing is found, nothing tells a size."""
FACTOR = 1.35
"""From which ratio of sizes on another look is worth its time."""
LEAST_LONGER, MOST_LONGER = 320, 1920
"""Limits of the longer side of what is looked at again, in pixels."""
MOST_ENLARGED = 3.0
"""How far a picture is enlarged at most: beyond, there is nothing more to see."""
SPREAD, STRENGTH = 0.35, 2.5
"""How much things of one picture differ in size, as a logarithm, and how much those near each other count."""


@dataclass
class Looks:
    """What was seen of one picture of that size (width, height): the views of the first look, all views with
    what they found, and the shifts for which it was looked at."""

    picture: tuple[int, int]
    plan: Sequence[View]
    views: list[View] = field(default_factory=list)
    found: list[Detections] = field(default_factory=list)
    shifts: list[float] = field(default_factory=lambda: [0.0])

    def add(self, view: View, found: Detections) -> None:
        """One view more, with what it found in its own pixels."""
        self.views.append(view)
        self.found.append(found)

    def in_picture(self) -> Detections:
        """All that was found so far, doubles among them, in pixels of the picture."""
        return join([view.in_picture(one)[0] for view, one in zip(self.views, self.found, strict=True)])

    def again(self, shift: float) -> list[View]:
        """Views for things that are e^shift times as large as the shots let expect: none if they were looked
        for already, or if limits leave no other size."""
        whole = all(view.part == (0, 0, *self.picture) for view in self.plan)
        if not whole or len(self.shifts) == MOST_LOOKS or _near(shift, self.shifts, FACTOR):
            return []
        self.shifts.append(shift)
        done = [math.log(max(view.size)) for view in self.views]
        views: list[View] = []
        for view in self.plan:
            size = _scaled(view.size, math.exp(-shift), max(self.picture))
            if not _near(math.log(max(size)), done, math.sqrt(FACTOR)):
                views.append(replace(view, size=size))
                done.append(math.log(max(size)))
        return views


def found_shift(boxes: FloatArray, scores: FloatArray, sides: NDArray[np.float64]) -> float:
    """By how much, as a logarithm, things are larger than expected: boxes (n, 4) xyxy in pixels of a
    picture, with raw scores (n,) and the sides (n,) in pixels that the shots of their classes let expect."""
    own = np.maximum(boxes[:, 2:] - boxes[:, :2], 1e-3).astype(np.float64).prod(1)
    return best_shift(np.log(own) / 2 - np.log(sides), scores, _like)


def _like(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray((1 + distance**2 / (2 * SPREAD) ** 2) ** -STRENGTH)


def _near(value: float, others: Sequence[float], factor: float) -> bool:
    return any(abs(value - other) < math.log(factor) for other in others)


def _scaled(size: tuple[int, int], scale: float, picture: int) -> tuple[int, int]:
    """A working picture's size (width, height) times `scale`, within the limits for a picture with that
    longer side; never moved the other way by them."""
    longer = max(size)
    most = max(longer, min(MOST_LONGER, MOST_ENLARGED * picture))
    least = min(longer, LEAST_LONGER)
    scale = min(max(longer * scale, least), most) / longer
    return max(LEAST_SIDE, round(size[0] * scale)), max(LEAST_SIDE, round(size[1] * scale))
