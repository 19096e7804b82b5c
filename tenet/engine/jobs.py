"""From a detector and a source of episodes to a job for the loop, with the feature cache or without."""

import sys
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tenet.data.episodes import EpisodeSource, QuerySource
from tenet.engine.batch import episode_losses, query_losses
from tenet.engine.cached_episodes import CachedEpisodes, cached_box_losses, cached_losses
from tenet.engine.distributed import World, barrier
from tenet.engine.feature_cache import FeatureCache, cache_key, shards_with_bar
from tenet.engine.kept_maps import KeptMaps
from tenet.engine.known_classes import known_classes
from tenet.engine.locks import locked
from tenet.engine.loop import Job, LossesOf
from tenet.engine.view_episodes import ViewEpisodes
from tenet.models.detector import BOX_PARTS, TENET, UNDER_BOXES
from tenet.recipe import OptimConfig, TrainConfig


@dataclass(frozen=True)
class Options:
    """How a run is carried out; nothing here changes its result."""

    out: Path
    root: Path = Path("data")
    resume: bool = False
    workers: int = 0
    tensorboard: bool = False
    world: World = field(default_factory=World)
    cache: Path = Path("runs/cache")


def make_job(
    detector: TENET, plan: OptimConfig, train: TrainConfig, source: EpisodeSource, options: Options
) -> Job:
    """A job over `source`: from pixels, or from the cache (filled first) with `train.cache`."""
    failures, world = options.out / "failed", options.world
    boxes_only = train.learn == "boxes"
    taught = BOX_PARTS if detector.config.encoder.frozen else UNDER_BOXES
    if train.learn != "all":
        for name, parameter in detector.named_parameters():
            learns = name.startswith(taught) if boxes_only else not name.startswith(UNDER_BOXES)
            parameter.requires_grad_(parameter.requires_grad and learns)
    if not train.cache:
        return Job(
            detector,
            plan,
            QuerySource(source) if boxes_only else source,
            _query_losses(detector, train, source) if boxes_only else episode_losses,
            source.__getitem__,
            failures,
            source.seed,
            options.workers,
            world,
        )
    views = ViewEpisodes(source, train.cache_views if train.cache_queries else 0, train.shot_views)
    episodes = plan.iterations * plan.batch
    cache = open_cache(detector.to(world.device), views, options, episodes, with_shots=not boxes_only)
    # Reading maps is cheaper than handing them from process to process: no workers.
    return Job(
        detector,
        plan,
        CachedEpisodes(cache, with_shots=not boxes_only),
        cached_box_losses if boxes_only else cached_losses,
        views.__getitem__,
        failures,
        source.seed,
        0,
        world,
    )


def _query_losses(detector: TENET, train: TrainConfig, source: EpisodeSource) -> LossesOf:
    """`query_losses` with what the encoder is now, where it is to be held to that."""
    kept = KeptMaps.of(detector, train.keep_maps) if train.keep_maps else None
    known = known_classes(detector, source) if train.known_classes else None
    return partial(query_losses, kept=kept, known=known, weight=train.known_classes)


def open_cache(
    detector: TENET, views: ViewEpisodes, options: Options, episodes: int, with_shots: bool = True
) -> FeatureCache:
    """The cache with all that these episodes need: every process computes a part of what is missing, and
    other runs on this machine that want the same maps wait."""
    world = options.world
    lock = options.cache / f"{cache_key(detector, views)}.lock"
    with locked(lock, partial(_say_waiting, lock)) if world.first else nullcontext():
        barrier(world)
        cache = FeatureCache(options.cache, detector.eval(), views)
        cache.fill(views.views_of(episodes, with_shots), shards_with_bar, (world.rank, world.size))
        barrier(world)
    return cache if world.size == 1 else FeatureCache(options.cache, detector.eval(), views)


def _say_waiting(lock: Path) -> None:
    print(
        f"{lock.with_suffix('')}: another run fills this cache, waiting for it", file=sys.stderr, flush=True
    )
