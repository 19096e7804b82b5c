"""Parts of the small sets that the tests write, and what it means for two sets to be the same."""

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tenet.data.dataset import Dataset


def save_picture(path: Path, width: int = 40, height: int = 30, seed: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)
    return path


def coco_document() -> dict[str, Any]:
    """Two pictures of 40 × 30, three boxes, one of them a crowd, one difficult."""
    return {
        "info": {"note": "kept"},
        "images": [
            {"id": 7, "file_name": "a.png", "width": 40, "height": 30, "flickr": "kept"},
            {"id": 9, "file_name": "sub/b.png", "width": 40, "height": 30},
        ],
        "annotations": [
            {"id": 1, "image_id": 7, "category_id": 3, "bbox": [1, 2, 10, 20], "area": 200, "iscrowd": 0},
            {"id": 2, "image_id": 7, "category_id": 5, "bbox": [5, 5, 8.5, 9], "iscrowd": 1},
            {
                "id": 4,
                "image_id": 9,
                "category_id": 3,
                "bbox": [0, 0, 40, 30],
                "iscrowd": 0,
                "difficult": 1,
                "truncated": 1,
            },
        ],
        "categories": [{"id": 3, "name": "cat"}, {"id": 5, "name": "dog"}],
    }


OBJECT = """<object><name>{name}</name><difficult>{difficult}</difficult><truncated>1</truncated>
<bndbox><xmin>{x1}</xmin><ymin>{y1}</ymin><xmax>{x2}</xmax><ymax>{y2}</ymax></bndbox></object>"""


def voc_xml(objects: str, width: int = 40, height: int = 30, filename: str = "000005.png") -> str:
    return (
        f"<annotation><filename>{filename}</filename><source>kept</source><size><width>{width}</width>"
        f"<height>{height}</height><depth>3</depth></size>{objects}</annotation>"
    )


def same_sets(copy: Dataset, original: Dataset, flags: bool) -> None:
    """Same pictures in the same order, same boxes within a thousandth of a pixel, same class names."""
    assert len(copy) == len(original)
    for one, two in zip(copy.records, original.records, strict=True):
        assert (one.width, one.height) == (two.width, two.height)
        assert one.target.boxes.shape == two.target.boxes.shape
        assert np.abs(one.target.boxes - two.target.boxes).max(initial=0) < 1e-3
        names = [
            [dataset.classes[label] for label in record.target.labels]
            for dataset, record in ((copy, one), (original, two))
        ]
        assert names[0] == names[1]
        if flags:
            assert np.array_equal(one.target.ignore, two.target.ignore)
            assert np.array_equal(one.target.truncated, two.target.truncated)
