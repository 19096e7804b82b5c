"""Means of known classes (`tenet.models.known_classes`), from the first queries, before an encoder learns."""

import torch

from tenet.data.episodes import EpisodeSource
from tenet.engine.batch import to_picture
from tenet.models.detector import TENET
from tenet.models.known_classes import KnownClasses, class_means

QUERIES_PER_CLASS, MOST_QUERIES = 8, 480


@torch.no_grad()
def known_classes(detector: TENET, source: EpisodeSource) -> KnownClasses:
    """What the detector's encoder makes of the objects in a few queries for each class, and its prior."""
    prior = detector.cosine_prior
    assert prior is not None
    detector.eval()
    device, classes = next(detector.parameters()).device, len(source.dataset.classes)
    features, labels = [], []
    for index in range(min(MOST_QUERIES, QUERIES_PER_CLASS * classes)):
        query = source.query(index)
        picture = to_picture(query.picture, device).unsqueeze(0)
        c5 = detector.encoder.stages(picture).c5
        assert c5 is not None
        mine = ~query.ignore
        features.append(detector.encoder.last_means(c5, torch.from_numpy(query.boxes[mine]).to(device)))
        labels.append(torch.from_numpy(query.labels[mine]).to(device))
    centre = prior.get_buffer("centre").clone()
    means = class_means(torch.cat(features), torch.cat(labels), centre, classes)
    return KnownClasses(means, centre, prior.log_scale.detach().exp(), prior.bias.detach().clone())
