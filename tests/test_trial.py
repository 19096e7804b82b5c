"""A model tried as a user would: what is right, what a score is worth, what is a false alarm."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fake_runtime import FakeRuntime
from PIL import Image

from tenet.data.formats import read_dataset
from tenet.errors import DataError, InputError
from tenet.predictor import Tenet
from tenet.records.measured import trial_figures
from tenet.runtime.calibration import Calibration
from tenet.scoring.report import Scores
from tenet.trials.calibrating import (
    at_levels,
    best_threshold,
    f1,
    false_alarms,
    false_alarms_in_a_picture,
    fit_calibration,
    halves,
    isotonic,
    judge_calibration,
    reliability,
)
from tenet.trials.trial import Trial, try_set
from tenet.trials.wide import wide_views

COLOURS = {"red": (220, 20, 20), "green": (20, 200, 20)}


def make_set(folder: Path, pictures: int = 6) -> Path:
    """Pictures with a red rectangle each, and in the even ones a green one."""
    images, annotations = [], []
    for number in range(pictures):
        pixels = np.full((120, 160, 3), 90, np.uint8)
        for category, name in enumerate(COLOURS):
            if name == "green" and number % 2:
                continue
            x, y = 10 + 8 * number + 60 * category, 20 + 5 * number
            pixels[y : y + 40, x : x + 30] = COLOURS[name]
            row = {
                "id": len(annotations) + 1,
                "image_id": number + 1,
                "category_id": category + 1,
                "iscrowd": 0,
            }
            annotations.append({**row, "bbox": [x, y, 30, 40], "area": 1200})
        Image.fromarray(pixels).save(folder / f"{number}.png")
        images.append({"id": number + 1, "file_name": f"{number}.png", "width": 160, "height": 120})
    categories = [{"id": row + 1, "name": name} for row, name in enumerate(COLOURS)]
    path = folder / "set.json"
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    return path


def make_trial(confidence: list[float], right: list[bool], absent: list[bool] | None = None) -> Trial:
    """Every detection in a picture of its own, after ten that show nothing."""
    none = np.zeros(len(right), np.bool_)
    count = 10 + len(right)
    objects = np.concatenate([np.zeros(10, np.int64), np.array(right, np.int64)])
    return Trial(
        "set",
        1,
        0,
        Scores("voc12", 0.5, {"AP": 0.5}, ()),
        np.array(confidence),
        np.array(right, np.bool_),
        none if absent is None else np.array(absent),
        pictures=np.arange(10, count),
        tested=tuple(f"picture {number}" for number in range(count)),
        looks_in=(np.arange(count) < 10).astype(np.int64),
        objects_in=objects,
    )


def test_a_perfect_model_is_perfect(tmp_path: Path) -> None:
    trial = try_set(Tenet(FakeRuntime()), read_dataset(make_set(tmp_path)), shots=1, seed=0)
    assert trial.ap50 > 0.99
    assert trial.right.all()
    assert not trial.absent.any()
    assert trial.looks > 0


def test_pictures_of_shots_are_not_tested(tmp_path: Path) -> None:
    dataset = read_dataset(make_set(tmp_path))
    trial = try_set(Tenet(FakeRuntime()), dataset, shots=2, seed=0)
    used = 2 if trial.objects else 0
    assert trial.objects < sum(len(record.target) for record in dataset.records) - used


def test_a_picture_that_is_there_twice_is_not_tested(tmp_path: Path) -> None:
    """One file under two ids: shown as a shot, it is known."""
    path = make_set(tmp_path)
    document = json.loads(path.read_text())
    for kind in ("images", "annotations"):
        again = [dict(row) for row in document[kind]]
        for row in again:
            row["id"] += 100
            if kind == "annotations":
                row["image_id"] += 100
        document[kind] += again
    path.write_text(json.dumps(document))
    dataset = read_dataset(path)
    trial = try_set(Tenet(FakeRuntime()), dataset, 1, 0, min_side=8)
    shown = {record.identity for record in dataset.records if record.id not in trial.tested}
    assert shown
    assert not shown & {record.identity for record in dataset.records if record.id in trial.tested}


def test_a_class_with_few_boxes_is_shown_them_all(tmp_path: Path) -> None:
    dataset = read_dataset(make_set(tmp_path, pictures=12))
    trial = try_set(Tenet(FakeRuntime()), dataset, shots=7, seed=0)  # green has 6
    assert trial.ap50 > 0.99
    assert len(trial.tested) < 12 - 6
    with pytest.raises(DataError, match="expected pictures beside those of the shots"):
        try_set(Tenet(FakeRuntime()), dataset, shots=99, seed=0)
    with pytest.raises(DataError, match="lower --min-side"):
        try_set(Tenet(FakeRuntime()), dataset, shots=1, seed=0, min_side=1e6)


def test_bare_crops_work(tmp_path: Path) -> None:
    assert try_set(Tenet(FakeRuntime()), read_dataset(make_set(tmp_path)), 1, 0, bare=True).ap50 > 0.99


def test_isotonic_is_the_mean_where_the_data_fall() -> None:
    points, values = isotonic(np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.0, 1, 0, 1]), np.ones(4))
    assert np.allclose(values, [0, 0.5, 1])
    assert (np.diff(points) > 0).all()


def test_calibrated_scores_are_worth_what_they_say() -> None:
    rng = np.random.default_rng(0)
    raw = rng.random(20_000)
    right = rng.random(20_000) < raw**3  # overconfident
    calibration = fit_calibration([make_trial(raw.tolist(), right.tolist())])
    told = calibration(raw.astype(np.float32)).astype(np.float64)
    for score, share, boxes in reliability([make_trial(told.tolist(), right.tolist())]):
        assert boxes < 100 or abs(score - share) < 0.05


def test_the_threshold_is_where_f1_is_best() -> None:
    trial = make_trial([0.9] * 10 + [0.4] * 100, [True] * 10 + [False] * 100)
    threshold = best_threshold([trial], Calibration())
    assert 0.4 < threshold <= 0.9
    assert f1(trial, trial.confidence >= threshold) == 1


def test_of_thresholds_that_are_as_good_the_highest_is_taken() -> None:
    """One right box in a hundred is not worth a lower threshold; ten are."""
    for low, threshold in ((1, 0.9), (10, 0.35)):
        trial = make_trial([0.91] * 100 + [0.36] * low, [True] * (100 + low))
        assert best_threshold([trial], Calibration()) == threshold


def test_false_alarms_are_counted_where_the_class_is_absent() -> None:
    trial = make_trial([0.9, 0.8, 0.2], [True, False, False], [False, True, True])
    assert false_alarms([trial], 0.5) == 0.1


def test_nothing_right_cannot_be_calibrated() -> None:
    with pytest.raises(InputError, match="at least one right box"):
        fit_calibration([make_trial([0.5], [False])])


def test_the_threshold_keeps_false_alarms_few() -> None:
    """F1 would be best with everything shown, but then every look finds something that is not there."""
    right = make_trial([0.5] * 30, [True] * 30)
    alarms = make_trial([0.47] * 5, [False] * 5, [True] * 5)
    assert best_threshold([right, alarms], Calibration()) == 0.5


def test_parts_of_a_trial_are_the_whole(tmp_path: Path) -> None:
    whole = try_set(Tenet(FakeRuntime()), read_dataset(make_set(tmp_path)), shots=1, seed=0)
    [one], [other] = halves([whole])[0].values(), halves([whole])[1].values()
    assert sorted([*one, *other]) == sorted(whole.tested)
    assert abs(len(one) - len(other)) <= 1
    parts = [whole.of_pictures(ids) for ids in (one, other)]
    assert sum(part.objects for part in parts) == whole.objects
    assert sum(part.looks for part in parts) == whole.looks
    assert sum(len(part.confidence) for part in parts) == len(whole.confidence)
    for part, ids in zip(parts, (one, other), strict=True):
        assert sorted(part.tested) == ids
        assert len(part.pictures) == 0 or part.pictures.max() < len(part.tested)
    again = whole.of_pictures(whole.tested)
    assert (again.pictures == whole.pictures).all()


def test_each_half_is_judged_by_the_other() -> None:
    """What is right in a half changes how the other's curve is judged, and never that half's own."""
    rng = np.random.default_rng(1)
    trial = make_trial(rng.random(400).tolist(), (rng.random(400) < 0.3).tolist())
    held = judge_calibration([trial])
    assert held.by == "picture"
    one, other = (fold.judged_on["set"] for fold in held.folds)
    assert sorted(one + other) == sorted(trial.tested)
    assert not set(one) & set(other)
    assert held.folds[0].calibration == fit_calibration([trial.of_pictures(other)])
    raw = trial.of_pictures(one).confidence.astype(np.float32)
    assert np.allclose(held.trials[0].confidence, held.folds[0].calibration(raw))
    changed = replace(
        trial, right=trial.right ^ np.array([trial.tested[row] in one for row in trial.pictures])
    )
    again = judge_calibration([changed])
    assert again.folds[0].calibration == held.folds[0].calibration
    assert again.folds[1].calibration != held.folds[1].calibration
    assert reliability(again.trials) != reliability(held.trials)


def test_each_set_is_judged_by_the_others() -> None:
    """A set's classes are held back: its own boxes change nothing in the curve that it is judged by."""
    rng = np.random.default_rng(2)
    trials = [
        replace(make_trial(rng.random(90).tolist(), (rng.random(90) < share).tolist()), set_name=name)
        for name, share in (("a", 0.2), ("b", 0.5), ("c", 0.8))
    ]
    held = judge_calibration(trials)
    assert held.by == "set"
    assert [list(fold.judged_on) for fold in held.folds] == [["a"], ["b"], ["c"]]
    assert held.folds[1].calibration == fit_calibration([trials[0], trials[2]])
    turned = replace(trials[1], right=~trials[1].right)
    again = judge_calibration([trials[0], turned, trials[2]])
    assert again.folds[1].calibration == held.folds[1].calibration
    assert again.folds[0].calibration != held.folds[0].calibration


def test_levels_tell_what_a_threshold_gives() -> None:
    trial = make_trial([0.9, 0.8, 0.4, 0.3], [True, False, True, True], [False, True, False, False])
    levels = {level.threshold: level for level in at_levels([trial])}
    assert sorted(levels) == pytest.approx([0.05 * step for step in range(1, 19)])
    objects = trial.objects
    assert levels[0.05].f1 == pytest.approx(2 * 3 / (4 + objects))
    assert levels[0.9].f1 == pytest.approx(2 * 1 / (1 + objects))
    assert levels[0.5].f1 == pytest.approx(2 * 1 / (2 + objects))
    assert levels[0.8].false_alarms == pytest.approx(1 / trial.looks)
    assert levels[0.85].false_alarms == 0


def test_every_set_weighs_the_same_in_reliability() -> None:
    """A set with a hundred times the boxes does not hide another's."""
    many = make_trial([0.55] * 100, [True] * 100)  # 100 objects
    few = make_trial([0.55, 0.01], [False, True])  # 1 object
    _, (score, share, boxes) = reliability([many, few])
    assert (round(score, 2), round(share, 2), boxes) == (0.55, 0.5, 101)


def test_draws_of_a_set_share_its_halves() -> None:
    """A picture that fits the curve by one draw of shots must not judge it by another."""
    first = make_trial([0.9] * 5, [True] * 5)
    second = replace(first.of_pictures(first.tested[2:]), seed=1)
    held = judge_calibration([first, second])
    one, other = (set(fold.judged_on["set"]) for fold in held.folds)
    assert [bool(one & set(trial.tested)) for trial in held.trials] == [True, True, False, False]
    assert not any(other & set(trial.tested) for trial in held.trials[:2])
    assert halves([first, second]) == halves([second, first])


def test_one_picture_cannot_be_halved() -> None:
    trial = make_trial([0.9], [True])
    with pytest.raises(InputError, match="at least 2 test pictures of set"):
        judge_calibration([trial.of_pictures(trial.tested[:1])])


def test_false_alarms_in_a_picture() -> None:
    trial = make_trial([0.9, 0.8, 0.2], [True, False, False], [False, True, True])
    assert false_alarms_in_a_picture([trial], 0.1) == 2 / 13


def test_figures_tell_ways_of_testing_apart() -> None:
    """Otherwise the table of bare crops could not be told from that of shots with their pictures."""
    own = {"set": "a", "pictures": 3, "shots": 1, "seed": 0, "AP50": 0.5, "classes": {"x": 0.5}}
    [shown], [bare] = (trial_figures({"trials": [own]}, *way) for way in ((), ("trial, bare crops",)))
    assert (shown.protocol, bare.protocol) == ("trial", "trial, bare crops")
    assert shown.groups == bare.groups == {"all": {"AP": 0.5}}


def test_wide_views_show_the_same_things_smaller(tmp_path: Path) -> None:
    dataset = read_dataset(make_set(tmp_path, pictures=9))
    [wide, other] = wide_views(dataset.records, 2)
    assert (wide.width, wide.height) == (320, 240)
    assert len(wide.target) == sum(len(record.target) for record in dataset.records[:4])
    assert len({wide.id, other.id}) == 2
    for box, label in zip(wide.target.boxes.astype(int), wide.target.labels, strict=True):
        inside = wide.picture()[box[1] : box[3], box[0] : box[2]]
        assert (inside == COLOURS[dataset.classes[label]]).all()
    with pytest.raises(DataError, match="at least 16 test pictures"):
        wide_views(dataset.records, 4)


def test_a_trial_in_wide_views(tmp_path: Path) -> None:
    dataset = read_dataset(make_set(tmp_path, pictures=12))
    trial = try_set(Tenet(FakeRuntime()), dataset, 1, 0, wide=2, limit=2)
    assert len(trial.tested) == 2
    assert trial.objects >= 8
