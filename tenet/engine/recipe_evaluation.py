"""What a recipe measures: its test sets, where their shots come from, and the evaluation's settings."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tenet.data.dataset import Dataset, merge
from tenet.data.splits import get_split, own_names, spelled_as
from tenet.engine.evaluation_settings import EvaluationSettings
from tenet.engine.training_set import read_sets
from tenet.errors import ConfigError, DataError
from tenet.recipe import Recipe


@dataclass(frozen=True, eq=False)
class EvaluationSets:
    """A test set, and the set that its shots come from, with the same class names."""

    test: Dataset
    shots_from: Dataset


def evaluation_sets(recipe: Recipe, root: Path) -> list[EvaluationSets]:
    """One for each of the recipe's test sets."""
    evaluate = recipe.evaluate
    if evaluate.shot_list:
        raise ConfigError(
            "evaluate.shot_list: expected shots that are drawn by seed, got a public list; leave it empty, "
            "or use `tenet evaluate --list`"
        )
    tests = read_sets(evaluate.test, root, evaluate.image_set, "evaluate.test")
    sources = (
        read_sets(evaluate.support, root, recipe.data.image_set, "evaluate.support")
        if evaluate.support
        else []
    )
    found = []
    for test in tests:
        shots_from = test if not sources else sources[0] if len(sources) == 1 else merge(sources)
        found.append(EvaluationSets(test, spelled_as(test, shots_from)))
    return found


def recipe_settings(recipe: Recipe, test: Dataset, trained_on: Sequence[str]) -> EvaluationSettings:
    """[evaluate] for one of its test sets: the metric that it names, and COCO's."""
    evaluate, split = recipe.evaluate, recipe.data.split
    base: list[str] = []
    novel = list(test.classes)
    if split and split != "fsod":
        named = get_split(split)
        base, novel = own_names(test, named.base), own_names(test, named.novel)
    sides = {"novel": ([], novel), "base": (base, []), "all": (base, novel)}[evaluate.side]
    if not any(sides):
        raise DataError(
            f"{test.name}: expected classes of split {split or 'all'}, side {evaluate.side}; found none"
        )
    return EvaluationSettings(
        base=tuple(sides[0]),
        novel=tuple(sides[1]),
        trained_on=tuple(trained_on),
        shots=evaluate.shots,
        seeds=evaluate.seeds,
        metrics=tuple(dict.fromkeys((evaluate.metric, "coco"))),
        min_shot_side=evaluate.min_shot_side,
        limit=evaluate.limit,
        track=evaluate.track,
    )
