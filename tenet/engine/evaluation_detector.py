"""What is evaluated, and how it is made ready for it."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tenet.config import ModelConfig
from tenet.data.dataset import Record
from tenet.models.supports import SupportFeatures, Supports
from tenet.structures import Detections


class Detector(Protocol):
    """What is evaluated: `tenet.models.detector.TENET`, or anything with its calls."""

    config: ModelConfig
    training: bool

    def encode_images(self, images: list[Tensor]) -> list[Any]: ...
    def encode_supports(self, supports: Supports) -> SupportFeatures: ...
    def match(self, images: list[Any], classes: SupportFeatures) -> list[Detections]: ...

    def fit_objectness(self, images: list[Any], boxes: list[Tensor], classes: SupportFeatures) -> Tensor:
        """What one class learns in closed form (w,), from encoded pictures that show it at boxes (G, 4)
        each, xyxy in pixels of the picture. Called only with `config.rpn.closed_form`."""
        ...

    def train(self, mode: bool = True) -> Any: ...
    def state_dict(self) -> dict[str, Any]: ...


@contextmanager
def ready(detector: Detector, threshold: float) -> Iterator[None]:
    """Not training, without gradients, and down to a low score; afterwards as it was."""
    config, training = detector.config, detector.training
    detector.config = replace(config, score_threshold=threshold)
    detector.train(False)
    try:
        with torch.inference_mode():
            yield
    finally:
        detector.config = config
        detector.train(training)


def device_of(detector: Detector) -> torch.device:
    return next((value.device for value in detector.state_dict().values()), torch.device("cpu"))


def to_tensor(picture: NDArray[np.uint8], device: torch.device) -> Tensor:
    """(H, W, 3) uint8 → (3, H, W) float32 with values in 0…255."""
    return torch.from_numpy(np.ascontiguousarray(picture)).to(device).permute(2, 0, 1).float()


def in_record(detections: Detections, record: Record, picture: NDArray[np.uint8]) -> Detections:
    """Boxes (xyxy) from pixels of the scaled picture to pixels of the record."""
    height, width = picture.shape[:2]
    scale = np.array([record.width / width, record.height / height] * 2, np.float32)
    frame = np.array([record.width, record.height] * 2, np.float32)
    return replace(detections, boxes=np.clip(detections.boxes * scale, 0, frame).astype(np.float32))


def fingerprint_weights(detector: Detector) -> str:
    """Changes with any parameter or buffer."""
    digest = hashlib.blake2b(digest_size=16)
    for name, value in sorted(detector.state_dict().items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
