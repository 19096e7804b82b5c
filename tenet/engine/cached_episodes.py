"""Episodes from the feature cache: the encoder's backbone is not run, everything after it is."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tenet.data.queries import ways_of
from tenet.engine.batch import number_shots, to_picture, to_target
from tenet.engine.feature_cache import CachedView, FeatureCache
from tenet.models.backbones import Stages
from tenet.models.detector import TENET, Losses
from tenet.models.encoder import EncodedImage, RegionFeatures
from tenet.models.targets import QueryTarget


@dataclass(frozen=True)
class CachedEpisode:
    """An episode whose pictures are maps: the query's, those of its real shots in order, mask (K, Z).

    `picture` (H, W, 3) stands in place of the query's maps where queries are drawn anew for every episode.
    """

    query: CachedView | None
    picture: NDArray[np.uint8] | None
    shots: list[CachedView]
    mask: NDArray[np.bool_]
    target: QueryTarget


class CachedEpisodes:
    """`source[number]` is the episode that `cache.views[number]` is in pixels."""

    def __init__(self, cache: FeatureCache, with_shots: bool = True) -> None:
        self.cache, self.with_shots = cache, with_shots

    def __getitem__(self, index: int) -> CachedEpisode:
        views = self.cache.views
        plan = views.plan(index)
        wanted = plan.shots if self.with_shots else []
        shots, mask = [self.cache[view] for shots in wanted for view in shots], views.mask(plan)
        if plan.query is None:
            drawn = views.query(index, plan)
            target = to_target(drawn.boxes, ways_of(drawn.labels, plan.labels), drawn.ignore)
            return CachedEpisode(None, drawn.picture, shots, mask, target)
        query = self.cache[plan.query]
        target = to_target(query.boxes, ways_of(query.labels, plan.labels), query.ignore)
        return CachedEpisode(query, None, shots, mask, target)


def cached_losses(detector: TENET, episodes: Sequence[CachedEpisode]) -> Losses:
    """The parts of the loss of a few episodes, from cached maps."""
    device = next(detector.parameters()).device
    images, targets = _queries(detector, episodes, device)
    shots = [shot for episode in episodes for shot in episode.shots]
    rows = number_shots([episode.mask for episode in episodes]).to(device)
    classes = detector.group_shots(_shot_features(detector, shots, device), rows)
    return detector.losses(images, classes, targets)


def cached_box_losses(detector: TENET, episodes: Sequence[CachedEpisode]) -> Losses:
    """The parts that know no class, from the queries' cached maps."""
    return detector.box_losses(*_queries(detector, episodes, next(detector.parameters()).device))


def _queries(
    detector: TENET, episodes: Sequence[CachedEpisode], device: torch.device
) -> tuple[list[EncodedImage], list[QueryTarget]]:
    images = [_query(detector, episode, device) for episode in episodes]
    return images, [QueryTarget(*(part.to(device) for part in episode.target)) for episode in episodes]


def _query(detector: TENET, episode: CachedEpisode, device: torch.device) -> EncodedImage:
    """The query's maps: from the cache, or from its pixels."""
    if episode.query is not None:
        return detector.add_pyramid(
            detector.encoder.adapt(_moved(episode.query.stages, device), episode.query.size)
        )
    assert episode.picture is not None
    [image] = detector.encode_images([to_picture(episode.picture, device)])
    return image


def _shot_features(detector: TENET, shots: list[CachedView], device: torch.device) -> RegionFeatures:
    """Features of M shots, whose crops are of one size: adapted together, pooled one by one."""
    encoder = detector.encoder
    stages = Stages(
        torch.cat([shot.stages.c3 for shot in shots]),
        torch.cat([shot.stages.c4 for shot in shots]),
        None if shots[0].stages.c5 is None else torch.cat([_c5(shot) for shot in shots]),
    )
    maps = encoder.adapt(_moved(stages, device), shots[0].size)
    # `split` and not slices: the gradient of a slice is as large as the whole, for each shot.
    parts = {name: part.split(1) for name, part in maps._asdict().items() if isinstance(part, Tensor)}
    found = [
        encoder.regions(
            maps._replace(**{name: part[row] for name, part in parts.items()}),
            torch.from_numpy(shot.boxes).to(device),
        )
        for row, shot in enumerate(shots)
    ]
    return RegionFeatures(*(torch.cat(part) for part in zip(*found, strict=True)))


def _c5(shot: CachedView) -> Tensor:
    assert shot.stages.c5 is not None
    return shot.stages.c5


def _moved(stages: Stages, device: torch.device) -> Stages:
    return Stages(*(None if part is None else part.to(device) for part in stages))  # type: ignore[arg-type]
