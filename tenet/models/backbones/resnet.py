"""ResNet-50 and ResNet-101 (He et al., 2016), the paper's encoder: C4 is res4, C5 is res5.

Names are torchvision's, so its weight files load as they are. `tiny` is the same network a few
channels wide: for tests and tutorials. Cells are taken to look at (i + ½)·stride, as every Faster R-CNN
does; by geometry alone they look stride/2 − ½ pixels to the left and above.
"""

import torch.nn.functional as F
from torch import Tensor, nn

from tenet.models.backbones.base import Backbone


class Bottleneck(nn.Module):
    """1×1, 3×3 (which carries the stride), 1×1, around a shortcut."""

    def __init__(self, inside: int, width: int, stride: int) -> None:
        super().__init__()
        outside = 4 * width
        self.conv1 = nn.Conv2d(inside, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outside, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outside)
        self.downsample: nn.Module | None = None
        if stride != 1 or inside != outside:
            self.downsample = nn.Sequential(
                nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = F.relu(self.bn2(self.conv2(y)), inplace=True)
        y = self.bn3(self.conv3(y))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)), inplace=True)


class ResNet(Backbone):
    """`blocks` bottlenecks in the four stages, of `width`, 2, 4 and 8 times `width` inner channels."""

    def __init__(self, blocks: tuple[int, int, int, int], width: int = 64) -> None:
        super().__init__()
        self.channels = (8 * width, 16 * width, 32 * width)
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        inside = width
        for stage, count in enumerate(blocks):
            inner, stride = width * 2**stage, 1 if stage == 0 else 2
            layers = []
            for i in range(count):
                layers.append(Bottleneck(inside, inner, stride if i == 0 else 1))
                inside = 4 * inner
            self.add_module(f"layer{stage + 1}", nn.Sequential(*layers))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, Bottleneck):
                # Each block starts near its shortcut; BatchNorm is frozen, so depth must not add up.
                nn.init.constant_(module.bn3.weight, 0.2)

    def to_c4(self, images: Tensor) -> tuple[Tensor, Tensor]:
        x = F.relu(self.bn1(self.conv1(images)), inplace=True)
        x = F.max_pool2d(x, 3, 2, 1)
        c3 = self.get_submodule("layer2")(self.get_submodule("layer1")(x))
        return c3, self.get_submodule("layer3")(c3)

    def stage5(self, c4: Tensor) -> Tensor:
        out: Tensor = self.get_submodule("layer4")(c4)
        return out

    def learning_stages(self) -> list[nn.Module]:
        stem = nn.ModuleList([self.conv1, self.bn1])
        return [stem, *(self.get_submodule(f"layer{i}") for i in (1, 2, 3, 4))]


def resnet50() -> ResNet:
    return ResNet((3, 4, 6, 3))


def resnet101() -> ResNet:
    return ResNet((3, 4, 23, 3))


def tiny() -> ResNet:
    return ResNet((1, 1, 1, 1), width=4)
