"""From a recipe to the set that is trained on; whatever cannot work is refused here, before a step."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tenet.data.dataset import Dataset, merge
from tenet.data.formats import read_dataset, split_part
from tenet.data.shots import ShotList, candidates, draw_shots
from tenet.data.splits import VOC_TO_COCO, Split, base_side, get_split, refuse_leaks, without_novel
from tenet.errors import ConfigError, DataError
from tenet.recipe import Recipe


def read_sets(
    paths: Sequence[str], root: Path, image_set: str = "", what: str = "data.train"
) -> list[Dataset]:
    """The sets, or parts of sets (`VOC2007:test`), at `paths` under the data root."""
    if not paths:
        raise ConfigError(f"{what}: expected at least one data set, got none; name it in the recipe or --set")
    sets = []
    for path in paths:
        where = root / path
        if not split_part(where)[0].exists():
            raise DataError(
                f"{what}: expected data at {where}, found nothing; give --data-root or set TENET_DATA "
                "to the folder that holds it"
            )
        sets.append(read_dataset(where, image_set=image_set or None))
    return sets


def training_set(recipe: Recipe, root: Path) -> tuple[Dataset, dict[str, list[str]]]:
    """The training side of a recipe, checked, and its class split as names."""
    data = recipe.data
    sets = read_sets(data.train, root, data.image_set)
    dataset = _together(sets, data.coco_names)
    novel: list[str] = []
    # FSOD's split is that of its files.
    split = get_split(data.split) if data.split and data.split != "fsod" else None
    if split is not None:
        if data.leave_out_novel:
            dataset = without_novel(dataset, split)
        dataset, novel = base_side(dataset, split), list(split.novel)
    _refuse_leaks(recipe, root, dataset, split)
    _refuse_empty(recipe, dataset)
    return dataset, {"base": list(dataset.classes), "novel": novel}


def shot_pool(recipe: Recipe, dataset: Dataset) -> ShotList | None:
    """The boxes that shots are drawn from, with `train.shot_pool`; None takes all."""
    count = recipe.train.shot_pool
    if not count:
        return None
    return draw_shots(dataset, count, 0, min_side=recipe.episodes.min_shot_side)


def _together(sets: list[Dataset], coco_names: bool) -> Dataset:
    if not coco_names:
        return sets[0] if len(sets) == 1 else merge(sets)
    renamed = [each.renamed(VOC_TO_COCO) for each in sets]
    names = dict.fromkeys(name for each in renamed for name in each.classes)
    # Classes that a set does not annotate are added to its list, without boxes.
    wide = [
        replace(each, classes=(*each.classes, *(n for n in names if n not in each.classes)))
        for each in renamed
    ]
    return merge(wide, "all")


def _refuse_leaks(recipe: Recipe, root: Path, dataset: Dataset, split: Split | None) -> None:
    """Test sets that are there are compared with the training side; without a split, their pictures alone."""
    for path in recipe.evaluate.test:
        if split_part(root / path)[0].exists():
            [test] = read_sets([path], root, recipe.evaluate.image_set, "evaluate.test")
            refuse_leaks(dataset, test, split or Split("", (), ()))


def _refuse_empty(recipe: Recipe, dataset: Dataset) -> None:
    episodes = recipe.episodes
    found = {name: len(refs) for name, refs in candidates(dataset, episodes.min_shot_side).items()}
    if not dataset.classes or not any(found.values()):
        raise DataError(
            f"{dataset.name}: expected boxes of base classes to train on, found none; "
            f"is data.split = {recipe.data.split!r} the split of this set?"
        )
    counts = dataset.class_counts()
    shown = [name for name in dataset.classes if counts[name]]  # a class without a box is never a way
    if episodes.ways > len(shown):
        raise DataError(
            f"{dataset.name}: expected at least episodes.ways = {episodes.ways} classes with boxes, got "
            f"{len(shown)}; set episodes.ways lower"
        )
    least = episodes.min_shots or episodes.shots
    short = {name: found[name] for name in shown if found[name] <= least}
    if short:
        name, count = min(short.items(), key=lambda item: item[1])
        raise DataError(
            f"{dataset.name}: expected more than {least} boxes of each class as shots, got {count} of {name} "
            f"({len(short)} such classes); lower episodes.shots, episodes.min_shots or "
            f"episodes.min_shot_side ({episodes.min_shot_side:g} px)"
        )


def with_shots(dataset: Dataset, shots: ShotList) -> Dataset:
    """The pictures that hold shots, with all their boxes."""
    pictures = set(shots.pictures())
    return replace(dataset, records=tuple(record for record in dataset.records if record.id in pictures))


def only_shots(dataset: Dataset, shots: ShotList) -> Dataset:
    """The pictures that hold shots, with no other boxes than those: all that fine-tuning may know."""
    rows: dict[str, list[int]] = {}
    for refs in shots.classes.values():
        for ref in refs:
            rows.setdefault(ref.picture, []).append(ref.box)
    records = [
        record.with_target(np.array(sorted(set(rows[record.id])), np.int64))
        for record in dataset.records
        if record.id in rows
    ]
    return replace(dataset, records=tuple(records))
