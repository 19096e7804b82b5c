"""The folder of an evaluation: what it is of, and the detections of the pictures that are finished.

    run.json          what was evaluated: fingerprints of weights, settings, test set and shots
    shards/           detections of some pictures each: packed, by draw; a shard is whole or absent
    detections/       one COCO results list for each draw       } written at the end from the shards,
    truth/            the ground truth that each is scored by   } where they are asked for
    results.json      every number
    report.html       the same to look at

An evaluation that is killed continues with the first shard that is absent. What a shard holds depends on
its number alone, so that the numbers at the end are those of an evaluation that was never interrupted.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from tenet.data.dataset import Dataset
from tenet.data.files import read_json, write_bytes, write_json
from tenet.engine.packed_detections import Unpacked, pack, unpack
from tenet.errors import DataError
from tenet.structures import Detections

RUN_FORMAT = "tenet-evaluation-run-2"
RUN_FAMILY = "tenet-evaluation-run-"
SHARD = 4
"""Pictures in a shard: what a kill can cost."""
MEANING = {
    "weights": "other weights",
    "config": "another configuration of the model",
    "settings": "other settings",
    "test": "another test set",
    "shots": "other shots",
}

Found = dict[str, list[tuple[int, Detections]]]
"""By name of draw: (row of the picture in the test set, what was found there), rows rising."""


@dataclass(frozen=True)
class Store:
    """The shards of one evaluation. Rows are those of the plan's test set."""

    folder: Path

    def open(self, identity: dict[str, Any]) -> None:
        """Begin, or continue what has the same identity; a folder of something else is a DataError."""
        head = self.folder / "run.json"
        if not head.exists():
            if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
                raise DataError(
                    f"{self.folder}: expected a new folder or one of this evaluation, found other files; "
                    "give another --out"
                )
            write_json(head, {"format": RUN_FORMAT, **identity}, indent=1)
            return
        known = read_json(head)
        kind = known.get("format") if isinstance(known, dict) else None
        if kind != RUN_FORMAT:
            older = isinstance(kind, str) and kind.startswith(RUN_FAMILY)
            raise DataError(
                f"{head}: expected an evaluation ({RUN_FORMAT}), found "
                + (f"one of another version of tenet ({kind})" if older else "another file")
                + "; give another --out"
            )
        differ = [words for key, words in MEANING.items() if known.get(key) != identity[key]]
        if differ:
            raise DataError(
                f"{self.folder}: expected a new folder or one of this evaluation, found one of "
                f"{' and '.join(differ)}; give another --out"
            )

    def path(self, group: int, number: int) -> Path:
        return self.folder / "shards" / f"{group:03d}-{number:05d}.safetensors"

    def has(self, group: int, number: int) -> bool:
        """Whether this shard is there and whole."""
        try:
            with safe_open(self.path(group, number), "np") as shard:
                for name in shard.keys():  # noqa: SIM118 (it is no dict)
                    unpack(shard.get_tensor(name).tobytes())
        except (OSError, SafetensorError, ValueError):
            return False
        return True

    def write(self, group: int, number: int, found: Found) -> None:
        packed = {name: np.frombuffer(pack(pictures), np.uint8) for name, pictures in found.items()}
        write_bytes(self.path(group, number), save(packed))

    def read(self, name: str, group: int, numbers: range) -> Iterator[Unpacked]:
        """The detections of one draw, shard by shard."""
        for number in numbers:
            path = self.path(group, number)
            try:
                with safe_open(path, "np") as shard:
                    yield unpack(shard.get_tensor(name).tobytes())
            except (OSError, SafetensorError, ValueError) as error:
                raise DataError(
                    f"{path}: expected detections of {name}, but they cannot be read ({error}); "
                    "delete the file and evaluate again: only its pictures are repeated"
                ) from error


def fingerprint_set(dataset: Dataset) -> str:
    """Changes with any picture, box or class. Pictures in files are known by name and length."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr(dataset.classes).encode())
    for record in dataset.records:
        length = record.path.stat().st_size if record.pixels is None and record.path.is_file() else 0
        digest.update(repr((record.id, record.file_name, record.width, record.height, length)).encode())
        for array in (record.target.boxes, record.target.labels, record.target.ignore, record.target.crowd):
            digest.update(np.ascontiguousarray(array).tobytes())
        if record.pixels is not None:
            digest.update(record.pixels.tobytes())
    return digest.hexdigest()
