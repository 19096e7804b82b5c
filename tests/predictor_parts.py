"""What the tests of the predictor share: two things in a picture, and how large they were seen."""

import numpy as np

from tenet.looks.sizes import SeenSize
from tenet.structures import Detections

MIDDLE = SeenSize((60, 60), (640, 480))
RED = ("red", (100, 120, 170, 180))
GREEN = ("green", (300, 200, 360, 270))


def same(one: Detections, two: Detections) -> None:
    for field in ("boxes", "scores", "labels", "shots"):
        np.testing.assert_array_equal(getattr(one, field), getattr(two, field))
    assert one.classes == two.classes
