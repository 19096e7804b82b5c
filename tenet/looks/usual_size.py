"""Things that have one size: in a picture, boxes of another size than the rest count less (beyond the paper).

Under a microscope, from a drone or on a conveyor belt things of a class are about equally large. Shots from
several pictures show whether they are: if the logarithms of their shares lie close together, a box far from
the size of the others in a picture is two things taken for one, or a part. If they do not, as with animals
near and far, or if there is one picture only, nothing is held against any size.

How large they are in a picture, that picture's own best boxes tell (close-ups may be shown, and a wide view
looked at); the shots' size is only where the search for it starts:

    spread²  = (PRIOR² + Σ (s − mean)²) / n        s: the logarithm of a shot's share, of n pictures
    like(x)  = (1 + x² / (TAIL · spread²)) ^ (−STRENGTH · (1 − spread / FREE)₊)
    shift    = argmax  Σ score² · like(log share − mean − shift) / (1 + (shift / REACH)²)
    factor   = like(log share − mean − shift)
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tenet.looks.sizes import SeenSize
from tenet.structures import FloatArray

PRIOR = 0.5
"""Spread of a single picture's shots, which is more than `FREE`: one picture tells nothing."""
FREE = 0.4
"""From this spread on any size is as good as another."""
TAIL, STRENGTH = 4.0, 5.0
"""How slowly, and how far, a score falls with the distance from the usual size."""
REACH, SHIFTS = 3.0, np.linspace(-3, 3, 121)
"""Shifts of the logarithm that are tried, up to twenty times larger or smaller; far ones must earn it."""

Like = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""How much a box counts at a distance from where its size is expected, as a logarithm; any shape."""


@dataclass(frozen=True)
class UsualSize:
    """Mean and spread of the logarithm of a thing's share: its side (square root of the area) by its
    picture's longer side."""

    mean: float = 0.0
    spread: float = math.inf

    def factor(self, boxes: FloatArray, scores: FloatArray, picture: tuple[int, int]) -> NDArray[np.float64]:
        """(n,) from 0 to 1, by which the scores (n,) of all boxes (n, 4) of the class, xyxy in pixels of a
        picture of that size (width, height), are multiplied."""
        if self.spread >= FREE or not len(boxes):
            return np.ones(len(boxes))
        sides = np.maximum(boxes[:, 2:] - boxes[:, :2], 1e-3).astype(np.float64)
        away = np.log(sides.prod(1)) / 2 - math.log(max(picture)) - self.mean
        return self._like(away - best_shift(away, scores, self._like))

    def _like(self, distance: NDArray[np.float64]) -> NDArray[np.float64]:
        weight = STRENGTH * (1 - self.spread / FREE)
        return np.asarray((1 + distance**2 / (TAIL * self.spread**2)) ** -weight)


def best_shift(away: NDArray[np.float64], scores: FloatArray, like: Like) -> float:
    """The shift around which the best boxes lie: `away` (n,) is the logarithm of their sides against what is
    expected."""
    found = like(away - SHIFTS[:, None]) @ scores.astype(np.float64) ** 2
    return float(SHIFTS[np.argmax(found / (1 + (SHIFTS / REACH) ** 2))])


def usual_size(seen: Sequence[SeenSize]) -> UsualSize:
    """What shots tell of a thing's size; bare crops tell nothing, and shots of one picture count as one."""
    pictures: dict[tuple[int, int, int], list[float]] = {}
    for one in seen:
        if one.scene:
            pictures.setdefault((one.scene, *one.picture), []).append(math.log(max(one.share, 1e-6)))
    if not pictures:
        return UsualSize()
    mean = sum(sum(own) / len(own) for own in pictures.values()) / len(pictures)
    apart = sum(sum((value - mean) ** 2 for value in own) / len(own) for own in pictures.values())
    return UsualSize(mean, math.sqrt((PRIOR**2 + apart) / len(pictures)))
