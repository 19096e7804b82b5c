"""`train.learn`: "boxes", what knows no class; "relations", everything else on a start's boxes."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_runs import TINY, tiny_recipe, train

from tenet.config import BoxQualityConfig
from tenet.engine.checkpoint import load_detector
from tenet.engine.jobs import Options
from tenet.engine.meta_train import new_detector, prepare
from tenet.errors import ConfigError
from tenet.models.detector import BOX_PARTS, UNDER_BOXES
from tenet.recipe import Recipe
from tenet.runtime.torch_runtime import model_file

BOXES = replace(
    TINY,
    neck=True,
    rpn=replace(TINY.rpn, common=True, conv="before", anchor_sizes=(4.0,), anchor_ratios=(1.0,)),
    box_quality=BoxQualityConfig(enabled=True, hidden=16, channels=8),
    head=replace(TINY.head, regions="union"),
)


def recipe(**settings: object) -> Recipe:
    return replace(tiny_recipe(iterations=3, learn="boxes", lr=0.01, **settings), model=BOXES)


@pytest.mark.parametrize("cache", [False, True])
def test_only_boxes_learn(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: bool) -> None:
    monkeypatch.chdir(tmp_path)
    own = recipe(cache=cache)
    before = dict(new_detector(own, root).named_parameters())
    after = dict(train(own, root, tmp_path / "run").named_parameters())
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed
    assert all(name.startswith(BOX_PARTS) for name in changed)
    for part in BOX_PARTS:
        assert any(name.startswith(part) for name in changed), part


def test_shots_are_not_read(root: Path, tmp_path: Path) -> None:
    job, _ = prepare(recipe(cache=True), Options(tmp_path / "run", root, cache=tmp_path / "cache"))
    assert job.source[0].shots == []


def test_a_model_without_common_boxes_is_refused(root: Path, tmp_path: Path) -> None:
    own = replace(recipe(), model=replace(BOXES, box_quality=BoxQualityConfig(enabled=False)))
    with pytest.raises(ConfigError, match=r"expected rpn\.common and box_quality\.enabled"):
        train(own, root, tmp_path / "run")


@pytest.fixture(scope="module")
def boxes(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has learned boxes."""
    folder = tmp_path_factory.mktemp("boxes")
    train(recipe(), root, folder)
    return folder


@pytest.mark.parametrize("cache", [False, True])
def test_relations_learn_on_the_boxes_of_a_start(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, boxes: Path, cache: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    own = replace(
        tiny_recipe(iterations=3, learn="relations", start=str(boxes), lr=0.01, cache=cache), model=BOXES
    )
    started = load_detector(model_file(str(boxes))).state_dict()
    fresh = new_detector(own, root).state_dict()
    after = train(own, root, tmp_path / "run").state_dict()
    for name, value in after.items():
        if name.startswith(UNDER_BOXES):
            assert torch.equal(value, started[name]), name
    changed = {name for name in after if not torch.equal(after[name], fresh[name])}
    assert any(name.startswith("relation_head.") for name in changed)
    assert any(name.startswith("rpn.objectness.") for name in changed)


def test_only_the_boxes_are_taken_for_relations(root: Path, tmp_path: Path, boxes: Path) -> None:
    own = replace(tiny_recipe(learn="relations", start=str(boxes)), model=BOXES, seed=7)
    job, _ = prepare(own, Options(tmp_path / "run", root))
    fresh, started = new_detector(own, root).state_dict(), load_detector(model_file(str(boxes))).state_dict()
    for name, value in job.detector.state_dict().items():
        expected = started if name.startswith(UNDER_BOXES) else fresh
        assert torch.equal(value, expected[name]), name


def test_relations_without_a_start_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"train\.start: expected a model whose boxes"):
        tiny_recipe(learn="relations")


def test_another_word_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"train\.learn"):
        tiny_recipe(learn="nothing")
