"""Fine-tuning: the same loop on K shots of each class. The K boxes are all that it knows.

Queries are the pictures that hold shots, with no other boxes than those. A query takes its shots from
other pictures; a class whose shots are all in one picture has to take them from the query itself.
"""

import shutil
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tenet.data.dataset import Dataset, Record, merge
from tenet.data.episode_settings import EpisodeSettings
from tenet.data.episodes import EpisodeSource
from tenet.data.files import write_text
from tenet.data.shots import ShotList, draw_shots, public_shots, write_shots
from tenet.data.splits import get_split, one_name
from tenet.engine import meta_train
from tenet.engine.jobs import Options, make_job
from tenet.engine.loop import Job, steps
from tenet.engine.training_set import only_shots, read_sets
from tenet.errors import ConfigError, DataError
from tenet.models.detector import TENET
from tenet.recipe import Recipe


def finetune(
    detector: TENET, recipe: Recipe, dataset: Dataset, shots: ShotList, options: Options | None = None
) -> TENET:
    """Fine-tune `detector` in place on `shots` of `dataset`, by [finetune]; nothing stays on disk."""
    with TemporaryDirectory(prefix="tenet-") as folder:
        options = replace(options or Options(Path(folder)), cache=Path(folder))
        for _ in steps(finetune_job(detector, recipe, dataset, shots, options)):
            pass
    return detector.eval()


def finetune_run(
    detector: TENET, recipe: Recipe, dataset: Dataset, shots: ShotList, options: Options
) -> TENET:
    """The same as a run: checkpoints, metrics, the recipe and the shots are written to `options.out`."""
    options = replace(options, cache=options.out / "cache")
    if (options.out / "checkpoints").is_dir() and any((options.out / "checkpoints").iterdir()):
        raise ConfigError(
            f"{options.out}: expected a new folder, but it holds checkpoints; give another --out"
        )
    job = finetune_job(detector, recipe, dataset, shots, options)
    if options.world.first:
        write_text(options.out / "recipe.toml", recipe.to_toml())
        write_shots(shots, dataset, options.out / "shots.json")
    split = {"base": [], "novel": sorted(name for name, refs in shots.classes.items() if refs)}
    meta_train.run(job, recipe, options, split, 0)
    if options.world.first:
        shutil.rmtree(options.cache, ignore_errors=True)
    return detector.eval()


def finetune_job(detector: TENET, recipe: Recipe, dataset: Dataset, shots: ShotList, options: Options) -> Job:
    """The job of fine-tuning; bad input is refused here."""
    refuse_short(shots)
    source = EpisodeSource(
        _queries(dataset, shots), _settings(recipe, shots), recipe.seed, shots, support=dataset
    )
    # Reading a few dozen pictures' maps back costs nothing, encoding them in each step does.
    train = replace(
        recipe.train,
        learn="all",
        cache=recipe.model.encoder.frozen,
        cache_queries=True,
        cache_views=4,
        shot_views=2,
    )
    return make_job(detector, recipe.finetune, train, source, options)


def refuse_short(shots: ShotList) -> None:
    """A DataError where a class has fewer shots than asked for."""
    short = shots.short()
    if short or not shots.classes:
        name, count = next(iter(short.items()), ("any class", 0))
        raise DataError(
            f"expected {shots.shots} shots of each class, got {count} of {name}; annotate more, lower "
            "--shots, or allow smaller boxes with --set evaluate.min_shot_side=0"
        )


def shots_of_user(dataset: Dataset, classes: list[str] | None, recipe: Recipe) -> tuple[Dataset, ShotList]:
    """Shots of a user's own set: `finetune.shots` of each of `classes` (all of them by default)."""
    chosen = dataset if classes is None else dataset.with_classes(classes)
    shots = draw_shots(chosen, recipe.finetune.shots, recipe.seed, min_side=recipe.evaluate.min_shot_side)
    return chosen, shots


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
        return dataset, public_shots(root / evaluate.shot_list, dataset, count, recipe.seed)
    return dataset, draw_shots(dataset, count, recipe.seed, min_side=evaluate.min_shot_side)


def _settings(recipe: Recipe, shots: ShotList) -> EpisodeSettings:
    """The recipe's episodes with at most the ways and shots that there are."""
    count = sum(1 for refs in shots.classes.values() if refs)
    ways = min(recipe.episodes.ways, count)
    # Few pictures show few classes: those that are there as well are ways like any other.
    # Views of whole pictures as they are: a cache can hold those, and shots look like them.
    return replace(
        recipe.episodes,
        ways=ways,
        shots=shots.shots,
        min_shots=0,
        others="any",
        zoom=(1.0, 1.0),
        mosaic=0.0,
        turn=0.0,
        recolour=0.0,
    )


def _queries(dataset: Dataset, shots: ShotList) -> Dataset:
    """Pictures with shots, in memory; under names of their own where a class has only one picture."""
    pictures = only_shots(dataset, shots)
    alone = any(len({ref.picture for ref in refs}) == 1 for refs in shots.classes.values())
    return replace(pictures, records=tuple(_query(record, alone) for record in pictures.records))


def _query(record: Record, alone: bool) -> Record:
    # A picture in memory is known by its id: another id, and its own shots may be drawn for it.
    return replace(record, id=f"query/{record.id}", pixels=record.picture()) if alone else record
