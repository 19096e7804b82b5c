"""Rival classes (beyond the paper): which of them, told by the shots in their own pictures.

A region asks two things: is it any of the classes, and which? Shots that were cut out and enlarged answer the
first. Features of shots in place, pooled from the maps of their own pictures as a region's are, tell classes
apart better (blood cells: 88 against 70 % right), but surroundings are in them, and to the first question
they say yes to every background. Between classes the surroundings cancel. So each has its own question:

    P(k) = P(any) · softmaxₖ(rₖ / T),   rₖ = lₖ + w·s·(cₖ − cosₖ)

with the log-odds lₖ of the class, the cosine prior's scale s and cosine cosₖ in them, and the cosine cₖ with
the shots in place. One class alone has no rival, and nothing changes.

Which maps tell these classes apart? The encoder's last one knows kinds of things; cells under a microscope
differ in texture and size of grain, which earlier maps know. The shots themselves tell: each is given to one
of the classes with itself left out, by the last map alone and by the mean of the cosines of all three. By how
much the right class gains in log-likelihood decides the share β of the latter:

    c = (1 − β)·c⁵ + β·(c⁵ + c⁴ + c³)/3,   β = (gain − `LEAST_GAIN`) / (`WHOLE_GAIN` − `LEAST_GAIN`) in [0, 1]
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from tenet.models.supports import masked_mean

TEMPERATURE = 0.7
ROWS = 5
"""Of a class's shots in place so many rows are kept, each the mean of every fifth shot."""
LEAST_GAIN, WHOLE_GAIN = 0.1, 0.4
"""Nats of a shot's log-likelihood: with less, earlier maps say nothing; with more, they have their whole
share."""


def match_with_rivals(logits: Tensor, rivals: Tensor) -> Tensor:
    """Log-odds (E, K, P) against a background of 0, and r (E, K, P) → probabilities (E, K, P)."""
    some = torch.cat([torch.zeros_like(logits[:, :1]), logits], 1).softmax(1)[:, 1:].sum(1, keepdim=True)
    return some * (rivals / TEMPERATURE).softmax(1)


def rows_of(shots: Tensor) -> Tensor:
    """Shots in place (n, c) → (`ROWS`, c): row i is the mean of shots i, i + `ROWS`, …; zeros where there is
    none."""
    rows = shots.new_zeros(ROWS, shots.shape[1])
    for row in range(min(ROWS, len(shots))):
        rows[row] = shots[row::ROWS].mean(0)
    return rows


def all_known(places: Tensor | None) -> bool:
    """Whether every class (…, K, R, c) was seen in place; against one that was not the others would always
    win."""
    return places is not None and bool(places.flatten(-2).any(-1).all())


def in_place_cosines(
    regions: Tensor,
    earlier: Callable[[], Tensor] | None,
    places: Tensor,
    centre: Tensor,
    widths: tuple[int, int, int],
    scale: Tensor | float,
) -> Tensor:
    """c (E, K, P) of regions (E, P, c₅) and K classes' rows (E or 1, K, R, c₅ + c₄ + c₃).

    earlier  gives (E, P, c₄ + c₃) of the regions, and is called only where those have a share; None leaves
             them out
    centre   (c₅,) of the last map
    widths   c₅, c₄ and c₃
    scale    what a cosine is multiplied by to be log-odds
    """
    last = cosines(regions, places[..., : widths[0]], centre)  # (E, P, K)
    share = None if earlier is None else share_of_earlier(places, centre, widths, scale)
    if earlier is None or share is None or not share.any():
        return last.mT
    pairs = zip(earlier().split(widths[1:], -1), places.split(widths, -1)[1:], strict=True)
    every = torch.stack([last, *(cosines(own, rows, None) for own, rows in pairs)]).mean(0)
    return torch.lerp(last, every, share[:, None, None]).mT


def cosines(x: Tensor, places: Tensor, centre: Tensor | None) -> Tensor:
    """Features (…, n, c) and K classes' rows (…, K, R, c) of one map → (…, n, K). Without a centre, it is the
    mean of the classes."""
    means = masked_mean(places, places.any(-1))
    centre = means.mean(-2, keepdim=True) if centre is None else centre
    return F.normalize(x - centre, dim=-1) @ F.normalize(means - centre, dim=-1).mT


def share_of_earlier(
    places: Tensor, centre: Tensor, widths: tuple[int, int, int], scale: Tensor | float
) -> Tensor:
    """β (…) of K classes' rows (…, K, R, c); 0 where no class has two. The rest is as above."""
    real = places.any(-1)  # (…, K, R)
    repeated = real.sum(-1) > 1  # (…, K)
    each = [
        _left_out(part, real, centre if number == 0 else None)
        for number, part in enumerate(places.split(widths, -1))
    ]
    last, mean = (_log_likelihood(scale * c) for c in (each[0], torch.stack(each).mean(0)))
    gain = masked_mean((mean - last).unsqueeze(-1), real).squeeze(-1)  # (…, K)
    gain = masked_mean(gain.unsqueeze(-1), repeated).squeeze(-1)  # (…)
    return ((gain - LEAST_GAIN) / (WHOLE_GAIN - LEAST_GAIN)).clamp(0, 1)


def _left_out(places: Tensor, real: Tensor, centre: Tensor | None) -> Tensor:
    """Cosines (…, K, R, K) of every row of one map with all classes, its own without itself."""
    classes, rows = real.shape[-2:]
    found = cosines(places.flatten(-3, -2), places, centre).unflatten(-2, (classes, rows))
    means, count = masked_mean(places, real).unsqueeze(-2), real.sum(-1)[..., None, None]
    middle = means.mean(-3, keepdim=True) if centre is None else centre
    others = (means * count - places) / (count - 1).clamp(min=1)
    own = F.cosine_similarity(places - middle, others - middle, dim=-1)  # (…, K, R)
    itself = torch.eye(classes, dtype=torch.bool, device=places.device).unsqueeze(-2)  # (K, 1, K)
    return torch.where(itself, own.unsqueeze(-1), found)


def _log_likelihood(logits: Tensor) -> Tensor:
    """(…, K, R, K) → (…, K, R): of a row's own class."""
    return (logits / TEMPERATURE).log_softmax(-1).diagonal(dim1=-3, dim2=-1).mT
