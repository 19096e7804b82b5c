"""From a picture's bytes to what is answered: detections and explanations as plain values."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from tenet.data.images import picture_size
from tenet.drawing.explain import Explained as Reasons
from tenet.drawing.explain import best_pairs, explain, explanations, things
from tenet.drawing.heatmaps import normalised
from tenet.pictures import read_picture
from tenet.predictor import Tenet
from tenet.results.pictures import PictureResult, best_first
from tenet.structures import Detections
from tenet.web.archives import plain_name
from tenet.web.failures import TooLargeError
from tenet.web.library import Snapshot
from tenet.web.limits import Limits

MAPS = ("fo_ho", "fo", "ho", "spatial")


def checked_size(file: bytes, name: str, limits: Limits) -> tuple[int, int]:
    """(width, height) of a picture file that the service takes, from its header alone."""
    width, height = picture_size(file, name)
    if width * height > limits.pixels:
        raise TooLargeError(
            f"{name}: expected at most {limits.pixels // 1_000_000} million pixels, got {width} x {height}; "
            "scale it down"
        )
    return width, height


def detection_rows(found: Detections, bank: Snapshot) -> list[dict[str, Any]]:
    """A plain row for each detection; boxes xyxy in pixels of the picture."""
    rows = []
    for row, name in enumerate(found.names.tolist()):
        shot = int(found.shots[row])
        rows.append(
            {
                "class": name,
                "score": round(float(found.scores[row]), 6),
                "box": [round(value, 2) for value in found.boxes[row].tolist()],
                "shot": shot,
                "shot_id": bank.shot_heads(name)[shot].id,
            }
        )
    return rows


def picture_answer(name: str, size: tuple[int, int], found: Detections, bank: Snapshot) -> dict[str, Any]:
    """What is answered of one picture."""
    return {"name": name, "width": size[0], "height": size[1], "detections": detection_rows(found, bank)}


def picture_result(answer: dict[str, Any], classes: Sequence[str], threshold: float = 0.0) -> PictureResult:
    """Such an answer as the writers of files take it; boxes xyxy in pixels of the picture."""
    rows = [row for row in answer["detections"] if row["score"] >= threshold]
    places = {name: place for place, name in enumerate(classes)}
    found = best_first(
        [row["box"] for row in rows],
        [row["score"] for row in rows],
        [places[row["class"]] for row in rows],
        [row["shot"] for row in rows],
        classes,
    )
    return PictureResult(plain_name(answer["name"]), answer["width"], answer["height"], found)


def result_text(answer: dict[str, Any]) -> str:
    """An answer as a job keeps it."""
    return json.dumps(answer, ensure_ascii=False, allow_nan=False)


def reasons_of(
    model: Tenet,
    bank: Snapshot,
    file: bytes,
    top: int,
    threshold: float | None,
    classes: tuple[str, ...] | None,
) -> Reasons:
    """Why the best things were found in a picture."""
    return explain(model, file, bank, top, threshold, classes)


def reasons_of_box(model: Tenet, bank: Snapshot, file: bytes, name: str, box: Sequence[float]) -> Reasons:
    """Why that box (xyxy in pixels of the picture) looks like that class, or why it does not."""
    picture = read_picture(file)
    rows = np.array([box], np.float32)
    none = np.zeros(1, np.int64)
    asked = Detections(rows, np.zeros(1, np.float32), none, none, (name,))
    reasons = explanations(model.runtime, bank, picture, asked)
    best = np.array([int(reasons[0].cosines.argmax())], np.int64)
    found = Detections(rows, np.zeros(1, np.float32), none, best, (name,))
    shots = {name: things(bank, name)}
    return Reasons(picture, found, reasons, shots, float(model.runtime.threshold), asked=True)


def explain_answer(reasons: Reasons, bank: Snapshot) -> dict[str, Any]:
    """Explanations as plain values: maps are rows of numbers 0…1, over the region and over the shot's box."""
    explained = []
    rows = detection_rows(reasons.detections, bank)
    for row, reason in zip(rows, reasons.explanations, strict=True):
        shot = row["shot"]
        explained.append(
            {
                **row,
                **({"score": None} if reasons.asked else {}),
                "shot_box": list(bank.shots(row["class"])[shot].box),
                "cosines": [round(float(value), 4) for value in reason.cosines],
                "region_maps": _maps(reason.region),
                "shot_maps": _maps(reason.shots[shot]) if reason.shots else {},
                "pairs": [vars(pair) for pair in best_pairs(reason.pairs[shot])],
                "side": round(len(reason.pairs[shot]) ** 0.5),
            }
        )
    return {
        "note": reasons.note,
        "threshold": reasons.threshold,
        "below": None if reasons.asked else reasons.below,
        "explained": explained,
    }


def _maps(maps: dict[str, Any]) -> dict[str, list[list[float]]]:
    return {name: np.round(normalised(maps[name]), 3).tolist() for name in MAPS if name in maps}
