"""What became of a scene: how much of what is there was found. The only place where the truth is used."""

from dataclasses import dataclass

import numpy as np

from tenet.demo import Example, Scene
from tenet.looks.merging import iou
from tenet.structures import Detections

IOU = 0.5
"""From which overlap on a box is right."""


@dataclass(frozen=True)
class Outcome:
    """Counts of one scene: `found` is right + false; a shot that was found again counts as neither. `lost`
    are the things that were not found."""

    shots: int
    there: int
    right: int
    false: int
    lost: tuple[Example, ...] = ()

    @property
    def found(self) -> int:
        """Detections, those of the shots themselves not counted."""
        return self.right + self.false

    @property
    def missed(self) -> int:
        """Things that are there and were not found."""
        return self.there - self.right


def judge(scene: Scene, found: Detections) -> Outcome:
    """Best first, a detection is right where it covers a thing of its class that no better one has covered.

    Boxes xyxy in pixels of the scene's picture.
    """
    known = tuple(shot for shot in scene.shots if shot.file == scene.file)
    free, right, false = list(scene.truth), 0, 0
    for row in np.argsort(-found.scores, kind="stable").tolist():
        name, box = str(found.names[row]), found.boxes[row]
        hit = _covered(name, box, tuple(free))
        if hit is not None:
            free.remove(hit)
            right += 1
        elif _covered(name, box, known) is None:
            false += 1
    return Outcome(len(scene.shots), len(scene.truth), right, false, tuple(free))


def _covered(name: str, box: np.ndarray, things: tuple[Example, ...]) -> Example | None:
    """The thing of that class that the box covers best, if it covers one."""
    own = [thing for thing in things if thing.name == name]
    if not own:
        return None
    shares = iou(box[None], np.array([thing.box for thing in own], np.float32))[0]
    best = int(shares.argmax())
    return own[best] if shares[best] >= IOU else None
