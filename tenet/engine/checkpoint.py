"""Checkpoints: `step_00001000.safetensors` with tensors, `step_00001000.json` with everything else.

The tensors are the detector's parameters and buffers (`model/…`) and the optimiser's state
(`optimizer/parameter/name`). Of an encoder whose weights come with the package, what does not learn is
not stored. The JSON has the recipe, the class split, seed, versions, metrics, and the size and BLAKE2
digest of the tensor file: a truncated or changed file is found before it is used. A packed model may have its
encoder as what it learned (`tenet.engine.learned_encoder`).

Both are written under a temporary name and renamed, the JSON last: a checkpoint is there once its JSON
is. So a run killed at any moment, or on a full disk, leaves the older checkpoints whole. Nothing is ever
unpickled.
"""

import hashlib
import json
import platform
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy
import torch
from safetensors.torch import load as load_tensor_bytes
from safetensors.torch import save as save_tensor_bytes
from torch import Tensor

from tenet.data.files import read_json, write_bytes, write_json
from tenet.engine.learned_encoder import without_differences
from tenet.engine.optim import BACKBONE
from tenet.errors import ConfigError, MissingExtraError, TenetError, TrainingError, WeightsError
from tenet.models.build import build_detector
from tenet.models.detector import TENET
from tenet.recipe import Recipe
from tenet.runtime.shipped import PAIR
from tenet.settings import differences
from tenet.version import __version__, clone_says

FORMAT = "tenet-checkpoint-1"
RESUMABLE = ("about", "name", "evaluate", "finetune")
"""Sections in which a resumed run may differ from its checkpoint, and below the settings of [train]."""
RESUMABLE_TRAIN = ("save_every", "keep", "log_every", "picture_every")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was read: `step` is the number of steps done."""

    path: Path
    step: int
    recipe: Recipe
    tensors: dict[str, Tensor]
    split: dict[str, list[str]] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    calibration: dict[str, Any] | None = None


def save(
    folder: Path,
    step: int,
    detector: TENET,
    optimizer: torch.optim.Optimizer,
    recipe: Recipe,
    *,
    split: dict[str, list[str]] | None = None,
    metrics: dict[str, float] | None = None,
    keep: int = 3,
    calibration: dict[str, Any] | None = None,
) -> Path:
    """Write the checkpoint of `step` steps done, and delete older ones but the newest `keep` and the best
    (the least `metrics["loss"]`). Returns the path of its JSON."""
    tensors = _model_tensors(detector) | _optimizer_tensors(detector, optimizer)
    path = folder / f"step_{step:08d}.json"
    write_checkpoint(path, tensors, step, recipe, split or {}, metrics or {}, calibration)
    _prune(folder, keep)
    return path


def write_checkpoint(
    path: Path,
    tensors: dict[str, Tensor],
    step: int,
    recipe: Recipe,
    split: dict[str, list[str]],
    metrics: dict[str, float],
    calibration: dict[str, Any] | None = None,
) -> Path:
    """Write PATH.safetensors, then PATH.json, which makes it a checkpoint. Returns the path of its JSON."""
    content = save_tensor_bytes(tensors)
    write_bytes(path.with_suffix(".safetensors"), content)
    document = {
        "format": FORMAT,
        "step": step,
        "seed": recipe.seed,
        "metrics": metrics,
        "split": split,
        "versions": versions(),
        "tensors": {"bytes": len(content), "blake2b": _digest(content)},
        "recipe": recipe.to_dict(),
    }
    if calibration:
        document["calibration"] = calibration
    write_json(path, document, indent=1)
    return path


def load(path: Path) -> Checkpoint:
    """Read a checkpoint by its JSON or its .safetensors; one that is not whole is a WeightsError."""
    path = path.with_suffix(".json")
    if not path.is_file():
        raise WeightsError(f"{path}: expected a checkpoint of `tenet train`, found nothing there")
    try:
        document = read_json(path)
        if isinstance(document, dict) and document.get("format") == PAIR:
            members = " or ".join(map(str, document.get("members", [])))
            raise WeightsError(f"{path.stem}: expected a single network, but this is a pair; take {members}")
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise WeightsError(f"{path}: expected a checkpoint ({FORMAT}), found another file")
        content = path.with_suffix(".safetensors").read_bytes()
        size, digest = document["tensors"]["bytes"], document["tensors"]["blake2b"]
        if len(content) != size or _digest(content) != digest:
            raise WeightsError(
                f"{path.with_suffix('.safetensors')}: expected {size} bytes as they were written, got "
                f"{len(content)} bytes, truncated or changed; take an older checkpoint"
            )
        recipe = Recipe.from_dict(document["recipe"])
        tensors = without_differences(load_tensor_bytes(content), recipe.model.encoder.name)
        return Checkpoint(
            path,
            int(document["step"]),
            recipe,
            tensors,
            document["split"],
            document["metrics"],
            document.get("calibration"),
        )
    except (WeightsError, MissingExtraError):
        raise
    except Exception as error:
        raise WeightsError(
            f"{path}: expected a whole checkpoint, but it cannot be read ({type(error).__name__}: {error})"
        ) from error


def load_latest(folder: Path) -> Checkpoint | None:
    """The newest checkpoint that is whole; newer broken ones are told in a warning. None without any."""
    for path in reversed(_all(folder)):
        try:
            return load(path)
        except TenetError as error:
            warnings.warn(f"{error}; an older one is taken if there is one", stacklevel=2)
    return None


def find(path: Path) -> Path:
    """The checkpoint that a user names: its file, or a run's folder for its newest."""
    for folder in (path / "checkpoints", path):
        found = _all(folder) if folder.is_dir() else []
        if found:
            return found[-1]
    return path.with_suffix(".json")


def load_detector(path: Path | str) -> TENET:
    """The detector of a checkpoint (its file, or a run's folder), ready to evaluate."""
    return restore_detector(load(find(Path(path)))).eval()


def restore_detector(checkpoint: Checkpoint) -> TENET:
    """The detector that a checkpoint describes, with its parameters."""
    config = checkpoint.recipe.model
    if config.encoder.weights not in ("imagenet", "none"):  # then all of it is in the checkpoint
        config = replace(config, encoder=replace(config.encoder, weights="none"))
    detector = build_detector(config)
    restore(checkpoint, detector)
    return detector


def restore(checkpoint: Checkpoint, detector: TENET, optimizer: torch.optim.Optimizer | None = None) -> None:
    """Put a checkpoint's tensors into a detector of the same settings, and its optimiser's state."""
    given = {name.removeprefix("model/"): t for name, t in checkpoint.tensors.items() if name[:6] == "model/"}
    own = _model_tensors(detector)
    expected = {name.removeprefix("model/"): tensor.shape for name, tensor in own.items()}
    wrong = sorted(name for name in expected.keys() | given.keys() if not _fits(name, expected, given))
    if wrong:
        raise WeightsError(
            f"{checkpoint.path}: expected the parameters of this model, but {wrong[0]} "
            f"(and {len(wrong) - 1} more) is missing, unknown or of another shape; was it trained with "
            "another configuration?"
        )
    detector.load_state_dict(given, strict=False)
    if optimizer is not None:
        _restore_optimizer(checkpoint, detector, optimizer)


def refuse_other_recipe(checkpoint: Checkpoint, recipe: Recipe) -> None:
    """A ConfigError where a run cannot go on from `checkpoint` with this recipe."""
    one, other = (_decisive(each) for each in (checkpoint.recipe, recipe))
    found = differences(one, other)
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise ConfigError(
            f"{checkpoint.path}: expected the recipe of this checkpoint to resume, but {found[0]}{more}; "
            "give the same settings, or another --out to start anew"
        )


def nothing_to_resume(folder: Path) -> TrainingError:
    return TrainingError(f"{folder}: expected a checkpoint to resume from, found none; leave out --resume")


def versions() -> dict[str, str]:
    """What made a checkpoint, with the commit where the package is a clone."""
    told = {"tenet": __version__, "torch": torch.__version__, "numpy": numpy.__version__}
    told["python"] = platform.python_version()
    commit = clone_says("rev-parse", "HEAD")
    if commit is not None:
        told["commit"] = commit
    return told


def _decisive(recipe: Recipe) -> dict[str, Any]:
    table = json.loads(json.dumps(recipe.to_dict()))
    for name in RESUMABLE:
        table.pop(name, None)
    for name in RESUMABLE_TRAIN:
        table["train"].pop(name, None)
    return table


def _fits(name: str, expected: dict[str, torch.Size], given: dict[str, Tensor]) -> bool:
    return name in expected and name in given and expected[name] == given[name].shape


def _model_tensors(detector: TENET) -> dict[str, Tensor]:
    """All of the model, but for a frozen encoder whose weights come with a package."""
    encoder = detector.config.encoder
    packaged = encoder.frozen and encoder.weights == "imagenet"
    return {
        f"model/{name}": tensor.detach().cpu().contiguous()
        for name, tensor in detector.state_dict().items()
        if not (packaged and name.startswith(BACKBONE))
    }


def _optimizer_tensors(detector: TENET, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    return {
        f"optimizer/{name}/{key}": value.detach().cpu().contiguous()
        for name, parameter in detector.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
        if isinstance(value, Tensor)
    }


def _restore_optimizer(checkpoint: Checkpoint, detector: TENET, optimizer: torch.optim.Optimizer) -> None:
    parameters = dict(detector.named_parameters())
    for full, tensor in checkpoint.tensors.items():
        kind, _, rest = full.partition("/")
        if kind == "optimizer":
            name, _, key = rest.rpartition("/")
            # Adam's own step counter stays on the CPU, as torch keeps it.
            device = torch.device("cpu") if key == "step" else parameters[name].device
            optimizer.state[parameters[name]][key] = tensor.to(device)


def _all(folder: Path) -> list[Path]:
    """JSON files of the checkpoints in a folder, oldest first."""
    return sorted(folder.glob("step_????????.json"))


def _loss(path: Path) -> float:
    try:
        return float(read_json(path)["metrics"].get("loss", float("inf")))
    except (TenetError, KeyError, TypeError, ValueError, AttributeError):
        return float("inf")


def best(folder: Path) -> Path | None:
    """The checkpoint with the least loss, or None where there is none."""
    return min(_all(folder), key=_loss, default=None)


def _prune(folder: Path, keep: int) -> None:
    chosen = best(folder)
    for path in _all(folder)[:-keep]:
        if path != chosen:
            path.unlink(missing_ok=True)  # the JSON first: without it the other is no checkpoint
            path.with_suffix(".safetensors").unlink(missing_ok=True)


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
