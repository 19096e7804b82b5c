"""A start from another detector: what fits is taken, what does not is new, and no split is betrayed."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_runs import TINY, tiny_recipe, train

from tenet.engine.checkpoint import load, load_latest
from tenet.engine.start_from import start_from
from tenet.errors import ConfigError
from tenet.models.build import build_detector


@pytest.fixture
def first(root: Path, tmp_path: Path) -> Path:
    train(tiny_recipe(iterations=2), root, tmp_path / "first")
    return tmp_path / "first"


def test_what_fits_is_taken_over(first: Path) -> None:
    torch.manual_seed(5)
    wider = build_detector(
        replace(TINY, head=replace(TINY.head, attention=replace(TINY.head.attention, blocks=3)))
    )
    fresh = {name: value.clone() for name, value in wider.state_dict().items()}
    taken = start_from(wider, str(first), [])
    found = load_latest(first / "checkpoints")
    assert found is not None
    given = {
        name.removeprefix("model/"): value for name, value in found.tensors.items() if name[:6] == "model/"
    }
    same = [
        name
        for name, value in wider.state_dict().items()
        if name in given and value.shape == given[name].shape
    ]
    assert len(same) == taken > 0
    for name, value in wider.state_dict().items():
        assert torch.equal(value, given[name] if name in same else fresh[name])


def test_a_run_starts_there(first: Path, root: Path, tmp_path: Path) -> None:
    recipe = tiny_recipe(iterations=1, start=str(first), lr=1e-12)
    train(recipe, root, tmp_path / "second")
    one = load_latest(first / "checkpoints")
    other = load(tmp_path / "second" / "checkpoints" / "step_00000001.json")
    assert one is not None
    name = next(name for name in one.tensors if name.startswith("model/rpn.objectness.weight"))
    torch.testing.assert_close(one.tensors[name], other.tensors[name])


def test_novel_classes_must_not_have_been_seen(first: Path) -> None:
    found = load_latest(first / "checkpoints")
    assert found is not None
    with pytest.raises(ConfigError, match="has not seen the split's novel classes"):
        start_from(build_detector(TINY), str(first), [found.split["base"][0]])
