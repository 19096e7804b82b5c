"""Episodes as the detector takes them: numpy in, tensors out.

E episodes of K ways with Z shots become E query pictures and rows (E, K, Z) into one list of crops;
shots that an episode does not have are −1.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tenet.data.episodes import Episode
from tenet.data.queries import Query
from tenet.engine.kept_maps import KeptMaps
from tenet.models.detector import TENET, Losses
from tenet.models.known_classes import KnownClasses
from tenet.models.supports import Supports
from tenet.models.targets import QueryTarget


class Batch(NamedTuple):
    """images: E × (3, H, W) float in 0…255; supports: rows (E, K, Z); targets: E, boxes in query pixels."""

    images: list[Tensor]
    supports: Supports
    targets: list[QueryTarget]


def to_batch(episodes: Sequence[Episode], device: torch.device | str = "cpu") -> Batch:
    """Episodes with the same ways and shots as one batch."""
    crops = [
        to_picture(episode.crops[way, shot], device)
        for episode in episodes
        for way, shot in np.argwhere(episode.shot_mask).tolist()
    ]
    boxes = np.concatenate([episode.crop_boxes[episode.shot_mask] for episode in episodes])
    rows = number_shots([episode.shot_mask for episode in episodes])
    return Batch(
        images=[to_picture(episode.query, device) for episode in episodes],
        supports=Supports(crops, torch.from_numpy(boxes).to(device), rows.to(device)),
        targets=[to_target(episode.boxes, episode.ways, episode.ignore, device) for episode in episodes],
    )


def number_shots(masks: Sequence[NDArray[np.bool_]]) -> Tensor:
    """Masks E × (K, Z) → rows (E, K, Z): real shots numbered in order, −1 elsewhere."""
    mask = torch.from_numpy(np.stack(masks))
    rows = torch.full(mask.shape, -1, dtype=torch.long)
    rows[mask] = torch.arange(int(mask.sum()))
    return rows


def to_target(
    boxes: NDArray[np.float32],
    ways: NDArray[np.int64],
    ignore: NDArray[np.bool_],
    device: torch.device | str = "cpu",
) -> QueryTarget:
    """A query's objects; boxes (G, 4) xyxy in pixels of the query."""
    return QueryTarget(*(torch.from_numpy(array).to(device) for array in (boxes, ways, ignore)))


def episode_losses(detector: TENET, episodes: Sequence[Episode]) -> Losses:
    """The parts of the loss of a few episodes, from their pixels."""
    device = next(detector.parameters()).device
    _, losses = detector(*to_batch(episodes, device))
    return losses


def query_losses(
    detector: TENET,
    queries: Sequence[Query],
    kept: KeptMaps | None = None,
    known: KnownClasses | None = None,
    weight: float = 1.0,
) -> Losses:
    """What queries teach without shots, from their pixels: boxes, and an encoder that learns. With `kept` it
    keeps its last map, with `known` it learns to name the set's classes, which counts by `weight`."""
    device = next(detector.parameters()).device
    pictures = [to_picture(query.picture, device) for query in queries]
    images = detector.encode_images(pictures)
    targets = [to_target(query.boxes, query.labels, query.ignore, device) for query in queries]
    losses = detector.box_losses(images, targets, known)
    if known is not None:
        losses["known_classes"] = weight * losses["known_classes"]
    return losses if kept is None else losses | kept.losses(pictures, images)


def to_picture(pixels: NDArray[np.uint8], device: torch.device | str) -> Tensor:
    """(H, W, 3) uint8 → (3, H, W) float, values in 0…255."""
    return torch.from_numpy(pixels).to(device).permute(2, 0, 1).float()
