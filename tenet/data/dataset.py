"""A set of annotated pictures in memory: the same whatever format it was read from.

Every reader makes `Entry` values first: what the file says, unchecked, with each defect named beside
them. `Dataset.of` turns entries without defects into `Record` values that can be trained on; `check`
reports the defects and `fix` repairs them.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tenet.data.images import open_picture
from tenet.errors import DataError, InputError
from tenet.structures import Target

MIN_SIDE = 0.01
"""A box with a side below a hundredth of a pixel, inside its picture, is empty."""


@dataclass(frozen=True)
class Defect:
    """One thing that is wrong in a set, and what `tenet data check --fix` does about it.

    kind    one of `tenet.data.check.KINDS`
    where   file and entry
    detail  what was expected and what came
    action  what the repair does: `drop picture`, `drop box`, `set box`, `set size`, `renumber`, `none`
    image   row in `Scan.entries`, -1 where no single picture is at fault
    box     row of the box in that entry, -1 where no single box is at fault
    value   the new box (xyxy, pixels of the picture) or the new size (W, H)
    key     place in the file of an entry that belongs to no picture, -1 otherwise
    """

    kind: str
    where: str
    detail: str
    action: str = "none"
    image: int = -1
    box: int = -1
    value: tuple[float, ...] = ()
    key: int = -1

    def __str__(self) -> str:
        return f"{self.kind}: {self.where}: {self.detail}"


@dataclass(frozen=True, eq=False)
class Entry:
    """One picture as its annotation file has it, unchecked.

    id         the picture's name in the set, unique
    file_name  as the annotation file gives it; `path` is where it is, None where it may not be opened
    width, height  of the annotated frame; 0 where the file does not say
    boxes      (n, 4) float64, xyxy in pixels of the picture, edges; may be NaN, empty or outside
    labels     (n,)   int64, row in the scan's class list, -1 where the class is unknown
    difficult, crowd, truncated  (n,) bool
    keys       (n,)   int64, where each box is in the file, counted from 0 (annotation, object or line)
    ids        (n,)   int64, the annotation's own id, or its key where the format has none
    where      what to call this entry in a message
    """

    id: str
    file_name: str
    path: Path | None
    width: int
    height: int
    boxes: NDArray[np.float64]
    labels: NDArray[np.int64]
    difficult: NDArray[np.bool_]
    crowd: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    keys: NDArray[np.int64]
    ids: NDArray[np.int64]
    where: str

    def __len__(self) -> int:
        return len(self.boxes)


@dataclass(frozen=True, eq=False)
class Scan:
    """What a reader found: the layout, its class list, its pictures, and the defects of the files."""

    layout: str
    source: Path
    classes: tuple[str, ...]
    entries: tuple[Entry, ...]
    defects: tuple[Defect, ...] = ()
    box_word: str = "annotation"
    """What the format calls a box's place in the file: annotation, object or line."""


def box_defects(scan: Scan) -> list[Defect]:
    """Boxes that are not finite, empty, or outside their picture, in order."""
    found: list[Defect] = []
    for row, entry in enumerate(scan.entries):
        # YOLO's boxes are shares: without a picture's size there are no pixels to judge.
        if not len(entry) or (scan.layout == "yolo" and not entry.width):
            continue
        boxes = entry.boxes
        frame = np.array([entry.width, entry.height, entry.width, entry.height], np.float64)
        clipped = np.clip(boxes, 0, frame) if entry.width and entry.height else boxes
        # Half a hundredth of a pixel is the rounding of the files themselves, not a box outside.
        with np.errstate(invalid="ignore"):
            sound = (
                np.isfinite(boxes).all(axis=1)
                & (np.abs(boxes - clipped) <= 0.0051).all(axis=1)
                & (clipped[:, 2:] - clipped[:, :2] >= MIN_SIDE).all(axis=1)
            )
        found += [_box_defect(scan, row, int(box), clipped[box]) for box in np.flatnonzero(~sound)]
    return found


def _box_defect(scan: Scan, row: int, box: int, clipped: NDArray[np.float64]) -> Defect:
    entry = scan.entries[row]
    where = f"{entry.where}, {scan.box_word} {entry.keys[box]}"
    shown = [round(float(value), 2) for value in entry.boxes[box]]
    if not np.isfinite(entry.boxes[box]).all():
        return Defect("not-a-box", where, f"expected four finite numbers, got {shown}", "drop box", row, box)
    x1, y1, x2, y2 = entry.boxes[box]
    if x2 - x1 < MIN_SIDE or y2 - y1 < MIN_SIDE:
        detail = f"expected x2 > x1 and y2 > y1, got xyxy {shown}"
        return Defect("empty-box", where, detail, "drop box", row, box)
    size = f"{entry.width} × {entry.height}"
    if (clipped[2:] - clipped[:2] < MIN_SIDE).any():
        detail = f"expected a box inside {size}, got xyxy {shown}, wholly outside"
        return Defect("outside-box", where, detail, "drop box", row, box)
    detail = f"expected a box inside {size}, got xyxy {shown}"
    return Defect("outside-box", where, detail, "set box", row, box, tuple(float(v) for v in clipped))


@dataclass(frozen=True, eq=False)
class Record:
    """One picture of a set and what is annotated in it.

    id             the picture's name in the set, unique
    path           the picture's file
    file_name      its name as the annotation file has it
    width, height  of the upright picture, in pixels
    target         boxes in pixels of the upright picture
    box_ids        (n,) int64, the annotations' own ids: stable names for shots
    pixels         the picture itself, (H, W, 3) uint8 RGB, for a set that was never on disk
    """

    id: str
    path: Path
    file_name: str
    width: int
    height: int
    target: Target
    box_ids: NDArray[np.int64]
    pixels: NDArray[np.uint8] | None = field(default=None, repr=False)

    def picture(self) -> NDArray[np.uint8]:
        """(H, W, 3) uint8 RGB. A file of another size than its annotation says is a DataError."""
        if self.pixels is not None:
            return self.pixels
        if not self.path.is_file():
            raise DataError(
                f"{self.path}: expected the picture of an annotation, but there is no such file; tell where "
                "the pictures are (--images FOLDER), or put them beside the annotations"
            )
        rgb = open_picture(self.path, size=(self.width, self.height))
        height, width = rgb.shape[:2]
        if (width, height) != (self.width, self.height):
            raise DataError(
                f"{self.path}: expected {self.width} × {self.height} pixels as annotated, "
                f"got {width} × {height}; run `tenet data check` on the set"
            )
        return rgb

    @property
    def identity(self) -> str:
        """The same for two records of one picture."""
        if self.pixels is None:
            return str(self.path.resolve())
        return hashlib.blake2b(self.pixels.tobytes(), digest_size=16).hexdigest()

    def with_target(self, rows: NDArray[np.generic], labels: NDArray[np.int64] | None = None) -> "Record":
        """The same picture with only these boxes, under new labels where they are given."""
        target = self.target.select(rows)
        if labels is not None:
            target = replace(target, labels=labels)
        return replace(self, target=target, box_ids=self.box_ids[rows])


@dataclass(frozen=True, eq=False)
class Dataset:
    """Pictures with boxes. `labels` of every record are rows of `classes`."""

    name: str
    classes: tuple[str, ...]
    records: tuple[Record, ...]

    def __post_init__(self) -> None:
        if len(set(self.classes)) != len(self.classes):
            twice = sorted({name for name in self.classes if self.classes.count(name) > 1})
            raise DataError(f"{self.name}: expected class names to differ, got {', '.join(twice)} twice")
        seen: set[str] = set()
        for record in self.records:
            if record.id in seen:
                raise DataError(f"{self.name}: expected picture ids to differ, got {record.id} twice")
            seen.add(record.id)
            if len(record.target) and int(record.target.labels.max()) >= len(self.classes):
                raise DataError(
                    f"{self.name}, picture {record.id}: expected labels below {len(self.classes)}, "
                    f"got {int(record.target.labels.max())}"
                )

    def __len__(self) -> int:
        return len(self.records)

    @staticmethod
    def of(scan: Scan, name: str | None = None) -> "Dataset":
        """The set that a reader found. Boxes partly outside are clipped to the picture; any other defect
        is a DataError, because dropping data is for `tenet data check --fix`, which names what it drops.
        """
        defects = [*scan.defects, *box_defects(scan)]
        fatal = [defect for defect in defects if defect.action != "set box"]
        if fatal:
            more = f" (and {len(fatal) - 1} more defects)" if len(fatal) > 1 else ""
            raise DataError(f"{fatal[0]}{more}; see `tenet data check {scan.source}`, repair with --fix")
        records = tuple(_record(entry) for entry in scan.entries)
        return Dataset(name or scan.source.stem, scan.classes, records)

    def class_counts(self) -> dict[str, int]:
        """Boxes of each class that are not to be ignored."""
        counts = np.zeros(len(self.classes), np.int64)
        for record in self.records:
            np.add.at(counts, record.target.labels[~record.target.ignore], 1)
        return dict(zip(self.classes, counts.tolist(), strict=True))

    def with_classes(self, names: Iterable[str], keep_empty: bool = True) -> "Dataset":
        """Only these classes, in this order; boxes of the others are taken out, their pictures stay
        unless `keep_empty` is off and no box is left."""
        kept = tuple(names)
        unknown = sorted(set(kept) - set(self.classes))
        if unknown:
            raise InputError(
                f"{self.name}: expected classes among {', '.join(self.classes)}; got {', '.join(unknown)}"
            )
        row_of = np.full(len(self.classes), -1, np.int64)
        for row, name in enumerate(kept):
            row_of[self.classes.index(name)] = row
        records = []
        for record in self.records:
            labels = row_of[record.target.labels]
            rows = np.flatnonzero(labels >= 0)
            if len(rows) or keep_empty:
                records.append(record.with_target(rows, labels[rows]))
        return Dataset(self.name, kept, tuple(records))

    def renamed(self, names: Mapping[str, str]) -> "Dataset":
        """The same set with some classes under other names, such as `VOC_TO_COCO`."""
        return replace(self, classes=tuple(names.get(name, name) for name in self.classes))

    def without(self, ids: Iterable[str]) -> "Dataset":
        """All pictures but those with these ids: the test side of a set whose shots are named."""
        gone = set(ids)
        return replace(self, records=tuple(record for record in self.records if record.id not in gone))

    def subset(self, ids: Iterable[str]) -> "Dataset":
        """Only the pictures with these ids, in the set's own order."""
        wanted = set(ids)
        records = tuple(record for record in self.records if record.id in wanted)
        missing = wanted - {record.id for record in records}
        if missing:
            raise InputError(f"{self.name}: expected ids of its pictures, got {sorted(missing)[0]}")
        return Dataset(self.name, self.classes, records)


def merge(datasets: Sequence[Dataset], name: str | None = None) -> Dataset:
    """One set of several with the same classes; ids become `set/id`, so that they stay apart."""
    if not datasets:
        raise InputError("merge: expected at least one set, got none")
    first = datasets[0]
    for other in datasets[1:]:
        if set(other.classes) != set(first.classes):
            differ = sorted(set(other.classes) ^ set(first.classes))
            raise DataError(
                f"{other.name}: expected the classes of {first.name}, but {', '.join(differ[:5])} differ; "
                "take the common ones with `with_classes`"
            )
    records = [
        replace(record, id=f"{dataset.name}/{record.id}")
        for dataset in datasets
        for record in dataset.with_classes(first.classes).records
    ]
    return Dataset(name or "+".join(d.name for d in datasets), first.classes, tuple(records))


def _record(entry: Entry) -> Record:
    if entry.path is None or not entry.width or not entry.height:
        raise DataError(f"{entry.where}: expected a picture with its size, got {entry.file_name!r}")
    boxes = np.clip(entry.boxes, 0, (entry.width, entry.height, entry.width, entry.height))
    return Record(
        id=entry.id,
        path=entry.path,
        file_name=entry.file_name,
        width=entry.width,
        height=entry.height,
        target=Target.of(boxes, entry.labels, entry.difficult, entry.crowd, entry.truncated),
        box_ids=entry.ids,
    )
