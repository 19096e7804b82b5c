"""Meta-training (spec 9): episodes of base classes, a checkpoint now and then, a run that can be resumed.

OUT/recipe.toml              every setting, spelled out
OUT/metrics.jsonl            a line every few steps
OUT/checkpoints/step_….json  see `tenet.engine.checkpoint`
OUT/failed/                  episodes whose loss was not finite, if any
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from tenet.data.dataset import Dataset
from tenet.data.episodes import EpisodeSource
from tenet.data.files import write_text
from tenet.engine import checkpoint
from tenet.engine.distributed import barrier
from tenet.engine.jobs import Options, make_job
from tenet.engine.loop import Job, Step, steps
from tenet.engine.pictures import draw_episode
from tenet.engine.progress import Progress
from tenet.engine.start_from import start_from
from tenet.engine.training_set import shot_pool, training_set
from tenet.engine.warm_start import warm_start
from tenet.errors import ConfigError
from tenet.models.build import build_detector
from tenet.models.detector import TENET, UNDER_BOXES
from tenet.recipe import Recipe

Ground = tuple[EpisodeSource, dict[str, list[str]]]
"""Episodes, and the class split."""


def new_detector(recipe: Recipe, root: Path) -> TENET:
    """The recipe's detector at its start; a weights file is looked for under the data root."""
    torch.manual_seed(recipe.seed)
    encoder = recipe.model.encoder
    if encoder.weights not in ("imagenet", "none"):
        encoder = replace(encoder, weights=str(root / encoder.weights))
    return build_detector(replace(recipe.model, encoder=encoder))


def episode_source(recipe: Recipe, root: Path) -> Ground:
    """Episodes of the recipe's base classes, and the class split. Bad input is refused here."""
    dataset, split = training_set(recipe, root)
    return episodes_of(recipe, dataset), split


def episodes_of(recipe: Recipe, dataset: Dataset) -> EpisodeSource:
    """Episodes of a set, from the recipe's pools of shots and queries."""
    pool = shot_pool(recipe, dataset)
    return EpisodeSource(dataset, recipe.episodes, recipe.seed, pool, queries=recipe.train.query_pool)


def prepare(
    recipe: Recipe, options: Options, ground: Ground | None = None
) -> tuple[Job, dict[str, list[str]]]:
    """All that meta-training needs, and the class split. `ground` has the recipe's episodes where they were
    read before."""
    source, split = episode_source(recipe, options.root) if ground is None else ground
    detector = new_detector(recipe, options.root).to(options.world.device)
    # A whole model brings its own centre of features; boxes bring an encoder whose centre is to be found.
    only_boxes = recipe.train.learn == "relations"
    if not only_boxes:
        warm_start(detector, source)
    if recipe.train.start:
        start_from(detector, recipe.train.start, split["novel"], UNDER_BOXES if only_boxes else ("",))
    if only_boxes:
        warm_start(detector, source)
    return make_job(detector, recipe.train, recipe.train, source, options), split


def meta_train(recipe: Recipe, options: Options, ground: Ground | None = None) -> TENET:
    """Train from the start, or from the newest checkpoint with `resume`; returns the trained detector."""
    folder = options.out / "checkpoints"
    job, split = prepare(recipe, options, ground)
    start = _start(job, recipe, options, folder)
    if options.world.first:
        write_text(options.out / "recipe.toml", recipe.to_toml())
    barrier(options.world)
    run(job, recipe, options, split, start)
    return job.detector


def _start(job: Job, recipe: Recipe, options: Options, folder: Path) -> int:
    """Steps done already: 0, or those of the newest checkpoint, which is restored."""
    found = checkpoint.load_latest(folder) if folder.is_dir() else None
    if found is None:
        if options.resume and not options.world.restarts:
            raise checkpoint.nothing_to_resume(folder)
        return 0
    if not options.resume and not options.world.restarts:
        raise ConfigError(
            f"{options.out}: expected a new folder for this run, but it holds a checkpoint of step "
            f"{found.step}; continue it with --resume, or give another --out"
        )
    checkpoint.refuse_other_recipe(found, recipe)
    checkpoint.restore(found, job.detector, job.optimizer)
    return found.step


def run(
    job: Job,
    recipe: Recipe,
    options: Options,
    split: dict[str, list[str]],
    start: int,
    finish: Callable[[], None] = lambda: None,
    calibration: dict[str, Any] | None = None,
) -> None:
    """The steps from `start` on, shown and saved by the first process. `finish` is called after the last of
    them, before it is saved."""
    train = recipe.train
    if not options.world.first:
        for _ in steps(job, start):
            pass
        finish()
        return
    total = job.plan.iterations
    with Progress(options.out, total, start, train.log_every, tensorboard=options.tensorboard) as progress:
        recent: list[Step] = []
        for step in steps(job, start):
            progress.step(step)
            recent.append(step)
            done = step.number + 1
            if train.picture_every and done % train.picture_every == 0:
                number = job.numbers(step.number, job.groups[0])[0]
                progress.picture(done, draw_episode(job.detector, job.render(number)))
            if done == total:
                finish()
            if done % train.save_every == 0 or done == total:
                checkpoint.save(
                    options.out / "checkpoints",
                    done,
                    job.detector,
                    job.optimizer,
                    recipe,
                    split=split,
                    metrics={"loss": sum(s.loss for s in recent) / len(recent)},
                    keep=train.keep,
                    calibration=calibration,
                )
                recent = []
