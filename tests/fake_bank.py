"""A bank without files, scenes of coloured things, and a runtime that finds each piece of a colour."""

from collections.abc import Sequence

import numpy as np
from fake_runtime import FakeRuntime
from numpy.typing import NDArray
from scipy import ndimage

from tenet.looks.sizes import SeenSize
from tenet.runtime.protocol import Picture
from tenet.structures import ClassFeatures, Detections

COLOURS = {"red": (230, 20, 20), "green": (20, 210, 40), "blue": (30, 40, 220)}


class FakeBank:
    """Classes are colours of `COLOURS`; `sizes` says how large each was seen."""

    def __init__(self, runtime: FakeRuntime, **sizes: SeenSize) -> None:
        self.runtime, self.sizes = runtime, sizes
        self.names = tuple(sizes)
        self.asked: list[str] = []

    def features(self, name: str) -> ClassFeatures:
        self.asked.append(name)
        colour = np.array([COLOURS[name]], np.float32)
        return ClassFeatures(colour, colour, colour[:, :, None, None], colour)

    def seen(self, name: str) -> list[SeenSize]:
        return [self.sizes[name]]


class PiecesRuntime(FakeRuntime):
    """Finds every connected piece of a class's colour; the score grows with the share of its box it fills."""

    def _match(self, image: Picture, classes: Sequence[ClassFeatures]) -> Detections:
        boxes, scores, labels = [], [], []
        for label, features in enumerate(classes):
            near = np.abs(image - features.raw[0]).max(-1) < 90
            for rows, columns in ndimage.find_objects(ndimage.label(near)[0]):
                boxes.append((columns.start, rows.start, columns.stop, rows.stop))
                scores.append(0.6 + 0.3 * near[rows, columns].mean())
                labels.append(label)
        order = np.argsort(-np.array(scores), kind="stable")
        return Detections(
            np.array(boxes, np.float32).reshape(-1, 4)[order],
            np.array(scores, np.float32)[order],
            np.array(labels, np.int64)[order],
            np.zeros(len(order), np.int64),
        )


def scene(width: int, height: int, *things: tuple[str, tuple[int, int, int, int]]) -> NDArray[np.uint8]:
    """A grey picture with coloured rectangles: (colour, xyxy in its pixels)."""
    picture = np.full((height, width, 3), 128, np.uint8)
    for name, (x1, y1, x2, y2) in things:
        picture[y1:y2, x1:x2] = COLOURS[name]
    return picture
