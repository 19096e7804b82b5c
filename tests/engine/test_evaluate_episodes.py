"""Episodes: drawn by seed and number alone, no picture teaches and tests, a mean with its interval."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from evaluation_parts import Colours, Knowing, digest, settings_for, small_sets
from tiny_detector import TINY

from tenet.cli import main
from tenet.config import HeadConfig
from tenet.data.dataset import Dataset
from tenet.data.synthetic import write_synthetic
from tenet.data.transforms import support_crop
from tenet.engine.episode_plan import EpisodeDraw, plan_episodes
from tenet.engine.episode_result import interval
from tenet.engine.evaluate import evaluate
from tenet.engine.evaluate_episodes import evaluate_episodes
from tenet.engine.evaluation_settings import EvaluationSettings
from tenet.errors import ConfigError, DataError, InputError
from tenet.models.supports import SupportFeatures, Supports
from tenet.presets import PRESETS
from tenet.structures import Detections


def episodes_of(dataset: Dataset, **changes: Any) -> EvaluationSettings:
    few = {"protocol": "episodes", "ways": 2, "episodes": 6, "queries": 3, "shots": (2,), "seeds": (0,)}
    return settings_for(dataset, **few | changes)


def told(dataset: Dataset, draw: EpisodeDraw) -> tuple[Any, ...]:
    """An episode by names, whatever the order of the set."""
    return (draw.classes, draw.list.classes, {dataset.records[row].id for row in draw.queries})


def test_an_episode_is_a_function_of_seed_and_number() -> None:
    test, _ = small_sets()
    six = plan_episodes(test, episodes_of(test))
    two = plan_episodes(test, episodes_of(test, episodes=2, shots=(1, 2)))
    turned = replace(test, records=tuple(reversed(test.records)))
    other_order = plan_episodes(turned, episodes_of(turned))
    first = [told(six.test, draw) for draw in six.episodes[2]]
    assert [told(two.test, draw) for draw in two.episodes[2]] == first[:2]
    assert [told(other_order.test, draw) for draw in other_order.episodes[2]] == first
    assert len({draw.classes for draw in six.episodes[2]}) > 1
    other_seed = plan_episodes(test, episodes_of(test, seeds=(1,)))
    assert [told(other_seed.test, draw) for draw in other_seed.episodes[2]] != first


def test_shots_are_nested_and_ways_do_not_depend_on_them() -> None:
    test, _ = small_sets()
    plan = plan_episodes(test, episodes_of(test, shots=(1, 3)))
    for one, three in zip(plan.episodes[1], plan.episodes[3], strict=True):
        assert one.classes == three.classes
        for name in one.classes:
            assert one.list.classes[name] == three.list.classes[name][:1]


def test_no_picture_teaches_and_tests() -> None:
    test, _ = small_sets()
    plan = plan_episodes(test, episodes_of(test, episodes=20))
    for draw in plan.episodes[2]:
        assert len(set(draw.classes)) == 2
        records = [plan.test.records[row] for row in draw.queries]
        assert not {record.id for record in records} & set(draw.list.pictures())
        assert len(records) <= 2 * 3
        for name in draw.classes:
            label = plan.test.classes.index(name)
            assert any(label in record.target.labels for record in records)
            assert len(draw.list.classes[name]) == 2


class KnowingWays(Knowing):
    """It finds every object, if it can tell of which class the crops are."""

    def __init__(self, dataset: Dataset) -> None:
        super().__init__(dataset)
        self.label_of: dict[str, int] = {}
        for record in dataset.records:
            for box, label in zip(record.target.boxes, record.target.labels.tolist(), strict=True):
                crop, _ = support_crop(record.picture(), box, TINY.support_size, 16)
                self.label_of[digest(torch.from_numpy(crop).permute(2, 0, 1).float())] = label

    def encode_supports(self, supports: Supports) -> SupportFeatures:
        plain = super().encode_supports(supports)
        labels = [float(self.label_of[digest(crop)]) for crop in supports.crops]
        return plain._replace(psi=torch.tensor(labels).view(1, 1, -1, 1))

    def match(self, images: list[str], classes: SupportFeatures) -> list[Detections]:
        ways = {int(label): way for way, label in enumerate(classes.psi[0, :, 0, 0].tolist())}
        return [self._of_ways(found, ways) for found in super().match(images, classes)]

    def _of_ways(self, found: Detections, ways: dict[int, int]) -> Detections:
        kept = found.select(np.isin(found.labels, list(ways)))
        return replace(kept, labels=np.array([ways[label] for label in kept.labels.tolist()], np.int64))


def test_a_perfect_detector_scores_all_and_an_empty_one_nothing() -> None:
    test, _ = small_sets()
    settings = episodes_of(test, query_size=(64, 96))
    perfect = evaluate_episodes(KnowingWays(test), test, settings)
    nothing = evaluate_episodes(Knowing(None), test, settings)
    for metric in ("AP50", "AP", "AP75"):
        assert perfect.value(2, metric).mean == pytest.approx(1)
        assert perfect.value(2, metric).half == pytest.approx(0, abs=1e-9)
        assert nothing.value(2, metric).mean == 0
    assert set(perfect.of_class(2, "AP")) <= set(test.classes)
    assert perfect.to_json()["results"][0]["AP"]["episodes"] == 6


def test_interval() -> None:
    found = interval([0.1, 0.2, 0.6])
    assert found.mean == pytest.approx(0.3)
    assert found.half == pytest.approx(1.96 * math.sqrt(0.07) / math.sqrt(3))
    assert str(found) == "30.0 ± 29.9"
    alone = interval([0.25])
    assert str(alone) == "25.0"
    assert alone.to_json()["half_width_95"] is None


def test_interrupted_is_uninterrupted_and_more_episodes_keep_the_first(tmp_path: Path) -> None:
    test, _ = small_sets()
    settings = episodes_of(test, shots=(1, 2))

    def stop_late(items: Any, total: int) -> Any:
        for number, item in enumerate(items):
            if number == total // 2:
                raise KeyboardInterrupt
            yield item

    with pytest.raises(KeyboardInterrupt):
        evaluate_episodes(Colours(), test, settings, out=tmp_path, progress=stop_late)
    done = len(list((tmp_path / "shards").iterdir()))
    assert 0 < done < 12
    detector = Colours()
    resumed = evaluate_episodes(detector, test, settings, out=tmp_path)
    whole = evaluate_episodes(Colours(), test, settings)
    drawn = [draw for draws in whole.plan.episodes.values() for draw in draws]
    assert len(detector.pictures) == sum(len(draw.queries) for draw in drawn[done:])
    assert without_time(resumed.to_json()) == without_time(whole.to_json())
    assert whole.value(2, "AP50").mean > 0  # something is found: the test can fail
    more = evaluate_episodes(Colours(), test, replace(settings, episodes=8)).to_json()
    assert more["results"][1]["episodes"][:6] == whole.to_json()["results"][1]["episodes"]


def without_time(document: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != "seconds"}


def test_what_is_refused() -> None:
    test, support = small_sets()
    with pytest.raises(ConfigError, match="at most the 4 classes"):
        episodes_of(test, ways=5)
    with pytest.raises(ConfigError, match="expected one for all episodes"):
        episodes_of(test, seeds=(0, 1))
    with pytest.raises(ConfigError, match="of at least 1"):
        episodes_of(test, queries=0)
    with pytest.raises(ConfigError, match="evaluate_episodes"):
        evaluate(Colours(), test, support, episodes_of(test))
    with pytest.raises(ConfigError, match="expected episodes, got meta-test"):
        evaluate_episodes(Colours(), test, settings_for(test))
    with pytest.raises(DataError, match="2 classes with 99 shots"):
        evaluate_episodes(Colours(), test, episodes_of(test, shots=(99,)))
    with pytest.raises(InputError, match="expected classes among"):
        evaluate_episodes(Colours(), test, episodes_of(test, novel=("unicorn", "yeti")))
    with pytest.raises(DataError, match="in both"):
        evaluate_episodes(Colours(), test, episodes_of(test, trained_on=test.classes[:1]))
    one_picture = test.subset(["1"])
    shown = test.classes[int(one_picture.records[0].target.labels[0])]
    with pytest.raises(DataError, match="another picture to look in, found 0"):
        evaluate_episodes(Colours(), one_picture, episodes_of(test, novel=(shown,), ways=1, shots=(1,)))


def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    head = HeadConfig(kind="none", cosine_prior=True, regions="union")
    rpn = replace(TINY.rpn, conditioning="depthwise", post_nms=(40, 10))
    monkeypatch.setitem(PRESETS, "quick", lambda: replace(TINY, rpn=rpn, head=head))
    data = str(write_synthetic(tmp_path / "set", 12, 3, (96, 64), seed=3))
    words = ["evaluate", "quick", "--data", data, "--protocol", "episodes", "--ways", "2", "--workers", "0"]
    words += ["--shots", "1,2", "--episodes", "3", "--queries", "2", "--out", str(tmp_path / "out")]
    assert main(words) == 0
    shown = capsys.readouterr()
    assert "12 pictures, 3 classes, 3 2-way episodes, 2 queries of each way" in shown.out
    assert "95 % confidence" in shown.out
    document = json.loads((tmp_path / "out" / "results.json").read_text())
    assert [result["shots"] for result in document["results"]] == [1, 2]
    assert len(document["results"][0]["episodes"]) == 3
    assert document["protocol"] == "episodes"
    assert main([*words, "--shots-from", data]) == 1
    assert "expected no --shots-from" in capsys.readouterr().err
