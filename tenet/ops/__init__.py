"""Pure functions on tensors: the paper's equations, and the box arithmetic of a detector.

No state, no configuration, no files. Every function says which equation it is.
"""

from tenet.ops.boxes import (
    box_area,
    box_iou,
    clip_boxes,
    decode_boxes,
    encode_boxes,
    enlarge_boxes,
    nms,
    paired_giou,
    paired_iou,
)
from tenet.ops.high_order_pooling import hotd, superdiagonal, tau
from tenet.ops.power_norm import maxexp, maxexp_spectrum, sigme
from tenet.ops.roi_align import roi_align, roi_align_levels
from tenet.ops.tensor_shrinkage import dense_tso, effective_eta, tso_superdiagonal

__all__ = [
    "box_area",
    "box_iou",
    "clip_boxes",
    "decode_boxes",
    "dense_tso",
    "effective_eta",
    "encode_boxes",
    "enlarge_boxes",
    "hotd",
    "maxexp",
    "maxexp_spectrum",
    "nms",
    "paired_giou",
    "paired_iou",
    "roi_align",
    "roi_align_levels",
    "sigme",
    "superdiagonal",
    "tau",
    "tso_superdiagonal",
]
