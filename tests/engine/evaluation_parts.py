"""Detectors that are cheap or that know the answer, for the tests of evaluation."""

import hashlib
from typing import Any

import numpy as np
import torch
from tiny_detector import TINY
from torch import Tensor, nn

from tenet.config import ModelConfig
from tenet.data.dataset import Dataset
from tenet.data.synthetic import synthetic_dataset
from tenet.engine.evaluation_settings import EvaluationSettings
from tenet.models.supports import SupportFeatures, Supports
from tenet.structures import Detections

SIZE = (96, 64)


def small_sets() -> tuple[Dataset, Dataset]:
    """(test, where the shots come from): 20 and 16 pictures of 96 × 64 with objects of four classes."""
    return synthetic_dataset(20, 4, SIZE, seed=1), synthetic_dataset(16, 4, SIZE, seed=0)


def settings_for(dataset: Dataset, **changes: Any) -> EvaluationSettings:
    values: dict[str, Any] = {"novel": dataset.classes, "shots": (1, 2), "seeds": (0, 1)}
    return EvaluationSettings(**values | changes)


class Colours(nn.Module):
    """A detector without a network: windows whose mean colour is like that of a shot. It takes
    milliseconds, depends on its weights, the picture and the shots, and counts what it encodes."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.config: ModelConfig = TINY
        self.weight = nn.Parameter(1 + torch.rand(3, generator=torch.Generator().manual_seed(seed)))
        self.pictures: list[str] = []
        self.shots = 0

    def encode_images(self, images: list[Tensor]) -> list[tuple[Tensor, Tensor]]:
        self.pictures += [digest(image) for image in images]
        return [self._windows(image) for image in images]

    def _windows(self, image: Tensor) -> tuple[Tensor, Tensor]:
        boxes, colours = [], []
        for side in (16, 32):
            for y in range(0, image.shape[1] - side + 1, 8):
                for x in range(0, image.shape[2] - side + 1, 8):
                    boxes.append([x, y, x + side, y + side])
                    colours.append(image[:, y : y + side, x : x + side].mean((1, 2)))
        return torch.tensor(boxes, dtype=torch.float32), torch.stack(colours) * self.weight

    def encode_supports(self, supports: Supports) -> SupportFeatures:
        self.shots += len(supports.crops)
        inner = [
            crop[:, int(y1) : int(y2) + 1, int(x1) : int(x2) + 1].mean((1, 2)) * self.weight
            for crop, (x1, y1, x2, y2) in zip(supports.crops, supports.boxes.tolist(), strict=True)
        ]
        psi = torch.stack(inner)[supports.rows]
        return SupportFeatures(psi, psi, psi[..., None, None], psi, supports.rows >= 0)

    def match(self, images: list[tuple[Tensor, Tensor]], classes: SupportFeatures) -> list[Detections]:
        found = []
        for boxes, colours in images:
            scores = torch.exp(-torch.cdist(colours, classes.psi[0].mean(1)) / 50)  # (windows, K)
            best, labels = scores.max(1)
            keep = best > self.config.score_threshold
            order = best.argsort(descending=True, stable=True)
            order = order[keep[order]][:30]
            rows = labels[order].numpy()
            found.append(
                Detections(boxes[order].numpy(), best[order].detach().numpy(), rows, np.zeros_like(rows))
            )
        return found


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
