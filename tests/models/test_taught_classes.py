"""Laws of the shipped detector for classes that pictures taught: box fit and looks in place take part."""

import numpy as np
import torch
from test_detector import SHIPPED, make, same
from tiny_detector import make_supports, picture

from tenet.models.detector import TENET
from tenet.models.supports import SupportFeatures, Supports


@torch.no_grad()
def taught(detector: TENET, supports: Supports) -> SupportFeatures:
    """Classes that came with their pictures, and taught objectness, boxes and looks in place by them."""
    features = detector.encode_supports(supports)
    learned = []
    for k in range(features.mask.shape[1]):
        scenes = detector.encode_images([picture(96, 128, 40 + k), picture(64, 96, 50 + k)])
        boxes = [torch.tensor([[20.0 + 9 * k, 12, 70, 60]]), torch.tensor([[8.0, 9, 40 + 7 * k, 44]])]
        learned.append(detector.fit_objectness(scenes, boxes, features))
    return features._replace(closed_form=torch.stack(learned)[None])


@torch.no_grad()
def test_batch_order_and_what_was_taught() -> None:
    """A batch is its pictures one by one, shots in any order, and what was taught counts."""
    detector = make(SHIPPED)
    images = detector.encode_images([picture(96, 128, 1), picture(64, 64, 2), picture(96, 128, 3)])
    supports = make_supports([[0, 1, 2], [3]])
    classes = taught(detector, supports)
    together = detector.match(images, classes)
    assert sum(map(len, together)) > 0
    for image, found in zip(images, together, strict=True):
        same(detector.match([image], classes)[0], found)
    turned = supports._replace(rows=torch.tensor([[[2, -1, 0, 1], [-1, 3, -1, -1]]]))
    for found, other in zip(together, detector.match(images, taught(detector, turned)), strict=True):
        same(other, found)
    plain = detector.match(images, detector.encode_supports(supports))
    assert not np.allclose(plain[0].scores[:5], together[0].scores[:5], atol=1e-3)
