"""A run that stops goes on as if it had not; what cannot be resumed says so."""

import errno
import os
import random
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_runs import PATIENCE, same_parameters, started, tenet, tiny_recipe, train, write_recipe

from tenet.cli import main
from tenet.engine import checkpoint
from tenet.engine.checkpoint import load, load_detector, load_latest
from tenet.errors import ConfigError, DataError, TrainingError, WeightsError


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_resumed_is_uninterrupted(root: Path, tmp_path: Path, optimizer: str) -> None:
    recipe = tiny_recipe(optimizer=optimizer, schedule="cosine")
    whole = train(recipe, root, tmp_path / "whole")
    train(recipe, root, tmp_path / "parts")
    folder = tmp_path / "parts" / "checkpoints"
    for path in folder.glob("step_00000006.*"):  # as if the run had stopped after four steps
        path.unlink()
    resumed = train(recipe, root, tmp_path / "parts", resume=True)
    assert same_parameters(whole, resumed)
    lines = [(tmp_path / name / "metrics.jsonl").read_text() for name in ("whole", "parts")]
    losses = [[line.split('"parts"')[0] for line in text.splitlines()] for text in lines]
    assert losses[0] == losses[1]


def test_killed_at_any_moment(root: Path, tmp_path: Path) -> None:
    recipe = tiny_recipe(iterations=24, save_every=1)
    path, out = write_recipe(tmp_path, recipe), tmp_path / "killed"
    with started(tenet("train", path, "--data-root", root, "--out", out), tmp_path) as process:
        deadline = time.monotonic() + PATIENCE
        while not list(out.glob("checkpoints/*.json")):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(random.random() * 0.5)
        process.kill()
        process.wait()
    found = load_latest(out / "checkpoints")
    assert found is not None
    assert 0 < found.step < 24, "the process was not killed in the middle"
    assert main(["train", str(path), "--data-root", str(root), "--out", str(out), "--resume"]) == 0
    whole = train(recipe, root, tmp_path / "whole")
    last = load(out / "checkpoints" / "step_00000024.json").tensors
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, last[f"model/{name}"]), name


@pytest.fixture
def done(root: Path, tmp_path: Path) -> Path:
    """A finished run with checkpoints of 2, 4 and 6 steps."""
    train(tiny_recipe(), root, tmp_path / "run")
    return tmp_path / "run"


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def _flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("harm", [_truncate, _flip_a_bit, Path.unlink])
def test_a_broken_newest_one_is_skipped(done: Path, harm: Callable[[Path], None]) -> None:
    harm(done / "checkpoints" / "step_00000006.safetensors")
    with pytest.warns(UserWarning, match="older one"):
        found = load_latest(done / "checkpoints")
    assert found is not None
    assert found.step == 4
    with pytest.raises(WeightsError, match="step_00000006"):
        load_detector(done)


def test_another_recipe_is_refused(done: Path, root: Path) -> None:
    with pytest.raises(ConfigError, match=r"train\.lr: 0\.002 against 0\.5"):
        train(tiny_recipe(lr=0.5), root, done, resume=True)
    train(tiny_recipe(save_every=3), root, done, resume=True)  # how often to save is free


def test_a_finished_run_is_not_overwritten(done: Path, root: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--resume"):
        train(tiny_recipe(), root, done)
    with pytest.raises(TrainingError, match="leave out --resume"):
        train(tiny_recipe(), root, tmp_path / "new", resume=True)


def test_a_full_disk_leaves_the_older_one(
    done: Path, root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for path in (done / "checkpoints").glob("step_00000006.*"):
        path.unlink()

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    before = {path.name: path.read_bytes() for path in (done / "checkpoints").iterdir()}
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        found = load_latest(done / "checkpoints")
        assert found is not None
        detector = checkpoint.restore_detector(found)
        optimizer = torch.optim.SGD([p for p in detector.parameters() if p.requires_grad], lr=0.1)
        with pytest.raises(DataError, match="No space left"):
            checkpoint.save(done / "checkpoints", 6, detector, optimizer, found.recipe)
    assert {path.name: path.read_bytes() for path in (done / "checkpoints").iterdir()} == before


def test_a_detector_of_other_settings_is_refused(done: Path) -> None:
    found = load(done / "checkpoints" / "step_00000006.json")
    model = found.recipe.model
    other = replace(found.recipe, model=replace(model, encoder=replace(model.encoder, channels=32)))
    with pytest.raises(WeightsError, match="another configuration"):
        checkpoint.restore_detector(replace(found, recipe=other))
    with pytest.raises(WeightsError, match="found nothing"):
        load_detector(done / "nowhere")


def test_the_loaded_detector_is_the_trained_one(root: Path, tmp_path: Path) -> None:
    trained = train(tiny_recipe(), root, tmp_path / "run")
    assert same_parameters(trained, load_detector(tmp_path / "run"))
    document = load(checkpoint.find(tmp_path / "run"))
    assert document.recipe == tiny_recipe()
    assert len(document.split["base"]) == 4
    assert document.metrics["loss"] > 0


def test_newest_and_best_are_kept(root: Path, tmp_path: Path) -> None:
    train(tiny_recipe(save_every=1, keep=2, iterations=6), root, tmp_path / "run")
    folder = tmp_path / "run" / "checkpoints"
    kept = sorted(path.name for path in folder.glob("*.json"))
    assert kept[-2:] == ["step_00000005.json", "step_00000006.json"]
    assert len(kept) <= 3
    assert checkpoint.best(folder) is not None
    assert len(list(folder.iterdir())) == 2 * len(kept)
