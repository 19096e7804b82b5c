"""Fine-tuning on a user's own set, in any layout, and on one shot."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_runs import tiny_recipe, train, write_recipe

from tenet.cli import main
from tenet.data.convert import convert
from tenet.data.dataset import Dataset
from tenet.data.episode_settings import EpisodeSettings
from tenet.data.episodes import EpisodeSource
from tenet.data.formats import read_dataset, scan_path
from tenet.data.shots import read_shots
from tenet.engine.checkpoint import load, load_detector
from tenet.engine.finetune import finetune, shots_of_user
from tenet.engine.meta_train import new_detector
from tenet.recipe import Recipe


@pytest.fixture
def trained(root: Path, tmp_path: Path) -> Path:
    train(tiny_recipe(iterations=2), root, tmp_path / "trained")
    return tmp_path / "trained"


FAST = ("--set", "finetune.iterations=3", "--set", "finetune.batch=2")


@pytest.mark.parametrize("layout", ["coco", "voc", "yolo"])
def test_a_users_own_set(trained: Path, root: Path, tmp_path: Path, layout: str) -> None:
    dataset = read_dataset(root / "annotations.json")
    data = root / "annotations.json"
    if layout != "coco":
        data = tmp_path / layout
        convert(scan_path(root / "annotations.json"), layout, data)
    two = ",".join(dataset.classes[:2])
    out = tmp_path / "mine"
    words = ["finetune", trained, "--data", data, "--classes", two, "--shots", 2, "--out", out, *FAST]
    assert main([str(word) for word in words]) == 0
    shots = read_shots(out / "shots.json", read_dataset(data))
    assert [len(refs) for refs in shots.classes.values()] == [2, 2]
    assert not (out / "cache").exists()
    before, after = load_detector(trained).state_dict(), load_detector(out).state_dict()
    moved = [name for name in before if not torch.equal(before[name], after[name])]
    assert moved
    assert not any(name.startswith("encoder.backbone") for name in moved)
    assert load(next((out / "checkpoints").glob("*.json"))).split["novel"] == sorted(dataset.classes[:2])


def test_one_shot_and_one_class(root: Path, tmp_path: Path) -> None:
    """The only shot of a class is query and support at once."""
    recipe = tiny_recipe()
    table = recipe.to_dict()
    table["finetune"] |= {"iterations": 2, "shots": 1}
    recipe = type(recipe).from_dict(table)
    dataset = read_dataset(root / "annotations.json")
    chosen, shots = shots_of_user(dataset, [dataset.classes[1]], recipe)
    detector = new_detector(recipe, root)
    assert finetune(detector, recipe, chosen, shots) is detector
    assert not detector.training


def test_pictures_are_learned_as_they_are(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Queries that a recipe cuts, turns or recolours would look unlike the few shots that there are."""
    table = tiny_recipe().to_dict()
    table["episodes"] |= {"zoom": [0.4, 1.0], "mosaic": 0.5, "turn": 0.3, "recolour": 0.4}
    table["finetune"] |= {"iterations": 1, "shots": 2}
    recipe = Recipe.from_dict(table)
    seen: list[EpisodeSettings] = []

    def source(pictures: Dataset, settings: EpisodeSettings, *rest: Any, **more: Any) -> EpisodeSource:
        seen.append(settings)
        return EpisodeSource(pictures, settings, *rest, **more)

    monkeypatch.setattr("tenet.engine.finetune.EpisodeSource", source)
    dataset, shots = shots_of_user(read_dataset(root / "annotations.json"), None, recipe)
    finetune(new_detector(recipe, root), recipe, dataset, shots)
    assert [(s.zoom, s.mosaic, s.turn, s.recolour) for s in seen] == [((1.0, 1.0), 0.0, 0.0, 0.0)]


def test_too_few_shots_is_one_line(
    trained: Path, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "finetune",
        trained,
        "--data",
        root / "annotations.json",
        "--shots",
        500,
        "--out",
        tmp_path / "x",
    ]
    assert main([str(word) for word in words]) == 1
    message = capsys.readouterr().err
    assert "expected 500 shots" in message
    assert "lower --shots" in message
    assert message.count("\n") == 1


def test_unknown_class_and_other_model(
    trained: Path, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = str(root / "annotations.json")
    assert main(["finetune", str(trained), "--data", data, "--classes", "unicorn"]) == 1
    assert "unicorn" in capsys.readouterr().err
    assert main(["finetune", str(trained), "--data", data, "--set", "model.nms=0.1"]) == 1
    assert "the checkpoint's own model" in capsys.readouterr().err
    recipe = write_recipe(tmp_path, tiny_recipe())
    assert main(["finetune", str(recipe), "--data", str(tmp_path / "nowhere.json")]) == 1
    assert "found nothing" in capsys.readouterr().err
