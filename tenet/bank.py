"""ClassBank: what the detector was shown, by name. Register shots, save, load, merge.

A class is encoded once, when its shots change; detecting never encodes a shot. All other classes stay
untouched. Shots count from 0 everywhere, as in `Detections.shots`.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenet.banks.bank_file import BankFile, Maker, write_bank
from tenet.banks.class_names import check_name
from tenet.banks.registration import Registration, judge
from tenet.banks.shot_inputs import ShotLike, read_shots
from tenet.banks.stored_class import StoredClass, store
from tenet.banks.stored_shots import StoredShot, runtime_shots, without_doubles
from tenet.errors import DataError, InputError, WeightsError
from tenet.looks.sizes import SeenSize
from tenet.runtime.protocol import Runtime
from tenet.structures import ClassFeatures

Progress = Callable[[Iterable[Any], int], Iterable[Any]]
"""Gives the items back one by one while it shows how far they are: (items, their number)."""

KEPT = 500
"""Classes whose features stay unpacked in memory; others are read again from the file (about 0.8 ms)."""


class ClassBank:
    """Classes by name, each with any number of shots.

    model  a `Tenet`, or its runtime. Features are of use to the model alone that made them: its
           fingerprint is in the file.
    """

    def __init__(self, model: Any) -> None:
        runtime = _runtime_of(model)
        self._begin(runtime, _maker_of(runtime), None)

    def _begin(self, runtime: Runtime | None, maker: Maker, file: BankFile | None) -> None:
        self._runtime, self._maker, self._file = runtime, maker, file
        self._classes: dict[str, StoredClass] = dict(file.classes) if file is not None else {}
        self._unpacked: OrderedDict[str, ClassFeatures] = OrderedDict()
        self._lock = Lock()

    # ---- what is in it

    @property
    def names(self) -> tuple[str, ...]:
        """The classes, in the order in which they came."""
        return tuple(self._classes)

    def __len__(self) -> int:
        return len(self._classes)

    def __contains__(self, name: object) -> bool:
        return name in self._classes

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __repr__(self) -> str:
        return f"ClassBank({len(self)} classes, {self.shot_count} shots, model {self.model_name})"

    @property
    def model_name(self) -> str:
        """The model that encoded the classes."""
        return self._maker.model

    @property
    def fingerprint(self) -> str:
        """Another one whenever the same shots would give other features."""
        return self._maker.fingerprint

    @property
    def shot_count(self) -> int:
        """Shots of all classes."""
        return sum(len(stored) for stored in self._classes.values())

    @property
    def runtime(self) -> Runtime:
        """The network; a bank that was opened for reading has none."""
        if self._runtime is None:
            raise InputError(
                "bank: expected one with a model, but it was opened for reading; "
                "use ClassBank.load(path, model)"
            )
        return self._runtime

    def features(self, name: str) -> ClassFeatures:
        """The class as the network knows it; of a loaded bank it is read now."""
        with self._lock:
            found = self._unpacked.pop(name, None) or self._stored(name).features()
            self._unpacked[name] = found
            if len(self._unpacked) > KEPT:
                self._unpacked.popitem(last=False)
        return found

    def seen(self, name: str) -> list[SeenSize]:
        """How large each shot was."""
        return self._stored(name).seen()

    def shots(self, name: str) -> list[StoredShot]:
        """Everything that is kept of the shots: crops and scenes as JPEG, with their boxes."""
        return self._stored(name).shots()

    def thumbnails(self, name: str) -> list[NDArray[np.uint8]]:
        """The shots' crops, each (S, S, 3) uint8 RGB."""
        return [shot.thumbnail() for shot in self.shots(name)]

    def registration(self, name: str) -> Registration:
        """How well the class is known, as when it was registered."""
        stored = self._stored(name)
        return judge(name, stored.ranks(), stored.seen())

    # ---- what changes it

    def register(
        self, name: str, shots: ShotLike | Iterable[ShotLike], replace: bool = False
    ) -> Registration:
        """Show the detector a class, and hear how well it sees the shots.

        shots    each a picture that is the crop itself, or (picture, (x1, y1, x2, y2)) in pixels of that
                 picture, which tells more: how large the thing is, and what around it is not the thing
        replace  forget the shots that the class has; otherwise a known class gets further ones

        If one shot is bad, nothing is registered, and the error names it. A shot that the class has already
        is left out.
        """
        check_name(name)
        try:
            read = read_shots(shots, self.runtime.support_size)
        except (InputError, DataError) as error:
            raise type(error)(f"{name}, {error}") from error
        kept = [] if replace or name not in self else self.shots(name)
        fresh, notes = without_doubles(kept, read)
        if fresh:
            self._put(name, self._encode([*kept, *fresh]))
        stored = self._stored(name)
        return judge(name, stored.ranks(), stored.seen(), len(fresh), notes)

    def remove(self, name: str, shot: int | None = None) -> None:
        """Forget a class, or one of its shots (from 0); the class is encoded again from the others."""
        stored = self._stored(name)
        if shot is None:
            self._drop(name)
            return
        whole = isinstance(shot, (int, np.integer)) and not isinstance(shot, bool)
        if not whole or not 0 <= shot < len(stored):
            raise InputError(f"{name}: expected a shot from 0 to {len(stored) - 1}, got {shot!r}")
        if len(stored) == 1:
            raise InputError(f"{name}: expected to keep a shot, but it has this one only; remove the class")
        shots = stored.shots()
        self._put(name, self._encode([*shots[:shot], *shots[shot + 1 :]]))

    def rename(self, name: str, new: str) -> None:
        """Call a class otherwise; it keeps its place."""
        self._stored(name)
        if check_name(new) in self and new != name:
            raise InputError(f"{new}: expected a name that is free, but the bank has it; remove that first")
        with self._lock:  # whoever asks meanwhile finds one of the names, and what others add stays
            self._unpacked.pop(name, None)
            self._classes = {new if old == name else old: stored for old, stored in self._classes.items()}

    def merge(self, other: "ClassBank") -> dict[str, Registration]:
        """Take in the classes of another bank of the same model. A class that both have gets the shots of
        both, each once, and is encoded again: those are returned."""
        if other.fingerprint != self.fingerprint:
            where = "BANK" if other._file is None else other._file.path
            raise WeightsError(
                f"merge: expected a bank of {_called(self._maker)}, got {_called(other._maker)}; rebuild it "
                f"first: `tenet classes {where} --rebuild`, or ClassBank.load(path, model, rebuild=True)"
            )
        fresh, answers = {}, {}
        for name, stored in other._classes.items():
            if name not in self:
                fresh[name] = stored
                continue
            kept = self.shots(name)
            more, _ = without_doubles(kept, [(shot, "") for shot in stored.shots()])
            if more:
                fresh[name] = merged = self._encode([*kept, *more])
                answers[name] = judge(name, merged.ranks(), merged.seen(), len(more))
        # Nothing above changed the bank: a merge that fails half-way leaves it as it was.
        for name, stored in fresh.items():
            self._put(name, stored)
        return answers

    # ---- files

    def save(self, path: Path | str) -> None:
        """Write the bank in one step; where that fails, a file that was there stays as it was. The file that
        the bank was loaded from is written only as long as nobody else has changed it."""
        target = Path(path)
        own = self._file if self._file is not None and _same_file(self._file.path, target) else None
        if own is not None:
            own.check_unchanged()
        written = dict(self._classes)
        write_bank(target, self._maker, written, close=own)
        if own is not None:
            self._file = BankFile(target)
            with self._lock:  # what another thread changed meanwhile stays changed
                for name, stored in self._file.classes.items():
                    if self._classes.get(name) is written[name]:
                        self._classes[name] = stored

    @staticmethod
    def open(path: Path | str) -> "ClassBank":
        """A bank without a model: to list, remove, rename, merge and save, not to register or detect."""
        bank = ClassBank.__new__(ClassBank)
        file = BankFile(Path(path))
        bank._begin(None, file.maker, file)
        return bank

    @staticmethod
    def load(
        path: Path | str, model: Any, rebuild: bool = False, progress: Progress | None = None
    ) -> "ClassBank":
        """A saved bank, for the model that made it; classes are read as they are asked for.

        rebuild  a bank of another model is encoded anew from its stored shots, which takes as long as
                 registering them; otherwise it is refused. The file stays as it is until `save`.
        """
        bank = ClassBank.open(path)
        runtime = _runtime_of(model)
        old, new = bank._maker, _maker_of(runtime)
        bank._runtime, bank._maker = runtime, new
        if old.fingerprint == new.fingerprint:
            return bank
        if not rebuild:
            earlier = old.model == new.model
            raise WeightsError(
                f"{path}: expected a bank of {_called(new)}, got one of {_called(old)}; "
                + ("an earlier version made it: " if earlier else "load it with the model that made it, or ")
                + "encode its stored shots anew with rebuild=True"
            )
        names: Iterable[str] = bank.names if progress is None else progress(bank.names, len(bank))
        bank._classes = {name: bank._encode(bank.shots(name)) for name in names}
        return bank

    # ---- within

    def _stored(self, name: str) -> StoredClass:
        if name in self._classes:
            return self._classes[name]
        like = get_close_matches(str(name), self.names, 3, 0) or ["none: the bank is empty"]
        raise InputError(f"class {name!r}: expected one of the bank's, such as {', '.join(like)}")

    def _encode(self, shots: Sequence[StoredShot]) -> StoredClass:
        runtime = self.runtime
        return store(shots, runtime.encode_shots(runtime_shots(shots, runtime.support_size)))

    def _put(self, name: str, stored: StoredClass) -> None:
        with self._lock:
            self._unpacked.pop(name, None)
            self._classes[name] = stored

    def _drop(self, name: str) -> None:
        with self._lock:
            self._unpacked.pop(name, None)
            del self._classes[name]


def _runtime_of(model: Any) -> Runtime:
    runtime = getattr(model, "runtime", model)
    if not all(hasattr(runtime, name) for name in ("name", "fingerprint", "support_size", "encode_shots")):
        raise InputError(
            f"bank: expected a model of Tenet.load() or its runtime, got {type(model).__name__}; "
            "to read a bank without a model use ClassBank.open(path)"
        )
    return runtime


def _maker_of(runtime: Runtime) -> Maker:
    return Maker(runtime.name, runtime.fingerprint, runtime.support_size)


def _called(maker: Maker) -> str:
    return f"model {maker.model} ({maker.fingerprint[:12]})"


def _same_file(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()
