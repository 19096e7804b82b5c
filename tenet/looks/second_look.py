"""A second look, where a picture shows its things smaller or larger than the shots did (beyond the paper).

The shots tell at which size a picture is looked at (`tenet.looks.sizes`). In a wide view things are smaller
than that, in a close-up larger; what the first look finds tells by how much:

    away   = log of a box's side against the sides that are seen well for its class; 0 between them
    shift  = argmax  Σ score² · like(away − shift) / (1 + (shift / REACH)²)

summed over the boxes of all classes, because it is the camera that is nearer or farther. If no look was made
for such a size, the picture is looked at again, scaled by e^−shift, so that things are as large as the
shots were; and once more, if that shows still smaller ones. All looks count. Classes that are looked for in
tiles are not looked for again; where bare crops alone call for tiles, they are cut after a first look at the
whole picture, if it shows nothing larger.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tenet.looks.merging import join
from tenet.looks.sizes import scaled_to
from tenet.looks.tiles import TOO_SMALL
from tenet.looks.usual_size import best_shift
from tenet.looks.views import View, at_least
from tenet.structures import Detections, FloatArray

MOST_LOOKS = 3
"""Looks at a picture, the first one among them."""
EVIDENCE, PROOF = 0.2, 0.28
"""Least raw score of a picture's best box: where nothing is found, nothing tells a size; and of a box that
proves a guessed size wrong. Raw, so that a calibration changes nothing of what is looked at."""
FACTOR = 1.4
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

    @property
    def unproven(self) -> list[View]:
        """Views whose size is a guess of bare crops (`View.guessed`) that they did not prove wrong by a thing
        large enough for them, and whose tiles were not looked at."""
        untiled = {view.labels for view in self.repeatable}
        pairs = zip(self.views, self.found, strict=True)
        return [v for v, found in pairs if v.guessed and v.labels in untiled and not _shows_large(v, found)]

    @property
    def repeatable(self) -> list[View]:
        """Views of the plan that may be looked at again: of classes that are not looked for in tiles."""
        tiled = {view.labels for view in (*self.plan, *self.views) if view.part != (0, 0, *self.picture)}
        return [view for view in self.plan if view.labels not in tiled]

    def in_picture(self) -> Detections:
        """All that was found so far of the classes that may be looked for again, doubles among them; boxes
        xyxy in pixels of the picture."""
        own = {view.labels for view in self.repeatable}
        pairs = zip(self.views, self.found, strict=True)
        return join([view.in_picture(one)[0] for view, one in pairs if view.labels in own])

    def again(self, shift: float) -> list[View]:
        """Views for things that are e^shift times as large as what is seen well: none if they were looked for
        already, or if limits leave no other size."""
        if len(self.shifts) == MOST_LOOKS or _near(shift, self.shifts, FACTOR):
            return []
        self.shifts.append(shift)
        views: list[View] = []
        for view in self.repeatable:
            size = _scaled(self.picture, max(view.size), math.exp(-shift))
            done = [math.log(max(one.size)) for one in (*self.views, *views) if one.labels == view.labels]
            if not _near(math.log(max(size)), done, math.sqrt(FACTOR)):
                views.append(replace(view, size=size))
        return views


def found_shift(
    boxes: FloatArray, scores: FloatArray, low: NDArray[np.float64], high: NDArray[np.float64]
) -> float:
    """By how much, as a logarithm, things are larger or smaller than what is seen well: boxes (n, 4) xyxy in
    pixels of a picture, their raw scores (n,), and the least and the largest side (n,) that is seen well for
    their classes, in pixels of the picture."""
    own = np.sqrt(np.maximum(boxes[:, 2:] - boxes[:, :2], 1e-3).astype(np.float64).prod(1))
    return best_shift(np.log(own / np.clip(own, low, high)), scores, _like)


def _shows_large(view: View, found: Detections) -> bool:
    """Whether a view found, beyond doubt, a thing that is not too small for it."""
    sides = np.sqrt(np.maximum(found.boxes[:, 2:] - found.boxes[:, :2], 0).prod(1))
    wanted = np.isin(np.array(view.matched)[found.labels], view.labels)
    return bool((wanted & (found.scores >= PROOF) & (sides >= TOO_SMALL)).any())


def _like(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray((1 + distance**2 / (2 * SPREAD) ** 2) ** -STRENGTH)


def _near(value: float, others: Sequence[float], factor: float) -> bool:
    return any(abs(value - other) < math.log(factor) for other in others)


def _scaled(picture: tuple[int, int], longer: int, scale: float) -> tuple[int, int]:
    """The working size (width, height) of a picture whose longer side was `longer`, times `scale`, within the
    limits; never moved the other way by them."""
    most = max(longer, min(MOST_LONGER, MOST_ENLARGED * max(picture)))
    return at_least(scaled_to(picture, min(max(longer * scale, min(longer, LEAST_LONGER)), most)))
