"""Encoding Network (EN, Sec. 4): pictures → maps, and maps + boxes → region features.

A backbone gives c3, c4, c5 at its own widths; 1×1 adapters take them to the detector's C4 (d channels,
stride 16) and C5 (2d channels). Where the widths agree and the map is non-negative, as for the
paper's ResNet-50, the adapter is the identity.

Region features come in two ways: `per_region` pools 14×14 cells from c4 and passes each region
through the last stage (the paper's ancestor); `shared` runs that stage once over the picture and
pools 7×7 from C5 (far cheaper, the choice for a CPU). Other sides than 7 are a setting.

Pictures of a batch may differ in size: those of equal size are encoded together, and every picture
keeps maps of its own, so that a batch gives exactly what its pictures give one by one.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tenet.errors import ConfigError, InputError
from tenet.models.backbones import Backbone, Stages
from tenet.models.backbones.base import PAD_MULTIPLE
from tenet.ops import roi_align

REGIONS_AT_ONCE, PIXELS_AT_ONCE = 128, 2**20
"""How many regions, or pixels of pictures, pass the network together: more would need more memory and save
no time."""
RAW_SAMPLES = 8
"""Samples along each side of a region over which the frozen map is averaged for the cosine prior."""


class Maps(NamedTuple):
    """One picture's maps, each (1, channels, height, width).

    c3   stride 8, the backbone's own, for the pyramid neck
    c4   stride 16, d channels, non-negative
    c5   2d channels; None with `per_region`
    raw4 the backbone's own c4, which regions take through the last stage, and rivals look at; None where
         nothing asks for it
    raw5 the backbone's own c5, for the cosine prior; None where nothing asks for it
    size (height, width) of the picture in pixels, before padding
    """

    c3: Tensor
    c4: Tensor
    c5: Tensor | None
    raw4: Tensor | None
    raw5: Tensor | None
    size: tuple[int, int]


class EncodedImage(NamedTuple):
    """A query picture, encoded once for any number of classes: its maps, and the RPN's levels."""

    maps: Maps
    pyramid: list[Tensor]


class RegionFeatures(NamedTuple):
    """What is known of regions or shots; leading axes are free.

    phi (…, 2d, S, S) from C5; local (…, d, S, S) from C4, which HOP turns into ψ; raw (…, c) or (…, 0)
    """

    phi: Tensor
    local: Tensor
    raw: Tensor


class EncodingNetwork(nn.Module):
    """A backbone with its adapters."""

    def __init__(
        self, backbone: Backbone, d: int, per_region: bool, keep_raw: bool, region_size: int = 7
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.d = d or (backbone.channels[2] // 2 if not backbone.fuse_c5 else 0)
        if not self.d:
            raise ConfigError(
                "encoder.channels: this backbone has no width of its own for C4; set it, such as 160"
            )
        self.per_region, self.keep_raw, self.region_size = per_region, keep_raw, region_size
        _, c4, c5 = backbone.channels
        self.adapt4 = _adapter(c4 + (c5 if backbone.fuse_c5 else 0), self.d, backbone.nonnegative)
        self.adapt5 = _adapter(c5, 2 * self.d, backbone.nonnegative)
        self.register_buffer("mean", torch.tensor(backbone.mean).view(3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(backbone.std).view(3, 1, 1), persistent=False)

    @property
    def raw_channels(self) -> int:
        return self.backbone.channels[2] if self.keep_raw else 0

    def forward(self, images: list[Tensor]) -> list[Maps]:
        """RGB pictures (3, H, W) with values in 0…255 → their maps, in the same order."""
        maps: dict[int, Maps] = {}
        for members in _equal_sizes(images):
            stages = self.stages(torch.stack([images[i] for i in members]))
            size = (images[members[0]].shape[1], images[members[0]].shape[2])
            for row, i in enumerate(members):
                c3, c4, c5 = stages
                own = slice(row, row + 1)
                maps[i] = self.adapt(Stages(c3[own], c4[own], None if c5 is None else c5[own]), size)
        return [maps[i] for i in range(len(images))]

    def stages(self, images: Tensor) -> Stages:
        """The backbone's own maps of pictures (E, 3, H, W) of one size: all that a cache must hold."""
        height, width = images.shape[-2:]
        mean, std = self.get_buffer("mean"), self.get_buffer("std")
        normalised = (images.to(mean.dtype) - mean) / std
        padded = F.pad(normalised, (0, -width % PAD_MULTIPLE, 0, -height % PAD_MULTIPLE))
        c3, c4 = self.backbone.to_c4(padded)
        return Stages(c3, c4, self.backbone.stage5(c4) if self.whole_c5 else None)

    @property
    def whole_c5(self) -> bool:
        """Whether `stages` has c5 of the whole picture."""
        return not self.per_region or self.keep_raw or self.backbone.fuse_c5

    def adapt(self, stages: Stages, size: tuple[int, int]) -> Maps:
        """The backbone's own maps of one picture → the detector's."""
        c3, c4, c5 = stages
        scale3, scale4, scale5 = self.backbone.scales
        local = self.backbone.norm_c4(c4) / scale4
        if self.backbone.fuse_c5 and c5 is not None:
            local = torch.cat([local, c5 / scale5], 1)
        return Maps(
            c3=c3 / scale3,
            c4=self.adapt4(local),
            c5=None if self.per_region or c5 is None else self.adapt5(c5 / scale5),
            raw4=c4 if self.per_region or self.keep_raw else None,
            raw5=c5 if self.keep_raw else None,
            size=size,
        )

    def regions(self, maps: Maps, boxes: Tensor) -> RegionFeatures:
        """Features of boxes (P, 4), xyxy in pixels of the picture that `maps` are of."""
        _, shift4, shift5 = self.backbone.shifts  # where the cells really look
        boxes4, boxes5, stride5 = [boxes - shift4], [boxes - shift5], self.backbone.c5_stride
        local = roi_align(maps.c4, boxes4, self.region_size, 1 / 16)
        if maps.c5 is not None:
            phi = roi_align(maps.c5, boxes5, self.region_size, 1 / stride5)
        else:
            phi = self._one_by_one(maps, boxes - shift4)
        raw = phi.new_zeros(len(boxes), 0)
        if maps.raw5 is not None:  # the prior is what the encoder knows by itself: it teaches it nothing
            raw = self.last_means(maps.raw5.detach(), boxes)
        return RegionFeatures(phi, local, raw)

    def last_means(self, raw5: Tensor, boxes: Tensor) -> Tensor:
        """Means (P, c₅) of the backbone's own last map inside boxes (P, 4)."""
        shift, scale = self.backbone.shifts[2], 1 / self.backbone.c5_stride
        return roi_align(raw5, [boxes - shift], 1, scale, RAW_SAMPLES).flatten(1)

    @property
    def place_widths(self) -> tuple[int, int, int]:
        """Channels of the backbone's own maps, the last in front."""
        c3, c4, c5 = self.backbone.channels
        return c5, c4, c3

    def place(self, maps: Maps, boxes: Tensor | None = None) -> Tensor:
        """How boxes (P, 4) look in a picture: means (P, c₅ + c₄ + c₃) of the backbone's own maps. Without
        boxes, how the whole picture does (P = 1)."""
        assert maps.raw5 is not None
        if boxes is None:
            boxes = maps.raw5.new_tensor([[0, 0, *reversed(maps.size)]])
        return torch.cat([self.last_means(maps.raw5, boxes), self.earlier_means(maps, boxes)], 1)

    def earlier_means(self, maps: Maps, boxes: Tensor) -> Tensor:
        """Means (P, c₄ + c₃) of the earlier maps inside boxes (P, 4), as `raw` of the last."""
        assert maps.raw4 is not None
        shift3, shift4, _ = self.backbone.shifts
        pairs = ((maps.raw4, boxes - shift4, 1 / 16), (maps.c3, boxes - shift3, 1 / 8))
        means = [roi_align(own, [places], 1, scale, RAW_SAMPLES) for own, places, scale in pairs]
        return torch.cat(means, 1).flatten(1)

    def _one_by_one(self, maps: Maps, boxes: Tensor) -> Tensor:
        """Each region through the last stage by itself, some at a time to bound the memory."""
        assert maps.raw4 is not None
        parts, side = [], self.region_size
        for some in boxes.split(REGIONS_AT_ONCE) if len(boxes) else (boxes,):
            inner = self.backbone.stage5(roi_align(maps.raw4, [some], 2 * side, 1 / 16))
            parts.append(self.adapt5(F.adaptive_avg_pool2d(inner, side) / self.backbone.scales[2]))
        return torch.cat(parts)


def _adapter(inside: int, outside: int, nonnegative: bool) -> nn.Module:
    if inside == outside and nonnegative:
        return nn.Identity()
    conv = nn.Conv2d(inside, outside, 1)
    nn.init.kaiming_normal_(conv.weight, nonlinearity="relu")
    return nn.Sequential(conv, nn.ReLU())


def _equal_sizes(images: list[Tensor]) -> list[list[int]]:
    """Positions of the pictures, some of equal size together."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for i, image in enumerate(images):
        if not isinstance(image, Tensor) or image.ndim != 3 or image.shape[0] != 3 or 0 in image.shape:
            came = tuple(image.shape) if isinstance(image, Tensor) else type(image).__name__
            raise InputError(f"picture {i}: expected an RGB tensor of shape (3, H, W), got {came}")
        _check_values(i, image)
        groups.setdefault(tuple(image.shape), []).append(i)
    parts = []
    for (_, height, width), group in groups.items():
        at_once = max(1, PIXELS_AT_ONCE // (height * width))
        parts += [group[start : start + at_once] for start in range(0, len(group), at_once)]
    return parts


def _check_values(i: int, image: Tensor) -> None:
    """Refuse NaN, and values that were scaled to 0…1: the network would see a black picture."""
    if not image.is_floating_point():
        return
    if not torch.isfinite(image).all():
        raise InputError(f"picture {i}: expected finite values in 0…255, got NaN or infinity")
    if 0 < float(image.max()) <= 1 and bool((image != image.round()).any()):
        raise InputError(f"picture {i}: expected values in 0…255, got 0…1; multiply by 255")
