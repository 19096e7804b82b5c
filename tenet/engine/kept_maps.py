"""An encoder that learns keeps its last map (beyond the paper).

Boxes want an encoder that knows where things end; what tells classes apart that nobody trained on is in the
maps of ImageNet's thousand classes. So while boxes teach the encoder, its last map is held to what it was at
the start: the loss is one minus the cosine of each cell's features now and then (distillation of features).
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from tenet.models.detector import TENET, Losses
from tenet.models.encoder import EncodedImage, EncodingNetwork


@dataclass(frozen=True)
class KeptMaps:
    """The encoder at the start, and the weight of being like it."""

    first: EncodingNetwork
    weight: float

    @staticmethod
    def of(detector: TENET, weight: float) -> "KeptMaps":
        first = deepcopy(detector.encoder).requires_grad_(False)
        return KeptMaps(first.eval(), weight)

    def losses(self, pictures: Sequence[Tensor], images: Sequence[EncodedImage]) -> Losses:
        """`pictures` (3, H, W) and what the encoder makes of them now → how far its last maps have moved.
        Every second picture stands for two: looking again costs as much as the way there."""
        with torch.no_grad():
            before = self.first(list(pictures[::2]))
        moved = []
        for now, then in zip(images[::2], before, strict=True):
            assert now.maps.raw5 is not None
            assert then.raw5 is not None
            moved.append((1 - F.cosine_similarity(now.maps.raw5, then.raw5, dim=1)).mean())
        return {"kept_maps": self.weight * torch.stack(moved).mean()}
