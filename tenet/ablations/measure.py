"""A run of an ablation: train, evaluate, and what came out as a record.

What variants share is made once: the sets are read once for all runs, and variants whose frozen encoder is
the same read its maps from one cache. A run that was stopped goes on from its newest checkpoint and the
evaluation's finished pictures, to the figures of a run that was not.
"""

import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tenet.ablations.plan import Run
from tenet.data.dataset import Dataset
from tenet.data.episodes import EpisodeSource
from tenet.data.files import read_json
from tenet.engine.checkpoint import load_latest
from tenet.engine.dry_run import STEPS, estimate
from tenet.engine.evaluate import evaluate
from tenet.engine.jobs import Options
from tenet.engine.meta_train import episodes_of, meta_train, prepare
from tenet.engine.protocols import plan_evaluation
from tenet.engine.recipe_evaluation import EvaluationSets, evaluation_sets, recipe_settings
from tenet.engine.training_set import training_set
from tenet.errors import WeightsError
from tenet.models.detector import TENET
from tenet.recipe import Recipe
from tenet.records.measured import evaluation_figures
from tenet.records.record import Figure, Record
from tenet.runtime.loading import model_file

Progress = Callable[[Iterable[Any], int], Iterable[Any]]
TIMED_PICTURES = 4


@dataclass(frozen=True, eq=False)
class Ground:
    """The sets that all runs of an ablation share."""

    train: Dataset
    split: dict[str, list[str]]
    tests: list[EvaluationSets]

    @staticmethod
    def read(recipe: Recipe, root: Path) -> "Ground":
        """Read and check everything, before the first step."""
        train, split = training_set(recipe, root)
        ground = Ground(train, split, evaluation_sets(recipe, root))
        for sets in ground.tests:
            plan_evaluation(sets.test, sets.shots_from, recipe_settings(recipe, sets.test, split["base"]))
        return ground

    def episodes(self, recipe: Recipe) -> EpisodeSource:
        return episodes_of(recipe, self.train)


@dataclass(frozen=True)
class Places:
    """Where runs find data, cache and room to work; nothing here changes a figure."""

    root: Path
    work: Path = Path("runs/ablations")
    cache: Path = Path("runs/cache")
    workers: int = 0
    keep: bool = False
    """Keep checkpoints and detections of finished runs."""

    def folder(self, run: Run) -> Path:
        return self.work / run.ablation / f"{run.name}-{run.key[:8]}"


def measure(
    run: Run, ground: Ground, places: Places, command: str, progress: Progress | None = None
) -> Record:
    """Train and evaluate one run, or go on with it; its work folder stays until `tidy`."""
    begun = time.monotonic()
    folder = places.folder(run)
    detector = _trained(run, ground, places)
    figures: list[Figure] = []
    weights = ""
    seconds = 0.0
    for number, sets in enumerate(ground.tests):
        done = evaluate(
            detector,
            sets.test,
            sets.shots_from,
            recipe_settings(run.recipe, sets.test, ground.split["base"]),
            out=folder / f"evaluation{number}",
            model=run.variant,
            workers=places.workers,
            progress=progress,
        )
        figures += evaluation_figures(done.to_json())
        weights, seconds = done.weights, seconds + done.seconds
    return Record(
        kind="ablation",
        command=command,
        model={"name": run.variant, "weights": weights, **_size(detector)},
        config=run.config(),
        figures=tuple(figures),
        seconds=round(time.monotonic() - begun, 1),
        notes={
            "split": ground.split,
            "start": start_digest(run.recipe),
            "step_seconds": _step_seconds(folder / "training" / "metrics.jsonl"),
            "evaluation_seconds": round(seconds, 1),
        },
    )


def start_digest(recipe: Recipe) -> str:
    """Of the weights that a training starts from; "" for a start from nothing, or from what is gone."""
    try:
        path = model_file(recipe.train.start) if recipe.train.start else None
    except WeightsError:
        return ""
    return "" if path is None else str(read_json(path)["tensors"]["blake2b"])


def tidy(run: Run, places: Places) -> None:
    """Remove the work folder of a run whose record is written, unless it is to be kept."""
    if not places.keep:
        shutil.rmtree(places.folder(run), ignore_errors=True)


def _trained(run: Run, ground: Ground, places: Places) -> TENET:
    out = places.folder(run) / "training"
    checkpoints = out / "checkpoints"
    resume = checkpoints.is_dir() and load_latest(checkpoints) is not None
    options = Options(out, places.root, resume, places.workers, cache=places.cache)
    return meta_train(run.recipe, options, (ground.episodes(run.recipe), ground.split))


def _size(detector: TENET) -> dict[str, int]:
    parameters = list(detector.parameters())
    return {
        "parameters": sum(p.numel() for p in parameters),
        "learning": sum(p.numel() for p in parameters if p.requires_grad),
    }


def _step_seconds(path: Path) -> float | None:
    """The median over the lines of metrics.jsonl, which also tell of parts before a stop."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    rates = [rate for line in lines if (rate := json.loads(line)["iterations_per_second"]) > 0]
    return round(1 / statistics.median(rates), 4) if rates else None


@dataclass(frozen=True)
class Cost:
    """Seconds of a step of training and of a test picture with all its draws."""

    step: float
    picture: float

    def seconds(self, run: Run, ground: Ground) -> float:
        """Of a whole run, without filling the cache."""
        limit = run.recipe.evaluate.limit
        pictures = sum(min(limit or len(sets.test), len(sets.test)) for sets in ground.tests)
        return self.step * run.recipe.train.iterations + self.picture * pictures


def time_run(run: Run, ground: Ground, places: Places) -> Cost:
    """What a run costs, from a few steps and pictures in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="tenet-") as name:
        folder = Path(name)
        train = replace(run.recipe.train, iterations=STEPS)
        short = replace(run.recipe, train=train)
        options = Options(folder, places.root, workers=places.workers, cache=folder / "cache")
        job, _ = prepare(short, options, (ground.episodes(short), ground.split))
        step = estimate(job, run.recipe.train.iterations).step_seconds
        sets = ground.tests[0]
        settings = recipe_settings(run.recipe, sets.test, ground.split["base"])
        stamps: list[float] = []

        def stamped(items: Iterable[Any], _: int) -> Iterable[Any]:
            # Shots are encoded before the first picture is asked for, which is not a picture's cost.
            for item in items:
                stamps.append(time.monotonic())
                yield item

        few = sets.test.with_classes(settings.classes, keep_empty=False)
        few = few.subset(record.id for record in few.records[: TIMED_PICTURES + 1])
        evaluate(job.detector, few, sets.shots_from, replace(settings, limit=0), progress=stamped)
    return Cost(step, (stamps[-1] - stamps[0]) / max(len(stamps) - 1, 1))
