"""Evaluation: every class against every test picture, for each number of shots and each seed.

A picture is decoded ahead of time, encoded once, matched with the class features of every draw, and
dropped; the shots of a seed are encoded once for all numbers of shots. So the cost is one encoding for
each picture and one matching for each picture and draw, and memory does not grow with the test set.

`fine-tuned` gives each draw a detector of its own, and so each draw encodes the pictures anew.
"""

import copy
import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tenet.config import ModelConfig
from tenet.data.dataset import Dataset, Record
from tenet.data.episodes import PictureSource, support_set
from tenet.data.loader import load
from tenet.data.shots import ShotList, ShotRef
from tenet.engine.evaluation_result import Evaluation, score_draws
from tenet.engine.evaluation_settings import EvaluationSettings
from tenet.engine.evaluation_store import SHARD, Found, Store, fingerprint_set
from tenet.engine.protocols import Draw, Plan, plan_evaluation
from tenet.errors import ConfigError
from tenet.models.supports import SupportFeatures, Supports, stack_classes
from tenet.structures import Detections


class Detector(Protocol):
    """What is evaluated: `tenet.models.detector.TENET`, or anything with its three calls."""

    config: ModelConfig
    training: bool

    def encode_images(self, images: list[Tensor]) -> list[Any]: ...
    def encode_supports(self, supports: Supports) -> SupportFeatures: ...
    def match(self, images: list[Any], classes: SupportFeatures) -> list[Detections]: ...
    def train(self, mode: bool = True) -> Any: ...
    def state_dict(self) -> dict[str, Any]: ...


Adapt = Callable[[Any, ShotList], Any]
"""(a copy of the detector, the shots of a draw) → the detector that learned them. The same shots must
give the same detector: an evaluation that continues may call it again."""
Progress = Callable[[Iterable[Any], int], Iterable[Any]]


@dataclass(frozen=True, eq=False)
class _Group:
    """Draws that share a detector, and the test pictures that at least one of them needs."""

    draws: tuple[Draw, ...]
    rows: list[int]

    @property
    def shards(self) -> range:
        return range(-(-len(self.rows) // SHARD))

    def shard(self, number: int) -> list[int]:
        return self.rows[number * SHARD : (number + 1) * SHARD]


def evaluate(
    detector: Detector,
    test: Dataset,
    shots_from: Dataset,
    settings: EvaluationSettings,
    *,
    out: Path | None = None,
    adapt: Adapt | None = None,
    public_list: Path | None = None,
    model: str = "detector",
    workers: int = 0,
    progress: Progress | None = None,
) -> Evaluation:
    """Find, score and summarise.

    out          the evaluation's folder, in which it continues if it was stopped; None keeps nothing
    adapt        for the protocol `fine-tuned`: how a detector learns a draw
    public_list  a file of the public VOC lists to take the shots from, instead of drawing them
    model        what to call the detector in the report
    workers      processes that decode pictures ahead of time
    progress     wraps an iterable and its length, as tqdm does
    """
    if (settings.protocol == "fine-tuned") != (adapt is not None):
        raise ConfigError("protocol: expected `adapt` with fine-tuned, and only with it")
    plan = plan_evaluation(test, shots_from, settings, public_list)
    if out is None:
        with tempfile.TemporaryDirectory() as folder:
            return _evaluate(detector, plan, settings, Path(folder), adapt, model, workers, progress)
    return _evaluate(detector, plan, settings, out, adapt, model, workers, progress)


def _evaluate(
    detector: Detector,
    plan: Plan,
    settings: EvaluationSettings,
    folder: Path,
    adapt: Adapt | None,
    model: str,
    workers: int,
    progress: Progress | None,
) -> Evaluation:
    start = time.monotonic()
    store = Store(folder)
    weights = fingerprint_weights(detector)
    store.open(_identity(detector, weights, plan, settings))
    groups = _groups(plan, apart=adapt is not None)
    for number, group in enumerate(groups):
        missing = [shard for shard in group.shards if not store.has(number, shard)]
        if missing:
            own = detector if adapt is None else adapt(copy.deepcopy(detector), group.draws[0].list)
            with torch.inference_mode(), _ready(own, settings.threshold):
                for shard, found in _find(own, plan, group, missing, settings, workers, progress):
                    store.write(number, shard, found)
    shards = {
        draw.name: (number, group.shards) for number, group in enumerate(groups) for draw in group.draws
    }
    scored = score_draws(plan, settings, store, shards)
    seconds = time.monotonic() - start
    return Evaluation(model, weights, settings, plan, *scored, seconds=seconds)


# Finding --------------------------------------------------------------------------------------------


def _groups(plan: Plan, apart: bool) -> list[_Group]:
    """All draws together, or each apart."""
    parts = [(draw,) for draw in plan.draws] if apart else [plan.draws]
    return [
        _Group(
            draws,
            [
                row
                for row, record in enumerate(plan.test.records)
                if any(record.id not in draw.left_out for draw in draws)
            ],
        )
        for draws in parts
    ]


def _find(
    detector: Detector,
    plan: Plan,
    group: _Group,
    missing: list[int],
    settings: EvaluationSettings,
    workers: int,
    progress: Progress | None,
) -> Iterator[tuple[int, Found]]:
    """(shard, what was found in its pictures), for each shard that is missing."""
    classes = encode_draws(detector, plan.shots_from, group.draws, settings)
    shorter, longer = settings.query_size or detector.config.query_size
    rows = [row for shard in missing for row in group.shard(shard)]
    source = PictureSource(plan.test, shorter, longer)
    pictures: Iterable[NDArray[np.uint8]] = load(source, rows, workers)
    queue = iter(pictures if progress is None else progress(pictures, len(rows)))
    for shard in missing:
        found: Found = {draw.name: [] for draw in group.draws}
        for row in group.shard(shard):
            record, picture = plan.test.records[row], next(queue)
            [encoded] = detector.encode_images([_tensor(picture, _device(detector))])
            for draw in group.draws:
                if record.id not in draw.left_out:
                    [detections] = detector.match([encoded], classes(draw))
                    found[draw.name].append((row, _in_record(detections, record, picture)))
        yield shard, found
    next(queue, None)  # lets the loader and the bar end


def _in_record(detections: Detections, record: Record, picture: NDArray[np.uint8]) -> Detections:
    """Boxes from pixels of the scaled picture to pixels of the record."""
    height, width = picture.shape[:2]
    scale = np.array([record.width / width, record.height / height] * 2, np.float32)
    frame = np.array([record.width, record.height] * 2, np.float32)
    return replace(detections, boxes=np.clip(detections.boxes * scale, 0, frame).astype(np.float32))


# Shots ----------------------------------------------------------------------------------------------


def encode_draws(
    detector: Detector, dataset: Dataset, draws: Sequence[Draw], settings: EvaluationSettings
) -> Callable[[Draw], SupportFeatures]:
    """Every shot encoded once for its seed, whatever numbers of shots it is part of. Returns the function
    from a draw to the features of its classes."""
    size = settings.support_size or detector.config.support_size
    places: dict[int, dict[str, dict[ShotRef, int]]] = {}
    banks: dict[int, SupportFeatures] = {}
    for seed in dict.fromkeys(draw.seed for draw in draws):
        own = [draw for draw in draws if draw.seed == seed]
        refs = {
            name: tuple(dict.fromkeys(ref for draw in own for ref in draw.list.classes[name]))
            for name in settings.classes
        }
        places[seed] = {name: {ref: row for row, ref in enumerate(refs[name])} for name in refs}
        crops = support_set(dataset, ShotList("all of a seed", seed, 0, refs), size, settings.context)
        banks[seed] = _encode_bank(detector, [crops[name] for name in settings.classes])

    def of_draw(draw: Draw) -> SupportFeatures:
        place = places[draw.seed]
        rows = [[place[name][ref] for ref in draw.list.classes[name]] for name in settings.classes]
        return _take_shots(banks[draw.seed], rows)

    return of_draw


def _encode_bank(
    detector: Detector, classes: list[tuple[NDArray[np.uint8], NDArray[np.float32]]]
) -> SupportFeatures:
    """Crops (Z, S, S, 3) and boxes (Z, 4) of K classes → features (1, K, Z, …), a class at a time."""
    device = _device(detector)
    features = []
    for crops, boxes in classes:
        tensors = [_tensor(crop, device) for crop in crops]
        rows = torch.arange(len(crops), device=device).view(1, 1, -1)
        supports = Supports(tensors, torch.from_numpy(boxes).to(device), rows)
        features.append(detector.encode_supports(supports).to_class(0))
    stacked = stack_classes(features)
    return SupportFeatures(*(None if part is None else part.to(device) for part in stacked))  # type: ignore[arg-type]


def _take_shots(bank: SupportFeatures, rows: list[list[int]]) -> SupportFeatures:
    """The named shots of each class, (1, K, Z, …): a view where they are the first ones."""
    shots = len(rows[0])
    if all(own == list(range(shots)) for own in rows):
        taken = [part[:, :, :shots] for part in bank[:5]]
    else:
        k = torch.arange(len(rows)).unsqueeze(1)
        taken = [part[:, k, torch.tensor(rows)] for part in bank[:5]]
    return SupportFeatures(*taken)


# The detector ---------------------------------------------------------------------------------------


@contextmanager
def _ready(detector: Detector, threshold: float) -> Iterator[None]:
    """Not training, and down to a low score; afterwards as it was."""
    config, training = detector.config, detector.training
    detector.config = replace(config, score_threshold=threshold)
    detector.train(False)
    try:
        yield
    finally:
        detector.config = config
        detector.train(training)


def _device(detector: Detector) -> torch.device:
    return next((value.device for value in detector.state_dict().values()), torch.device("cpu"))


def _tensor(picture: NDArray[np.uint8], device: torch.device) -> Tensor:
    """(H, W, 3) uint8 → (3, H, W) float32 with values in 0…255."""
    return torch.from_numpy(np.ascontiguousarray(picture)).to(device).permute(2, 0, 1).float()


def fingerprint_weights(detector: Detector) -> str:
    """Changes with any parameter or buffer."""
    digest = hashlib.blake2b(digest_size=16)
    for name, value in sorted(detector.state_dict().items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _identity(detector: Detector, weights: str, plan: Plan, settings: EvaluationSettings) -> dict[str, Any]:
    """What makes two evaluations one and the same, part by part."""
    shots = {draw.name: draw.list.to_json(plan.shots_from)["classes"] for draw in plan.draws}
    taught = {picture for draw in plan.draws for picture in draw.list.pictures()}
    parts = json.dumps([shots, fingerprint_set(plan.shots_from.subset(taught))])
    return {
        "weights": weights,
        "config": repr(detector.config),
        "settings": {**json.loads(json.dumps(settings.decisive())), "pictures in a shard": SHARD},
        "test": fingerprint_set(plan.test),
        "shots": hashlib.blake2b(parts.encode(), digest_size=16).hexdigest(),
    }
