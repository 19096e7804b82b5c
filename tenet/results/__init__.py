"""Detections to and from the formats that people use: a file for each, `to_…` and `from_…`.

| format | functions | of |
|---|---|---|
| COCO annotations | to_coco, from_coco | many pictures |
| COCO results | to_coco_results, from_coco_results | many pictures |
| CSV, pandas | to_csv, from_csv, to_frame, from_frame | many pictures |
| VOC XML | to_voc, from_voc | one picture |
| YOLO text | to_yolo, from_yolo | one picture |
| supervision | to_supervision, from_supervision | one picture |

`picture_results` makes the many of a folder or a stream.
"""

from tenet.results.coco import from_coco, from_coco_results, to_coco, to_coco_results
from tenet.results.pictures import PictureResult, picture_results
from tenet.results.supervision_detections import from_supervision, to_supervision
from tenet.results.tables import from_csv, from_frame, to_csv, to_frame
from tenet.results.voc import from_voc, to_voc
from tenet.results.yolo import from_yolo, to_yolo

__all__ = [
    "PictureResult",
    "from_coco",
    "from_coco_results",
    "from_csv",
    "from_frame",
    "from_supervision",
    "from_voc",
    "from_yolo",
    "picture_results",
    "to_coco",
    "to_coco_results",
    "to_csv",
    "to_frame",
    "to_supervision",
    "to_voc",
    "to_yolo",
]
