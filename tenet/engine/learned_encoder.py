"""An encoder that learned, kept as what it learned.

Its ImageNet weights come with a package that is installed anyway, and what a run changed of them is small. So
of each kernel w a packed model has the difference from the package's w₀ in 8 bits, with a scale s for each
output channel:

    s_o = max |w − w₀|_o / 127        w ≈ w₀ + s_o · round((w − w₀)_o / s_o)

which is off by at most 1/254 of the channel's largest change, in half the room of half precision. A kernel
that is farther from w₀ than from zero never came from there, and stays as it is.
"""

import torch
from torch import Tensor

from tenet.engine.optim import BACKBONE
from tenet.errors import MissingExtraError
from tenet.models.backbones import BACKBONES
from tenet.models.backbones.efficientnet_lite import EfficientNetLite

DIFFERENCE, SCALE = "difference/", "scale/"
"""What the names of a kernel's two tensors begin with, instead of `model/`."""
LEVELS = 127
SMALL = 1024
"""Tensors of fewer numbers cost nothing."""

Tensors = dict[str, Tensor]


def as_differences(tensors: Tensors, encoder: str) -> Tensors:
    """A model's tensors, `model/…`, with the kernels of its encoder, one of `BACKBONES`, as differences; the
    same tensors where its weights come with no package, or with one that is not installed."""
    if not isinstance(BACKBONES[encoder](), EfficientNetLite):
        return tensors
    try:
        first = _packaged(encoder)
    except MissingExtraError:
        return tensors
    kept: Tensors = {}
    for name, tensor in tensors.items():
        change = tensor.float() - first[name] if name in first else None
        if change is None or tensor.numel() < SMALL or change.norm() > tensor.float().norm():
            kept[name] = tensor
            continue
        own = name.removeprefix("model/")
        scale = change.flatten(1).abs().amax(1).clamp(min=1e-12) / LEVELS
        rounded = (change / _across(scale, change)).round().clamp(-LEVELS, LEVELS)
        kept |= {DIFFERENCE + own: rounded.to(torch.int8), SCALE + own: scale}
    return kept


def without_differences(tensors: Tensors, encoder: str) -> Tensors:
    """The model's tensors as they are used: what `as_differences` took away is added again."""
    if not any(name.startswith(DIFFERENCE) for name in tensors):
        return tensors
    first = _packaged(encoder)
    whole = {name: t for name, t in tensors.items() if not name.startswith((DIFFERENCE, SCALE))}
    for name, rounded in tensors.items():
        if name.startswith(DIFFERENCE):
            own = name.removeprefix(DIFFERENCE)
            whole[f"model/{own}"] = first[f"model/{own}"] + rounded * _across(tensors[SCALE + own], rounded)
    return whole


def _packaged(encoder: str) -> Tensors:
    """The encoder's ImageNet kernels, by their names in a model; vectors of few numbers are left out."""
    backbone = BACKBONES[encoder]()
    assert isinstance(backbone, EfficientNetLite)
    backbone.load_imagenet()
    return {f"model/{BACKBONE}{name}": t for name, t in backbone.state_dict().items() if t.dim() > 1}


def _across(scale: Tensor, kernel: Tensor) -> Tensor:
    """A scale for each output channel (o,) → (o, 1, …), to multiply a kernel (o, …) with."""
    return scale.view(-1, *[1] * (kernel.dim() - 1))
