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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenet.data.dataset import Dataset
from tenet.data.episodes import PictureSource
from tenet.data.loader import load
from tenet.data.shots import ShotList
from tenet.engine.evaluation_detector import (
    Detector,
    device_of,
    fingerprint_weights,
    in_record,
    ready,
    to_tensor,
)
from tenet.engine.evaluation_result import Evaluation, score_draws
from tenet.engine.evaluation_settings import EvaluationSettings
from tenet.engine.evaluation_shots import encode_draws, uses_objectness
from tenet.engine.evaluation_store import SHARD, Found, Store, fingerprint_set
from tenet.engine.protocols import Draw, Plan, plan_evaluation
from tenet.errors import ConfigError

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
    coco_files: bool = False,
    progress: Progress | None = None,
) -> Evaluation:
    """Find, score and summarise.

    out          the evaluation's folder, in which it continues if it was stopped; None keeps nothing
    adapt        for the protocol `fine-tuned`: how a detector learns a draw
    public_list  a file of the public VOC lists to take the shots from, instead of drawing them
    model        what to call the detector in the report
    workers      processes that decode pictures ahead of time
    coco_files   also write detections and ground truth of each draw to `out`, as `tenet score` reads them
    progress     wraps an iterable and its length, as tqdm does
    """
    if settings.protocol == "episodes":
        raise ConfigError(
            "protocol: expected meta-test or fine-tuned, got episodes; call "
            "`tenet.engine.evaluate_episodes.evaluate_episodes`"
        )
    if (settings.protocol == "fine-tuned") != (adapt is not None):
        raise ConfigError("protocol: expected `adapt` with fine-tuned, and only with it")
    plan = plan_evaluation(test, shots_from, settings, public_list)
    if out is None:
        with tempfile.TemporaryDirectory() as folder:
            return _evaluate(detector, plan, settings, Path(folder), adapt, model, workers, False, progress)
    return _evaluate(detector, plan, settings, out, adapt, model, workers, coco_files, progress)


def _evaluate(
    detector: Detector,
    plan: Plan,
    settings: EvaluationSettings,
    folder: Path,
    adapt: Adapt | None,
    model: str,
    workers: int,
    coco_files: bool,
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
            with ready(own, settings.threshold):
                for shard, found in _find(own, plan, group, missing, settings, workers, progress):
                    store.write(number, shard, found)
    shards = {
        draw.name: (number, group.shards) for number, group in enumerate(groups) for draw in group.draws
    }
    scored = score_draws(plan, settings, store, shards, coco_files)
    seconds = time.monotonic() - start
    fitted = uses_objectness(detector, settings)
    return Evaluation(model, weights, settings, plan, *scored, seconds=seconds, objectness=fitted)


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
            [encoded] = detector.encode_images([to_tensor(picture, device_of(detector))])
            for draw in group.draws:
                if record.id not in draw.left_out:
                    [detections] = detector.match([encoded], classes(draw))
                    found[draw.name].append((row, in_record(detections, record, picture)))
        yield shard, found
    next(queue, None)  # lets the loader and the bar end


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
