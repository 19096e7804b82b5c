"""Multi-relation head of FSOD (Fan et al., CVPR 2020), an ancestor on equal ground: three scores, summed.

    global  averages of region and support, side by side, through two FC layers
    local   depth-wise correlation of the region's map with the support's map as its kernel
    patch   both maps side by side through small convolutions; this one also gives the box

The support is the mean of its shots. With `high_order` the product of the second-order descriptors
adds a fourth score: that is PNSD (Zhang et al., ACCV 2020) in this house.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tenet.models.relation_head import Described, Relation, average_shots


class MultiRelationHead(nn.Module):
    """Global, local and patch relation, and the second-order one if asked for."""

    def __init__(self, d: int, *, high_order: bool) -> None:
        super().__init__()
        width = 2 * d
        self.global_body = nn.Sequential(nn.Linear(2 * width, d), nn.ReLU(), nn.Linear(d, d), nn.ReLU())
        self.global_score = nn.Linear(d, 1)
        self.local_conv = nn.Conv2d(width, width, 1, bias=False)
        self.local_score = nn.Linear(width, 1)
        self.patch_region = nn.Conv2d(width, d // 2, 1)
        self.patch_support = nn.Conv2d(width, d // 2, 1, bias=False)
        self.patch_conv = nn.Sequential(nn.Conv2d(d // 2, d // 2, 3, padding=1), nn.ReLU())
        self.patch_score = nn.Linear(d // 2, 1)
        self.regress = nn.Linear(d // 2 * 9, 4)
        self.second_order = nn.Linear(d, 1) if high_order else None

    def forward(self, regions: Described, shots: Described, mask: Tensor) -> Relation:
        """Regions (E, K', P, …), shots (E or 1, K, Z, …) with `mask` (E or 1, K, Z) → (E, K, P)."""
        support = average_shots(shots, mask)
        logits = self._global(regions.phi, support.phi) + self._local(regions.phi, support.phi)
        patch = self._patch(regions.phi, support.phi)  # (E, K, P, c, S, S)
        logits = logits + self.patch_score(patch.mean((-1, -2))).squeeze(-1)
        if self.second_order is not None:
            logits = logits + self.second_order(regions.psi * support.psi).squeeze(-1)
        pooled = F.adaptive_avg_pool2d(patch.flatten(0, 2), 3).flatten(1)
        return Relation(logits, self.regress(pooled).unflatten(0, patch.shape[:3]))

    def _global(self, region: Tensor, support: Tensor) -> Tensor:
        pair = torch.broadcast_tensors(region.mean((-1, -2)), support.mean((-1, -2)))
        return self.global_score(self.global_body(torch.cat(pair, -1))).squeeze(-1)

    def _local(self, region: Tensor, support: Tensor) -> Tensor:
        a, b = _apply(self.local_conv, region), _apply(self.local_conv, support)
        return self.local_score(F.relu((a * b).mean((-1, -2)))).squeeze(-1)

    def _patch(self, region: Tensor, support: Tensor) -> Tensor:
        """A 1×1 convolution on both maps side by side is the sum of one on each."""
        joint = F.relu(_apply(self.patch_region, region) + _apply(self.patch_support, support))
        return _apply(self.patch_conv, joint)

    def outputs(self) -> list[nn.Linear]:
        """The last layers, which start at zero beside a cosine prior."""
        scores = [self.global_score, self.local_score, self.patch_score, self.regress]
        return scores + ([self.second_order] if self.second_order is not None else [])


def _apply(conv: nn.Module, x: Tensor) -> Tensor:
    """A convolution over the last three axes of (E, K, P, c, S, S)."""
    out: Tensor = conv(x.flatten(0, 2))
    return out.unflatten(0, x.shape[:3])
