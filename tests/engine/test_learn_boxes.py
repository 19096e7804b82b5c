"""`train.learn = "boxes"`: what knows no class learns, everything else stays; pixels and cache."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_runs import TINY, tiny_recipe, train

from tenet.config import BoxQualityConfig
from tenet.engine.jobs import Options
from tenet.engine.meta_train import new_detector, prepare
from tenet.errors import ConfigError
from tenet.models.detector import BOX_PARTS
from tenet.recipe import Recipe

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


def test_another_word_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"train\.learn"):
        tiny_recipe(learn="nothing")
