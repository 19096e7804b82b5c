"""Why a region looks like a class: attention maps (supplement, Fig. 4) and positions that correspond."""

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from tenet.models.detector import TENET
from tenet.models.encoder import EncodedImage
from tenet.models.relation_head import Described, TransformerRelationHead
from tenet.models.supports import SupportFeatures
from tenet.structures import Explanation


def explain_regions(
    detector: TENET, image: EncodedImage, classes: SupportFeatures, boxes: Tensor
) -> list[Explanation]:
    """One class against regions (n, 4), xyxy in pixels of the encoded picture."""
    regions = detector.describe(image, boxes)
    shots = Described(classes.phi[0, 0], classes.psi[0, 0])
    own = F.normalize(regions.phi.flatten(2).mT, dim=-1)  # (n, N, 2d)
    others = F.normalize(shots.phi.flatten(2).mT, dim=-1)  # (Z, N, 2d)
    pairs = torch.einsum("nic,zjc->nzij", own, others)
    means = F.normalize(regions.phi.mean((-1, -2)), dim=-1) @ F.normalize(shots.phi.mean((-1, -2)), dim=-1).T
    region_maps, shot_maps = _maps(detector, regions), _maps(detector, shots)
    of_shots = tuple(
        {name: value[z] for name, value in shot_maps.items()} for z in range(len(classes.phi[0, 0]))
    )
    return [
        Explanation(
            {name: value[row] for name, value in region_maps.items()},
            of_shots,
            _array(means[row]),
            _array(pairs[row]),
        )
        for row in range(len(boxes))
    ]


def _maps(detector: TENET, described: Described) -> dict[str, NDArray[np.float32]]:
    """Attention maps (n, S, S) by name; none where the model has no Spatial-HOP head."""
    head = detector.relation_head
    if not isinstance(head, TransformerRelationHead) or head.spatial_hop is None:
        return {}
    return {name: _array(value) for name, value in head.spatial_hop.attention_maps(described).items()}


def _array(tensor: Tensor) -> NDArray[np.float32]:
    return tensor.detach().cpu().float().numpy()
