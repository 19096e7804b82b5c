"""What a detector takes from the data before its first step, without a gradient: the prior's centre.

Frozen features share a large common part; without it a cosine tells classes apart far better.
"""

import torch

from tenet.data.episodes import EpisodeSource
from tenet.engine.batch import to_batch
from tenet.models.detector import TENET

EPISODES = 24


@torch.no_grad()
def warm_start(detector: TENET, source: EpisodeSource) -> None:
    """Fit the cosine prior's centre to the shots of the first episodes."""
    if detector.cosine_prior is None:
        return
    detector.eval()
    device = next(detector.parameters()).device
    raw = []
    for index in range(EPISODES):
        batch = to_batch([source[index]], device)
        features = detector.encode_supports(batch.supports)
        raw.append(features.raw[features.mask])
    detector.cosine_prior.fit_centre(torch.cat(raw))
