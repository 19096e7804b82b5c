"""COCO's numbers are pycocotools' own."""

import contextlib
import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenet.errors import InputError
from tenet.scoring.coco import score_coco
from tenet.scoring.detections import ground_truth, results

CLASSES = ("cat", "dog", "cow")


def random_set(seed: int, images: int = 12) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A set with crowds, all sizes, tied scores, wrong classes, and the detections of a poor detector."""
    rng = np.random.default_rng(seed)
    pictures = [{"id": 10 + n, "file_name": f"{n}.png", "width": 320, "height": 240} for n in range(images)]
    annotations: list[dict[str, Any]] = []
    found: list[dict[str, Any]] = []
    for picture in pictures:
        for _ in range(rng.integers(0, 7)):
            side = np.exp(rng.uniform(np.log(8), np.log(200), 2))
            x, y = rng.uniform(0, 320 - side[0]), rng.uniform(0, max(240 - side[1], 1))
            bbox = [round(float(v), 2) for v in (x, y, side[0], min(side[1], 240 - y))]
            category = int(rng.integers(3)) * 2 + 1
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": picture["id"],
                    "category_id": category,
                    "bbox": bbox,
                    "area": bbox[2] * bbox[3] * float(rng.uniform(0.5, 1)),
                    "iscrowd": int(rng.random() < 0.1),
                }
            )
            for _ in range(rng.integers(0, 4)):
                jitter = rng.normal(0, 0.1, 4)
                x1, y1 = max(0, bbox[0] + jitter[0] * bbox[2]), max(0, bbox[1] + jitter[1] * bbox[3])
                width = min(bbox[2] * np.exp(jitter[2]), 320 - x1)
                height = min(bbox[3] * np.exp(jitter[3]), 240 - y1)
                label = category if rng.random() < 0.8 else int(rng.integers(3)) * 2 + 1
                score = round(float(rng.random()), 1)
                row = {"image_id": picture["id"], "category_id": label, "score": score}
                found.append({**row, "bbox": [float(v) for v in (x1, y1, max(width, 1), max(height, 1))]})
    categories = [{"id": 2 * row + 1, "name": name} for row, name in enumerate(CLASSES)]
    return {"images": pictures, "annotations": annotations, "categories": categories}, found


def reference(document: dict[str, Any], found: list[dict[str, Any]]) -> list[float]:
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = document
        truth.createIndex()
        evaluation = COCOeval(truth, truth.loadRes([dict(row) for row in found]), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return [float("nan") if value == -1 else float(value) for value in evaluation.stats]


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000))
def test_all_twelve_numbers_are_pycocotools(seed: int) -> None:
    document, found = random_set(seed)
    if not found:
        return
    truth = ground_truth(document)
    scores = score_coco(truth, results(found, truth))
    assert np.allclose(
        list(scores.values.values()), reference(document, found), rtol=0, atol=1e-12, equal_nan=True
    )


def test_classes_and_thresholds() -> None:
    document, found = random_set(1)
    truth = ground_truth(document)
    read = results(found, truth)
    everything = score_coco(truth, read, iou=0.5)
    assert everything.values["AP@0.5"] == everything.values["AP50"]
    assert everything.values["AP"] == pytest.approx(
        np.mean([score.values["AP"] for score in everything.classes])
    )
    some = score_coco(truth, read, classes=["cow", "cat"])
    assert [score.name for score in some.classes] == ["cat", "cow"]
    by_name = {score.name: score.values for score in everything.classes}
    for score in some.classes:
        assert score.values["AP"] == by_name[score.name]["AP"]
    only = {**document, "annotations": [a for a in document["annotations"] if a["category_id"] != 3]}
    assert some.values["AP"] == pytest.approx(reference(only, [d for d in found if d["category_id"] != 3])[0])
    with pytest.raises(InputError, match="iou"):
        score_coco(truth, read, iou=1.5)


def test_nothing_found_and_nothing_to_find() -> None:
    document, _ = random_set(2)
    truth = ground_truth(document)
    assert score_coco(truth, results([], truth)).values["AP"] == 0
    empty = ground_truth({**document, "annotations": []})
    assert np.isnan(score_coco(empty, results([], empty)).values["AP"])


def test_inputs_stay_as_they_are() -> None:
    document, found = random_set(3)
    before = repr((document, found))
    truth = ground_truth(document)
    score_coco(truth, results(found, truth))
    assert repr((document, found)) == before
