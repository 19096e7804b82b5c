"""One class as a bank keeps it: a small table of its shots, and large parts that are read when asked for.

The table (`ROW`, one row for each shot) is always in memory; it answers what a listing asks. The parts
(`PARTS`) are features and pictures: in memory for a class that was just registered, in the file for one
that was loaded. Each part has a checksum, so that a damaged byte is found when the part is read and not by
reading the whole file first.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenet.banks.stored_shots import Box, StoredShot
from tenet.errors import DataError, InputError, WeightsError
from tenet.looks.sizes import SeenSize
from tenet.structures import ClassFeatures

Array = NDArray[Any]

NO_RANKS = -2
"""Stands in the table for a class whose runtime told no ranks."""

ROW = np.dtype(
    [
        ("box", "<f4", (4,)),
        ("scene_box", "<f4", (4,)),
        ("thing", "<f8", (2,)),
        ("picture", "<i8", (2,)),
        ("rank", "<i8"),
        ("crop_bytes", "<i8"),
        ("scene_bytes", "<i8"),
        ("source", "u1", (16,)),
    ]
)
"""Of each shot: boxes (xyxy in pixels of the crop, and of the scene), `SeenSize`, rank, lengths of its two
JPEG files, and what tells it from others. A scene of 0 bytes is none."""

PARTS = {
    "psi_rpn": "<f2",
    "psi": "<f2",
    "phi": "<f2",
    "raw": "<f2",
    "objectness": "<f4",
    "crops": "u1",
    "scenes": "u1",
}
"""Large parts of a class and their types. `objectness`, by its first part the name of all that a class
teaches in closed form, keeps its four bytes: it is one vector for each class, and the weights of a
discriminant can leave the range of two."""
FEATURES = ("psi_rpn", "psi", "phi", "raw")
"""Parts with a row for each shot."""


@dataclass(frozen=True, eq=False)
class StoredClass:
    """A class: `rows` of `ROW` (one for each shot), `checks` (one CRC-32 for each part, in the order of
    `PARTS`), `objectness_size` (0: none), how a part is fetched, and what to call the class in an error."""

    rows: Array
    checks: NDArray[np.uint32]
    objectness_size: int
    fetch: Callable[[str], Array]
    where: str = "class"

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, name: str) -> Array:
        """A part, whole and as it was written."""
        found = self.fetch(name)
        if checksum(found) != self.checks[list(PARTS).index(name)]:
            raise DataError(
                f"{self.where}: expected its {name} as they were written, but the file is damaged; restore "
                "it from a copy, or remove the class and register it anew"
            )
        return found

    def ranks(self) -> list[int] | None:
        """Of each shot (`ClassFeatures.ranks`)."""
        ranks = self.rows["rank"].tolist()
        return None if NO_RANKS in ranks else ranks

    def seen(self) -> list[SeenSize]:
        """How large each shot was."""
        columns = zip(
            *(self.rows[name].tolist() for name in ("thing", "picture", "scene_bytes")), strict=True
        )
        # Scenes of the same picture are the same file; of others hardly ever one of the same length.
        return [SeenSize((thing[0], thing[1]), (size[0], size[1]), scene) for thing, size, scene in columns]

    def features(self) -> ClassFeatures:
        """As the runtime gave them, rounded to two bytes."""
        values = {name: self.part(name).astype(np.float32) for name in FEATURES}
        closed_form = self.part("objectness").astype(np.float32) if self.objectness_size else None
        if not all(np.isfinite(value).all() for value in values.values()):
            raise DataError(f"{self.where}: expected finite features, got NaN or infinity; register it anew")
        ranks = self.ranks()
        places = None if ranks is None else np.array(ranks, np.int64)
        try:
            return ClassFeatures(**values, closed_form=closed_form, ranks=places)
        except InputError as error:
            raise DataError(f"{self.where}: {error}; register it anew") from error

    def shots(self) -> list[StoredShot]:
        """Everything that is kept of its shots."""
        crops = _split(self.part("crops"), self.rows["crop_bytes"])
        scenes = _split(self.part("scenes"), self.rows["scene_bytes"])
        return [
            StoredShot(
                crop=crops[row],
                box=_box(self.rows["box"][row]),
                seen=seen,
                source=self.rows["source"][row].tobytes(),
                scene=scenes[row],
                scene_box=_box(self.rows["scene_box"][row]) if scenes[row] else None,
            )
            for row, seen in enumerate(self.seen())
        ]


def store(shots: Sequence[StoredShot], features: ClassFeatures) -> StoredClass:
    """A class in memory."""
    if len(features) != len(shots):
        raise WeightsError(f"model: expected features of {len(shots)} shots, got those of {len(features)}")
    rows = np.zeros(len(shots), ROW)
    rows["rank"] = NO_RANKS if features.ranks is None else features.ranks
    for row, one in zip(rows, shots, strict=True):
        row["box"], row["scene_box"] = one.box, one.scene_box or 0
        row["thing"], row["picture"] = one.seen.thing, one.seen.picture
        row["crop_bytes"], row["scene_bytes"] = len(one.crop), len(one.scene)
        row["source"] = np.frombuffer(one.source, np.uint8)
    parts = {name: _rounded(getattr(features, name), name) for name in FEATURES}
    closed_form = np.zeros(0, np.float32) if features.closed_form is None else features.closed_form
    parts["objectness"] = _rounded(closed_form, "objectness")
    parts["crops"] = np.frombuffer(b"".join(one.crop for one in shots), np.uint8)
    parts["scenes"] = np.frombuffer(b"".join(one.scene for one in shots), np.uint8)
    checks = np.array([checksum(parts[name]) for name in PARTS], np.uint32)
    return StoredClass(rows, checks, len(closed_form), parts.__getitem__)


def checksum(part: Array) -> int:
    """CRC-32 of an array's bytes."""
    return zlib.crc32(np.ascontiguousarray(part).view(np.uint8).data) if part.size else 0


def _rounded(values: Array, name: str) -> Array:
    """In the type of the file, already in memory: a bank finds the same before it is saved and after."""
    with np.errstate(over="ignore"):
        rounded = np.ascontiguousarray(values, PARTS[name])
    if not np.isfinite(rounded).all():
        raise WeightsError(
            f"model: expected finite {name} that two-byte floats can hold, got values up to "
            f"{float(np.abs(values).max()):g}; the model is damaged or was not trained"
        )
    return rounded


def _split(part: Array, sizes: Array) -> list[bytes]:
    ends = np.cumsum(sizes, dtype=np.int64).tolist()
    return [part[end - size : end].tobytes() for end, size in zip(ends, sizes.tolist(), strict=True)]


def _box(row: NDArray[np.float32]) -> Box:
    x1, y1, x2, y2 = row.tolist()
    return x1, y1, x2, y2
