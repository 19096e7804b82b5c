"""Rival classes (beyond the paper): which of them, told by the shots in their own pictures.

A region asks two things: is it any of the classes, and which? Shots that were cut out and enlarged answer the
first. Features of shots in place, pooled from the maps of their own pictures as a region's are, tell classes
apart better (blood cells: 88 against 70 % right), but surroundings are in them, and to the first question
they say yes to every background. Between classes the surroundings cancel. So each has its own question:

    P(k) = P(any) · softmaxₖ(rₖ / T),   rₖ = lₖ + w·(pₖ in place − pₖ)

with the log-odds lₖ of the class, the cosine prior pₖ in them, and the same prior from shots in place. One
class alone has no rival, and nothing changes.
"""

import torch
from torch import Tensor

TEMPERATURE = 0.7


def match_with_rivals(logits: Tensor, rivals: Tensor) -> Tensor:
    """Log-odds (E, K, P) against a background of 0, and r (E, K, P) → probabilities (E, K, P)."""
    some = torch.cat([torch.zeros_like(logits[:, :1]), logits], 1).softmax(1)[:, 1:].sum(1, keepdim=True)
    return some * (rivals / TEMPERATURE).softmax(1)


def all_known(in_place: Tensor | None) -> bool:
    """Whether every class (E, K, c) was seen in place; against one that was not the others would always
    win."""
    return in_place is not None and bool(in_place.any(-1).all())
