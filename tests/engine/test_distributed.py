"""Two processes compute what one does; a killed one does not end the run."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from tiny_runs import environment, tiny_recipe, torchrun, train, write_recipe

from tenet.engine.checkpoint import load
from tenet.engine.distributed import World, own_groups
from tenet.errors import ConfigError
from tenet.recipe import OptimConfig


def _gloo_works(folder: Path) -> bool:
    try:
        dist.init_process_group("gloo", init_method=f"file://{folder / 'store'}", rank=0, world_size=1)
        dist.destroy_process_group()
    except RuntimeError:
        return False
    return True


@pytest.fixture(autouse=True)
def _needs_gloo(tmp_path: Path) -> None:
    if not dist.is_gloo_available() or not _gloo_works(tmp_path):
        pytest.skip("gloo cannot bind a local address here")


several_processes = pytest.mark.skipif(
    "TENET_TEST_ELASTIC" not in os.environ,
    reason="after a restart gloo's processes miss each other now and then; set TENET_TEST_ELASTIC=1",
)


@several_processes
def test_two_processes_are_one(root: Path, tmp_path: Path) -> None:
    recipe = tiny_recipe(batch=4, iterations=3, save_every=3, optimizer="sgd")
    train(recipe, root, tmp_path / "one")
    path = write_recipe(tmp_path, recipe)
    done = torchrun(2, "train", path, "--data-root", root, "--out", tmp_path / "two")
    assert done.returncode == 0, done.stderr
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


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds the workers through /proc")
@several_processes
def test_a_killed_worker_resumes_by_itself(root: Path, tmp_path: Path) -> None:
    recipe = tiny_recipe(iterations=20, save_every=1)
    path, out = write_recipe(tmp_path, recipe), tmp_path / "run"
    launcher = ["--standalone", "--nproc-per-node=2", "--max-restarts=8", "-m", "tenet.cli"]
    words = ["train", str(path), "--data-root", str(root), "--out", str(out)]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "torch.distributed.run", *launcher, *words],
            # Restarted processes now and then miss each other at their meeting: then they try again.
            env=environment() | {"TENET_DIST_TIMEOUT": "15"},
            stdout=log,
            stderr=log,
        )
        deadline = time.monotonic() + 60
        while not list(out.glob("checkpoints/*.json")) and time.monotonic() < deadline:
            assert process.poll() is None, (tmp_path / "log").read_text()
            time.sleep(0.02)
        workers = [child for child in _children(process.pid) if b"tenet.cli" in _command(child)]
        os.kill(workers[-1], signal.SIGKILL)
        assert process.wait(timeout=400) == 0, (tmp_path / "log").read_text()
    last = load(out / "checkpoints" / "step_00000020.json")
    train(recipe, root, tmp_path / "whole")
    whole = load(tmp_path / "whole" / "checkpoints" / "step_00000020.json")
    for name, tensor in whole.tensors.items():
        torch.testing.assert_close(tensor, last.tensors[name], rtol=1e-2, atol=1e-4)


def _command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()
