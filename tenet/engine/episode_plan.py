"""N-way K-shot episodes of a test set: which classes, which shots, which pictures. Loads no torch.

The reading of the ancestor's 5-way evaluation (docs/evaluation.md). Episode number n of a seed is a function
of the two, the number of shots and the set, through BLAKE2: the same on every machine, whatever the order of
the file, and whatever other episodes are drawn. The ways and the order of the shots do not depend on K.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from tenet.data.dataset import Dataset
from tenet.data.shots import ShotList, ShotRef, candidates, pick_shots
from tenet.engine.evaluation_settings import EvaluationSettings
from tenet.engine.protocols import check_classes, first_pictures
from tenet.errors import DataError


@dataclass(frozen=True, eq=False)
class EpisodeDraw:
    """One episode.

    classes  its ways
    list     K shots of each
    queries  rows of the pictures in which every way is looked for, rising: some that show each way, and none
             that holds a shot
    """

    number: int
    shots: int
    classes: tuple[str, ...]
    list: ShotList
    queries: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class EpisodePlan:
    """What an evaluation by episodes will do.

    test      the pictures, with boxes of the classes that may be ways and no others; the shots come from it
    episodes  number of shots → its episodes
    """

    test: Dataset
    episodes: dict[int, tuple[EpisodeDraw, ...]]


def plan_episodes(test: Dataset, settings: EvaluationSettings) -> EpisodePlan:
    """Every episode; whatever is wrong is an error here."""
    check_classes(settings, {"the test set": test})
    test = first_pictures(test.with_classes(settings.classes), settings.limit)
    pools = _Pools(test, settings)
    return EpisodePlan(
        test,
        {
            shots: tuple(pools.draw(number, shots) for number in range(settings.episodes))
            for shots in settings.shots
        },
    )


class _Pools:
    """What episodes are drawn from."""

    def __init__(self, test: Dataset, settings: EvaluationSettings) -> None:
        self.test, self.settings = test, settings
        self.refs = candidates(test, settings.min_shot_side)
        self.row_of = {record.id: row for row, record in enumerate(test.records)}
        self.homes = [record.identity for record in test.records]
        self.shown: dict[str, list[int]] = {name: [] for name in test.classes}
        for row, record in enumerate(test.records):
            for label in sorted(set(record.target.labels[~record.target.ignore].tolist())):
                self.shown[test.classes[label]].append(row)

    def draw(self, number: int, shots: int) -> EpisodeDraw:
        """Episode `number`. A way that its episode leaves no picture to be looked for in is replaced by the
        next class."""
        seed, ways = f"{self.settings.seeds[0]}/{number}", self.settings.ways
        ranked = _ranked(seed, "class", self.settings.classes)
        usable = [name for name in ranked if len(self.refs[name]) >= shots]
        while len(usable) >= ways:
            classes = tuple(usable[:ways])
            drawn = {name: pick_shots(self.refs[name], shots, seed, name) for name in classes}
            queries = {name: self._queries(seed, name, drawn) for name in classes}
            empty = [name for name in classes if not queries[name]]
            if not empty:
                listed = ShotList("drawn", self.settings.seeds[0], shots, drawn)
                rows = sorted({row for own in queries.values() for row in own})
                return EpisodeDraw(number, shots, classes, listed, tuple(rows))
            usable = [name for name in usable if name not in empty]
        side = f" of at least {self.settings.min_shot_side:g} px" if self.settings.min_shot_side else ""
        raise DataError(
            f"{self.test.name}: expected {ways} classes with {shots} shots{side} and another picture to look "
            f"in, found {len(usable)}; ask for fewer ways or shots"
        )

    def _queries(self, seed: str, name: str, drawn: dict[str, tuple[ShotRef, ...]]) -> list[int]:
        """Rows of pictures that show a class and hold no shot of the episode."""
        taken = {self.homes[self.row_of[ref.picture]] for refs in drawn.values() for ref in refs}
        free = {self.test.records[row].id: row for row in self.shown[name] if self.homes[row] not in taken}
        ranked = _ranked(seed, f"query\x00{name}", free)
        return [free[picture] for picture in ranked[: self.settings.queries]]


def _ranked(seed: str, role: str, names: Iterable[str]) -> list[str]:
    """The names in an order that the seed makes."""
    return sorted(
        names,
        key=lambda name: hashlib.blake2b(f"{seed}\x00{role}\x00{name}".encode(), digest_size=16).digest(),
    )
