"""COCO JSON: annotations with a score each, and results lists.

`bbox` is [x, y, width, height] in pixels. An annotation also says which `shot` matched best; other programs
pass over it. `tenet score` reads both.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tenet.data.coco import check_document, coco_document, scan_document
from tenet.data.dataset import Dataset
from tenet.errors import DataError, InputError
from tenet.results.pictures import PictureResult, as_dataset, best_first
from tenet.scoring.detections import ground_truth, results

_RESULT_FIELDS = ("image_id", "category_id", "bbox", "score")


def to_coco(found: Sequence[PictureResult]) -> dict[str, Any]:
    """A COCO object with images, categories, and the detections as annotations with `score` and `shot`."""
    document = coco_document(as_dataset(found))
    rows = [
        {"score": round(float(score), 6), "shot": int(shot)}
        for one in found
        for score, shot in zip(one.detections.scores, one.detections.shots, strict=True)
    ]
    # coco_document keeps pictures and boxes in their order.
    annotations = [{**old, **new} for old, new in zip(document["annotations"], rows, strict=True)]
    return {**document, "annotations": annotations}


def from_coco(document: dict[str, Any], name: str = "COCO document") -> list[PictureResult]:
    """The detections of a COCO object; an annotation without a score has score 1. No picture is opened."""
    check_document(document, Path(name))
    scan = scan_document(document, Path(name), Path())
    # Nothing is opened here: a file name may lead anywhere.
    entries = tuple(replace(entry, path=Path(entry.file_name)) for entry in scan.entries)
    defects = tuple(defect for defect in scan.defects if defect.kind != "unsafe-path")
    dataset = Dataset.of(replace(scan, entries=entries, defects=defects))
    found = []
    for entry, record in zip(entries, dataset.records, strict=True):
        rows = [document["annotations"][key] for key in entry.keys.tolist()]
        scores = [_score(row, f"{name}, annotation {key}") for row, key in zip(rows, entry.keys, strict=True)]
        shots = [row.get("shot", 0) if isinstance(row.get("shot", 0), int) else 0 for row in rows]
        detections = best_first(record.target.boxes, scores, record.target.labels, shots, dataset.classes)
        found.append(PictureResult(record.file_name, record.width, record.height, detections))
    return found


def _score(row: dict[str, Any], where: str) -> float:
    score = row.get("score", 1.0)
    if isinstance(score, bool) or not isinstance(score, (int, float)) or not 0 <= score <= 1:
        raise DataError(f"{where}: expected a score from 0 to 1, got {score!r}")
    return float(score)


def to_coco_results(
    found: Sequence[PictureResult], truth: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    """A COCO results list: image_id, category_id, bbox, score.

    truth  the COCO object that the ids are taken from, by file name and class name; without it, ids are
           those of `to_coco`
    """
    document = to_coco(found)
    images = {image["id"]: image["file_name"] for image in document["images"]}
    names = {category["id"]: category["name"] for category in document["categories"]}
    rows = [{field: row[field] for field in _RESULT_FIELDS} for row in document["annotations"]]
    if truth is None:
        return rows
    check_document(truth, Path("truth"))
    image_ids = {image["file_name"]: image["id"] for image in truth["images"]}
    category_ids = {category["name"]: category["id"] for category in truth["categories"]}
    for row in rows:
        row["image_id"] = _known(images[row["image_id"]], image_ids, "pictures")
        row["category_id"] = _known(names[row["category_id"]], category_ids, "classes")
    return rows


def _known(name: str, ids: dict[str, Any], what: str) -> Any:
    if name not in ids:
        raise InputError(f"truth: expected it to have all {what} of the results, but {name!r} is not in it")
    return ids[name]


def from_coco_results(
    rows: Sequence[dict[str, Any]], truth: dict[str, Any], name: str = "COCO results"
) -> list[PictureResult]:
    """The detections of a COCO results list, for the pictures and classes of the COCO object it is for."""
    check_document(truth, Path("truth"))
    known = ground_truth(truth, Path("truth"))
    table = results(list(rows), known, name)
    file_names = {image["id"]: image["file_name"] for image in truth["images"]}
    found = []
    for row, identity in enumerate(known.image_ids):
        here = table.images == row
        shots = [0] * int(here.sum())
        detections = best_first(
            table.boxes[here], table.scores[here], table.labels[here], shots, known.classes
        )
        width, height = known.sizes[row].tolist()
        found.append(PictureResult(file_names[identity], width, height, detections))
    return found
