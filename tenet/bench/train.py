"""Training steps per second, in turn within one run: from pixels and from the feature cache, in float32 and
bfloat16, and what a step costs with more shots, ways and regions.

examples:
  tenet bench train
  tenet bench train --what precision
  tenet bench train --what cost --steps 5
  tenet bench train --data voc2007_trainval.json --preset lite0_paper
"""

import argparse
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tenet.commands.console import at_least_one, emit_json

if TYPE_CHECKING:
    from tenet.config import ModelConfig
    from tenet.data.dataset import Dataset
    from tenet.engine.loop import Job

WHAT = ("cache", "precision", "cost")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--what", choices=WHAT, default="cache", help="what is compared (default cache)")
    parser.add_argument("--data", type=Path, metavar="PATH", help="a set; a synthetic one by default")
    parser.add_argument("--preset", default="tenet_lite0", help="the detector (default tenet_lite0)")
    parser.add_argument("--steps", type=at_least_one, default=8, help="timed steps of each (default 8)")
    parser.add_argument("--batch", type=at_least_one, default=4, help="episodes of a step (default 4)")
    parser.add_argument("--ways", type=at_least_one, default=2, help="classes of an episode (default 2)")
    parser.add_argument("--shots", type=at_least_one, default=5, help="shots of a class (default 5)")
    parser.add_argument("--json", metavar="FILE", help="the figures as JSON; - is stdout")


def run(args: argparse.Namespace) -> int:
    from tenet.bench.measure import machine, table
    from tenet.data.formats import read_dataset
    from tenet.data.synthetic import write_synthetic
    from tenet.presets import preset

    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        path = args.data or write_synthetic(where / "set", images=60, classes=8, size=(320, 240))
        rows = variants(args, preset(args.preset), read_dataset(path), where)
        seconds = measure(rows, args.steps)
    first = next(iter(seconds))
    if args.json != "-":
        print(machine())
        print(f"{args.preset}, {args.batch} episodes a step, {args.ways} ways, {args.shots} shots\n")
        cells = [
            [name, f"{value:.3f} s", f"{1 / value:.2f}", f"{seconds[first] / value:.2f}"]
            for name, value in seconds.items()
        ]
        print(table(["step", "median", "it/s", f"against {first}"], cells))
    if args.json:
        emit_json(seconds, args.json)
    return 0


def variants(
    args: argparse.Namespace, config: "ModelConfig", dataset: "Dataset", folder: Path
) -> "dict[str, Job]":
    """The jobs that are compared, by name."""
    plain = {"ways": args.ways, "shots": args.shots}

    def job(
        cache: bool = True, precision: str = "float32", rois: int = config.head.rois, **episodes: int
    ) -> "Job":
        return make(args, replace(config, head=replace(config.head, rois=rois)), dataset, folder,
                    cache=cache, precision=precision, episodes=plain | episodes)  # fmt: skip

    if args.what == "cache":
        return {"pixels": job(cache=False), "cache": job()}
    if args.what == "precision":
        return {"float32": job(), "bfloat16": job(precision="bfloat16")}
    most = min(2 * args.ways, len(dataset.classes) // 2)
    return {
        "as given": job(),
        f"shots {2 * args.shots}": job(shots=2 * args.shots),
        f"ways {most}": job(ways=most),
        f"regions {2 * config.head.rois}": job(rois=2 * config.head.rois),
    }


def make(
    args: argparse.Namespace,
    config: "ModelConfig",
    dataset: "Dataset",
    folder: Path,
    *,
    cache: bool,
    precision: str,
    episodes: dict[str, int],
) -> "Job":
    """One job; its views are cached for the steps that are timed, and one to warm up."""
    import torch

    from tenet.data.episode_settings import EpisodeSettings
    from tenet.data.episodes import EpisodeSource
    from tenet.engine.batch import episode_losses
    from tenet.engine.cached_episodes import CachedEpisodes, cached_losses
    from tenet.engine.feature_cache import FeatureCache
    from tenet.engine.loop import Job
    from tenet.engine.view_episodes import ViewEpisodes
    from tenet.models.build import build_detector
    from tenet.recipe import OptimConfig

    settings = EpisodeSettings(
        **episodes,  # type: ignore[arg-type]
        query_sizes=(config.query_size[0],),
        query_longer=config.query_size[1],
        support_size=config.support_size,
        others="any",
    )
    views = ViewEpisodes(EpisodeSource(dataset, settings), 2, 2)
    plan = OptimConfig(
        iterations=args.steps + 1,
        batch=args.batch,
        micro_batch=args.batch,
        optimizer="adamw",
        precision=precision,
    )
    torch.manual_seed(0)
    detector = build_detector(config).eval()
    if not cache:
        return Job(detector, plan, views, episode_losses, views.__getitem__, folder)
    cached = CachedEpisodes(FeatureCache(folder / "cache", detector, views))
    for number in range(plan.iterations * plan.batch):
        cached[number]
    return Job(detector, plan, cached, cached_losses, views.__getitem__, folder)


def measure(jobs: "dict[str, Job]", rounds: int) -> dict[str, float]:
    """Median seconds of a step of each job, run in turn, after one to warm up."""
    from tenet.engine.loop import steps

    streams = {name: steps(job) for name, job in jobs.items()}
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(rounds + 1):
        for name, stream in streams.items():
            begun = time.perf_counter()
            next(stream)
            if turn:
                times[name].append(time.perf_counter() - begun)
    return {name: statistics.median(values) for name, values in times.items()}
