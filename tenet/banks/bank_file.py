"""A bank on disk: one safetensors file, a small index and a few large tensors (docs/banks.md).

Each large tensor holds one part of all classes behind each other, so a file of 10,000 classes has twenty
tensors and opens in a moment; the part of one class is a slice that is read when it is asked for.

    metadata      format, tenet, model, fingerprint, support_size; digest: BLAKE2 of these and the index
    index         names (JSON), shots, objectness_sizes, checks: for each class; ROW's fields: for each shot
    parts         psi_rpn, psi, phi, raw, objectness, crops, scenes
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from tenet.banks.class_names import check_name
from tenet.banks.stored_class import FEATURES, PARTS, ROW, Array, StoredClass
from tenet.data.files import write_chunks
from tenet.errors import DataError, InputError
from tenet.version import __version__

FORMAT = "tenet-bank-1"
DTYPES = {"<f2": "F16", "<f4": "F32", "<f8": "F64", "<i8": "I64", "<u4": "U32", "|u1": "U8"}
"""What safetensors calls numpy's types."""
WINDOWS = os.name == "nt"
CLASS_INDEX = ("names", "shots", "objectness_sizes", "checks")
_UNREADABLE = (SafetensorError, OSError, ValueError, KeyError, TypeError, RecursionError)


class Maker(NamedTuple):
    """The model that encoded a bank: its name, its fingerprint, and the side of its crops in pixels."""

    model: str
    fingerprint: str
    support_size: int


class BankFile:
    """An open bank file. The index is in memory; parts are read from the file as they are asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        self._handle: Any = None
        self._metadata = self._read_metadata()
        index = self._read_index()
        if _digest(self._metadata, index) != self._metadata.get("digest"):
            raise self._damaged("its index has changed")
        self.maker = self._read_maker()
        self.classes = self._classes(index)

    def close(self) -> None:
        """Let the file go; the next read opens it again. Windows replaces no file that is open."""
        with self._lock:
            self._handle = None

    def check_unchanged(self) -> None:
        """Refuse a file that was written since it was loaded: what others put into it would be lost."""
        if self.path.is_file() and self._open().metadata() != self._metadata:
            raise DataError(
                f"{self.path}: the bank was changed by another since it was loaded; load it anew and repeat "
                "what you did, or save under another name"
            )

    def _open(self) -> Any:
        if self.path.is_dir():
            raise DataError(f"{self.path}: expected the file of a bank, got a folder; give a file in it")
        try:
            return safe_open(str(self.path), framework="np")
        except FileNotFoundError as error:
            raise DataError(
                f"{self.path}: expected a bank, but there is no such file; make one with `tenet register`"
            ) from error
        except _UNREADABLE as error:
            raise DataError(
                f"{self.path}: expected a bank of `tenet register`, but it is another file, cut short or "
                f"damaged ({_one_line(error)})"
            ) from error

    def _read_metadata(self) -> dict[str, str]:
        self._handle = self._open()
        metadata = self._handle.metadata() or {}
        form = str(metadata.get("format", ""))
        if form == FORMAT:
            return dict(metadata)
        if form.startswith("tenet-bank-"):
            raise DataError(
                f"{self.path}: expected a bank of format {FORMAT}, got {form}; update tenet to read it"
            )
        raise DataError(
            f"{self.path}: expected a bank of `tenet register`, found a safetensors file of something else"
        )

    def _read_index(self) -> dict[str, Array]:
        names = (*CLASS_INDEX, *(ROW.names or ()))
        try:
            return {name: self._handle.get_tensor(name) for name in names}
        except _UNREADABLE as error:
            raise self._damaged(_one_line(error)) from error

    def _read_maker(self) -> Maker:
        try:
            head = self._metadata
            return Maker(head["model"], head["fingerprint"], int(head["support_size"]))
        except (KeyError, ValueError) as error:
            raise self._damaged(f"it does not say which model made it: {error!r}") from error

    def _classes(self, index: Mapping[str, Array]) -> dict[str, StoredClass]:
        """Every class with its place in the large tensors, after a check that the places exist."""
        try:
            names = [check_name(name) for name in json.loads(index["names"].tobytes())]
            shots = index["shots"].astype(np.int64)
            rows = _table(index, shots)
            spans = self._spans(shots, index["objectness_sizes"].astype(np.int64), rows)
            checks = index["checks"].reshape(len(names), len(PARTS))
            if len(set(names)) != len(names) or len(shots) != len(names):
                raise ValueError("names and classes do not agree")
        except (*_UNREADABLE, InputError) as error:
            raise self._damaged(_one_line(error)) from error
        ends = np.cumsum(shots)
        found = {}
        for row, name in enumerate(names):
            own = {part: (int(span[row]), int(span[row + 1])) for part, span in spans.items()}
            size = own["objectness"][1] - own["objectness"][0]
            table = rows[int(ends[row] - shots[row]) : int(ends[row])]
            found[name] = StoredClass(
                table, checks[row], size, partial(self._part, own), f"{self.path}: {name}"
            )
        return found

    def _spans(
        self, shots: NDArray[np.int64], objectness: NDArray[np.int64], rows: Array
    ) -> dict[str, NDArray[np.int64]]:
        """Of each part where the classes begin in its tensor, and where the last one ends."""
        first_shot = _starts(shots)
        spans = dict.fromkeys(FEATURES, first_shot)
        spans["objectness"] = _starts(objectness)
        for part, field in (("crops", "crop_bytes"), ("scenes", "scene_bytes")):
            spans[part] = _starts(rows[field].astype(np.int64))[first_shot]
        for part, span in spans.items():
            length = self._handle.get_slice(part).get_shape()[0]
            if (np.diff(span) < 0).any() or span[-1] != length:
                raise ValueError(f"{part} has {length} rows, the index {int(span[-1])}")
        return spans

    def _part(self, spans: Mapping[str, tuple[int, int]], part: str) -> Array:
        start, end = spans[part]
        if start == end:
            return np.zeros(0, PARTS[part])
        try:
            with self._lock:
                if self._handle is None:
                    handle = self._open()
                    if handle.metadata() != self._metadata:
                        raise DataError(
                            f"{self.path}: the bank was replaced since it was loaded; load it anew"
                        )
                    self._handle = handle
                found: Array = self._handle.get_slice(part)[start:end]
        except _UNREADABLE as error:
            raise self._damaged(_one_line(error)) from error
        return found

    def _damaged(self, why: str) -> DataError:
        return DataError(
            f"{self.path}: expected a whole bank, but it is damaged ({why}); restore it from a copy"
        )


def _table(index: Mapping[str, Array], shots: NDArray[np.int64]) -> Array:
    """The shots of all classes as rows of `ROW`."""
    rows = np.zeros(len(index["rank"]), ROW)
    if (shots < 1).any() or (shots > len(rows)).any() or int(shots.sum()) != len(rows):
        raise ValueError(f"{len(rows)} shots, but the classes have {int(shots.sum())}")
    for field in ROW.names or ():
        if index[field].shape != rows[field].shape:
            raise ValueError(f"{field} has shape {index[field].shape}")
        rows[field] = index[field]
    if (rows["crop_bytes"] < 1).any() or (rows["scene_bytes"] < 0).any():
        raise ValueError("a shot without a crop")
    return rows


def write_bank(path: Path, maker: Maker, classes: Mapping[str, StoredClass], close: BankFile | None) -> None:
    """Write a bank in one step, class by class: no copy of the whole is made. On Windows `close` is let go of
    when everything is read and before its file is replaced; elsewhere a bank that took classes over from it
    goes on reading what was there."""
    index = _index(classes)
    metadata = {"format": FORMAT, "tenet": __version__, **{k: str(v) for k, v in maker._asdict().items()}}
    metadata["digest"] = _digest(metadata, index)
    write_chunks(path, _chunks(metadata, index, classes, close if WINDOWS else None))


def _index(classes: Mapping[str, StoredClass]) -> dict[str, Array]:
    names = np.frombuffer(json.dumps(list(classes), ensure_ascii=False).encode(), np.uint8)
    rows = np.concatenate([np.zeros(0, ROW), *(one.rows for one in classes.values())])
    checks = np.array([one.checks for one in classes.values()], "<u4").reshape(-1, len(PARTS))
    return {
        "names": names,
        "shots": np.array([len(one) for one in classes.values()], "<i8"),
        "objectness_sizes": np.array([one.objectness_size for one in classes.values()], "<i8"),
        "checks": checks,
        **{field: np.ascontiguousarray(rows[field]) for field in ROW.names or ()},
    }


def _chunks(
    metadata: Mapping[str, str],
    index: Mapping[str, Array],
    classes: Mapping[str, StoredClass],
    close: BankFile | None,
) -> Iterator[bytes]:
    """A safetensors file piece by piece: the length of its header, the header, then the tensors."""
    shapes = {name: (np.dtype(array.dtype).str, array.shape) for name, array in index.items()}
    shapes |= {part: (np.dtype(PARTS[part]).str, _shape(part, index, classes)) for part in PARTS}
    # Numbers of eight bytes first, then of four, …: every tensor lies where its type may be read in place.
    order = sorted(shapes, key=lambda name: -np.dtype(shapes[name][0]).itemsize)
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    at = 0
    for name in order:
        dtype, shape = shapes[name]
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        header[name] = {"dtype": DTYPES[dtype], "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    yield len(text).to_bytes(8, "little")
    yield text
    for name in order:
        if name in index:
            yield index[name].tobytes()
        else:
            yield from _part_chunks(name, shapes[name][1], classes)
    if close is not None:
        close.close()


def _part_chunks(part: str, shape: tuple[int, ...], classes: Mapping[str, StoredClass]) -> Iterator[bytes]:
    for name, one in classes.items():
        found = one.part(part)
        if part in FEATURES and found.size and found.shape[1:] != shape[1:]:
            raise InputError(
                f"{name}: expected {part} of shape {shape[1:]} as others have, got {found.shape[1:]}"
            )
        yield found.tobytes()


def _shape(part: str, index: Mapping[str, Array], classes: Mapping[str, StoredClass]) -> tuple[int, ...]:
    if part in FEATURES:
        first = next(iter(classes.values()), None)
        return (int(index["shots"].sum()), *(first.part(part).shape[1:] if first is not None else ()))
    lengths = {"objectness": "objectness_sizes", "crops": "crop_bytes", "scenes": "scene_bytes"}
    return (int(index[lengths[part]].sum()),)


def _digest(metadata: Mapping[str, str], index: Mapping[str, Array]) -> str:
    """BLAKE2 of the index and of what the metadata says beside the digest itself."""
    told = {key: value for key, value in metadata.items() if key != "digest"}
    digest = hashlib.blake2b(json.dumps(told, sort_keys=True).encode(), digest_size=16)
    for name in sorted(index):
        digest.update(f"{name} {index[name].dtype.str} {index[name].shape}".encode())
        digest.update(index[name].tobytes())
    return digest.hexdigest()


def _starts(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
