"""The network in torch, behind the runtime's calls: numpy in, numpy out.

A shot that comes with its picture is used twice: its crop says what the thing looks like, its picture what
counts as a thing and what does not (`tenet.models.objectness`). How well the detector sees a shot in its
own picture is measured with that shot left out, where there are others.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tenet.errors import InputError
from tenet.models.detector import TENET
from tenet.models.encoder import EncodedImage
from tenet.models.objectness import Cells, covering_rank, fit_cells, ranked_boxes
from tenet.models.supports import SupportFeatures, Supports, stack_classes
from tenet.runtime.bare_shots import on_ground
from tenet.runtime.calibration import Calibration
from tenet.runtime.explaining import explain_regions
from tenet.runtime.protocol import Picture
from tenet.settings import to_table
from tenet.structures import ClassFeatures, Detections, Explanation, Shot

FOLDS = 5
"""A shot's rank is that by what the others teach; of more shots, by what those of the other folds do."""


class Widths(NamedTuple):
    """Lengths of a class's features: ψ (d) and φ (2d, region, region), raw, and those that what it learned in
    closed form may have."""

    d: int
    raw: int
    learned: tuple[int, ...]
    region: int


class TorchRuntime:
    """A detector behind the `tenet.runtime.protocol.Runtime` calls."""

    def __init__(
        self, detector: TENET, name: str = "detector", calibration: Calibration | None = None
    ) -> None:
        self.detector, self.name = detector.eval(), name
        self.calibration = calibration or Calibration()
        self.fingerprint = fingerprint(detector)
        self._stacked: tuple[tuple[ClassFeatures, ...], SupportFeatures] | None = None

    @property
    def members(self) -> tuple[()]:
        return ()

    def of_member(self, features: ClassFeatures, number: int) -> ClassFeatures:
        raise InputError(f"{self.name}: expected a pair of networks, this is a single one")

    def described(self) -> dict[str, Any]:
        """Its configuration as plain tables."""
        return to_table(self.detector.config)

    def uncalibrated(self) -> "TorchRuntime":
        """The same network with its raw scores."""
        return TorchRuntime(self.detector, self.name)

    @property
    def support_size(self) -> int:
        return self.detector.config.support_size

    @property
    def threshold(self) -> float:
        return self.calibration.threshold

    @property
    def widths(self) -> Widths:
        """Lengths of the features that `encode_shots` gives."""
        encoder = self.detector.encoder
        return Widths(encoder.d, encoder.raw_channels, self.detector.closed_form.lengths, encoder.region_size)

    @torch.inference_mode()
    def encode_images(self, pictures: Sequence[Picture]) -> list[EncodedImage]:
        return self.detector.encode_images([_tensor(picture) for picture in pictures])

    @torch.inference_mode()
    def encode_shots(self, shots: Sequence[Shot]) -> ClassFeatures:
        rows = torch.arange(len(shots)).view(1, 1, -1)
        boxes = torch.from_numpy(np.stack([shot.box for shot in shots]))
        features = self.detector.encode_supports(
            Supports([_tensor(shot.crop) for shot in shots], boxes, rows)
        )
        weights, ranks = None, None
        if self.detector.rpn.closed_form:
            weights, ranks = self._learn_objectness(shots, features)
        encoded = features.to_class(0)
        return replace(encoded, closed_form=None if weights is None else weights.numpy(), ranks=ranks)

    @torch.inference_mode()
    def match(self, images: Sequence[EncodedImage], classes: Sequence[ClassFeatures]) -> list[Detections]:
        stacked = self._stack(tuple(classes))
        return [self.detector.match([image], stacked)[0] for image in images]

    def calibrate(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        return self.calibration(scores)

    @torch.inference_mode()
    def explain(
        self, image: EncodedImage, features: ClassFeatures, boxes: NDArray[np.float32]
    ) -> list[Explanation]:
        return explain_regions(self.detector, image, stack_classes([features]), torch.from_numpy(boxes))

    def _stack(self, classes: tuple[ClassFeatures, ...]) -> SupportFeatures:
        """The classes as one batch; kept, because picture after picture is asked for the same ones."""
        known = self._stacked
        if known is None or len(known[0]) != len(classes) or any(map(_other, known[0], classes)):
            known = (classes, stack_classes(list(classes)))
            self._stacked = known
        return known[1]

    def _learn_objectness(
        self, shots: Sequence[Shot], features: SupportFeatures
    ) -> tuple[Tensor | None, NDArray[np.int64]]:
        """Closed-form objectness of a class from its shots' pictures, and each shot's rank in its own."""
        ranks = np.full(len(shots), -1, np.int64)
        scenes = _scenes(shots)
        if not scenes:
            return self._learn_from_bare(shots, features), ranks
        images = self.encode_images([scene.picture for scene in scenes])
        cells = [self.detector.cells(image, features) for image in images]
        rows = [row for scene in scenes for row in scene.rows]
        fold_of = {row: place % FOLDS for place, row in enumerate(rows)}
        for fold in range(min(FOLDS, len(rows))):
            left = [[fold_of[row] == fold for row in scene.rows] for scene in scenes]
            kept = [
                (own, scene.boxes[~torch.tensor(out)])
                for own, scene, out in zip(cells, scenes, left, strict=True)
                if not all(out)
            ]
            weights = self._fit(kept) if kept else None
            for number, (scene, out) in enumerate(zip(scenes, left, strict=True)):
                if not any(out):
                    continue
                boxes = ranked_boxes(cells[number], weights)
                alike = self._looks_alike(images[number], boxes, features)
                for row, box, tested in zip(scene.rows, scene.boxes, out, strict=True):
                    if tested:
                        ranks[row] = covering_rank(boxes, alike, box)
        shown = [scene.boxes for scene in scenes]
        return self.detector.fit_objectness(images, shown, features, cells=cells), ranks

    def _looks_alike(self, image: EncodedImage, boxes: Tensor, features: SupportFeatures) -> Tensor:
        """(n,) bool: whether boxes (n, 4) look like the class by the cosine prior; without it, none."""
        prior = self.detector.cosine_prior
        if prior is None or len(boxes) == 0:
            return torch.zeros(len(boxes), dtype=torch.bool)
        raw = self.detector.encoder.regions(image.maps, boxes).raw[None, None]
        alike: Tensor = prior(raw, features.raw, features.mask)[0, 0] > 0
        return alike

    def _learn_from_bare(self, shots: Sequence[Shot], features: SupportFeatures) -> Tensor | None:
        """Closed-form objectness of a class that came as bare crops; None where the model has no background
        of training pictures to tell it from."""
        if not self.detector.rpn.background.mean.any():
            return None
        pictures, boxes = zip(*(on_ground(shot) for shot in shots), strict=True)
        shown = [torch.from_numpy(own) for own in boxes]
        return self.detector.fit_objectness(self.encode_images(pictures), shown, features, bare=True)

    def _fit(self, pairs: list[tuple[Cells, Tensor]]) -> Tensor:
        return fit_cells(
            [own for own, _ in pairs], [boxes for _, boxes in pairs], self.detector.rpn.background
        )


class _Scene(NamedTuple):
    """A picture with the shots that it shows: their rows, and their boxes (n, 4) in its pixels."""

    picture: Picture
    rows: list[int]
    boxes: Tensor


def _scenes(shots: Sequence[Shot]) -> list[_Scene]:
    """The shots' pictures, each once, though several shots may come from it."""
    rows: dict[bytes, list[int]] = {}
    for row, shot in enumerate(shots):
        if shot.scene is not None:
            key = hashlib.blake2b(
                np.ascontiguousarray(shot.scene).tobytes() + bytes(str(shot.scene.shape), "ascii")
            )
            rows.setdefault(key.digest(), []).append(row)
    found = []
    for own in rows.values():
        picture = shots[own[0]].scene
        boxes = [box for row in own if (box := shots[row].scene_box) is not None]  # a scene has one each
        assert picture is not None
        found.append(_Scene(picture, own, torch.from_numpy(np.stack(boxes))))
    return found


def fingerprint(detector: TENET) -> str:
    """A digest of the configuration and of every weight."""
    digest = hashlib.blake2b(repr(detector.config).encode(), digest_size=12)
    for name, tensor in sorted(detector.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _other(one: ClassFeatures, another: ClassFeatures) -> bool:
    return one is not another


def _tensor(picture: Picture) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(picture)).permute(2, 0, 1).float()
