"""Cosine prior (beyond the paper): frozen features are a strong start.

The cosine between the mean frozen feature of a region and that of a class's shots is a term of the
relation head's logit, (cos − bias)·scale; the learned part starts at zero beside it. By itself it is
the `prototype` baseline, the floor that every model must beat.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tenet.models.supports import masked_mean

START_SCALE, START_BIAS = 10.0, 0.2


class CosinePrior(nn.Module):
    """A scale, a bias, and the centre that is subtracted from every feature."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(START_SCALE).log())
        self.bias = nn.Parameter(torch.tensor(START_BIAS))
        self.register_buffer("centre", torch.zeros(channels))

    def fit_centre(self, features: Tensor) -> None:
        """Take the mean of features (n, c) of many regions as the centre."""
        self.get_buffer("centre").copy_(features.mean(0))

    def forward(self, regions: Tensor, shots: Tensor, mask: Tensor) -> Tensor:
        """Means of regions (E, K', P, c) and of shots (E or 1, K, Z, c), real where `mask` → (E, K, P)."""
        return (self.cosine(regions, shots, mask) - self.bias) * self.log_scale.exp()

    def cosine(self, regions: Tensor, shots: Tensor, mask: Tensor) -> Tensor:
        """The same without scale and bias."""
        centre = self.get_buffer("centre")
        prototypes = F.normalize(masked_mean(shots - centre, mask), dim=-1)
        return (F.normalize(regions - centre, dim=-1) @ prototypes.unsqueeze(-1)).squeeze(-1)
