"""A recipe and a run small enough for tests."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

from tenet.config import AttentionConfig, EncoderConfig, HeadConfig, ModelConfig, RPNConfig
from tenet.engine.jobs import Options
from tenet.engine.meta_train import meta_train
from tenet.models.detector import TENET
from tenet.presets import with_attention
from tenet.recipe import Recipe
from tenet.settings import to_table

TINY = with_attention(
    ModelConfig(
        encoder=EncoderConfig(name="tiny", regions="shared", channels=16, frozen=True),
        rpn=RPNConfig(anchor_sizes=(16, 32), pre_nms=(60, 60), post_nms=(12, 12), batch=16),
        head=HeadConfig(rois=6),
        query_size=(48, 80),
        support_size=32,
        score_threshold=0.0,
    ),
    AttentionConfig(heads=1, blocks=1),
)
EPISODES = {"shots": 2, "min_shot_side": 4.0, "query_sizes": [48], "query_longer": 80, "support_size": 32}
TRAIN = {"iterations": 6, "batch": 2, "warmup": 2, "save_every": 2, "log_every": 1}


def tiny_recipe(**train: object) -> Recipe:
    """Two-shot episodes of the small synthetic set."""
    table = {"data": {"train": ["annotations.json"]}, "episodes": EPISODES, "train": TRAIN | train}
    return Recipe.from_dict({"name": "tiny", "model": to_table(TINY), **table})


def write_recipe(folder: Path, recipe: Recipe) -> Path:
    path = folder / "tiny.toml"
    path.write_text(recipe.to_toml())
    return path


def train(recipe: Recipe, root: Path, out: Path, resume: bool = False) -> TENET:
    return meta_train(recipe, Options(out, root, resume))


def environment() -> dict[str, str]:
    """For other processes: one thread, because the last bits of a sum depend on their number."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}


def tenet(*words: object) -> list[str]:
    return [sys.executable, "-m", "tenet.cli", *map(str, words)]


PATIENCE = 600
"""Seconds until a process that should end is taken for hung. It takes 15 when idle, and took 220 on cores
that others had first call on: a launcher and two workers each load torch before they do anything."""


@contextmanager
def started(command: list[str], folder: Path, patience: float = 60) -> Iterator[subprocess.Popen[bytes]]:
    """A process that writes into `folder`/log. It must have `folder` among its words: nothing that has
    outlives the block, whatever the process started and however it ended. It has `patience` seconds to end
    when it is asked to."""
    environ = environment() | {"TENET_DIST_TIMEOUT": str(PATIENCE // 2)}
    with (folder / "log").open("w") as stream:
        process = subprocess.Popen(command, env=environ, stdout=stream, stderr=stream)
    try:
        yield process
    finally:
        process.terminate()  # torchrun takes its workers with it
        try:
            process.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        deadline = time.monotonic() + 60
        while (left := running(str(folder))) and time.monotonic() < deadline:
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)


def running(word: str) -> list[int]:
    """Other processes with this in their command line; none where there is no /proc."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if word.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return [pid for pid in found if pid != os.getpid()]


def torchrun(processes: int, *words: object, restarts: int = 0) -> list[str]:
    """The command line of `tenet …` in several processes of this machine."""
    # An address in numbers: the name of a machine is not resolved everywhere, nor at once.
    launcher = ["--standalone", "--local-addr=127.0.0.1", f"--nproc-per-node={processes}"]
    command = [sys.executable, "-m", "torch.distributed.run", *launcher, f"--max-restarts={restarts}"]
    return [*command, "-m", "tenet.cli", *map(str, words)]


def same_parameters(one: TENET, two: TENET) -> bool:
    left, right = one.state_dict(), two.state_dict()
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)
