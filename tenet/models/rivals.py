"""Rival classes (beyond the paper): which of them, told by the shots in their own pictures.

A region asks two things: is it any of the classes, and which? Shots that were cut out and enlarged answer the
first. Features of shots in place, pooled from the maps of their own pictures as a region's are, tell classes
apart better (blood cells: 88 against 70 % right), but surroundings are in them, and to the first question
they say yes to every background. Between classes the surroundings cancel. So each has its own question:

    P(k) = P(any) · softmaxₖ(rₖ / T),   rₖ = lₖ + w·s·(cₖ − cosₖ)

with the log-odds lₖ of the class, the cosine prior's scale s and cosine cosₖ in them, and the cosine cₖ with
the mean of the shots in place. One class alone has no rival, and nothing changes.

Which maps tell these classes apart? The encoder's last one knows kinds of things; cells under a microscope
differ in grain, which earlier maps know. The shots themselves tell: each is given to one of the classes with
itself left out, by the last map alone and by the mean of the cosines of all three. By how much its own class
gains in log-likelihood (mean over the classes; few shots count less) decides the share β of the latter:

    c = (1 − β)·c⁵ + β·(c⁵ + c⁴ + c³)/3,   β = (gain − `LEAST_GAIN`) / (`WHOLE_GAIN` − `LEAST_GAIN`) in [0, 1]

The centre that cosines are taken from is the cosine prior's for the last map. Earlier maps have none that was
learned: theirs is the mean of the classes. It knows every shot, so where shots are left out it is the mean of
their whole pictures instead; with the other one, noise would seem to tell classes apart.
"""

from collections.abc import Callable
from typing import TypeGuard

import torch
import torch.nn.functional as F
from torch import Tensor

from tenet.models.supports import masked_mean

TEMPERATURE = 0.7
ROWS = 5
"""Of a class's shots in place so many rows are kept, each the mean of every fifth shot; one row more is the
mean of their whole pictures."""
LEAST_GAIN, WHOLE_GAIN = 0.1, 0.3
"""Nats of a shot's log-likelihood: with less, earlier maps say nothing; with more, they have their whole
share."""


def match_with_rivals(logits: Tensor, rivals: Tensor) -> Tensor:
    """Log-odds (E, K, P) against a background of 0, and r (E, K, P) → probabilities (E, K, P)."""
    some = torch.cat([torch.zeros_like(logits[:, :1]), logits], 1).softmax(1)[:, 1:].sum(1, keepdim=True)
    return some * (rivals / TEMPERATURE).softmax(1)


def rows_of(shots: Tensor, pictures: Tensor) -> Tensor:
    """Shots in place (n, c) and their whole pictures (m, c) → (`ROWS` + 1, c): row i is the mean of shots i,
    i + `ROWS`, …, zeros where there is none; the last that of the pictures."""
    rows = shots.new_zeros(ROWS + 1, shots.shape[1])
    for row in range(min(ROWS, len(shots))):
        rows[row] = shots[row::ROWS].mean(0)
    rows[ROWS] = pictures.mean(0)
    return rows


def all_known(places: Tensor | None) -> TypeGuard[Tensor]:
    """Whether every class (…, K, R + 1, c) was seen in place; against one that was not the others would
    always win."""
    return places is not None and bool(places.flatten(-2).any(-1).all())


def in_place_cosines(
    regions: Tensor,
    earlier: Callable[[], Tensor] | None,
    places: Tensor,
    centre: Tensor,
    widths: tuple[int, int, int],
    scale: Tensor | float,
) -> Tensor:
    """c (E, K, P) of regions (E, P, c₅) and K classes' rows (E or 1, K, R + 1, c₅ + c₄ + c₃).

    earlier  gives (E, P, c₄ + c₃) of the regions, and is called only where those have a share; None leaves
             them out
    centre   (c₅,) of the last map
    widths   c₅, c₄ and c₃
    scale    what a cosine is multiplied by to be log-odds
    """
    shots = places[..., :ROWS, :]
    means = masked_mean(shots, shots.any(-1)).split(widths, -1)  # each (…, K, c)
    last = cosines(regions, means[0], centre)  # (E, P, K)
    share = None if earlier is None else share_of_earlier(places, centre, widths, scale)
    if earlier is None or share is None or not share.any():
        return last.mT
    pairs = zip(earlier().split(widths[1:], -1), means[1:], strict=True)
    every = [last, *(cosines(own, mean, mean.mean(-2, keepdim=True)) for own, mean in pairs)]
    return torch.lerp(last, torch.stack(every).mean(0), share[:, None, None]).mT


def cosines(x: Tensor, means: Tensor, centre: Tensor) -> Tensor:
    """Features (…, n, c) and K classes' means (…, K, c) of one map, seen from its centre → (…, n, K)."""
    return F.normalize(x - centre, dim=-1) @ F.normalize(means - centre, dim=-1).mT


def share_of_earlier(
    places: Tensor, centre: Tensor, widths: tuple[int, int, int], scale: Tensor | float
) -> Tensor:
    """β (…) of K classes' rows (…, K, R + 1, c). The rest is as above."""
    shots, pictures = places[..., :ROWS, :], places[..., ROWS, :].mean(-2)  # (…, K, R, c), (…, c)
    real = shots.any(-1)  # (…, K, R)
    centres = [centre, *(own[..., None, None, :] for own in pictures.split(widths, -1)[1:])]
    each = torch.stack(
        [_left_out(own, real, middle) for own, middle in zip(shots.split(widths, -1), centres, strict=True)]
    )
    better = _log_likelihood(scale * each.mean(0)) - _log_likelihood(scale * each[0])  # (…, K, R)
    count = real.sum(-1)
    votes = masked_mean(better.unsqueeze(-1), real).squeeze(-1) * count / ROWS  # (…, K)
    gain = (votes * (count > 1)).mean(-1)  # a single shot cannot be left out, and has no vote
    return ((gain - LEAST_GAIN) / (WHOLE_GAIN - LEAST_GAIN)).clamp(0, 1)


def _left_out(shots: Tensor, real: Tensor, centre: Tensor) -> Tensor:
    """Cosines (…, K, R, K) of every row (…, K, R, c) of one map with all classes, its own without itself."""
    means, count = masked_mean(shots, real), real.sum(-1)[..., None, None]
    found = cosines(shots, means.unsqueeze(-3), centre)
    others = (means.unsqueeze(-2) * count - shots) / (count - 1).clamp(min=1)
    own = F.cosine_similarity(shots - centre, others - centre, dim=-1)  # (…, K, R)
    itself = torch.eye(real.shape[-2], dtype=torch.bool, device=shots.device).unsqueeze(-2)  # (K, 1, K)
    return torch.where(itself, own.unsqueeze(-1), found)


def _log_likelihood(logits: Tensor) -> Tensor:
    """(…, K, R, K) → (…, K, R): of a row's own class."""
    return (logits / TEMPERATURE).log_softmax(-1).diagonal(dim1=-3, dim2=-1).mT
