"""What is looked for: the classes of a bank that were asked for, checked before any picture is opened."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from math import isfinite
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tenet.errors import InputError, WeightsError
from tenet.looks.merging import MOST, agree
from tenet.looks.second_look import EVIDENCE, MOST_LOOKS, Looks, found_shift
from tenet.looks.sizes import SeenSize, seen_well
from tenet.looks.usual_size import usual_size
from tenet.looks.views import Size, View, check_size, plan_views, tiles_after
from tenet.runtime.protocol import Runtime
from tenet.structures import ClassFeatures, Detections, FloatArray

KEPT = 256
"""Features of so many classes are held in memory; of more they are fetched anew for each batch."""


class Bank(Protocol):
    """What the predictor asks of a bank of classes (`tenet.bank.ClassBank`)."""

    @property
    def names(self) -> tuple[str, ...]:
        """The classes, in their order."""

    @property
    def runtime(self) -> Runtime | None:
        """What their shots were encoded with."""

    def features(self, name: str) -> ClassFeatures:
        """A class as the network knows it."""

    def seen(self, name: str) -> list[SeenSize]:
        """How large its shots were."""


class Request:
    """Classes, threshold and working size of one call; plans and features are kept for its duration.

    Where two opinions of a picture are asked for, of the two networks of a pair or of a picture and its
    mirror image (`size="thorough"`), they are requests of their own, `members`: what both agree on is told.

    mirrored  look at pictures as in a mirror
    opinion   this is one of several: scores stay raw, and nothing is cut off before they agree
    """

    def __init__(
        self,
        runtime: Runtime,
        bank: Bank,
        threshold: float | None,
        classes: str | Iterable[str] | None,
        size: Size,
        tiles: bool,
        limit: int,
        *,
        mirrored: bool = False,
        opinion: bool = False,
    ) -> None:
        check_is_bank(bank)
        check_same_model(runtime, bank)
        check_size(size)
        self.classes = asked_classes(bank.names, classes)
        self.threshold = asked_threshold(runtime.threshold if threshold is None else threshold)
        self.limit = whole_number("limit", limit)
        self._bank, self._size, self._tiles = bank, size, tiles
        self.runtime = runtime
        self._seen = [bank.seen(name) for name in self.classes]
        self._usual = [usual_size(seen) for seen in self._seen]
        self._features: dict[int, ClassFeatures] = {}
        self._views: dict[tuple[int, int], list[View]] = {}
        self._mirrored, self._opinion = mirrored, opinion
        self.members = self._members()

    def _members(self) -> "list[Request]":
        """Both opinions, or none: this request looks for itself."""
        ask = partial(
            Request,
            threshold=0.0,
            classes=self.classes,
            tiles=self._tiles,
            limit=max(MOST, self.limit),
            opinion=True,
        )
        if self._size == "thorough":
            return [ask(self.runtime, self._bank, size="auto", mirrored=row) for row in (False, True)]
        return [
            ask(member, _MembersBank(self._bank, row), size=self._size, mirrored=self._mirrored)
            for row, member in enumerate(self.runtime.members)
        ]

    def views(self, width: int, height: int) -> list[View]:
        """How a picture of that size is looked at."""
        if (width, height) not in self._views:
            plan = plan_views((width, height), self._seen, self._size, self._tiles)
            self._views[width, height] = [replace(view, mirrored=self._mirrored) for view in plan]
        return self._views[width, height]

    def again(self, looks: Looks) -> list[View]:
        """How to look at a picture once more, if what was found so far calls for tiles or another size."""
        if looks.unproven:
            return [part for view in looks.unproven for part in tiles_after(view, looks.picture, self._seen)]
        if self._size != "auto" or len(looks.shifts) == MOST_LOOKS:
            return []
        found = looks.in_picture()
        if found.scores.max(initial=0) < EVIDENCE:
            return []
        sides = np.array([seen_well(looks.picture, seen) for seen in self._seen])[found.labels]
        return looks.again(found_shift(found.boxes, found.scores, sides[:, 0], sides[:, 1]))

    def judge(
        self, picture: tuple[int, int], boxes: FloatArray, scores: FloatArray, labels: NDArray[np.int64]
    ) -> FloatArray:
        """Raw scores (n,) of all boxes (n, 4) in a picture of that size (width, height) → those that are
        told, by usual sizes and calibration. Labels (n,) are rows of `classes`."""
        weighed = scores.copy()
        for label in np.unique(labels).tolist():
            mine = labels == label
            weighed[mine] *= self._usual[label].factor(boxes[mine], scores[mine], picture)
        return weighed if self._opinion else self.runtime.calibrate(weighed)

    def agreed(self, one: Detections, two: Detections) -> Detections:
        """What both `members` found in one picture, as one result."""
        told = agree(one, two)
        if not self._opinion:
            told = replace(told, scores=self.runtime.calibrate(told.scores))
        return told.select(np.flatnonzero(told.scores >= self.threshold)[: self.limit])

    def features(self, labels: Sequence[int]) -> list[ClassFeatures]:
        """Features of the classes in these rows of `classes`."""
        if len(self.classes) > KEPT:
            return [self._bank.features(self.classes[label]) for label in labels]
        for label in labels:
            if label not in self._features:
                self._features[label] = self._bank.features(self.classes[label])
        return [self._features[label] for label in labels]


class _MembersBank:
    """The bank of a pair, as one of its networks knows it."""

    def __init__(self, bank: Bank, row: int) -> None:
        self._bank, self._row, self.names = bank, row, bank.names

    @property
    def _pair(self) -> Runtime:
        assert self._bank.runtime is not None  # checked by the pair's own request
        return self._bank.runtime

    @property
    def runtime(self) -> Runtime:
        return self._pair.members[self._row]

    def features(self, name: str) -> ClassFeatures:
        return self._pair.of_member(self._bank.features(name), self._row)

    def seen(self, name: str) -> list[SeenSize]:
        return self._bank.seen(name)


def check_is_bank(bank: object) -> None:
    """Refuse what is no bank, such as the path of one."""
    if not all(hasattr(bank, name) for name in ("names", "features", "seen")):
        raise InputError(
            f"bank: expected a ClassBank, got {type(bank).__name__}; a saved one is read by "
            "ClassBank.load(path, model)"
        )


def check_same_model(runtime: Runtime, bank: Bank) -> None:
    """Refuse a bank whose shots another network encoded: its features mean nothing to this one."""
    if bank.runtime is None:
        raise InputError(
            "bank: expected one that was loaded with its model, got one that was opened for reading alone; "
            "load it with ClassBank.load(path, model)"
        )
    if bank.runtime.fingerprint != runtime.fingerprint:
        raise WeightsError(
            f"bank: expected classes registered by {runtime.name} ({runtime.fingerprint:.12}), got those of "
            f"{bank.runtime.name} ({bank.runtime.fingerprint:.12}); detect with that model, or load the bank "
            "with rebuild=True"
        )


def asked_classes(names: Sequence[str], classes: str | Iterable[str] | None) -> tuple[str, ...]:
    """The classes to look for: all of the bank, or those that are named, in that order."""
    if not names:
        raise InputError(
            "bank: expected at least one class to look for, got an empty bank; register one: "
            "bank.register(name, shots)"
        )
    if classes is None:
        return tuple(names)
    asked = tuple(dict.fromkeys([classes] if isinstance(classes, str) else classes))
    if not asked:
        raise InputError(
            "classes: expected at least one of the bank's classes, got none; leave it out for all"
        )
    known = set(names)
    for name in asked:
        if name not in known:
            near = get_close_matches(str(name), names, n=3, cutoff=0.5) or list(names[:5])
            more = "" if len(near) == len(names) else f" ({len(names)} classes in all)"
            raise InputError(
                f"classes: expected classes of the bank, got {name!r}; it has {', '.join(near)}{more}"
            )
    return asked


def asked_threshold(threshold: float) -> float:
    """A score from 0 to 1."""
    number = isinstance(threshold, (int, float, np.integer, np.floating)) and not isinstance(threshold, bool)
    if not number or not isfinite(threshold) or not 0 <= threshold <= 1:
        raise InputError(f"threshold: expected a score from 0 to 1, got {threshold!r}")
    return float(threshold)


def whole_number(name: str, value: object) -> int:
    """A whole number from 1."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InputError(f"{name}: expected a whole number of at least 1, got {value!r}")
    return int(value)
