"""Transformer Relation Head (TRH; Sec. 4.2, Eq. 14–15, supplement B): is this region of that class?

Regions Φ*_b (2d×N), ψ*_b (d) and shots Φ_z, ψ_z meet in two heads:

  Z-shot       q_b = W^q(φ̄*_b + W^p ψ*_b) attends to k_z, v_z of every shot (Eq. 14); 2d per region
  Spatial-HOP  tokens [φ^l_1 … φ^l_N, φ̄^u, W^g ψ] attend to each other (Eq. 15), for regions and for the
               shots' average; relations are spatial: support − region, FO and HO: products

Each head classifies match / no match and the two scores are summed; the box comes from Spatial-HOP.

Readings of the paper, and what is folded without changing the result:
  * match / no match is one log-odds: a two-way softmax depends on the difference of its logits only.
  * l is the first half of the 2d channels and u the second, as the supplement says.
  * The supplement prints Repeat on the spatial part and the size 2d×B; both are misprints: FO+HO is
    repeated over the N positions, and the relation is 2d×N.
  * The first linear layer on that relation acts on support − region and on the repeated part apart,
    and on support and region apart, so it runs once for each region and not once for each pair.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tenet.config import AttentionConfig
from tenet.models.attention import TransformerBlocks
from tenet.models.supports import masked_mean


class Described(NamedTuple):
    """Regions (E, K', P, …) or shots (E or 1, K, Z, …): phi (…, 2d, S, S), psi (…, d)."""

    phi: Tensor
    psi: Tensor


class Relation(NamedTuple):
    """Log-odds (E, K, P) that a region is of a class, and deltas (E, K, P, 4) of its box."""

    logits: Tensor
    deltas: Tensor


class ZShotHead(nn.Module):
    """Cross-attention from regions to single shots. `regress`: it gives the box, for want of Spatial-HOP."""

    def __init__(
        self, d: int, *, orders: str, attention: AttentionConfig, attention_score: bool, regress: bool
    ) -> None:
        super().__init__()
        self.first_order = orders != "high"
        self.w_p = nn.Linear(d, 2 * d, bias=False) if orders != "first" else None
        self.fc = nn.Linear(2 * d, 2 * d)
        self.blocks = TransformerBlocks(2 * d, attention)
        self.classify = nn.Linear(2 * d, 1)
        self.regress = nn.Linear(2 * d, 4) if regress else None
        self.attention_gain = nn.Parameter(torch.zeros(())) if attention_score else None

    def embed(self, x: Described) -> Tensor:
        """φ̄ + W^p ψ and the FC that follows: (…, 2d)."""
        parts = [x.phi.mean((-1, -2))] if self.first_order else []
        if self.w_p is not None:
            parts.append(self.w_p(x.psi))
        out: Tensor = self.fc(sum(parts[1:], parts[0]))
        return out

    def forward(self, regions: Tensor, shots: Tensor, mask: Tensor) -> tuple[Tensor, Tensor | None]:
        """Embedded regions (E, K', P, 2d) and shots (E or 1, K, Z, 2d), real where `mask` (…, Z) → log-odds
        (E, K, P), and deltas (E, K, P, 4) if it is to give the box."""
        related = self.blocks(regions, shots, mask)
        logits = self.classify(related).squeeze(-1)
        if self.attention_gain is not None:
            attended = self.blocks.first_weights(regions, shots, mask)  # (E, K, T, P, Z)
            logits = logits + self.attention_gain * attended.sum(-1).mean(-2)
        return logits, None if self.regress is None else self.regress(related)


class SpatialTokens(NamedTuple):
    """After self-attention: the spatial tokens, already reduced (…, N, c); FO (…, d); HO (…, d)."""

    spatial: Tensor
    first_order: Tensor | None
    high_order: Tensor | None


class SpatialHOPHead(nn.Module):
    """Self-attention among spatial, first-order and high-order tokens, then relations."""

    def __init__(self, d: int, *, size: int, orders: str, attention: AttentionConfig) -> None:
        super().__init__()
        self.size, self.first_order = size, orders != "high"
        self.w_g = nn.Linear(d, d, bias=False) if orders != "first" else None
        self.blocks = TransformerBlocks(d, attention)
        parts = 2 if orders == "both" else 1
        self.w_u = nn.Sequential(nn.Linear(parts * d, d), nn.ReLU(), nn.Linear(d, d))
        reduced = max(8, d // 4)
        self.reduce_spatial = nn.Linear(d, reduced, bias=False)
        self.reduce_orderless = nn.Linear(d, reduced)
        self.body = nn.Sequential(nn.Linear(reduced * size**2, d), nn.ReLU())
        self.classify = nn.Linear(d, 1)
        self.regress = nn.Linear(d, 4)

    def tokens(self, x: Described) -> Tensor:
        """Eq. 15: [φ^l_1 … φ^l_N, mean φ^u, W^g ψ] as (…, N + 1 or 2, d)."""
        lower, upper = x.phi.chunk(2, -3)
        if self.size != lower.shape[-1]:
            flat = F.interpolate(
                lower.flatten(0, -4), size=(self.size, self.size), mode="bilinear", align_corners=False
            )
            lower = flat.unflatten(0, lower.shape[:-3])
        parts = [lower.flatten(-2).mT]  # (…, N, d)
        if self.first_order:
            parts.append(upper.mean((-1, -2)).unsqueeze(-2))
        if self.w_g is not None:
            parts.append(self.w_g(x.psi).unsqueeze(-2))
        return torch.cat(parts, -2)

    def embed(self, x: Described) -> SpatialTokens:
        """Tokens through self-attention, taken apart again."""
        n = self.size**2
        attended = self.blocks(self.tokens(x))
        spatial, orderless = attended[..., :n, :], attended[..., n:, :].unbind(-2)
        return SpatialTokens(
            self.reduce_spatial(spatial),
            orderless[0] if self.first_order else None,
            orderless[-1] if self.w_g is not None else None,
        )

    def forward(self, regions: SpatialTokens, support: SpatialTokens) -> Relation:
        """Embedded regions (E, K', P, …) and the shots' average (E or 1, K, 1, …)."""
        products = [
            own * other
            for own, other in (
                (regions.first_order, support.first_order),
                (regions.high_order, support.high_order),
            )
            if own is not None and other is not None
        ]
        orderless = self.reduce_orderless(self.w_u(torch.cat(products, -1)))  # (E, K, P, c)
        relation = (support.spatial - regions.spatial) + orderless.unsqueeze(-2)  # (E, K, P, N, c)
        hidden = self.body(F.relu(relation).flatten(-2))
        return Relation(self.classify(hidden).squeeze(-1), self.regress(hidden))

    def attention_maps(self, x: Described) -> dict[str, Tensor]:
        """Fig. 4 of the supplement, each (…, S, S), from the first block's attention, mean over heads:
        `fo` and `ho` how that token attends to the positions, `fo_ho` their average, `spatial` the
        positions' attention among themselves, max-pooled."""
        tokens = self.tokens(x)
        weights = self.blocks.first_weights(tokens, tokens).mean(-3)  # (…, tokens, tokens)
        n, grid = self.size**2, (self.size, self.size)
        among = weights[..., :n, :n] * (1 - torch.eye(n, dtype=weights.dtype, device=weights.device))
        maps = {"spatial": among.amax(-2).unflatten(-1, grid)}
        orderless = weights[..., n:, :n].unflatten(-1, grid)
        names = ["fo"] * self.first_order + ["ho"] * (self.w_g is not None)
        maps |= {name: orderless[..., i, :, :] for i, name in enumerate(names)}
        if len(names) == 2:
            maps["fo_ho"] = orderless.mean(-3)
        return maps


class TransformerRelationHead(nn.Module):
    """Z-shot and Spatial-HOP, either or both; log-odds are summed, the box is Spatial-HOP's if there."""

    def __init__(
        self,
        d: int,
        *,
        z_shot: bool,
        spatial_hop: bool,
        z_shot_orders: str,
        spatial_orders: str,
        attention: AttentionConfig,
        spatial_size: int,
        attention_score: bool,
    ) -> None:
        super().__init__()
        self.z_shot: ZShotHead | None = None
        self.spatial_hop: SpatialHOPHead | None = None
        if z_shot:
            self.z_shot = ZShotHead(
                d,
                orders=z_shot_orders,
                attention=attention,
                attention_score=attention_score,
                regress=not spatial_hop,
            )
        if spatial_hop:
            self.spatial_hop = SpatialHOPHead(
                d, size=spatial_size, orders=spatial_orders, attention=attention
            )

    def forward(self, regions: Described, shots: Described, mask: Tensor) -> Relation:
        """Regions (E, K', P, …), shots (E or 1, K, Z, …) with `mask` (E or 1, K, Z) → (E, K, P)."""
        logits: list[Tensor] = []
        deltas: Tensor | None = None
        if self.z_shot is not None:
            own, deltas = self.z_shot(self.z_shot.embed(regions), self.z_shot.embed(shots), mask)
            logits.append(own)
        if self.spatial_hop is not None:
            support = average_shots(shots, mask)
            relation = self.spatial_hop(self.spatial_hop.embed(regions), self.spatial_hop.embed(support))
            logits.append(relation.logits)
            deltas = relation.deltas
        assert deltas is not None
        return Relation(sum(logits[1:], logits[0]), deltas)

    def outputs(self) -> list[nn.Linear]:
        """The last layers, which start at zero beside a cosine prior."""
        heads = [head for head in (self.z_shot, self.spatial_hop) if head is not None]
        return [layer for head in heads for layer in (head.classify, head.regress) if layer is not None]


def average_shots(shots: Described, mask: Tensor) -> Described:
    """ "Z-avg": Φ† and ψ†, the mean over the real shots, as (…, K, 1, …)."""
    phi = masked_mean(shots.phi.flatten(-3), mask).unflatten(-1, shots.phi.shape[-3:])
    return Described(phi.unsqueeze(-4), masked_mean(shots.psi, mask).unsqueeze(-2))
