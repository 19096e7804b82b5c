"""Fine-tuning: the same loop on K shots of each class.

Queries are the pictures that hold shots. By the protocol the K boxes are all that is known of them; where a
user has annotated whole pictures (`complete`), all their boxes are, and nothing that is there is learned as
background. A query takes its shots from other pictures; a class whose shots are all in one picture has to
take them from the query itself.

What was learned is averaged with what was known before (`finetune.average`): few pictures teach what they
show and forget the rest, and the mean keeps both (Wortsman et al., Robust fine-tuning of zero-shot models,
2022). Not in the paper.
"""

import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from tenet.data.dataset import Dataset, Record, merge
from tenet.data.episode_settings import EpisodeSettings
from tenet.data.episodes import EpisodeSource
from tenet.data.files import write_text
from tenet.data.shots import ShotList, draw_shots, public_shots, write_shots
from tenet.data.splits import get_split, one_name
from tenet.engine import meta_train
from tenet.engine.jobs import Options, make_job
from tenet.engine.loop import Job, steps
from tenet.engine.training_set import only_shots, read_sets, with_shots
from tenet.errors import ConfigError, DataError
from tenet.models.detector import TENET
from tenet.recipe import FinetuneConfig, Recipe

Progress = Callable[[Iterable[Any], int], Iterable[Any]]
MOST_SHOTS = 10
"""Shots of a class in one episode, of however many there are."""
MANY = 100
"""Shots of a class where a user names no number: a few minutes do not see more pictures."""
VIEWS = 16
"""Views of each picture (scales, cut-outs, mosaics), encoded once; too many to be learned by heart."""


def finetune(
    detector: TENET,
    recipe: Recipe,
    dataset: Dataset,
    shots: ShotList,
    options: Options | None = None,
    *,
    complete: bool = False,
    progress: Progress | None = None,
) -> TENET:
    """Fine-tune `detector` in place on `shots` of `dataset`, by [finetune]; nothing stays on disk.

    complete  every object of the shots' pictures is annotated, and may be learned
    progress  wraps an iterable and its length, as tqdm does
    """
    with TemporaryDirectory(prefix="tenet-") as folder:
        options = replace(options or Options(Path(folder)), cache=Path(folder))
        job = finetune_job(detector, recipe, dataset, shots, options, complete)
        before = parameters_of(detector)
        for _ in steps(job) if progress is None else progress(steps(job), job.plan.iterations):
            pass
    average(detector, before, recipe.finetune.average)
    return detector.eval()


def finetune_run(
    detector: TENET,
    recipe: Recipe,
    dataset: Dataset,
    shots: ShotList,
    options: Options,
    *,
    complete: bool = False,
    base: Sequence[str] = (),
    learned: Sequence[str] = (),
    calibration: dict[str, Any] | None = None,
) -> TENET:
    """The same as a run: checkpoints, metrics, the recipe and the shots are written to `options.out`; the
    last checkpoint is the mean. `base`, `calibration` and the classes `learned` by earlier fine-tuning are
    those of the model it started from."""
    options = replace(options, cache=options.out / "cache")
    if (options.out / "checkpoints").is_dir() and any((options.out / "checkpoints").iterdir()):
        raise ConfigError(
            f"{options.out}: expected a new folder, but it holds checkpoints; give another --out"
        )
    job = finetune_job(detector, recipe, dataset, shots, options, complete)
    before = parameters_of(detector)
    if options.world.first:
        write_text(options.out / "recipe.toml", recipe.to_toml())
        write_shots(shots, dataset, options.out / "shots.json")
    own = sorted(name for name, refs in shots.classes.items() if refs)
    split = {"base": list(base), "novel": own, "learned": sorted({*own, *learned})}
    # Before its end a run is no mean yet.
    recipe = replace(recipe, train=replace(recipe.train, save_every=job.plan.iterations))
    finish = partial(average, detector, before, recipe.finetune.average)
    meta_train.run(job, recipe, options, split, 0, finish, calibration)
    if options.world.first:
        shutil.rmtree(options.cache, ignore_errors=True)
    return detector.eval()


def parameters_of(detector: TENET) -> dict[str, Tensor]:
    """A copy of all that can learn."""
    return {name: value.detach().clone() for name, value in detector.named_parameters()}


@torch.no_grad()
def average(detector: TENET, before: dict[str, Tensor], share: float) -> None:
    """Each parameter becomes `share` of itself and the rest of what it was before."""
    for name, value in detector.named_parameters():
        value.lerp_(before[name].to(value), 1 - share)


def finetune_job(
    detector: TENET,
    recipe: Recipe,
    dataset: Dataset,
    shots: ShotList,
    options: Options,
    complete: bool = False,
) -> Job:
    """The job of fine-tuning; bad input is refused here. A class without shots is left out."""
    refuse_none(shots)
    known = with_shots(dataset, shots) if complete else only_shots(dataset, shots)
    source = EpisodeSource(
        _queries(known, shots), _settings(recipe, shots), recipe.seed, shots, support=dataset
    )
    # Reading a few dozen pictures' maps back costs nothing, encoding them in each step does.
    train = replace(
        recipe.train,
        learn="all",
        cache=recipe.model.encoder.frozen,
        cache_queries=True,
        cache_views=VIEWS,
        shot_views=2,
    )
    return make_job(detector, _plan(recipe.finetune, len(known)), train, source, options)


def describe(plan: FinetuneConfig) -> str:
    """How it is learned, in a line: other words, another way."""
    limit = f", {plan.per_picture} for each picture" if plan.per_picture else ""
    return (
        f"at most {plan.iterations} steps of {plan.batch} episodes{limit}, {plan.optimizer} {plan.lr:g}, "
        f"{VIEWS} views of a picture, {plan.average:.0%} of what was learned"
    )


def _plan(plan: FinetuneConfig, pictures: int) -> FinetuneConfig:
    """No more steps than so many pictures are worth."""
    if not plan.per_picture:
        return plan
    iterations = min(plan.iterations, plan.per_picture * pictures)
    return replace(plan, iterations=iterations, warmup=min(plan.warmup, iterations // 5))


def refuse_none(shots: ShotList) -> None:
    """A DataError where no class has a shot."""
    if not any(shots.classes.values()):
        raise DataError(
            f"expected at least one shot of a class, got none of {', '.join(shots.classes) or 'any class'}; "
            "annotate some, or allow smaller boxes with --set evaluate.min_shot_side=0"
        )


def refuse_short(shots: ShotList) -> None:
    """A DataError where a class has fewer shots than asked for."""
    for name, count in shots.short().items():
        raise DataError(
            f"expected {shots.shots} shots of each class, got {count} of {name}; annotate more, lower "
            "--shots, leave the class out with --classes, or allow smaller boxes with "
            "--set evaluate.min_shot_side=0"
        )


def shots_of_user(
    dataset: Dataset,
    classes: list[str] | None,
    count: int | None,
    recipe: Recipe,
    min_side: float | None = None,
) -> ShotList:
    """Shots of a user's own set: `count` of each of `classes` (all of them by default), or as many as there
    are up to `MANY`; both sides of at least `min_side` pixels (by default the recipe's)."""
    min_side = recipe.evaluate.min_shot_side if min_side is None else min_side
    shots = draw_shots(dataset, count or MANY, recipe.seed, classes, min_side)
    if count is not None:
        refuse_short(shots)
    return shots


def shots_of_recipe(recipe: Recipe, root: Path) -> tuple[Dataset, ShotList]:
    """Shots of the recipe's novel classes, and of its base classes with `finetune.base`."""
    evaluate = recipe.evaluate
    paths = evaluate.support or evaluate.test
    sets = read_sets(paths, root, recipe.data.image_set, "evaluate.support")
    dataset = sets[0] if len(sets) == 1 else merge(sets)
    if recipe.data.split and recipe.data.split != "fsod":
        split = get_split(recipe.data.split)
        wanted = one_name((*split.novel, *(split.base if recipe.finetune.base else ())))
        dataset = dataset.with_classes(name for name in dataset.classes if one_name([name]) & wanted)
    count = recipe.finetune.shots
    if evaluate.shot_list:
        shots = public_shots(root / evaluate.shot_list, dataset, count, recipe.seed)
    else:
        shots = draw_shots(dataset, count, recipe.seed, min_side=evaluate.min_shot_side)
    refuse_short(shots)
    return dataset, shots


def _settings(recipe: Recipe, shots: ShotList) -> EpisodeSettings:
    """The recipe's episodes with at most the ways and shots that there are."""
    count = sum(1 for refs in shots.classes.values() if refs)
    ways = min(recipe.episodes.ways, count)
    # Few pictures show few classes: those that are there as well are ways like any other.
    # What is to be found looks like these pictures: not turned, and in their colours.
    return replace(
        recipe.episodes,
        ways=ways,
        shots=min(MOST_SHOTS, max(len(refs) for refs in shots.classes.values())),
        min_shots=0,
        others="any",
        turn=0.0,
        recolour=0.0,
    )


def _queries(pictures: Dataset, shots: ShotList) -> Dataset:
    """Pictures with shots; one that has all shots of a class is in memory, under a name of its own."""
    homes = [{ref.picture for ref in refs} for refs in shots.classes.values()]
    alone = {picture for own in homes if len(own) == 1 for picture in own}
    return replace(pictures, records=tuple(_query(record, record.id in alone) for record in pictures.records))


def _query(record: Record, alone: bool) -> Record:
    # A picture in memory is known by its id: another id, and its own shots may be drawn for it.
    return replace(record, id=f"query/{record.id}", pixels=record.picture()) if alone else record
