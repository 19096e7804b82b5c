"""A recipe and a run small enough for tests."""

import os
import subprocess
import sys
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


def torchrun(processes: int, *words: object, restarts: int = 0) -> subprocess.CompletedProcess[str]:
    """`tenet …` in several processes of this machine."""
    launcher = ["--standalone", f"--nproc-per-node={processes}", f"--max-restarts={restarts}"]
    command = [sys.executable, "-m", "torch.distributed.run", *launcher, "-m", "tenet.cli"]
    return subprocess.run(
        [*command, *map(str, words)],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def same_parameters(one: TENET, two: TENET) -> bool:
    left, right = one.state_dict(), two.state_dict()
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)
