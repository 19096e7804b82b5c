"""Pyramid neck (beyond the paper; Lin et al., 2017): maps of strides 8, 16, 32, 64 for the RPN.

Small objects need a finer map than C4, large ones a coarser: C4 is merged into c3, and pooled twice.
Without a neck the RPN works on the one map that the paper gives it.

Its 3×3 convolutions are separable (Howard et al., 2017): on the finest map full ones would cost more than
the encoder.
"""

from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor, nn

from tenet.models.encoder import Maps


class Level(NamedTuple):
    """Where a map's cells lie: cell (i, j) is centred at ((j + ½)·stride + shift, (i + ½)·stride + shift)."""

    stride: int
    shift: float


class SingleLevel(nn.Module):
    """The paper's row: C4 as it is."""

    def __init__(self, shifts: tuple[float, float, float]) -> None:
        super().__init__()
        self.levels = (Level(16, shifts[1]),)

    def forward(self, maps: Maps) -> list[Tensor]:
        return [maps.c4]


class PyramidNeck(nn.Module):
    """Maps of d channels at strides 8, 16, 32 and 64, finest first."""

    def __init__(self, c3_channels: int, d: int, shifts: tuple[float, float, float]) -> None:
        super().__init__()
        self.levels = (Level(8, shifts[0]), Level(16, shifts[1]), Level(32, shifts[1]), Level(64, shifts[1]))
        self.lateral3 = nn.Conv2d(c3_channels, d, 1)
        self.lateral4 = nn.Conv2d(d, d, 1)
        self.smooth = nn.ModuleList(SeparableConv(d, d) for _ in self.levels)
        for lateral in (self.lateral3, self.lateral4):
            nn.init.xavier_normal_(lateral.weight)
            nn.init.zeros_(lateral.bias)  # type: ignore[arg-type]

    def forward(self, maps: Maps) -> list[Tensor]:
        p4 = self.lateral4(maps.c4)
        p3 = self.lateral3(maps.c3) + F.interpolate(p4, size=maps.c3.shape[-2:], mode="nearest")
        p5 = F.avg_pool2d(p4, 2, ceil_mode=True)  # pooling keeps the cells' centres where Level says
        p6 = F.avg_pool2d(p5, 2, ceil_mode=True)
        return [F.relu(conv(x)) for conv, x in zip(self.smooth, (p3, p4, p5, p6), strict=True)]


class SeparableConv(nn.Sequential):
    """A 3×3 convolution of each channel by itself, and a 1×1 convolution across them."""

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__(
            nn.Conv2d(inside, inside, 3, padding=1, groups=inside, bias=False), nn.Conv2d(inside, outside, 1)
        )
        spatial, across = self[0], self[1]
        assert isinstance(spatial, nn.Conv2d)
        nn.init.normal_(spatial.weight, std=0.1)
        spatial.weight.data[:, :, 1, 1] += 1.0  # starts near the identity
        start_relu(across)


def start_relu(*layers: nn.Module) -> None:
    """Start layers so that what passes them and a ReLU keeps its size.

    With torch's default each such layer makes it 2.4 times smaller, and after five of them the biases
    drown the picture.
    """
    for layer in layers:
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
