"""K-shot lists: which boxes teach a class. Public lists, or drawn by seed.

A draw depends on the seed, the class's name, the picture's id and the box's id, through BLAKE2: the same
on every machine, with every version of Python and numpy, whatever the order of the file. Draws are
nested: the 1-shot list is the beginning of the 5-shot list of the same seed.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tenet.data.dataset import Dataset, Record
from tenet.data.files import read_json, write_json
from tenet.data.voc import year_name
from tenet.errors import DataError, InputError

LIST_FORMAT = "tenet-shots-1"


@dataclass(frozen=True, order=True)
class ShotRef:
    """One shot: a box of a picture. `box` is its row in the record's target, `box_id` its own id."""

    picture: str
    box: int
    box_id: int


@dataclass(frozen=True, eq=False)
class ShotList:
    """The shots of each class. Fewer than asked for are allowed: uneven shots are normal."""

    source: str
    seed: int
    shots: int
    classes: dict[str, tuple[ShotRef, ...]]

    def pictures(self) -> list[str]:
        """Ids of the pictures that hold shots, in order, each once."""
        refs = [ref for name in sorted(self.classes) for ref in self.classes[name]]
        return list(dict.fromkeys(ref.picture for ref in refs))

    def short(self) -> dict[str, int]:
        """Classes with fewer shots than asked for, and how many they have."""
        return {name: len(refs) for name, refs in self.classes.items() if len(refs) < self.shots}

    def to_json(self, dataset: Dataset) -> dict[str, Any]:
        """The list as JSON, with each box as COCO has it ([x, y, width, height], pixels)."""
        rows = {record.id: record for record in dataset.records}
        classes = {
            name: [_shot_json(rows[ref.picture], ref) for ref in refs] for name, refs in self.classes.items()
        }
        head = {"format": LIST_FORMAT, "dataset": dataset.name, "source": self.source}
        return {**head, "seed": self.seed, "shots": self.shots, "classes": classes}


def _shot_json(record: Record, ref: ShotRef) -> dict[str, Any]:
    x1, y1, x2, y2 = (float(value) for value in record.target.boxes[ref.box])
    bbox = [round(value, 4) for value in (x1, y1, x2 - x1, y2 - y1)]
    return {"picture": ref.picture, "file_name": record.file_name, "box_id": ref.box_id, "bbox": bbox}


def draw_shots(
    dataset: Dataset, shots: int, seed: int, classes: Iterable[str] | None = None, min_side: float = 0
) -> ShotList:
    """`shots` boxes for each class, by seed; of different pictures as long as there are enough.

    Ignored boxes and those with a side below `min_side` pixels are never drawn.
    """
    if shots < 1:
        raise InputError(f"shots: expected at least 1, got {shots}")
    names = _known(dataset, classes)
    rows_of = candidates(dataset, min_side)
    drawn: dict[str, tuple[ShotRef, ...]] = {}
    for name in names:
        drawn[name] = pick_shots(rows_of[name], shots, seed, name)
    return ShotList("drawn", seed, shots, drawn)


def pick_shots(refs: Iterable[ShotRef], shots: int, seed: int | str, name: str) -> tuple[ShotRef, ...]:
    """`shots` of the boxes `refs` of class `name`, by seed; of different pictures as long as there are
    enough."""
    ranked = sorted((_rank(seed, name, ref), ref) for ref in refs)
    return tuple(_spread([ref for _, ref in ranked])[:shots])


def candidates(dataset: Dataset, min_side: float = 0) -> dict[str, list[ShotRef]]:
    """The boxes of each class that can teach it: not ignored, both sides of at least `min_side` pixels."""
    found: dict[str, list[ShotRef]] = {name: [] for name in dataset.classes}
    for record in dataset.records:
        target = record.target
        sides = (target.boxes[:, 2:] - target.boxes[:, :2]).min(axis=1) if len(target) else np.zeros(0)
        for box in np.flatnonzero(~target.ignore & (sides >= min_side)).tolist():
            ref = ShotRef(record.id, box, int(record.box_ids[box]))
            found[dataset.classes[int(target.labels[box])]].append(ref)
    return found


def _known(dataset: Dataset, classes: Iterable[str] | None) -> list[str]:
    names = list(dataset.classes if classes is None else classes)
    unknown = sorted(set(names) - set(dataset.classes))
    if unknown:
        raise InputError(f"classes: expected some of {', '.join(dataset.classes)}; got {', '.join(unknown)}")
    return names


def _rank(seed: int | str, name: str, ref: ShotRef) -> bytes:
    text = f"{seed}\x00{name}\x00{ref.picture}\x00{ref.box_id}\x00{ref.box}"
    return hashlib.blake2b(text.encode("utf-8"), digest_size=16).digest()


def _spread(refs: list[ShotRef]) -> list[ShotRef]:
    """The first box of each picture, then the second of each, …; otherwise in order."""
    seen: dict[str, int] = {}
    turn = {}
    for ref in refs:
        seen[ref.picture] = turn[ref] = seen.get(ref.picture, -1) + 1
    return sorted(refs, key=lambda ref: turn[ref])


def public_key(record: Record) -> str:
    """`2007/000005`: how the public VOC lists name a picture, for devkits and for COCO-format copies."""
    folder = record.path.parent
    year = year_name(folder.parent) if folder.name == "JPEGImages" else folder.name
    return f"{year}/{record.path.stem}"


def public_shots(
    path: Path,
    dataset: Dataset,
    shots: int,
    seed: int,
    classes: Iterable[str] | None = None,
    missing: str = "error",
) -> ShotList:
    """The shots of a public VOC list file: seed 0 is `kang`, others are the seed of that number in `tfa`.

    The lists name pictures; their boxes of the class are taken, one of each picture first, until there
    are `shots`. A picture that the set does not have is a DataError, or is left out with
    `missing = "skip"` (then a class can have fewer shots: see `ShotList.short`).
    """
    if missing not in ("error", "skip"):
        raise InputError(f"missing: expected error or skip, got {missing!r}")
    source, table = _public_table(path, seed)
    by_key = {public_key(record): record for record in dataset.records}
    pool: dict[tuple[str, str], list[ShotRef]] = {}
    for name, found in candidates(dataset).items():
        for ref in found:
            pool.setdefault((ref.picture, name), []).append(ref)
    drawn: dict[str, tuple[ShotRef, ...]] = {}
    for name in _known(dataset, classes):
        keys = table.get(name, {}).get(str(shots))
        if keys is None:
            raise DataError(f"{path}: expected {shots} shots of {name} in list {source}, found none")
        refs = []
        for key in dict.fromkeys(keys):
            if key in by_key:
                refs += pool.get((by_key[key].id, name), [])
            elif missing == "error":
                raise DataError(
                    f"{path}: expected every picture of list {source} in {dataset.name}, but {key} "
                    f"(a shot of {name}) is not there; leave such out with --missing skip"
                )
        drawn[name] = tuple(_spread(refs)[:shots])
    return ShotList(source, seed, shots, drawn)


def _public_table(path: Path, seed: int) -> tuple[str, dict[str, dict[str, list[str]]]]:
    document = read_json(path)
    if not isinstance(document, dict) or not {"kang", "tfa"} <= set(document):
        raise DataError(f"{path}: expected an object with the lists kang and tfa, found another")
    if seed == 0:
        return "kang", document["kang"]
    if str(seed) not in document["tfa"]:
        raise DataError(
            f"{path}: expected seed 0 (kang) or one of {', '.join(document['tfa'])} (tfa); got {seed}"
        )
    return f"tfa seed {seed}", document["tfa"][str(seed)]


def write_shots(shots: ShotList, dataset: Dataset, path: Path) -> None:
    """Write a shot list that `read_shots` reads."""
    write_json(path, shots.to_json(dataset), indent=1)


def read_shots(path: Path, dataset: Dataset) -> ShotList:
    """The shots of a file that `write_shots` wrote; each must be a box of `dataset`."""
    document = read_json(path)
    if not isinstance(document, dict) or document.get("format") != LIST_FORMAT:
        raise DataError(
            f"{path}: expected a shot list ({LIST_FORMAT}) of `tenet data shots`, found another file"
        )
    rows = {record.id: record for record in dataset.records}
    classes: dict[str, tuple[ShotRef, ...]] = {}
    try:
        for name, shots in document["classes"].items():
            classes[name] = tuple(_find(rows, dataset, name, shot, path) for shot in shots)
        return ShotList(str(document["source"]), int(document["seed"]), int(document["shots"]), classes)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DataError(
            f"{path}: expected a shot list, but a field is missing or wrong ({error!r})"
        ) from error


def _find(rows: dict[str, Record], dataset: Dataset, name: str, shot: dict[str, Any], path: Path) -> ShotRef:
    record = rows.get(str(shot["picture"]))
    found = np.flatnonzero(record.box_ids == int(shot["box_id"])) if record is not None else np.zeros(0)
    for box in found.tolist():
        if record is not None and dataset.classes[int(record.target.labels[box])] == name:
            return ShotRef(record.id, int(box), int(shot["box_id"]))
    raise DataError(
        f"{path}: expected a {name} with box id {shot['box_id']} in picture {shot['picture']} of "
        f"{dataset.name}, found none; was the list drawn from another set?"
    )
