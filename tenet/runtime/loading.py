"""Models by name: shipped ones, a run or its checkpoint, or a pair of them.

A pair is a JSON file that names two models and carries the calibration of both together:

    {"format": "tenet-pair-1", "members": ["tenet_lite0", "tenet_lite2"], "calibration": {…}}

Its members are shipped models, or runs and checkpoints seen from the folder of the file.
"""

from pathlib import Path
from typing import Any

from tenet.data.files import read_json, write_json
from tenet.engine.checkpoint import find, load, restore_detector
from tenet.errors import WeightsError
from tenet.runtime.calibration import Calibration
from tenet.runtime.pair_runtime import PairRuntime
from tenet.runtime.shipped import DEFAULT, LEARNS, PAIR, SHIPPED, shipped_models
from tenet.runtime.torch_runtime import TorchRuntime

CHECKPOINTS = "checkpoints"
"""The folder of a run's checkpoints, inside that of the run."""


def model_file(name: str | Path | None = None) -> Path:
    """The JSON file of a shipped model, or of a run's checkpoint. None is the default model."""
    name = DEFAULT if name is None else name
    path = SHIPPED / f"{name}.json"
    if isinstance(name, str) and path.is_file():
        return path
    path = find(Path(name))
    if not path.is_file():
        raise WeightsError(
            f"model: expected one of {', '.join(shipped_models()) or 'no shipped model'}, or the folder "
            f"or checkpoint of a run; got {str(name)!r}"
        )
    return path


def is_shipped(name: str | Path | None) -> bool:
    """Whether it is a model of the package, asked for by its name: None is the default one."""
    return name is None or str(name) in shipped_models()


def write_calibration(name: str | Path | None, calibration: Calibration) -> None:
    """Keep a calibration beside the model's weights."""
    path = model_file(name)
    write_json(path, {**read_json(path), "calibration": calibration.to_json()}, indent=1)


def load_runtime(name: str | Path | None = None) -> TorchRuntime | PairRuntime:
    """A shipped model by name, or the model of a run: its folder or a checkpoint. None is the default."""
    path = model_file(name)
    document = read_json(path)
    if isinstance(document, dict) and document.get("format") == PAIR:
        return _load_pair(path, document)
    return load_one(path)


def load_one(name: str | Path | None = None) -> TorchRuntime:
    """The same, where it must be a single network; None is the one that learns."""
    path = model_file(LEARNS if name is None else name)
    checkpoint = load(path)
    # People call the model of a run by the run, not by one of its steps.
    called = path.parent.parent.name if path.parent.name == CHECKPOINTS else path.stem
    return TorchRuntime(restore_detector(checkpoint), called, Calibration.from_json(checkpoint.calibration))


def _load_pair(path: Path, document: dict[str, Any]) -> PairRuntime:
    members = document.get("members")
    if not isinstance(members, list) or len(members) != 2 or not all(isinstance(m, str) for m in members):
        raise WeightsError(f"{path}: expected the names of two models as `members`, got {members!r}")
    one, two = (load_one(m if m in shipped_models() else path.parent / m) for m in members)
    return PairRuntime(one, two, path.stem, Calibration.from_json(document.get("calibration")))
