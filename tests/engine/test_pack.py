"""A packed checkpoint is the same model, smaller."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_runs import tiny_recipe, train

from tenet.cli import main
from tenet.engine.checkpoint import find, load, restore_detector
from tenet.engine.pack import mean_with_start, with_settings
from tenet.errors import ConfigError, WeightsError
from tenet.models.detector import UNDER_BOXES
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


def test_a_share_of_what_was_learned(packed: tuple[Path, Path], root: Path, tmp_path: Path) -> None:
    """Between start and end, parameter by parameter; without a start, or with no share, it is refused."""
    recipe = load(find(packed[0])).recipe
    recipe = replace(recipe, train=replace(recipe.train, start=str(packed[0]), lr=0.01))
    train(recipe, root, tmp_path / "run")
    end = load(find(tmp_path / "run"))
    whole, half = (restore_detector(mean_with_start(end, share)).state_dict() for share in (1.0, 0.5))
    start = restore_detector(load(find(packed[0]))).state_dict()
    learned = restore_detector(end).state_dict()
    moved = [name for name in start if not torch.equal(start[name], learned[name])]
    assert moved
    for name in moved:
        torch.testing.assert_close(half[name], (start[name] + learned[name]) / 2)
        torch.testing.assert_close(whole[name], learned[name])
    with pytest.raises(ConfigError, match=r"starts from nothing"):
        mean_with_start(load(find(packed[0])), 0.5)
    with pytest.raises(ConfigError, match=r"above 0 and at most 1, .* got 1.5"):
        mean_with_start(end, 1.5)
    words = ["pack", str(tmp_path / "run"), "--out", str(tmp_path / "half"), "--no-data", "--share", "0.5"]
    assert main(words) == 0


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


def test_what_a_run_did_not_take_over_stays_as_it_was_learned(
    packed: tuple[Path, Path], root: Path, tmp_path: Path
) -> None:
    """Of relations alone the start's relation head is no part of the mean, and nothing random is."""
    recipe = load(find(packed[0])).recipe
    settings = {"start": str(packed[0]), "learn": "relations", "lr": 0.01}
    train(replace(recipe, train=replace(recipe.train, **settings)), root, tmp_path / "run")
    end = load(find(tmp_path / "run"))
    learned = restore_detector(end).state_dict()
    means = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        means.append(restore_detector(mean_with_start(end, 0.6)).state_dict())
    for name, tensor in learned.items():
        assert torch.equal(means[0][name], means[1][name])
        if not name.startswith(UNDER_BOXES):
            assert torch.equal(means[0][name], tensor), name
