"""Two processes compute what one does; a process that is killed is started again and resumes."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from tiny_runs import PATIENCE, running, started, tiny_recipe, torchrun, train, write_recipe

from tenet.engine.checkpoint import load
from tenet.engine.distributed import World, own_groups
from tenet.errors import ConfigError
from tenet.recipe import OptimConfig

needs_proc = pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="finds processes through /proc")


@pytest.fixture
def _needs_gloo(tmp_path: Path) -> None:
    if not dist.is_gloo_available() or not _gloo_works(tmp_path):
        pytest.skip("gloo cannot bind a local address here")


def _gloo_works(folder: Path) -> bool:
    try:
        dist.init_process_group("gloo", init_method=f"file://{folder / 'store'}", rank=0, world_size=1)
        dist.destroy_process_group()
    except RuntimeError:
        return False
    return True


@pytest.mark.usefixtures("_needs_gloo")
def test_two_processes_are_one(root: Path, tmp_path: Path) -> None:
    recipe = tiny_recipe(batch=4, iterations=3, save_every=3, optimizer="sgd")
    train(recipe, root, tmp_path / "one")
    path, log = write_recipe(tmp_path, recipe), tmp_path / "log"
    command = torchrun(2, "train", path, "--data-root", root, "--out", tmp_path / "two")
    with started(command, tmp_path) as process:
        assert process.wait(timeout=PATIENCE) == 0, log.read_text()
        assert not running(str(tmp_path)), "a process outlives the run"
    one, two = (load(tmp_path / name / "checkpoints" / "step_00000003.json") for name in ("one", "two"))
    assert one.metrics["loss"] == pytest.approx(two.metrics["loss"], rel=1e-5)
    for name, tensor in one.tensors.items():
        torch.testing.assert_close(tensor, two.tensors[name], rtol=1e-4, atol=1e-6)


def test_every_micro_batch_has_one_process() -> None:
    plan = OptimConfig(batch=12, micro_batch=2)
    shared = [own_groups(plan, World(rank, 3)) for rank in range(3)]
    assert sorted(group for groups in shared for group in groups) == list(range(6))
    with pytest.raises(ConfigError, match="nproc-per-node"):
        own_groups(plan, World(0, 4))


@needs_proc
def test_a_killed_worker_resumes_by_itself(root: Path, tmp_path: Path) -> None:
    """One process: whether gloo connects again after a restart is torch's affair and the machine's, and it
    does not on every machine (docs/scaling.md)."""
    recipe = tiny_recipe(iterations=20, save_every=1)
    path, out, log = write_recipe(tmp_path, recipe), tmp_path / "run", tmp_path / "log"
    command = torchrun(1, "train", path, "--data-root", root, "--out", out, restarts=1)
    with started(command, tmp_path) as process:
        deadline = time.monotonic() + PATIENCE
        while not list(out.glob("checkpoints/*.json")):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.02)
        [worker] = [pid for pid in running(str(tmp_path)) if pid != process.pid]
        os.kill(worker, signal.SIGKILL)
        assert process.wait(timeout=PATIENCE) == 0, log.read_text()
        assert not running(str(tmp_path)), "a process outlives the run"
    assert "exitcode: -9" in log.read_text(), "the worker was not killed"
    whole = train(recipe, root, tmp_path / "whole")
    last = load(out / "checkpoints" / "step_00000020.json").tensors
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, last[f"model/{name}"]), name


@needs_proc
def test_nothing_outlives_the_block(tmp_path: Path) -> None:
    """A launcher that ignores the signal to end, with a child in a session of its own."""
    child = [sys.executable, "-c", "import time; time.sleep(600)", str(tmp_path)]
    launcher = (
        "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        f"subprocess.Popen({child!r}, start_new_session=True); time.sleep(600)"
    )
    with started([sys.executable, "-c", launcher], tmp_path, patience=1) as process:
        while len(running(str(tmp_path))) < 2:
            assert process.poll() is None
            time.sleep(0.02)
    assert process.poll() is not None
    assert not running(str(tmp_path))
