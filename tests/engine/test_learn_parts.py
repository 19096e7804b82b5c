"""`train.learn`: "boxes", what knows no class; "relations", everything else on a start's boxes."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_runs import TINY, same_parameters, tiny_recipe, train

from tenet.config import BoxQualityConfig
from tenet.engine.checkpoint import load_detector, save
from tenet.engine.jobs import Options
from tenet.engine.meta_train import episode_source, new_detector, prepare
from tenet.engine.warm_start import warm_start
from tenet.errors import ConfigError
from tenet.models.build import build_detector
from tenet.models.detector import BOX_PARTS, UNDER_BOXES
from tenet.presets import preset
from tenet.recipe import Recipe
from tenet.runtime.loading import model_file

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


def test_the_centre_is_that_of_the_encoder_which_boxes_bring(root: Path, tmp_path: Path) -> None:
    model = replace(BOXES, head=replace(BOXES.head, cosine_prior=True))
    train(replace(recipe(), model=model), root, tmp_path / "boxes")
    start = str(tmp_path / "boxes")
    own = replace(tiny_recipe(learn="relations", start=start), model=model, seed=7)
    job, _ = prepare(own, Options(tmp_path / "run", root))
    brought = load_detector(model_file(start))
    warm_start(brought, episode_source(own, root)[0])
    assert job.detector.cosine_prior is not None
    assert brought.cosine_prior is not None
    assert torch.equal(job.detector.cosine_prior.centre, brought.cosine_prior.centre)


def test_an_encoder_that_relations_hold_is_in_the_checkpoint(tmp_path: Path) -> None:
    """It is not frozen by its settings, so whoever reads the checkpoint expects it."""
    base = preset("tenet_lite0")
    own = replace(tiny_recipe(), model=replace(base, encoder=replace(base.encoder, frozen=False)))
    detector = build_detector(own.model).eval()
    with torch.no_grad():
        for parameter in detector.encoder.backbone.parameters():
            parameter.requires_grad_(False).mul_(1.1)
    written = save(tmp_path, 1, detector, torch.optim.SGD([torch.zeros(1)], 0.1), own)
    assert same_parameters(load_detector(written), detector)


def test_relations_without_a_start_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"train\.start: expected a model whose boxes"):
        tiny_recipe(learn="relations")


def test_another_word_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"train\.learn"):
        tiny_recipe(learn="nothing")
