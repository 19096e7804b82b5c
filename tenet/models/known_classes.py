"""Known classes (beyond the paper): what an encoder learns to tell apart, beside boxes.

ImageNet shows one thing in the middle of a picture. In a detector's pictures things are small, cut off and
in front of others, and most of what is looked at is none of them. So the encoder learns to name the objects
of the classes that it is trained on in the way that the cosine prior names new ones: by the cosine of a
region's mean feature with that of its class, against a background of log-odds 0. The means are those of the
encoder at its start, and stay: a feature space that is to serve for classes nobody trained on must not turn.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tenet.models.targets import QueryTarget, best_iou

OBJECT_IOU, BACKGROUND_IOU = 0.5, 0.3
"""A region is an object's from the former on, and background below the latter; between them it may be a part,
and is neither."""


class KnownClasses(NamedTuple):
    """means (C, c₅) of length 1, seen from the centre (c₅,); scale and bias of the cosine prior."""

    means: Tensor
    centre: Tensor
    scale: Tensor
    bias: Tensor

    def logits(self, features: Tensor) -> Tensor:
        """Features (n, c₅) → log-odds (n, 1 + C), the background's 0 in front."""
        cosines = F.normalize(features - self.centre, dim=-1) @ self.means.T
        return F.pad((cosines - self.bias) * self.scale, (1, 0))


def class_means(features: Tensor, labels: Tensor, centre: Tensor, classes: int) -> Tensor:
    """Features (n, c₅) of objects with labels (n,) → means (C, c₅) of length 1 seen from the centre;
    zeros for a class that is not among them."""
    sums = features.new_zeros(classes, features.shape[1]).index_add_(0, labels, features - centre)
    return F.normalize(sums, dim=-1)


def name_regions(boxes: Tensor, target: QueryTarget) -> Tensor:
    """Regions (n, 4) → labels (n,): 1 + the object's class (`ways`), 0 for background, −1 for neither."""
    value, row = best_iou(boxes, target.boxes)
    labels = torch.full_like(row, -1)
    labels[value < BACKGROUND_IOU] = 0
    mine = value >= OBJECT_IOU
    if mine.any():
        labels[mine] = torch.where(target.ignore[row[mine]], -1, target.ways[row[mine]] + 1)
    return labels


def known_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of log-odds (n, 1 + C); objects and background weigh the same in all."""
    lost = F.cross_entropy(logits, labels.clamp(min=0), reduction="none")
    kinds = [lost[labels > 0], lost[labels == 0]]
    return torch.stack([kind.mean() if len(kind) else 0 * lost.sum() for kind in kinds]).sum() / 2


def learn_names(
    known: KnownClasses,
    means: Callable[[Tensor, Tensor], Tensor],
    maps: Sequence[Tensor | None],
    regions: tuple[Tensor, Tensor],
    targets: Sequence[QueryTarget],
) -> dict[str, Tensor]:
    """The loss of naming regions (E, 1, P, 4), real where their mask is: `means` takes a last map and
    boxes (n, 4) in it to features (n, c₅), through which the encoder learns."""
    logits, labels = [], []
    for c5, boxes, mask, target in zip(maps, *regions, targets, strict=True):
        assert c5 is not None
        own = boxes[mask]
        logits.append(known.logits(means(c5, own)))
        labels.append(name_regions(own, target))
    return {"known_classes": known_loss(torch.cat(logits), torch.cat(labels))}
