"""Things that have one size: a box of another size than all shots counts less (beyond the paper).

Under a microscope, from a drone or on a conveyor belt a thing takes up about the same share of every picture.
Shots from several pictures show whether it does: if the logarithms of their shares lie close together, a box
far from them is two things taken for one, or a part. If they do not, as with animals near and far, or if
there is one picture only, nothing is held against any size.

    spread² = (PRIOR² + Σ (s − mean)²) / n      n pictures, s the logarithm of a shot's share
    factor  = (1 + (log share − mean)² / (TAIL · spread²)) ^ (−STRENGTH · (1 − spread / FREE)₊)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tenet.looks.sizes import SeenSize
from tenet.structures import FloatArray

PRIOR = 0.5
"""What one picture alone would say of the spread; it counts as one more picture."""
FREE = 0.4
"""From this spread on any size is as good as another."""
TAIL, STRENGTH = 4.0, 5.0


@dataclass(frozen=True)
class UsualSize:
    """Mean and spread of the logarithm of a thing's share: its side (square root of the area) by its
    picture's longer side."""

    mean: float = 0.0
    spread: float = math.inf

    def factor(self, boxes: FloatArray, picture: tuple[int, int]) -> NDArray[np.float64]:
        """(n,) from 0 to 1, by which the scores of boxes (n, 4), xyxy in pixels of a picture of that size
        (width, height), are multiplied."""
        weight = STRENGTH * max(0.0, 1 - self.spread / FREE)
        if not weight:
            return np.ones(len(boxes))
        sides = np.maximum(boxes[:, 2:] - boxes[:, :2], 1e-3).astype(np.float64)
        distance = (np.log(sides.prod(1)) / 2 - math.log(max(picture)) - self.mean) / self.spread
        return np.asarray((1 + distance**2 / TAIL) ** -weight)


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
