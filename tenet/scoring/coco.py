"""COCO's metrics, by hotcoco: bit for bit pycocotools' numbers (a test holds it to that) in a hundredth
of its time. Its precision and recall arrays are read here; nothing is recomputed.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenet.errors import InputError
from tenet.scoring.detections import GroundTruth, Results
from tenet.scoring.report import ClassScore, Scores

Floats = NDArray[np.float64]
RECALLS = np.linspace(0, 1, 101)
_ALL, _SMALL, _MEDIUM, _LARGE = range(4)
_MOST = 2
"""Row of 100 detections for each picture in COCO's (1, 10, 100)."""


def score_coco(
    truth: GroundTruth, found: Results, classes: Sequence[str] | None = None, iou: float | None = None
) -> Scores:
    """COCO AP, AP50, AP75, by size, and AR, over all classes or those named.

    iou  with it, also AP at this one threshold, and the curves are drawn there; at 0.5 without.
    `difficult` boxes count as ordinary ones, as COCO knows no such flag.
    """
    rows = sorted(truth.rows_of(classes))  # COCO's own order, whatever order they were named in
    evaluation = _evaluate(truth, found, rows)
    precision, recall = evaluation["precision"], evaluation["recall"]  # (T, R, K, A, M), (T, K, A, M)
    at_iou = precision[:1]
    if iou is not None:
        if not 0 < iou <= 1:
            raise InputError(f"iou: expected more than 0 and at most 1, got {iou}")
        at_iou = _evaluate(truth, found, rows, iou)["precision"]
    scores = []
    for k, row in enumerate(rows):
        curve = at_iou[0, :, k, _ALL, _MOST]
        scores.append(
            ClassScore(
                name=truth.classes[row],
                values=_metrics(precision[:, :, [k]], recall[:, [k]], at_iou[:, :, [k]], iou),
                positives=int(((truth.labels == row) & ~truth.crowd).sum()),
                recall=RECALLS,
                precision=np.maximum(curve, 0),
            )
        )
    return Scores("coco", iou, _metrics(precision, recall, at_iou, iou), tuple(scores))


def _metrics(precision: Floats, recall: Floats, at_iou: Floats, iou: float | None) -> dict[str, float]:
    values = {
        "AP": _mean(precision[..., _ALL, _MOST]),
        "AP50": _mean(precision[0, ..., _ALL, _MOST]),
        "AP75": _mean(precision[5, ..., _ALL, _MOST]),
        "APs": _mean(precision[..., _SMALL, _MOST]),
        "APm": _mean(precision[..., _MEDIUM, _MOST]),
        "APl": _mean(precision[..., _LARGE, _MOST]),
        "AR1": _mean(recall[..., _ALL, 0]),
        "AR10": _mean(recall[..., _ALL, 1]),
        "AR100": _mean(recall[..., _ALL, _MOST]),
        "ARs": _mean(recall[..., _SMALL, _MOST]),
        "ARm": _mean(recall[..., _MEDIUM, _MOST]),
        "ARl": _mean(recall[..., _LARGE, _MOST]),
    }
    if iou is not None:
        values[f"AP@{iou:g}"] = _mean(at_iou[..., _ALL, _MOST])
    return values


def _mean(values: NDArray[np.float64]) -> float:
    """Mean of what is defined; COCO marks classes and sizes without objects by -1."""
    defined = values[values > -1]
    return float(defined.mean()) if defined.size else float("nan")


def _evaluate(truth: GroundTruth, found: Results, rows: list[int], iou: float | None = None) -> Any:
    import hotcoco

    keep, wanted = np.isin(truth.labels, rows), np.isin(found.labels, rows)
    document = {
        "images": [
            {"id": row, "file_name": str(row), "width": int(size[0]), "height": int(size[1])}
            for row, size in enumerate(truth.sizes)
        ],
        "annotations": [
            {
                "id": n,
                "image_id": image,
                "category_id": label,
                "bbox": bbox,
                "area": area,
                "iscrowd": crowd,
            }
            for n, (image, label, bbox, area, crowd) in enumerate(
                zip(
                    truth.images[keep].tolist(),
                    (truth.labels[keep] + 1).tolist(),
                    _xywh(truth.boxes[keep]),
                    truth.areas[keep].tolist(),
                    truth.crowd[keep].astype(int).tolist(),
                    strict=True,
                ),
                start=1,
            )
        ],
        "categories": [{"id": row + 1, "name": truth.classes[row]} for row in rows],
    }
    detections = [
        {"image_id": image, "category_id": label, "bbox": bbox, "score": score}
        for image, label, bbox, score in zip(
            found.images[wanted].tolist(),
            (found.labels[wanted] + 1).tolist(),
            _xywh(found.boxes[wanted]),
            found.scores[wanted].tolist(),
            strict=True,
        )
    ]
    reference = hotcoco.COCO(document)
    evaluation = hotcoco.COCOeval(reference, reference.loadRes(detections), "bbox")
    evaluation.params.catIds = [row + 1 for row in rows]
    if iou is not None:
        evaluation.params.iouThrs = [iou]
    evaluation.evaluate()
    evaluation.accumulate()
    return evaluation.eval


def _xywh(boxes: NDArray[np.float64]) -> list[list[float]]:
    return np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], axis=1).tolist()
