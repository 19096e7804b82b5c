"""HOP unit (Sec. 4.3, Eq. 12–13): channel groups → one tensor order each → TSO → super-diagonal → SigmE.

The d channels are split by a ratio, group r makes M^(r), TSO shrinks it, its super-diagonal (as many
numbers as the group has channels) is kept, and SigmE follows: d numbers in, d numbers out.

Deviations: η' is scaled by d/1024, because the entries of a trace-normalised descriptor shrink as
1/d (at d = 1024 it is the paper's own value). Order 1 is the plain average, the paper's "r = 1".
"""

import torch
from torch import Tensor, nn

from tenet.errors import ConfigError
from tenet.ops import sigme, tso_superdiagonal

PAPER_CHANNELS = 1024
"""d for which the paper's η' was chosen."""


def split_channels(d: int, split: tuple[int, ...]) -> tuple[int, ...]:
    """Widths of the groups: in the ratio of `split`, each at least 1, with the sum d.

    >>> split_channels(1024, (5, 2, 1))
    (640, 256, 128)
    """
    if d < len(split):
        raise ConfigError(
            f"hop.split: {d} channels cannot be split into {len(split)} groups; take more channels"
        )
    total, widths, taken, parts = sum(split), [], 0, 0
    for i, part in enumerate(split):
        parts += part
        edge = round(d * parts / total)
        edge = min(max(edge, taken + 1), d - (len(split) - 1 - i))  # leave one channel for each that follows
        widths.append(edge - taken)
        taken = edge
    return tuple(widths)


class HOP(nn.Module):
    """No weights of its own: a pure function of its settings."""

    def __init__(
        self,
        d: int,
        orders: tuple[int, ...],
        split: tuple[int, ...],
        eta: tuple[int, ...],
        eta_prime: tuple[float, ...],
        odd_power: str = "floor3",
    ) -> None:
        super().__init__()
        self.d, self.orders, self.eta, self.odd_power = d, orders, eta, odd_power
        self.widths = split_channels(d, split)
        self.eta_prime = tuple(value * d / PAPER_CHANNELS for value in eta_prime)

    def forward(self, phi: Tensor) -> Tensor:
        """Non-negative features (…, d, N) → ψ (…, d)."""
        parts = []
        for order, group, eta, eta_prime in zip(
            self.orders, phi.split(self.widths, -2), self.eta, self.eta_prime, strict=True
        ):
            if order == 1:
                parts.append(group.mean(-1))
            else:
                parts.append(sigme(tso_superdiagonal(group, order, eta, self.odd_power), eta_prime))
        return torch.cat(parts, -1)

    def extra_repr(self) -> str:
        return f"d={self.d}, orders={self.orders}, widths={self.widths}, eta={self.eta}"
