"""`supervision.Detections`, for its annotators, trackers and zones (extra `supervision`)."""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tenet.errors import InputError, MissingExtraError
from tenet.results.pictures import best_first
from tenet.structures import Detections

if TYPE_CHECKING:
    import supervision


def to_supervision(found: Detections) -> "supervision.Detections":
    """xyxy in pixels of the picture, confidence, class_id; in `data` class_name and shot."""
    data = {"shot": found.shots.copy()}
    if found.classes:
        data["class_name"] = found.names
    return _supervision().Detections(
        xyxy=found.boxes.copy(),
        confidence=found.scores.copy(),
        class_id=found.labels.copy(),
        data=data,
        metadata={"classes": list(found.classes)},
    )


def from_supervision(
    detections: "supervision.Detections", classes: Sequence[str] | None = None
) -> Detections:
    """The same as `Detections`, boxes xyxy in pixels of the picture.

    classes  the names behind class_id; without them, those that `to_supervision` left there, or class_name
    """
    boxes = np.asarray(detections.xyxy, np.float32).reshape(-1, 4)
    ids = np.zeros(len(boxes), np.int64) if detections.class_id is None else detections.class_id
    scores = np.ones(len(boxes), np.float32) if detections.confidence is None else detections.confidence
    shots = detections.data.get("shot", np.zeros(len(boxes), np.int64))
    if classes is None:
        classes = detections.metadata.get("classes") or _names(ids, detections.data.get("class_name"))
    if len(ids) and classes and not 0 <= min(ids) <= max(ids) < len(classes):
        raise InputError(f"class_id: expected numbers from 0 to {len(classes) - 1}, got {sorted(set(ids))}")
    return best_first(boxes, scores, ids, shots, classes)


def _names(ids: Any, names: Any) -> list[str]:
    """Class names by id, as far as `class_name` tells them."""
    if names is None or not len(names):
        return []
    known = {int(number): str(name) for number, name in zip(ids, names, strict=True)}
    return [known.get(number, f"class {number}") for number in range(max(known) + 1)]


def _supervision() -> Any:
    try:
        with warnings.catch_warnings():
            # It says that OpenCV is absent, which nothing here needs.
            warnings.simplefilter("ignore")
            import supervision
    except ImportError as error:
        raise MissingExtraError("supervision.Detections", "supervision") from error
    return supervision
