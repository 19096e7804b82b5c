"""Which shots teach, and which pictures test: the whole plan of an evaluation, checked before it starts.

A picture that holds a shot is not tested in that draw (track D: "the other pictures are the test"). What
makes two records one picture is the file, or the pixels of a picture that is in memory only.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tenet.data.dataset import Dataset
from tenet.data.shots import ShotList, draw_shots, public_shots
from tenet.data.splits import Split
from tenet.engine.evaluation_settings import EvaluationSettings
from tenet.errors import ConfigError, DataError, InputError

ORDER_SEED = 0
"""The order in which `limit` takes pictures: the first 100 are among the first 200."""


@dataclass(frozen=True, eq=False)
class Draw:
    """One number of shots and one seed: the shots themselves, and the test pictures they leave out."""

    shots: int
    seed: int
    list: ShotList
    left_out: frozenset[str]
    """Ids of pictures of the test set that hold a shot."""

    @property
    def name(self) -> str:
        """`5-shot_seed-0`: the draw's files are called so."""
        return f"{self.shots}-shot_seed-{self.seed}"


@dataclass(frozen=True, eq=False)
class Plan:
    """What an evaluation will do.

    test        the pictures, with boxes of the classes that are looked for and no others
    shots_from  the set that holds the shots, with all its classes: a draw is then that of `tenet data shots`
    draws       one for each number of shots and each seed, seeds together
    """

    test: Dataset
    shots_from: Dataset
    draws: tuple[Draw, ...]


def plan_evaluation(
    test: Dataset,
    shots_from: Dataset,
    settings: EvaluationSettings,
    public_list: Path | None = None,
) -> Plan:
    """The plan; whatever is wrong with it is an error here.

    public_list  a file of the public VOC lists to take the shots from, instead of drawing them
    """
    check_classes(settings, {"the test set": test, "the set of the shots": shots_from})
    test = first_pictures(test.with_classes(settings.classes), settings.limit)
    if not any(test.class_counts().values()):
        raise DataError(
            f"{test.name}: expected pictures with objects of {', '.join(settings.classes)} to test on, "
            f"found none in {len(test)} pictures"
        )
    home_of = {record.id: record.identity for record in test.records}
    draws = []
    for seed in settings.seeds:
        for shots in settings.shots:
            drawn = _shots(shots_from, shots, seed, settings, public_list)
            taken = {record.identity for record in shots_from.subset(drawn.pictures()).records}
            left_out = frozenset(picture for picture, home in home_of.items() if home in taken)
            draws.append(Draw(shots, seed, drawn, left_out))
    for draw in draws:
        if len(draw.left_out) == len(test):
            raise DataError(
                f"{test.name}: expected pictures without a shot to test on, but the shots of "
                f"{draw.name} are in all {len(test)}; ask for fewer shots or give --shots-from another set"
            )
    return Plan(test, shots_from, tuple(draws))


def check_classes(settings: EvaluationSettings, sets: Mapping[str, Dataset]) -> None:
    """Refuse classes that a set does not have, and novel ones that were trained on; `sets` by their role."""
    # A split in which a trained class is novel refuses itself, whichever spelling the class has.
    Split("of this evaluation", settings.trained_on, settings.novel)
    for role, dataset in sets.items():
        unknown = [name for name in settings.classes if name not in dataset.classes]
        if unknown:
            raise InputError(
                f"{dataset.name} ({role}): expected classes among {', '.join(dataset.classes)}; "
                f"got {', '.join(unknown)}"
            )


def first_pictures(dataset: Dataset, limit: int) -> Dataset:
    """`limit` pictures by a fixed seed, in the set's order; all of them with 0."""
    if not limit or limit >= len(dataset):
        return dataset
    ranked = sorted(dataset.records, key=lambda record: _rank(record.id))
    return dataset.subset(record.id for record in ranked[:limit])


def _rank(picture: str) -> bytes:
    return hashlib.blake2b(f"{ORDER_SEED}\x00{picture}".encode(), digest_size=16).digest()


def _shots(
    dataset: Dataset, shots: int, seed: int, settings: EvaluationSettings, public_list: Path | None
) -> ShotList:
    if public_list is not None:
        if settings.base_shots:
            raise ConfigError("base_shots: expected 0 with a public list, which has its own; leave one out")
        drawn = public_shots(public_list, dataset, shots, seed, settings.classes)
    else:
        drawn = draw_shots(dataset, shots, seed, settings.classes, settings.min_shot_side)
        if settings.base_shots > shots:
            more = draw_shots(dataset, settings.base_shots, seed, settings.base, settings.min_shot_side)
            drawn = replace(drawn, classes=drawn.classes | more.classes)
    for name in settings.classes:
        count = len(drawn.classes.get(name, ()))
        if count < shots:
            side = f" of at least {settings.min_shot_side:g} px" if settings.min_shot_side else ""
            raise DataError(
                f"{dataset.name}: expected {shots} shots of {name}{side}, found {count}; "
                + ("name the other classes with --classes" if not count else "ask for fewer shots")
                + ", or give --shots-from a set that has them"
            )
    return drawn
