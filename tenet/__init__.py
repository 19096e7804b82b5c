"""TENET, the few-shot object detector (Zhang, Murray, Wang, Koniusz, ECCV 2022).

The public names, one list. Importing `tenet` loads no torch: each name is fetched on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from tenet.errors import TenetError
from tenet.version import __version__

if TYPE_CHECKING:
    from tenet.bank import ClassBank
    from tenet.config import ModelConfig
    from tenet.models.build import build_detector
    from tenet.predictor import Tenet
    from tenet.structures import ClassFeatures, Detections

_LAZY = {
    "ClassBank": "tenet.bank",
    "ModelConfig": "tenet.config",
    "build_detector": "tenet.models.build",
    "ClassFeatures": "tenet.structures",
    "Detections": "tenet.structures",
    "Tenet": "tenet.predictor",
}

__all__ = [
    "ClassBank",
    "ClassFeatures",
    "Detections",
    "ModelConfig",
    "Tenet",
    "TenetError",
    "__version__",
    "build_detector",
]


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'tenet' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted(__all__)
