"""Teaching the detector: shots in, features computed, both written in one transaction.

What needs the network runs in the thread that owns the model, one after another; another server on the same
store is noticed by the class's version, and the work is done again from what it wrote.
"""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from tenet.bank import ClassBank
from tenet.banks.class_names import check_name
from tenet.banks.registration import Registration
from tenet.banks.shot_inputs import ShotLike, read_shots
from tenet.banks.stored_class import StoredClass, store
from tenet.banks.stored_shots import StoredShot, runtime_shots, without_doubles
from tenet.data.images import picture_size
from tenet.errors import DataError, InputError, WeightsError
from tenet.structures import ClassFeatures
from tenet.web.failures import BusyError, ChangedError, NotFoundError, TooLargeError
from tenet.web.library import Library
from tenet.web.limits import Limits
from tenet.web.store import ClassHead, no_class

TRIES = 5
"""How often a change is tried again after another server was faster."""
LARGEST_KEPT = 2048
"""Side of a kept picture, in pixels; what this package writes is smaller."""
Answer = TypeVar("Answer")
log = logging.getLogger("tenet.web")


class AtModel(Protocol):
    """How somebody outside of the model's thread has work done in it."""

    def __call__(self, work: Callable[[], Answer]) -> Answer: ...


def _here(work: Callable[[], Answer]) -> Answer:
    return work()


class Teacher:
    """Changes the classes of a store."""

    def __init__(self, library: Library, limits: Limits) -> None:
        self._library, self._limits = library, limits
        self._store, self._runtime = library.store, library.runtime

    def add(self, name: str, shots: Sequence[ShotLike], replace: bool = False) -> Registration:
        """Register shots, boxes xyxy in pixels of their pictures; one bad shot, and nothing is written."""
        check_name(name)
        try:
            read = read_shots(shots, self._runtime.support_size)
        except (InputError, DataError) as error:
            raise type(error)(f"{name}, {error}") from error
        return _again(lambda: self._add(name, read, replace))

    def _add(self, name: str, read: Sequence[tuple[StoredShot, str]], replace: bool) -> Registration:
        head = self._store.head(name)
        known = [] if head is None else self._store.shots(head)
        kept = [] if replace else [shot for _, shot in known]
        fresh, notes = without_doubles(kept, read)
        if fresh:
            self._check_room(name, head, len(kept) + len(fresh))
            gone = [key for key, _ in known] if replace else []
            self._write(name, head, [*kept, *fresh], fresh, gone)
        return self._library.snapshot().registration(name, len(fresh), notes)

    def remove_shot(self, name: str, shot: int) -> None:
        """Forget one shot; the class is encoded again from the others."""
        _again(lambda: self._remove_shot(name, shot))

    def _remove_shot(self, name: str, shot: int) -> None:
        head = self._store.head(name)
        if head is None:
            raise no_class(name)
        known = self._store.shots(head)
        kept = [one for key, one in known if key != shot]
        if len(kept) == len(known):
            raise NotFoundError(f"{name}: expected one of its shots, found none of id {shot}")
        if not kept:
            raise InputError(f"{name}: expected to keep a shot, but it has this one only; remove the class")
        self._write(name, head, kept, (), [shot])

    def rename(self, name: str, new: str) -> None:
        """Call a class otherwise."""
        self._store.rename(name, check_name(new))

    def remove(self, name: str) -> None:
        """Forget a class."""
        self._store.remove(name)

    def rebuild(self) -> list[str]:
        """Encode anew what another model encoded. Classes with which that fails are left out: their names."""
        _, heads = self._store.heads()
        left_out = []
        for head in (head for head in heads if head.fingerprint != self._runtime.fingerprint):
            try:
                self._write(head.name, head, [shot for _, shot in self._store.shots(head)], (), ())
            except ChangedError:
                # Another server does the same, or somebody removed it.
                continue
            except BusyError:
                raise
            except Exception:
                # One damaged class must not keep the others from being served.
                log.exception("the class %s cannot be encoded by this model and is left out", head.name)
                left_out.append(head.name)
        return left_out

    def take_bank(self, path: Path, rebuild: bool = False, at_model: AtModel = _here) -> dict[str, int]:
        """Take in the classes of a bank file; a class that the store has gets the shots of both.

        Class after class, and each goes to the model by itself: who waits for an answer gets it between two.
        What is in stays in, and a bank that comes again brings only what is missing. Gives the number of
        new shots of each class.
        """
        bank = ClassBank.open(path)
        same = bank.fingerprint == self._runtime.fingerprint
        if not same and not rebuild:
            raise WeightsError(
                f"bank: expected one of model {self._runtime.name}, got one of {bank.model_name}; "
                "import it with rebuild=true to encode its shots anew"
            )
        for name in bank:
            _check_kept(name, bank.shots(name), self._limits)
        pattern = at_model(lambda: self._pattern(bank)) if same and len(bank) else None
        return {name: self._take(bank, name, pattern, at_model) for name in bank}

    def _take(
        self, bank: ClassBank, name: str, pattern: dict[str, tuple[int, ...]] | None, at_model: AtModel
    ) -> int:
        """One class; how many of its shots were new. Features that the bank has are not computed again."""
        shots = list(bank.shots(name))
        if pattern is not None and self._store.head(name) is None:
            features = bank.features(name)
            if _shapes(features) != pattern:
                raise DataError(
                    f"bank: expected features of this model, but those of {name} have other shapes"
                )
            self._check_room(name, None, len(shots))
            try:
                self._store.create(name, shots, store(shots, features), self._runtime.fingerprint)
                return len(shots)
            except ChangedError:
                # Somebody made the class just now: it gets the shots of both.
                pass
        read = [(shot, "") for shot in shots]
        return at_model(lambda: _again(lambda: self._add(name, read, False))).added

    def _pattern(self, bank: ClassBank) -> dict[str, tuple[int, ...]]:
        """Shapes that this model's features have: a file may say that it is of this model and lie."""
        return _shapes(self._encode(bank.shots(bank.names[0])).features())

    def _check_room(self, name: str, head: ClassHead | None, count: int) -> None:
        if count > self._limits.shots:
            raise TooLargeError(f"{name}: expected at most {self._limits.shots} shots, got {count}")
        if head is None and self._store.count() >= self._limits.classes:
            raise TooLargeError(f"{name}: the store has {self._limits.classes} classes and takes no more")

    def _encode(self, shots: Sequence[StoredShot]) -> StoredClass:
        size = self._runtime.support_size
        return store(shots, self._runtime.encode_shots(runtime_shots(shots, size)))

    def _write(
        self,
        name: str,
        head: ClassHead | None,
        shots: Sequence[StoredShot],
        add: Sequence[StoredShot],
        drop: Sequence[int],
    ) -> None:
        stored = self._encode(shots)
        if head is None:
            self._store.create(name, add, stored, self._runtime.fingerprint)
        else:
            self._store.update(head, stored, self._runtime.fingerprint, add, drop)


def _again(change: Callable[[], Answer]) -> Answer:
    for _ in range(TRIES - 1):
        try:
            return change()
        except ChangedError:
            continue
    return change()


def _check_kept(name: str, shots: Sequence[StoredShot], limits: Limits) -> None:
    """Pictures of a bank from elsewhere: JPEG files of a size that this package would have written."""
    if len(shots) > limits.shots:
        raise TooLargeError(f"{name}: expected at most {limits.shots} shots, got {len(shots)}")
    for row, shot in enumerate(shots):
        for jpeg in filter(None, (shot.crop, shot.scene)):
            if not jpeg.startswith(b"\xff\xd8") or max(picture_size(jpeg, name)) > LARGEST_KEPT:
                raise DataError(f"{name}, shot {row}: expected JPEG pictures of at most {LARGEST_KEPT} px")


def _shapes(features: ClassFeatures) -> dict[str, tuple[int, ...]]:
    return {part: getattr(features, part).shape[1:] for part in ("psi_rpn", "psi", "phi", "raw")}
