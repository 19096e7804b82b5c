"""Evaluation: one encoding for each picture, numbers that `tenet score` repeats, a run that continues."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from evaluation_parts import Colours, Knowing, settings_for, small_sets
from tiny_detector import TINY

from tenet.cli import main
from tenet.data.dataset import Dataset
from tenet.data.episodes import support_set
from tenet.data.shots import ShotList, draw_shots
from tenet.engine.evaluate import evaluate
from tenet.engine.evaluation_settings import EvaluationSettings
from tenet.engine.evaluation_shots import _take_shots
from tenet.engine.evaluation_store import SHARD, Store
from tenet.engine.protocols import first_pictures, plan_evaluation
from tenet.errors import ConfigError, DataError, InputError, TenetError
from tenet.models.build import build_detector
from tenet.models.supports import SupportFeatures, Supports


def numbers(document: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != "seconds"}


def test_each_picture_and_each_shot_is_encoded_once() -> None:
    test, support = small_sets()
    detector = Colours()
    evaluate(detector, test, support, settings_for(test))
    assert len(detector.pictures) == len(test)
    assert set(Counter(detector.pictures).values()) == {1}
    assert detector.shots == 4 * 2 * 2  # classes × most shots × seeds: one shot is part of two
    assert detector.training
    assert detector.config.score_threshold == 0.0


def test_what_is_found_is_what_the_detector_finds() -> None:
    """One encoding for all draws gives what each draw gives by itself."""
    test, support = small_sets()
    whole = evaluate(Colours(), test, support, settings_for(test))
    for shots in (1, 2):
        for row, seed in enumerate((0, 1)):
            alone = settings_for(test, shots=(shots,), seeds=(seed,))
            single = evaluate(Colours(), test, support, alone).summaries["coco"][shots]
            assert single.runs[0].values == pytest.approx(
                whole.summaries["coco"][shots].runs[row].values, abs=1e-6, nan_ok=True
            )


def test_the_network_itself() -> None:
    """TENET with the tiny encoder: the draw by itself is what `forward` finds."""
    test, support = small_sets()
    test = first_pictures(test, 2)
    detector = build_detector(replace(TINY, rpn=replace(TINY.rpn, post_nms=(40, 4))))
    settings = settings_for(test, shots=(1,), seeds=(0,), novel=test.classes[:2], threshold=0.01)
    found = evaluate(detector, test, support, settings).example.found
    assert detector.config.score_threshold == TINY.score_threshold
    crops = support_set(support, draw_shots(support, 1, 0, settings.novel), TINY.support_size)
    tensors = [torch.from_numpy(crops[name][0][0]).permute(2, 0, 1).float() for name in settings.novel]
    boxes = torch.from_numpy(np.concatenate([crops[name][1] for name in settings.novel]))
    pictures = [torch.from_numpy(record.picture()).permute(2, 0, 1).float() for record in test.records]
    detector.eval()
    with torch.no_grad():
        alone, _ = detector(pictures, Supports(tensors, boxes, torch.tensor([[[0], [1]]])))
    assert len(found) > 0
    scores = np.concatenate([one.scores[one.scores > 0.01] for one in alone])
    assert np.abs(np.sort(found.scores) - np.sort(scores)).max() < 1e-5


def test_score_repeats_the_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    test, support = small_sets()
    names = test.classes
    settings = settings_for(test, base=names[:2], novel=names[2:], metrics=("voc07", "voc12", "coco"))
    done = evaluate(Colours(), test, support, settings, out=tmp_path / "run", coco_files=True)
    assert done.summaries["coco"][2].overall["AR100"].mean > 0  # something is found: the test can fail
    for result in done.to_json()["results"]:
        for seed, values in result["seeds"].items():
            file = f"{result['shots']}-shot_seed-{seed}.json"
            truth, found = (tmp_path / "run" / kind / file for kind in ("truth", "detections"))
            assert main(["score", str(truth), str(found), "--metric", result["metric"], "--json", "-"]) == 0
            scored = json.loads(capsys.readouterr().out)
            assert scored["AP"] == values["AP"]
            for name in names:
                assert scored["classes"][name]["AP"] == values["classes"][name]["AP"]


class KilledError(Exception):
    pass


def test_interrupted_is_uninterrupted(tmp_path: Path) -> None:
    test, support = small_sets()
    settings = settings_for(test)
    whole = evaluate(Colours(), test, support, settings, out=tmp_path / "whole")

    def stop_late(items: Any, total: int) -> Any:
        for number, item in enumerate(items):
            if number == SHARD + 2:
                raise KilledError
            yield item

    with pytest.raises(KilledError):
        evaluate(Colours(), test, support, settings, out=tmp_path / "run", progress=stop_late)
    detector = Colours()
    resumed = evaluate(detector, test, support, settings, out=tmp_path / "run")
    assert len(detector.pictures) == len(test) - SHARD
    assert numbers(resumed.to_json()) == numbers(whole.to_json())
    for file in sorted((tmp_path / "whole" / "shards").iterdir()):
        assert file.read_bytes() == (tmp_path / "run" / "shards" / file.name).read_bytes()


def _truncate(shard: Path) -> None:
    shard.write_bytes(shard.read_bytes()[:-40])


def _flip_a_bit(shard: Path) -> None:
    content = bytearray(shard.read_bytes())
    content[-200] ^= 1
    shard.write_bytes(content)


@pytest.mark.parametrize("harm", [_truncate, _flip_a_bit, Path.unlink])
def test_a_damaged_shard_is_found_again(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    test, support = small_sets()
    settings = settings_for(test)
    whole = evaluate(Colours(), test, support, settings, out=tmp_path)
    harm(Store(tmp_path).path(0, 0))
    detector = Colours()
    again = evaluate(detector, test, support, settings, out=tmp_path)
    assert len(detector.pictures) == SHARD
    assert numbers(again.to_json()) == numbers(whole.to_json())


def test_coco_files_are_written_only_where_asked_for(tmp_path: Path) -> None:
    test, support = small_sets()
    evaluate(Colours(), test, support, settings_for(test), out=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.json", "shards"]
    detector = Colours()
    evaluate(detector, test, support, settings_for(test), out=tmp_path, coco_files=True)
    assert not detector.pictures  # a finished evaluation gives them without looking again
    for kind in ("truth", "detections"):
        assert len(list((tmp_path / kind).glob("*.json"))) == 4


def test_a_folder_of_an_older_version_is_refused(tmp_path: Path) -> None:
    test, support = small_sets()
    (tmp_path / "run.json").write_text('{"format": "tenet-evaluation-run-1"}')
    with pytest.raises(DataError, match=r"another version of tenet \(tenet-evaluation-run-1\); give another"):
        evaluate(Colours(), test, support, settings_for(test), out=tmp_path)


def test_a_finished_evaluation_takes_another_metric_without_looking_again(tmp_path: Path) -> None:
    test, support = small_sets()
    evaluate(Colours(), test, support, settings_for(test), out=tmp_path)
    detector = Colours()
    more = evaluate(detector, test, support, settings_for(test, metrics=("voc12",)), out=tmp_path)
    assert not detector.pictures
    assert list(more.summaries) == ["voc12"]


@pytest.mark.parametrize("other", ["weights", "settings", "test set", "shots"])
def test_a_folder_of_another_evaluation_is_refused(tmp_path: Path, other: str) -> None:
    test, support = small_sets()
    detector, settings = Colours(), settings_for(test)
    evaluate(detector, test, support, settings, out=tmp_path)
    if other == "weights":
        detector = Colours(seed=1)
    elif other == "settings":
        settings = replace(settings, threshold=0.01)
    elif other == "test set":
        test = test.without([test.records[0].id])
    else:
        support = support.without(plan_evaluation(test, support, settings).draws[0].list.pictures()[:1])
    with pytest.raises(DataError, match=f"other {other}|another {other}"):
        evaluate(detector, test, support, settings, out=tmp_path)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    test, support = small_sets()
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(DataError, match="other files"):
        evaluate(Colours(), test, support, settings_for(test), out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_perfect_detector_scores_all_and_an_empty_one_nothing() -> None:
    test, support = small_sets()
    settings = settings_for(test, query_size=(64, 96))  # the pictures' own size
    knowing = Knowing(test)
    perfect = evaluate(knowing, test, support, settings)
    nothing = evaluate(Knowing(None), test, support, settings)
    for metric in ("voc07", "coco"):
        for shots in (1, 2):
            assert perfect.summaries[metric][shots].overall["AP"].mean == pytest.approx(1)
            assert nothing.summaries[metric][shots].overall["AP"].mean == 0
    assert set(knowing.thresholds) == {settings.threshold}
    assert knowing.training


def test_boxes_come_back_in_the_pictures_own_pixels(tmp_path: Path) -> None:
    """A detector that answers with the whole of the picture it is given, at whatever size."""
    test, support = small_sets()

    class Whole(Knowing):
        def encode_images(self, images: list[torch.Tensor]) -> list[Any]:
            return list(images)

        def match(self, images: list[Any], classes: Any) -> list[Any]:
            answer = next(iter(self.answers.values()))
            _, height, width = images[0].shape
            row = np.zeros(1, np.int64)
            box = np.array([[0, 0, width, height]], np.float32)
            return [replace(answer, boxes=box, scores=np.ones(1, np.float32), labels=row, shots=row)]

    settings = settings_for(test, query_size=(100, 300))
    evaluate(Whole(test), test, support, settings, out=tmp_path, coco_files=True)
    rows = json.loads((tmp_path / "detections" / "1-shot_seed-0.json").read_text())
    assert [row["bbox"] for row in rows] == [[0, 0, 96, 64]] * len(test)


def test_pictures_of_shots_are_left_out(tmp_path: Path) -> None:
    test, _ = small_sets()
    settings = settings_for(test, query_size=(64, 96))
    plan = plan_evaluation(test, test, settings)
    done = evaluate(Knowing(test), test, test, settings, out=tmp_path, coco_files=True)
    for draw in plan.draws:
        assert draw.left_out == set(draw.list.pictures())
        assert 0 < len(draw.left_out) < len(test)
        assert done.tested[draw.name] == len(test) - len(draw.left_out)
        truth = json.loads((tmp_path / "truth" / f"{draw.name}.json").read_text())
        found = json.loads((tmp_path / "detections" / f"{draw.name}.json").read_text())
        seen = {str(image["id"]) for image in truth["images"]} | {str(row["image_id"]) for row in found}
        assert not seen & draw.left_out
    assert done.summaries["voc07"][2].overall["AP"].mean == pytest.approx(1)


def test_base_classes_may_have_more_shots() -> None:
    test, support = small_sets()
    names = {"base": test.classes[:2], "novel": test.classes[2:]}
    equal, more = (
        plan_evaluation(test, support, settings_for(test, **names, base_shots=count)).draws
        for count in (0, 3)
    )
    for one, two in zip(equal, more, strict=True):
        for name in names["novel"]:
            assert one.list.classes[name] == two.list.classes[name]
        for name in names["base"]:
            assert len(two.list.classes[name]) == 3
            assert two.list.classes[name][: one.shots] == one.list.classes[name]
    done = evaluate(Colours(), test, support, settings_for(test, **names, base_shots=3))
    assert done.to_json()["settings"]["base_shots"] == 3


def test_uneven_shots_are_masked() -> None:
    shots = torch.arange(6.0).view(1, 2, 3, 1)
    bank = SupportFeatures(shots, shots, shots, shots, torch.ones(1, 2, 3, dtype=torch.bool))
    taken = _take_shots(bank, [[2, 0], [1]])
    assert taken.mask.tolist() == [[[True, True], [True, False]]]
    assert taken.psi[taken.mask].flatten().tolist() == [2, 0, 4]


def test_base_shots_have_their_place(tmp_path: Path) -> None:
    test, support = small_sets()
    with pytest.raises(ConfigError, match="base_shots: expected at least 0, base classes"):
        settings_for(test, base_shots=3)
    with pytest.raises(ConfigError, match="base_shots"):
        settings_for(test, base=test.classes[:1], novel=test.classes[1:], base_shots=-1)
    settings = settings_for(test, base=test.classes[:1], novel=test.classes[1:], base_shots=3)
    with pytest.raises(ConfigError, match="with a public list"):
        plan_evaluation(test, support, settings, tmp_path / "list.json")


def test_fine_tuning_gives_each_draw_its_own_detector() -> None:
    test, support = small_sets()
    settings = settings_for(test, query_size=(64, 96), protocol="fine-tuned", adaptation="learns by heart")
    learned: list[tuple[int, int]] = []
    original = Knowing(None)

    def adapt(detector: Knowing, shots: ShotList) -> Knowing:
        assert detector is not original
        learned.append((shots.shots, shots.seed))
        return Knowing(test) if shots.shots == 2 else detector

    done = evaluate(original, test, support, settings, adapt=adapt)
    assert learned == [(1, 0), (2, 0), (1, 1), (2, 1)]
    assert done.summaries["voc07"][1].overall["AP"].mean == 0
    assert done.summaries["voc07"][2].overall["AP"].mean == pytest.approx(1)
    with pytest.raises(ConfigError, match="adapt"):
        evaluate(original, test, support, settings)


def test_workers_change_nothing() -> None:
    test, support = small_sets()
    settings = settings_for(test, shots=(1,), seeds=(0,))
    alone, helped = (evaluate(Colours(), test, support, settings, workers=workers) for workers in (0, 1))
    assert numbers(alone.to_json()) == numbers(helped.to_json())


def test_limit_is_nested_and_keeps_the_order() -> None:
    test, _ = small_sets()
    order = [record.id for record in test.records]
    few, more = ([record.id for record in first_pictures(test, limit).records] for limit in (5, 9))
    assert len(few) == 5
    assert set(few) < set(more) < set(order)
    assert more == [name for name in order if name in more]
    assert more != order[:9]


# What is refused ------------------------------------------------------------------------------------


def refused(
    error: type[TenetError], match: str, test: Dataset, support: Dataset, settings: EvaluationSettings
) -> None:
    """An error before the first picture is looked at."""
    detector = Colours()
    with pytest.raises(error, match=match):
        evaluate(detector, test, support, settings)
    assert not detector.pictures
    assert not detector.shots


def test_bad_input_is_refused_before_the_first_picture() -> None:
    test, support = small_sets()
    settings = settings_for(test)
    first = test.classes[0]
    refused(DataError, f"expected 99 shots of {first}", test, support, replace(settings, shots=(1, 99)))
    refused(DataError, "of at least 500 px, found 0", test, support, replace(settings, min_shot_side=500))
    refused(DataError, "to test on, found none in 0 pictures", replace(test, records=()), support, settings)
    refused(InputError, "expected classes among", test, support, replace(settings, novel=("unicorn",)))
    refused(InputError, "set of the shots", test, support.with_classes(test.classes[1:]), settings)
    refused(DataError, f"got {first} in both", test, support, replace(settings, trained_on=(first,)))
    refused(DataError, "are in all", test.subset(["1"]), test.subset(["1"]), _of_one_picture(test))


def _of_one_picture(test: Dataset) -> EvaluationSettings:
    record = next(record for record in test.records if record.id == "1")
    return settings_for(test, novel=(test.classes[int(record.target.labels[0])],), shots=(1,), seeds=(0,))


def test_leakage_is_found_under_another_spelling() -> None:
    test, support = small_sets()
    names = {test.classes[0]: "sofa"}
    settings = settings_for(test.renamed(names), trained_on=("couch",))
    refused(DataError, "couch in both", test.renamed(names), support.renamed(names), settings)


@pytest.mark.parametrize(
    "wrong",
    [
        {"novel": ()},
        {"base": ("a",), "novel": ("a",)},
        {"shots": (0,)},
        {"shots": (1, 1)},
        {"seeds": ()},
        {"metrics": ("mAP",)},
        {"protocol": "guess"},
        {"track": "fast"},
        {"threshold": 1.0},
        {"limit": -1},
    ],
)
def test_settings_check_themselves(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="expected"):
        EvaluationSettings(**{"novel": ("a",)} | wrong)
