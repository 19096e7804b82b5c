"""Evaluation by N-way K-shot episodes: a few classes in a few pictures at a time, many times.

An episode is a shard of the evaluation's folder, so a run that was stopped continues with the first that is
absent. The encoder runs once for each picture of an episode, and again in the next that draws it.
"""

import hashlib
import json
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from tenet.data.dataset import Dataset
from tenet.data.episodes import PictureSource
from tenet.data.loader import load
from tenet.engine.episode_plan import EpisodeDraw, EpisodePlan, plan_episodes
from tenet.engine.episode_result import EpisodeEvaluation, score_episode
from tenet.engine.evaluate import Progress
from tenet.engine.evaluation_detector import (
    Detector,
    device_of,
    fingerprint_weights,
    in_record,
    ready,
    to_tensor,
)
from tenet.engine.evaluation_settings import EvaluationSettings
from tenet.engine.evaluation_shots import encode_lists, uses_objectness
from tenet.engine.evaluation_store import Found, Store, fingerprint_set
from tenet.errors import ConfigError


def evaluate_episodes(
    detector: Detector,
    test: Dataset,
    settings: EvaluationSettings,
    *,
    out: Path | None = None,
    model: str = "detector",
    workers: int = 0,
    progress: Progress | None = None,
) -> EpisodeEvaluation:
    """Draw the episodes of `test`, find, score and summarise, by COCO's metrics whatever `metrics` says.

    out       the evaluation's folder, in which it continues if it was stopped; None keeps nothing
    model     what to call the detector in the report
    workers   processes that decode pictures ahead of time
    progress  wraps an iterable and its length, as tqdm does
    """
    if settings.protocol != "episodes":
        raise ConfigError(
            f"protocol: expected episodes, got {settings.protocol}; call `tenet.engine.evaluate.evaluate`"
        )
    plan = plan_episodes(test, settings)
    if out is None:
        with tempfile.TemporaryDirectory() as folder:
            return _evaluate(detector, plan, settings, Path(folder), model, workers, progress)
    return _evaluate(detector, plan, settings, out, model, workers, progress)


def _evaluate(
    detector: Detector,
    plan: EpisodePlan,
    settings: EvaluationSettings,
    folder: Path,
    model: str,
    workers: int,
    progress: Progress | None,
) -> EpisodeEvaluation:
    start = time.monotonic()
    store, weights = Store(folder), fingerprint_weights(detector)
    store.open(_identity(detector, weights, plan, settings))
    missing = [
        (group, draw)
        for group, draws in enumerate(plan.episodes.values())
        for draw in draws
        if not store.has(group, draw.number)
    ]
    if missing:
        with ready(detector, settings.threshold):
            found = _find(detector, plan, [draw for _, draw in missing], settings, workers, progress)
            for (group, draw), own in zip(missing, found, strict=True):
                store.write(group, draw.number, own)
    scores = {
        shots: tuple(score_episode(plan, draw, store, group) for draw in draws)
        for group, (shots, draws) in enumerate(plan.episodes.items())
    }
    seconds = time.monotonic() - start
    return EpisodeEvaluation(
        model, weights, settings, plan, scores, seconds, uses_objectness(detector, settings)
    )


def _find(
    detector: Detector,
    plan: EpisodePlan,
    episodes: list[EpisodeDraw],
    settings: EvaluationSettings,
    workers: int,
    progress: Progress | None,
) -> Iterator[Found]:
    """What is found in the pictures of each episode: rows count them, labels are ways."""
    device = device_of(detector)
    source = PictureSource(plan.test, *(settings.query_size or detector.config.query_size))
    rows = [row for draw in episodes for row in draw.queries]
    pictures = load(source, rows, workers)
    queue = iter(pictures if progress is None else progress(pictures, len(rows)))
    for draw in episodes:
        [classes] = encode_lists(detector, plan.test, draw.classes, [draw.list], settings)
        own = []
        for place, picture in enumerate(islice(queue, len(draw.queries))):
            [encoded] = detector.encode_images([to_tensor(picture, device)])
            [detections] = detector.match([encoded], classes)
            own.append((place, in_record(detections, plan.test.records[draw.queries[place]], picture)))
        yield {"episode": own}
    next(queue, None)  # lets the loader and the bar end


def _identity(
    detector: Detector, weights: str, plan: EpisodePlan, settings: EvaluationSettings
) -> dict[str, Any]:
    """What makes two evaluations one and the same, part by part."""
    drawn = [
        [draw.number, draw.list.to_json(plan.test)["classes"], draw.queries]
        for draws in plan.episodes.values()
        for draw in draws
    ]
    return {
        "weights": weights,
        "config": repr(detector.config),
        "settings": json.loads(json.dumps(settings.decisive())),
        "test": fingerprint_set(plan.test),
        "shots": hashlib.blake2b(json.dumps(drawn).encode(), digest_size=16).hexdigest(),
    }
