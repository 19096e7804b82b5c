"""The shots of an evaluation, encoded: features of the classes, and closed-form objectness.

A shot is encoded once, whatever number of lists it is part of. Where the detector has closed-form
objectness (`rpn.closed_form`), each class also learns from the shots in their own pictures what is the
thing and what are its surroundings, as a bank does when a class is registered.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tenet.data.dataset import Dataset, Record
from tenet.data.episodes import PictureSource, support_set
from tenet.data.shots import ShotList, ShotRef
from tenet.engine.evaluation_detector import Detector, device_of, to_tensor
from tenet.engine.evaluation_settings import EvaluationSettings
from tenet.engine.protocols import Draw
from tenet.models.supports import SupportFeatures, Supports, stack_classes


def encode_draws(
    detector: Detector, dataset: Dataset, draws: Sequence[Draw], settings: EvaluationSettings
) -> Callable[[Draw], SupportFeatures]:
    """Every shot encoded once for its seed, whatever numbers of shots it is part of. Returns the function
    from a draw to the features of its classes."""
    features: dict[str, SupportFeatures] = {}
    for seed in dict.fromkeys(draw.seed for draw in draws):
        own = [draw for draw in draws if draw.seed == seed]
        encoded = encode_lists(detector, dataset, settings.classes, [draw.list for draw in own], settings)
        features |= {draw.name: classes for draw, classes in zip(own, encoded, strict=True)}
    return lambda draw: features[draw.name]


def encode_lists(
    detector: Detector,
    dataset: Dataset,
    names: Sequence[str],
    lists: Sequence[ShotList],
    settings: EvaluationSettings,
) -> list[SupportFeatures]:
    """The named classes (1, K, Z, …) by each of several lists of shots, which may share shots."""
    size = settings.support_size or detector.config.support_size
    refs = {name: tuple(dict.fromkeys(ref for own in lists for ref in own.classes[name])) for name in names}
    crops = support_set(dataset, ShotList("of all lists", 0, 0, refs), size, settings.context)
    bank = _encode_bank(detector, [crops[name] for name in names])
    place = {name: {ref: row for row, ref in enumerate(refs[name])} for name in names}
    found = [
        _take_shots(bank, [[place[name][ref] for ref in own.classes[name]] for name in names])
        for own in lists
    ]
    if not uses_objectness(detector, settings):
        return found
    scenes = _Scenes(detector, dataset, settings.query_size or detector.config.query_size)
    learned = _learn_in_place(detector, scenes, names, lists, found)
    return [classes._replace(closed_form=own) for classes, own in zip(found, learned, strict=True)]


def uses_objectness(detector: Detector, settings: EvaluationSettings) -> bool:
    return settings.objectness and detector.config.rpn.closed_form


def _encode_bank(
    detector: Detector, classes: list[tuple[NDArray[np.uint8], NDArray[np.float32]]]
) -> SupportFeatures:
    """Crops (Z, S, S, 3) and boxes (Z, 4), xyxy in pixels of the crop, of K classes → features
    (1, K, Z, …), a class at a time."""
    device = device_of(detector)
    features = []
    for crops, boxes in classes:
        tensors = [to_tensor(crop, device) for crop in crops]
        rows = torch.arange(len(crops), device=device).view(1, 1, -1)
        supports = Supports(tensors, torch.from_numpy(boxes).to(device), rows)
        features.append(detector.encode_supports(supports).to_class(0))
    stacked = stack_classes(features)
    return SupportFeatures(*(None if part is None else part.to(device) for part in stacked))  # type: ignore[arg-type]


def _take_shots(bank: SupportFeatures, rows: list[list[int]]) -> SupportFeatures:
    """The named shots of each class, (1, K, Z, …), Z the most of any; a view where they are the first."""
    shots = max(len(own) for own in rows)
    if all(own == list(range(shots)) for own in rows):
        return SupportFeatures(*(part[:, :, :shots] for part in bank[:5]))
    k = torch.arange(len(rows)).unsqueeze(1)
    places = torch.tensor([own + [0] * (shots - len(own)) for own in rows])
    real = torch.tensor([[True] * len(own) + [False] * (shots - len(own)) for own in rows])
    taken = SupportFeatures(*(part[:, k, places] for part in bank[:5]))
    return taken._replace(mask=taken.mask & real.to(taken.mask.device))


# Closed-form objectness -----------------------------------------------------------------------------


class _Scene(NamedTuple):
    """The picture of a shot, encoded, and the factors (4,) from its record's pixels to the picture's."""

    image: Any
    record: Record
    scale: Tensor


class _Scenes:
    """Pictures of shots as the detector sees queries: scaled, encoded, and kept until they are dropped."""

    def __init__(self, detector: Detector, dataset: Dataset, size: tuple[int, int]) -> None:
        self.detector, self.dataset = detector, dataset
        self.source = PictureSource(dataset, *size)
        self.rows = {record.id: row for row, record in enumerate(dataset.records)}
        self.kept: dict[str, _Scene] = {}

    def __getitem__(self, picture: str) -> _Scene:
        if picture not in self.kept:
            row, device = self.rows[picture], device_of(self.detector)
            record, pixels = self.dataset.records[row], self.source[row]
            height, width = pixels.shape[:2]
            scale = torch.tensor([width / record.width, height / record.height] * 2, device=device)
            [image] = self.detector.encode_images([to_tensor(pixels, device)])
            self.kept[picture] = _Scene(image, record, scale)
        return self.kept[picture]

    def drop(self, picture: str) -> None:
        del self.kept[picture]


def _learn_in_place(
    detector: Detector,
    scenes: _Scenes,
    names: Sequence[str],
    lists: Sequence[ShotList],
    features: Sequence[SupportFeatures],
) -> list[Tensor]:
    """What is learned in closed form (1, K, w) for each list. A picture is encoded once and dropped after the
    last class that needs it, so that memory does not grow with the number of classes."""
    needed = {
        name: dict.fromkeys(ref.picture for own in lists for ref in own.classes[name]) for name in names
    }
    last = {picture: name for name in names for picture in needed[name]}
    found: list[list[Tensor]] = [[] for _ in lists]
    for k, name in enumerate(names):
        for own, classes, priors in zip(lists, features, found, strict=True):
            images, boxes = _shots_in_place(scenes, own.classes[name])
            alone = SupportFeatures(*(part[:, k : k + 1] for part in classes[:5]))
            priors.append(detector.fit_objectness(images, boxes, alone))
        for picture in needed[name]:
            if last[picture] == name:
                scenes.drop(picture)
    return [torch.stack(priors).unsqueeze(0) for priors in found]


def _shots_in_place(scenes: _Scenes, refs: Sequence[ShotRef]) -> tuple[list[Any], list[Tensor]]:
    """Pictures of the shots, each once, and the shots' boxes (G, 4) in them, xyxy in their pixels."""
    by_picture: dict[str, list[int]] = {}
    for ref in refs:
        by_picture.setdefault(ref.picture, []).append(ref.box)
    images, boxes = [], []
    for picture, rows in by_picture.items():
        scene = scenes[picture]
        own = torch.from_numpy(scene.record.target.boxes[rows]).to(scene.scale.device)
        images.append(scene.image)
        boxes.append(own * scene.scale)
    return images, boxes
