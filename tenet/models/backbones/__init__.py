"""Backbones for the Encoding Network: plain functions in a plain dict.

To add one: a file with a `Backbone`, and a row here.
"""

from collections.abc import Callable

from tenet.models.backbones.base import Backbone, Stages
from tenet.models.backbones.efficientnet_lite import lite0, lite1, lite2
from tenet.models.backbones.resnet import resnet50, resnet101, tiny
from tenet.models.backbones.swin import swin_b_7, swin_b_12

BACKBONES: dict[str, Callable[[], Backbone]] = {
    "resnet50": resnet50,
    "resnet101": resnet101,
    "swin_b_7": swin_b_7,
    "swin_b_12": swin_b_12,
    "lite0": lite0,
    "lite1": lite1,
    "lite2": lite2,
    "tiny": tiny,
}

__all__ = ["BACKBONES", "Backbone", "Stages"]
