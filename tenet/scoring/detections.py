"""Ground truth and detections, read and checked before they are scored.

Detections are a COCO results list, [{"image_id", "category_id", "bbox": [x, y, width, height], "score"}],
or an object that holds one. Whatever cannot be scored is refused, with the entry and the line at fault.
"""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenet.data.coco import load_document, scan_document
from tenet.data.files import read_json
from tenet.errors import DataError, InputError

LIST_KEYS = ("annotations", "detections", "results", "predictions")
"""Where an object may hold the list."""


@dataclass(frozen=True, eq=False)
class GroundTruth:
    """Annotations of n boxes in m pictures.

    classes   names; `category_rows` leads from a category id of the file to a row of them
    image_ids ids of the m pictures, as the file has them; `sizes` (m, 2) int64 their (W, H), 0 if unsaid
    images    (n,) int64, row of each box's picture
    labels    (n,) int64, row of its class
    boxes     (n, 4) float64, xyxy in pixels of its picture, edges
    areas     (n,) float64, the annotation's `area`, by which COCO tells small from large
    crowd     (n,) bool, COCO's `iscrowd`
    difficult (n,) bool, VOC's `difficult`
    """

    classes: tuple[str, ...]
    category_rows: dict[int | str, int]
    image_ids: tuple[int | str, ...]
    sizes: NDArray[np.int64]
    images: NDArray[np.int64]
    labels: NDArray[np.int64]
    boxes: NDArray[np.float64]
    areas: NDArray[np.float64]
    crowd: NDArray[np.bool_]
    difficult: NDArray[np.bool_]

    def rows_of(self, names: Sequence[str] | None) -> list[int]:
        """Rows of the named classes, of all without names; an unknown name is an InputError."""
        if names is None:
            return list(range(len(self.classes)))
        unknown = [name for name in names if name not in self.classes]
        if unknown:
            raise InputError(f"classes: expected some of {', '.join(self.classes)}; got {', '.join(unknown)}")
        return [self.classes.index(name) for name in dict.fromkeys(names)]


@dataclass(frozen=True, eq=False)
class Results:
    """n detections, in the order of the file.

    images (n,) int64 and labels (n,) int64 are rows in the ground truth; boxes (n, 4) float64 are xyxy in
    pixels of the picture, edges; scores (n,) float64.
    """

    images: NDArray[np.int64]
    labels: NDArray[np.int64]
    boxes: NDArray[np.float64]
    scores: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.scores)


def read_ground_truth(path: Path) -> GroundTruth:
    """The ground truth of a COCO JSON file. Pictures are not opened."""
    return ground_truth(load_document(path), path)


def ground_truth(document: dict[str, Any], path: Path = Path("ground truth")) -> GroundTruth:
    """`read_ground_truth` of a COCO object in memory."""
    scan = scan_document(document, path, path.parent)
    fatal = [d for d in scan.defects if d.kind != "unsafe-path"]
    for entry in scan.entries:
        if not np.isfinite(entry.boxes).all():
            row = int(np.argmin(np.isfinite(entry.boxes).all(axis=1)))
            where = f"{entry.where}, annotation {entry.keys[row]}"
            raise DataError(f"{where}: expected a bbox of four finite numbers")
    if fatal:
        raise DataError(f"{fatal[0]}; see `tenet data check {path} --no-pixels`")
    if not scan.entries or not scan.classes:
        raise DataError(f"{path}: expected pictures and categories to score against, got none")
    id_of = {str(image["id"]): image["id"] for image in document["images"]}
    counts = [len(entry) for entry in scan.entries]
    keys = np.concatenate([entry.keys for entry in scan.entries])
    boxes = np.concatenate([entry.boxes for entry in scan.entries])
    plain = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    said = [document["annotations"][key].get("area") for key in keys.tolist()]
    areas = [area if _is_number(area) else own for area, own in zip(said, plain, strict=True)]
    return GroundTruth(
        classes=scan.classes,
        category_rows={c["id"]: scan.classes.index(c["name"]) for c in document["categories"]},
        image_ids=tuple(id_of[entry.id] for entry in scan.entries),
        sizes=np.array([(entry.width, entry.height) for entry in scan.entries], np.int64),
        images=np.repeat(np.arange(len(counts)), counts),
        labels=np.concatenate([entry.labels for entry in scan.entries]),
        boxes=boxes,
        areas=np.array(areas, np.float64),
        crowd=np.concatenate([entry.crowd for entry in scan.entries]),
        difficult=np.concatenate([entry.difficult for entry in scan.entries]),
    )


def read_results(path: Path, truth: GroundTruth) -> Results:
    """The detections of a file, checked against the ground truth they are for."""
    document = read_json(path, allow_nan=True)
    try:
        return results(document, truth, str(path))
    except _EntryError as error:
        line = _line_of(path, error.entry)
        where = f"{path}, line {line}" if line else str(path)
        raise DataError(f"{where}, detection {error.entry}: {error.detail}") from None


def results(document: object, truth: GroundTruth, name: str = "detections") -> Results:
    """`read_results` of a list, or an object with one, in memory."""
    rows = _list_of(document, name)
    image_row = {str(identity): row for row, identity in enumerate(truth.image_ids)}
    places = [_identify(entry, row, image_row, truth.category_rows) for entry, row in enumerate(rows)]
    numbers = np.array([_numbers(entry, row) for entry, row in enumerate(rows)], np.float64).reshape(-1, 5)
    images, labels = np.array(places, np.int64).reshape(-1, 2).T
    boxes, scores = numbers[:, :4].copy(), numbers[:, 4].copy()
    _refuse_corners(boxes, truth.sizes[images] if len(rows) else np.zeros((0, 2)))
    boxes[:, 2:] += boxes[:, :2]
    return Results(images, labels, boxes, scores)


class _EntryError(DataError):
    """A detection that cannot be scored: which, and why."""

    def __init__(self, entry: int, detail: str) -> None:
        super().__init__(f"detection {entry}: {detail}")
        self.entry = entry
        self.detail = detail


def _list_of(document: object, name: str) -> list[Any]:
    if isinstance(document, list):
        return document
    if isinstance(document, dict):
        for key in LIST_KEYS:
            if isinstance(document.get(key), list):
                return list(document[key])
    raise DataError(
        f"{name}: expected a COCO results list, or an object that holds one under {', '.join(LIST_KEYS)}; "
        f"got {type(document).__name__}"
    )


def _identify(
    entry: int, row: object, image_row: dict[str, int], class_row: dict[int | str, int]
) -> tuple[int, int]:
    if not isinstance(row, dict):
        raise _EntryError(entry, f"expected an object, got {row!r:.60}")
    for field in ("image_id", "category_id", "bbox", "score"):
        if field not in row:
            raise _EntryError(entry, f"expected image_id, category_id, bbox and score; {field} is missing")
    image = image_row.get(str(row["image_id"]))
    if image is None:
        raise _EntryError(entry, f"image_id {row['image_id']!r} is not a picture of the ground truth")
    category = row["category_id"]
    label = class_row.get(category) if isinstance(category, (int, str)) else None
    if label is None:
        raise _EntryError(entry, f"category_id {category!r} is not a class of the ground truth")
    return image, label


def _numbers(entry: int, row: dict[str, Any]) -> tuple[float, ...]:
    """x, y, width, height and score."""
    bbox, score = row["bbox"], row["score"]
    if not isinstance(bbox, list) or len(bbox) != 4 or not all(_is_number(value) for value in bbox):
        raise _EntryError(entry, f"expected bbox [x, y, width, height], got {bbox!r:.80}")
    if not _is_number(score):
        raise _EntryError(entry, f"expected a number as score, got {score!r:.40}")
    if not all(map(math.isfinite, (*bbox, score))):
        raise _EntryError(entry, f"expected finite numbers, got bbox {bbox} and score {score}")
    if bbox[2] <= 0 or bbox[3] <= 0:
        raise _EntryError(entry, f"expected bbox [x, y, width, height] with sides above 0, got {bbox}")
    return (*bbox, score)


def _is_number(value: object) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    try:
        float(value)
    except OverflowError:  # JSON may write whole numbers of any length
        return False
    return True


def _refuse_corners(bbox: NDArray[np.float64], sizes: NDArray[np.generic]) -> None:
    """Refuse boxes that are corners [x1, y1, x2, y2] under the name of [x, y, width, height].

    bbox (n, 4) as in the file, sizes (n, 2) of the pictures. Read as xywh, corners of boxes right and
    below leave the picture. Detectors that do not clip their boxes leave it too, but less: a twentieth
    of the side is allowed, or a half where an entry with x2 <= x1 or y2 <= y1 proves that the file
    as a whole is xywh.
    """
    frame = sizes.astype(np.float64)
    known = (frame > 0).all(axis=1)
    leaves = bbox[:, :2] + bbox[:, 2:] - frame
    ordered = (bbox[:, 2:] > bbox[:, :2]).all(axis=1)
    fits = ordered & (bbox[:, 2:] <= frame + 1).all(axis=1) & (bbox[:, :2] >= -1).all(axis=1)
    allowed = np.maximum(4, frame / (20 if ordered.all() else 2))
    for entry in np.flatnonzero((leaves > allowed).any(axis=1) & fits & known)[:1].tolist():
        width, height = frame[entry].astype(int)
        raise _EntryError(
            entry,
            f"expected bbox [x, y, width, height] inside {width} × {height}, got {bbox[entry].tolist()}, "
            "which fits only as [x1, y1, x2, y2]; give width and height instead of x2 and y2",
        )


def _line_of(path: Path, entry: int) -> int:
    """The line, from 1, on which an entry of the file's list begins; 0 where it cannot be told."""
    text = path.read_text(encoding="utf-8-sig")
    start = re.match(r"\s*\[", text) or re.search(rf'"(?:{"|".join(LIST_KEYS)})"\s*:\s*\[', text)
    if start is None:
        return 0
    position, decoder = start.end(), json.JSONDecoder()
    gap = re.compile(r"[\s,]*")
    try:
        for _ in range(entry):
            _, position = decoder.raw_decode(text, gap.match(text, position).end())  # type: ignore[union-attr]
    except ValueError:
        return 0
    position = gap.match(text, position).end()  # type: ignore[union-attr]
    return text.count("\n", 0, position) + 1
