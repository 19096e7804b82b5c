"""A runtime without a network: a class is its shots' mean colour, and a detection the box around it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tenet.runtime.protocol import Picture
from tenet.structures import ClassFeatures, Detections, Explanation, Shot


class FakeRuntime:
    name, fingerprint, support_size, threshold = "fake", "fake-1", 32, 0.5
    members = ()

    def __init__(self, fingerprint: str = "fake-1") -> None:
        self.fingerprint = fingerprint
        self.encoded_images = self.encoded_shots = 0

    def encode_images(self, pictures: Sequence[Picture]) -> list[Picture]:
        self.encoded_images += len(pictures)
        return list(pictures)

    def encode_shots(self, shots: Sequence[Shot]) -> ClassFeatures:
        self.encoded_shots += len(shots)
        colours = np.stack([_inside(shot.crop, shot.box).mean((0, 1)) for shot in shots]).astype(np.float32)
        ranks = np.array([-1 if shot.scene is None else 1 for shot in shots])
        return ClassFeatures(colours, colours, colours[:, :, None, None], colours, None, ranks)

    def match(self, images: Sequence[Picture], classes: Sequence[ClassFeatures]) -> list[Detections]:
        return [self._match(image, classes) for image in images]

    def of_member(self, features: ClassFeatures, number: int) -> ClassFeatures:
        raise NotImplementedError

    def calibrate(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        return scores

    def _match(self, image: Picture, classes: Sequence[ClassFeatures]) -> Detections:
        rows = []
        for label, features in enumerate(classes):
            for shot, colour in enumerate(features.raw):
                distance = np.abs(image - colour).max(-1)
                y, x = np.nonzero(distance < 40)
                if len(x):
                    rows.append((x.min(), y.min(), x.max() + 1, y.max() + 1, 0.9, label, shot))
                    break
        table = np.array(rows, np.float32).reshape(-1, 7)
        return Detections(
            table[:, :4], table[:, 4], table[:, 5].astype(np.int64), table[:, 6].astype(np.int64)
        )

    def explain(
        self, image: Picture, features: ClassFeatures, boxes: NDArray[np.float32]
    ) -> list[Explanation]:
        n, z = 9, len(features)
        maps = {
            name: np.arange(n, dtype=np.float32).reshape(3, 3) for name in ("fo", "ho", "fo_ho", "spatial")
        }
        pairs = np.eye(n, dtype=np.float32)[None].repeat(z, 0)
        return [Explanation(maps, (maps,) * z, np.ones(z, np.float32), pairs) for _ in boxes]


def _inside(picture: Picture, box: NDArray[np.float32]) -> Picture:
    x1, y1, x2, y2 = (round(float(value)) for value in box)
    return picture[y1 : max(y2, y1 + 1), x1 : max(x2, x1 + 1)]
