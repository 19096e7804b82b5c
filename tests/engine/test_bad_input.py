"""What cannot work is refused before the first step, in one line that says what to do; a loss that is not
finite stops the run and keeps its episode."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.numpy import load_file
from tiny_runs import TINY, same_parameters, tiny_recipe, train, write_recipe

from tenet.cli import main
from tenet.data.formats import read_dataset
from tenet.data.yolo import write_yolo
from tenet.engine import jobs
from tenet.engine.batch import episode_losses
from tenet.engine.checkpoint import versions
from tenet.engine.optim import build_optimizer, learning_rate
from tenet.errors import ConfigError, DataError, TrainingError
from tenet.models.build import build_detector
from tenet.models.detector import TENET, Losses
from tenet.recipe import OptimConfig


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ('data.train=["gone.json"]', "--data-root"),
        ("data.train=[]", "expected at least one data set"),
        ("data.split=voc1", "is data.split = 'voc1' the split of this set?"),
        ("data.leave_out_novel=true", "expected data.split = one of voc1"),
        ("episodes.ways=9", "set episodes.ways lower"),
        ("episodes.shots=500", "lower episodes.shots"),
        ("episodes.min_shot_side=1000", "found none"),
        ("model.encoder.weights=gone.pth", "found none at"),
        ("model.encoder.weights=imagenet", "lite0"),
        ("train.micro_batch=4", "multiple"),
    ],
)
def test_refused_before_the_first_step(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], override: str, message: str
) -> None:
    recipe, out = write_recipe(tmp_path, tiny_recipe()), tmp_path / "run"
    words = ["train", recipe, "--data-root", root, "--out", out, "--set", override]
    assert main([str(word) for word in words]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not out.exists()


def test_a_picture_of_the_test_side_is_refused(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = read_dataset(root / "annotations.json")
    document = json.loads((root / "annotations.json").read_text())
    for category, name in zip(document["categories"], ("cat", "dog", "bird", "car"), strict=True):
        category["name"] = name
    document["annotations"] = [a for a in document["annotations"] if a["category_id"] != 3]
    assert dataset.classes
    (root / "leaky.json").write_text(json.dumps(document))
    recipe = write_recipe(tmp_path, tiny_recipe())
    sets = ('data.train=["leaky.json"]', 'evaluate.test=["leaky.json"]', "data.split=voc1")
    words = ["train", recipe, "--data-root", root, "--out", tmp_path / "x"]
    words += [word for change in sets for word in ("--set", change)]
    assert main([str(word) for word in words]) == 1
    assert "expected training and test apart" in capsys.readouterr().err


@pytest.mark.parametrize("split", ["", "fsod"])
def test_a_picture_of_the_test_side_is_refused_without_a_split(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], split: str
) -> None:
    recipe = write_recipe(tmp_path, tiny_recipe())
    words = ["train", recipe, "--data-root", root, "--out", tmp_path / "x", "--set", f"data.split={split}"]
    words += ["--set", 'evaluate.test=["annotations.json"]']
    assert main([str(word) for word in words]) == 1
    error = capsys.readouterr().err
    assert "expected training and test apart, but picture" in error


def test_a_picture_of_the_test_part_is_refused(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Parts of one folder that share a picture."""
    dataset = read_dataset(root / "annotations.json")
    for part in ("train", "test"):
        write_yolo(dataset, root / "export" / part)
    recipe = write_recipe(tmp_path, tiny_recipe())
    sets = ('data.train=["export:train"]', 'evaluate.test=["export:test"]')
    words = ["train", recipe, "--data-root", root, "--out", tmp_path / "x"]
    words += [word for change in sets for word in ("--set", change)]
    (root / "export" / "data.yaml").write_text((root / "export" / "train" / "data.yaml").read_text())
    assert main([str(word) for word in words]) == 1
    assert "expected training and test apart, but picture" in capsys.readouterr().err


def test_a_class_without_a_box_is_no_hindrance(root: Path, tmp_path: Path) -> None:
    """As exports of annotation tools have one; it is no way either."""
    document = json.loads((root / "annotations.json").read_text())
    document["categories"].insert(0, {"id": 99, "name": "nothing"})
    (root / "with_empty.json").write_text(json.dumps(document))
    recipe = tiny_recipe(iterations=1)
    recipe = replace(recipe, data=replace(recipe.data, train=("with_empty.json",)))
    train(recipe, root, tmp_path / "run")
    many = replace(recipe, episodes=replace(recipe.episodes, ways=len(document["categories"])))
    with pytest.raises(DataError, match=r"set episodes.ways lower"):
        train(many, root, tmp_path / "many")


def test_a_clone_on_a_machine_without_git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert versions().get("commit", "") == ""


def test_a_loss_that_is_not_finite_stops_the_run(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(detector: TENET, episodes: Sequence[Any]) -> Losses:
        losses = episode_losses(detector, episodes)
        return {**losses, "head_box": losses["head_box"] * torch.inf + torch.nan}

    monkeypatch.setattr(jobs, "episode_losses", broken)
    with pytest.raises(TrainingError, match=r"head_box nan.*failed"):
        train(tiny_recipe(), root, tmp_path / "run")
    [kept] = (tmp_path / "run" / "failed").glob("*.safetensors")
    assert load_file(kept)["query"].shape[2] == 3
    told = json.loads(kept.with_suffix(".json").read_text())
    assert told["losses"]["head_box"] == "nan"
    assert len(told["classes"]) == 2
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_the_same_run_twice_is_bit_equal(root: Path, tmp_path: Path) -> None:
    recipe = tiny_recipe(batch=4, micro_batch=2, iterations=2)
    assert same_parameters(train(recipe, root, tmp_path / "a"), train(recipe, root, tmp_path / "b"))


def test_dry_run_and_tensorboard(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe, out = write_recipe(tmp_path, tiny_recipe(picture_every=2)), tmp_path / "run"
    words = ["train", str(recipe), "--data-root", str(root), "--out", str(out)]
    assert main([*words, "--dry-run"]) == 0
    text = capsys.readouterr().out
    assert "parameters" in text
    assert "a step" in text
    assert not out.exists()
    pytest.importorskip("tensorboard")
    assert main([*words, "--tensorboard", "--set", "train.iterations=2"]) == 0
    assert list((out / "tensorboard").iterdir())
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2]
    assert set(lines[0]["parts"]) == {"rpn_objectness", "rpn_box", "head_class", "head_box"}


def test_bfloat16_takes_a_step(root: Path, tmp_path: Path) -> None:
    train(tiny_recipe(precision="bfloat16", iterations=1), root, tmp_path / "run")


@pytest.mark.parametrize("schedule", ["step", "cosine", "constant"])
def test_schedules(schedule: str) -> None:
    plan = OptimConfig(iterations=100, lr=1.0, schedule=schedule, steps=(50, 80), warmup=10, warmup_start=0.1)
    rates = [learning_rate(plan, step) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) <= 1
    assert rates[10] == pytest.approx(1.0, abs=0.03)
    end = {"step": 0.01, "cosine": 0.0, "constant": 1.0}[schedule]
    assert rates[-1] == pytest.approx(end, abs=1e-3)


def test_groups_of_the_optimiser() -> None:
    model = replace(TINY, encoder=replace(TINY.encoder, frozen=False, frozen_stages=0))
    optimizer = build_optimizer(build_detector(model), OptimConfig(encoder_lr=0.1))
    assert {(group["share"], group["weight_decay"]) for group in optimizer.param_groups} >= {
        (0.1, 1e-4),
        (1.0, 1e-4),
        (1.0, 0.0),
    }
    none = build_detector(TINY).requires_grad_(False)
    with pytest.raises(ConfigError, match="needs no training"):
        build_optimizer(none, OptimConfig())
