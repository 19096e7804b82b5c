"""Detectors that are cheap or that know the answer, for the tests of evaluation."""

import hashlib
from typing import Any

import numpy as np
import torch
from conftest import TINY
from torch import Tensor

from tenet.config import ModelConfig
from tenet.data.dataset import Dataset
from tenet.data.synthetic import synthetic_dataset
from tenet.engine.evaluation_settings import EvaluationSettings
from tenet.models.build import build_detector
from tenet.models.detector import TENET, EncodedImage
from tenet.models.supports import SupportFeatures, Supports
from tenet.structures import Detections

SIZE = (96, 64)


def small_sets() -> tuple[Dataset, Dataset]:
    """(test, where the shots come from): 20 and 16 pictures of 96 × 64 with objects of four classes."""
    return synthetic_dataset(20, 4, SIZE, seed=1), synthetic_dataset(16, 4, SIZE, seed=0)


def settings_for(dataset: Dataset, **changes: Any) -> EvaluationSettings:
    values: dict[str, Any] = {"novel": dataset.classes, "shots": (1, 2), "seeds": (0, 1)}
    return EvaluationSettings(**values | changes)


def tiny_detector(seed: int = 0) -> TENET:
    torch.manual_seed(seed)
    return build_detector(TINY)


class Counting(TENET):
    """A tiny detector that counts how often a picture and a shot are encoded."""

    pictures: list[str]
    shots: int

    @staticmethod
    def of(detector: TENET) -> "Counting":
        detector.__class__ = Counting
        assert isinstance(detector, Counting)
        detector.pictures, detector.shots = [], 0
        return detector

    def encode_images(self, images: list[Tensor]) -> list[EncodedImage]:
        self.pictures += [digest(image) for image in images]
        return super().encode_images(images)

    def encode_supports(self, supports: Supports) -> SupportFeatures:
        self.shots += len(supports.crops)
        return super().encode_supports(supports)


def digest(image: Tensor) -> str:
    return hashlib.blake2b(image.contiguous().numpy().tobytes(), digest_size=8).hexdigest()


class Knowing:
    """No network: it finds what `answers` says, for each picture as it is given at its own size."""

    def __init__(self, dataset: Dataset | None) -> None:
        self.config: ModelConfig = TINY
        self.training = True
        self.thresholds: list[float] = []
        self.answers: dict[str, Detections] = {}
        for record in dataset.records if dataset is not None else ():
            tensor = torch.from_numpy(record.picture()).permute(2, 0, 1).float()
            none = np.zeros(len(record.target), np.int64)
            self.answers[digest(tensor)] = Detections(
                record.target.boxes, np.full(len(none), 0.9, np.float32), record.target.labels, none
            )

    def train(self, mode: bool = True) -> "Knowing":
        self.training = mode
        return self

    def state_dict(self) -> dict[str, Tensor]:
        return {"nothing": torch.zeros(())}

    def encode_images(self, images: list[Tensor]) -> list[str]:
        return [digest(image) for image in images]

    def encode_supports(self, supports: Supports) -> SupportFeatures:
        z = len(supports.crops)
        row = torch.zeros(1, 1, z, 1)
        mask = torch.ones(1, 1, z, dtype=torch.bool)
        return SupportFeatures(row, row, torch.zeros(1, 1, z, 2, 1, 1), row, mask)

    def match(self, images: list[str], classes: SupportFeatures) -> list[Detections]:
        assert not self.training
        self.thresholds.append(self.config.score_threshold)
        return [self.answers.get(image, Detections.empty()) for image in images]
