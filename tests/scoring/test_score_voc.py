"""VOC's AP: a hand-worked example, the devkit's rules one by one, and the library where rules coincide."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenet.errors import InputError
from tenet.scoring.coco import _evaluate
from tenet.scoring.detections import GroundTruth, Results, ground_truth, results
from tenet.scoring.voc import class_curve, eleven_point_ap, every_point_ap, overlap, score_voc, to_devkit


def truth_of(*rows: tuple[int, list[float], int]) -> GroundTruth:
    """Ground truth of (image, xywh, difficult), one class."""
    annotations = [
        {"id": n + 1, "image_id": image, "category_id": 1, "bbox": bbox, "iscrowd": 0, "difficult": difficult}
        for n, (image, bbox, difficult) in enumerate(rows)
    ]
    images = [{"id": n, "file_name": f"{n}.png", "width": 100, "height": 100} for n in (1, 2)]
    return ground_truth(
        {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "cat"}]}
    )


def found_in(truth: GroundTruth, *rows: tuple[int, list[float], float]) -> Results:
    return results([{"image_id": i, "category_id": 1, "bbox": b, "score": s} for i, b, s in rows], truth)


A, B, C = [10.0, 10.0, 20.0, 20.0], [50.0, 10.0, 20.0, 30.0], [10.0, 60.0, 30.0, 30.0]


def hand_worked() -> tuple[GroundTruth, Results]:
    """Two objects to find, A and B; C is difficult. By score: A right; A again, a duplicate; C, left out; B
    right; nothing there, wrong. Recall ½ ½ 1 1, precision 1 ½ ⅔ ½."""
    truth = truth_of((1, A, 0), (2, B, 0), (2, C, 1))
    found = found_in(
        truth, (2, B, 0.6), (1, A, 0.9), (2, [80.0, 80.0, 9.0, 9.0], 0.5), (1, A, 0.8), (2, C, 0.7)
    )
    return truth, found


def test_hand_worked_example() -> None:
    truth, found = hand_worked()
    recall, precision, positives = class_curve(truth, found, 0, 0.5)
    assert positives == 2
    assert recall.tolist() == [0.5, 0.5, 1, 1]
    assert precision.tolist() == pytest.approx([1, 1 / 2, 2 / 3, 1 / 2])
    assert score_voc(truth, found, "voc07").values["AP"] == pytest.approx((6 * 1 + 5 * 2 / 3) / 11)
    assert score_voc(truth, found, "voc12").values["AP"] == pytest.approx(1 / 2 + 1 / 2 * 2 / 3)


def test_pixels_are_inclusive() -> None:
    a, b = np.array([[1.0, 1, 10, 10]]), np.array([[6.0, 1, 15, 10]])
    assert overlap(a, b)[0, 0] == pytest.approx(50 / 150)
    assert overlap(a, a)[0, 0] == 1
    one_pixel = np.array([[3.0, 3, 3, 3]])
    assert overlap(one_pixel, a)[0, 0] == pytest.approx(1 / 100)
    assert overlap(one_pixel, np.array([[4.0, 3, 4, 3]]))[0, 0] == 0
    # A box of COCO, 10 wide from 0, has the devkit's pixels 1 to 10.
    assert to_devkit(np.array([[0.0, 0, 10, 10]])).tolist() == [[1, 1, 10, 10]]


def test_threshold_is_included() -> None:
    truth = truth_of((1, [0, 0, 10, 10], 0))
    found = found_in(truth, (1, [0, 0, 10, 5], 0.9))
    assert score_voc(truth, found, "voc12", iou=0.5).values["AP"] == 1
    assert score_voc(truth, found, "voc12", iou=0.51).values["AP"] == 0


def test_a_detection_is_judged_by_the_object_it_overlaps_most() -> None:
    truth = truth_of((1, [0, 0, 20, 20], 0), (1, [4, 0, 20, 20], 0))
    # Both overlap the first most: the second of them is a duplicate although the other object is free.
    found = found_in(truth, (1, [0, 0, 20, 20], 0.9), (1, [1, 0, 20, 20], 0.8))
    recall, _, _ = class_curve(truth, found, 0, 0.5)
    assert recall.tolist() == [0.5, 0.5]


def test_classes_without_objects_are_not_counted() -> None:
    truth = truth_of((2, C, 1))
    scores = score_voc(truth, found_in(truth, (1, A, 0.5)))
    assert np.isnan(scores.values["AP"])
    assert scores.classes[0].positives == 0


def test_no_detections_score_zero() -> None:
    truth = truth_of((1, A, 0))
    for metric in ("voc07", "voc12"):
        assert score_voc(truth, found_in(truth), metric).values["AP"] == 0


def test_nonsense_is_refused() -> None:
    truth, found = hand_worked()
    with pytest.raises(InputError, match="expected one of voc07, voc12"):
        score_voc(truth, found, "voc10")
    with pytest.raises(InputError, match="iou"):
        score_voc(truth, found, iou=0)
    with pytest.raises(InputError, match="got bird"):
        score_voc(truth, found, classes=["bird"])


@given(st.lists(st.booleans(), max_size=30), st.integers(1, 20))
def test_both_rules_are_bounded_and_perfect_is_one(hits: list[bool], missed: int) -> None:
    right = np.cumsum(np.array(hits, float))
    counts = np.arange(1, len(hits) + 1)
    recall, precision = right / (sum(hits) + missed), right / np.maximum(counts, 1)
    for rule in (eleven_point_ap, every_point_ap):
        assert 0 <= rule(recall, precision) <= 1
        assert rule(np.array([0.5, 1.0]), np.array([1.0, 1.0])) == pytest.approx(1)


def _grid_set(seed: int) -> tuple[GroundTruth, Results]:
    """Objects apart from each other, so that both matching rules see one candidate at most."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[int, list[float], int]] = []
    found: list[tuple[int, list[float], float]] = []
    for image in (1, 2):
        for cell in range(9):
            x, y = 33.0 * (cell % 3), 33.0 * (cell // 3)
            if rng.random() < 0.7:
                rows.append((image, [x + 3, y + 3, 20, 24], 0))
            for _ in range(rng.integers(0, 3)):
                dx, dy = rng.uniform(-4, 4, 2)
                found.append((image, [max(0, x + 3 + dx), max(0, y + 3 + dy), 20, 22], float(rng.random())))
    truth = truth_of(*rows)
    return truth, found_in(truth, *found)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.5, 0.6, 0.75]))
def test_curve_is_the_librarys_where_rules_coincide(seed: int, iou: float) -> None:
    truth, found = _grid_set(seed)
    library: Any = _evaluate(truth, found, [0], iou)
    recall, precision, positives = class_curve(truth, found, 0, iou)
    if not positives:
        return
    envelope = np.maximum.accumulate(np.append(precision, 0)[::-1])[::-1]
    ours = envelope[np.searchsorted(recall, np.linspace(0, 1, 101), side="left")]
    assert np.allclose(ours, library["precision"][0, :, 0, 0, 2], atol=1e-9)
    assert library["recall"][0, 0, 0, 2] == pytest.approx(recall[-1] if len(recall) else 0)


def test_ties_keep_the_order_of_the_file() -> None:
    truth = truth_of((1, A, 0))
    miss = (1, [70.0, 60.0, 9.0, 9.0], 0.5)
    first = found_in(truth, (1, A, 0.5), *[miss] * 60)
    last = found_in(truth, *[miss] * 60, (1, A, 0.5))
    assert score_voc(truth, first, "voc12").values["AP"] == 1
    assert score_voc(truth, last, "voc12").values["AP"] == pytest.approx(1 / 61)
