"""The store as the predictor knows a bank: one moment of it, with features fetched as they are asked for."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from tenet.banks.registration import Registration, judge
from tenet.banks.stored_shots import StoredShot
from tenet.looks.sizes import SeenSize
from tenet.runtime.protocol import Runtime
from tenet.structures import ClassFeatures
from tenet.web.store import ClassHead, ClassStore, ShotHead, no_class

KEPT = 500
"""Classes whose features stay in memory."""


class Library:
    """The store's classes that the model of this service knows, with a cache by version."""

    def __init__(self, store: ClassStore, runtime: Runtime) -> None:
        self.store, self.runtime = store, runtime
        self._lock = Lock()
        self._now: Snapshot | None = None
        self._shots: dict[tuple[int, int], list[ShotHead]] = {}
        self._features: OrderedDict[tuple[int, int], ClassFeatures] = OrderedDict()

    def snapshot(self) -> "Snapshot":
        """The classes of this moment. Where nothing changed it is the same object as before."""
        now = self._now
        if now is not None and now.revision == self.store.revision():
            return now
        revision, heads = self.store.heads()
        own = {head.name: head for head in heads if head.fingerprint == self.runtime.fingerprint}
        now = Snapshot(self, revision, own)
        with self._lock:
            living = {(head.id, head.version) for head in own.values()}
            self._shots = {key: value for key, value in self._shots.items() if key in living}
            for key in [key for key in self._features if key not in living]:
                del self._features[key]
            self._now = now
        return now

    def shot_heads(self, head: ClassHead) -> list[ShotHead]:
        """The shots of a class, from memory where they are there."""
        key = (head.id, head.version)
        with self._lock:
            found = self._shots.get(key)
        if found is None:
            found = self.store.shot_heads(head)
            with self._lock:
                self._shots[key] = found
        return found

    def features(self, head: ClassHead) -> ClassFeatures:
        """The features of a class, from memory where they are there."""
        key = (head.id, head.version)
        with self._lock:
            found = self._features.pop(key, None)
        found = found or self.store.features(head)
        with self._lock:
            self._features[key] = found
            if len(self._features) > KEPT:
                self._features.popitem(last=False)
        return found


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A bank for `Tenet.detect` and `explain`. A class that changes while it is used is a `ChangedError`."""

    library: Library
    revision: int
    heads: dict[str, ClassHead]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.heads)

    @property
    def runtime(self) -> Runtime:
        return self.library.runtime

    def head(self, name: str) -> ClassHead:
        """The class, or an error that it is not there."""
        if name not in self.heads:
            raise no_class(name)
        return self.heads[name]

    def shot_heads(self, name: str) -> list[ShotHead]:
        return self.library.shot_heads(self.head(name))

    def features(self, name: str) -> ClassFeatures:
        return self.library.features(self.head(name))

    def seen(self, name: str) -> list[SeenSize]:
        return [shot.seen for shot in self.shot_heads(name)]

    def shots(self, name: str) -> Sequence[StoredShot]:
        return [shot for _, shot in self.library.store.shots(self.head(name))]

    def thumbnails(self, name: str) -> Sequence[NDArray[np.uint8]]:
        return [shot.thumbnail() for shot in self.shots(name)]

    def registration(self, name: str, added: int = 0, notes: Sequence[str] = ()) -> Registration:
        """How well the class is known."""
        ranks = self.features(name).ranks
        return judge(name, None if ranks is None else ranks.tolist(), self.seen(name), added, notes)
