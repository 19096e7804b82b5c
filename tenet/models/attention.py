"""Attention and transformer block (Sec. 3, Eq. 6–9).

`rbf`, Eq. 8: A_ij = exp(−‖q_i − k_j‖² / 2σ²) with q and k of unit length in each head. Nothing is
normalised over the keys: that is what lets attention say "nothing here matches", and with one shot a
softmax would be constant. `softmax`, Eq. 7: scaled dot product.

Deviations: in cross-attention over shots the RBF weights are divided by the number of shots, so that a
shot more or less does not change the scale (a detector trained at 3 shots lost half its AP at 10), and
what they mix is multiplied by e^(1/2σ²), so that a key of cosine ½ counts fully: beside the residual the
supports would hardly be seen otherwise. The projections of q and k start near the identity.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tenet.config import AttentionConfig
from tenet.errors import ConfigError


def rbf_weights(q: Tensor, k: Tensor, mask: Tensor | None, sigma: float) -> Tensor:
    """(…, n, c), (…, m, c) → (…, n, m). With `mask` (…, 1, m) of real keys, divided by their number."""
    cosine = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT
    weights = torch.exp((cosine - 1) / sigma**2)  # ‖q − k‖² = 2 − 2 cos for unit vectors
    if mask is None:
        return weights
    return weights * mask / mask.sum(-1, keepdim=True).clamp(min=1)


def softmax_weights(q: Tensor, k: Tensor, mask: Tensor | None, sigma: float) -> Tensor:
    """The same shapes; masked keys get weight 0, and a row without any key is 0. `sigma` is not used."""
    logits = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is None:
        return logits.softmax(-1)
    real = mask.bool()
    return logits.masked_fill(~real, -torch.inf).softmax(-1).nan_to_num(0.0) * real


ATTENTION: dict[str, Callable[[Tensor, Tensor, Tensor | None, float], Tensor]] = {
    "rbf": rbf_weights,
    "softmax": softmax_weights,
}


class MultiHeadAttention(nn.Module):
    """Eq. 9: T heads split the channels; their outputs are concatenated."""

    def __init__(self, d: int, heads: int, kind: str, sigma: float) -> None:
        super().__init__()
        if d % heads:
            raise ConfigError(f"attention.heads: expected a divisor of the {d} channels, got {heads}")
        self.heads, self.kind, self.sigma = heads, kind, sigma
        self.q = nn.Linear(d, d)
        self.k = nn.Linear(d, d)
        self.v = nn.Linear(d, d)
        # Two things that are alike attend to each other from the first step on: with random projections
        # every cosine starts near 0, and with it every RBF weight near e^(−1/σ²).
        for layer in (self.q, self.k):
            nn.init.eye_(layer.weight)
            layer.weight.data += torch.randn(d, d) * (0.1 / math.sqrt(d))
            nn.init.zeros_(layer.bias)

    def _split(self, x: Tensor) -> Tensor:
        """(…, n, d) → (…, T, n, d/T)"""
        return x.unflatten(-1, (self.heads, -1)).transpose(-2, -3)

    def weights(self, x: Tensor, context: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attention (…, T, n, m) of x (…, n, d) to context (…, m, d); `mask` (…, m) tells real keys."""
        if mask is not None:
            mask = mask[..., None, None, :].to(x.dtype)
        return ATTENTION[self.kind](self._split(self.q(x)), self._split(self.k(context)), mask, self.sigma)

    def forward(self, x: Tensor, context: Tensor, mask: Tensor | None = None) -> Tensor:
        values = self._split(self.v(context))
        if mask is not None and self.kind == "rbf":
            values = values * math.exp(0.5 / self.sigma**2)
        mixed = self.weights(x, context, mask) @ values
        return mixed.transpose(-2, -3).flatten(-2)


class TransformerBlock(nn.Module):
    """Attention, residual, LayerNorm, MLP (ReLU, dropout), residual, LayerNorm."""

    def __init__(self, d: int, settings: AttentionConfig) -> None:
        super().__init__()
        hidden = max(1, round(settings.mlp_ratio * d))
        self.attention = MultiHeadAttention(d, settings.heads, settings.kind, settings.sigma)
        self.norm1 = nn.LayerNorm(d)
        self.mlp = nn.Sequential(
            nn.Linear(d, hidden), nn.ReLU(), nn.Dropout(settings.dropout), nn.Linear(hidden, d)
        )
        self.norm2 = nn.LayerNorm(d)

    def forward(self, x: Tensor, context: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        """Self-attention of x (…, n, d), or cross-attention to `context` (…, m, d)."""
        x = self.norm1(x + self.attention(x, x if context is None else context, mask))
        out: Tensor = self.norm2(x + self.mlp(x))
        return out


class TransformerBlocks(nn.Module):
    """TB blocks in a row, all with the same context."""

    def __init__(self, d: int, settings: AttentionConfig) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(TransformerBlock(d, settings) for _ in range(settings.blocks))

    def forward(self, x: Tensor, context: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        for block in self.blocks:
            x = block(x, context, mask)
        return x

    def first_weights(self, x: Tensor, context: Tensor, mask: Tensor | None = None) -> Tensor:
        """The first block's attention (…, T, n, m): what is looked at before anything is mixed."""
        first = self.blocks[0]
        assert isinstance(first, TransformerBlock)
        return first.attention.weights(x, context, mask)
