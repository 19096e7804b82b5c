"""A packed checkpoint is the same model, smaller."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_runs import tiny_recipe, train

from tenet.cli import main
from tenet.engine.checkpoint import find, load, restore_detector
from tenet.engine.pack import with_settings
from tenet.errors import ConfigError, WeightsError
from tenet.predictor import Tenet
from tenet.structures import Shot


@pytest.fixture(scope="module")
def packed(root: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run's folder, and its model."""
    folder = tmp_path_factory.mktemp("pack")
    recipe = tiny_recipe(iterations=2)
    model = replace(recipe.model, rpn=replace(recipe.model.rpn, closed_form=True))
    train(replace(recipe, model=model), root, folder / "run")
    words = ["pack", str(folder / "run"), "--out", str(folder / "model.v1"), "--data-root", str(root)]
    assert main(words) == 0
    return folder / "run", folder / "model.v1.json"


def test_parameters_are_the_same_to_half_precision(packed: tuple[Path, Path]) -> None:
    whole, small = (restore_detector(load(find(path))) for path in packed)
    for name, tensor in whole.state_dict().items():
        if "background" not in name:
            assert torch.allclose(tensor, small.state_dict()[name], rtol=2e-3, atol=1e-4), name


def test_it_is_smaller_and_has_no_optimiser(packed: tuple[Path, Path]) -> None:
    run, model = packed
    assert not [name for name in load(model).tensors if name.startswith("optimizer/")]
    before = find(run).with_suffix(".safetensors").stat().st_size
    assert model.with_suffix(".safetensors").stat().st_size < before / 2


def test_the_background_is_that_of_training_pictures(packed: tuple[Path, Path]) -> None:
    whole, small = (restore_detector(load(find(path))) for path in packed)
    assert not torch.equal(whole.rpn.background.mean, small.rpn.background.mean)
    assert torch.linalg.eigvalsh(small.rpn.background.covariance).min() > -1e-4


def test_it_is_a_model_for_users(packed: tuple[Path, Path]) -> None:
    model = Tenet.load(packed[1])
    crop = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    assert len(model.runtime.encode_shots([Shot(crop, np.array([0, 0, 64, 64], np.float32))])) == 1
    assert model.name == "model.v1"


def test_the_model_of_a_run_is_called_by_the_run(packed: tuple[Path, Path]) -> None:
    for name in (packed[0], find(packed[0])):
        assert Tenet.load(name).name == "run"


def test_a_changed_file_is_refused(packed: tuple[Path, Path], tmp_path: Path) -> None:
    for suffix in (".json", ".safetensors"):
        (tmp_path / f"copy{suffix}").write_bytes(packed[1].with_suffix(suffix).read_bytes())
    weights = tmp_path / "copy.safetensors"
    weights.write_bytes(weights.read_bytes()[:-9] + b"\0" * 9)
    with pytest.raises(WeightsError, match="truncated or changed"):
        Tenet.load(tmp_path / "copy.json")


def test_settings_without_parameters_can_be_changed(packed: tuple[Path, Path]) -> None:
    checkpoint = load(find(packed[0]))
    other = with_settings(checkpoint, ["model.head.objectness_power=0.125"])
    assert other.recipe.model.head.objectness_power == 0.125
    assert other.tensors is checkpoint.tensors
    assert with_settings(checkpoint, []).recipe == checkpoint.recipe
    with pytest.raises(ConfigError, match="objectnes"):
        with_settings(checkpoint, ["model.head.objectnes_power=0.125"])
