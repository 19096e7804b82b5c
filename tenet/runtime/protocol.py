"""The line between the two halves of the house: bank and predictor know the network by these calls alone.

Detecting is three calls: a picture is encoded once for all classes, a class once for all pictures, and
`match` brings them together. `explain` says why. Pictures are (H, W, 3) uint8 RGB; boxes are xyxy in
pixels of the picture that was given.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tenet.structures import ClassFeatures, Detections, Explanation, Shot

Picture = NDArray[np.uint8]


class Runtime(Protocol):
    """A network with its weights."""

    @property
    def name(self) -> str:
        """What people call it, such as tenet_lite0."""

    @property
    def fingerprint(self) -> str:
        """Another one whenever the same shots would give other features."""

    @property
    def members(self) -> "Sequence[Runtime]":
        """Networks that look at a picture each for itself, before what they found is put together; none for
        a single network."""

    @property
    def support_size(self) -> int:
        """Side of a shot's crop, in pixels."""

    @property
    def threshold(self) -> float:
        """The score from which a detection is shown, unless the user says otherwise."""

    def encode_images(self, pictures: Sequence[Picture]) -> list[Any]:
        """Pictures of any sizes, each encoded once; what comes out is the runtime's own affair."""

    def encode_shots(self, shots: Sequence[Shot]) -> ClassFeatures:
        """All shots of one class."""

    def match(self, images: Sequence[Any], classes: Sequence[ClassFeatures]) -> list[Detections]:
        """Every class in every encoded picture, best first; a label is a row of `classes`. Scores are raw:
        they rank boxes; only those below the model's own `score_threshold` are cut off."""

    def of_member(self, features: ClassFeatures, number: int) -> ClassFeatures:
        """A class as one of the `members` knows it."""

    def calibrate(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """Raw scores (n,) → how often such a box is right, (n,), in the same order."""

    def explain(self, image: Any, features: ClassFeatures, boxes: NDArray[np.float32]) -> list[Explanation]:
        """Why each of these boxes (n, 4) of an encoded picture looks like that class."""
