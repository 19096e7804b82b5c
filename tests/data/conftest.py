"""Small sets, written by the tests themselves."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image


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


@pytest.fixture
def coco_file(tmp_path: Path) -> Callable[..., Path]:
    """Write a COCO file; `change(document)` may spoil it first."""

    def write(change: Callable[[dict[str, Any]], object] | None = None, name: str = "set.json") -> Path:
        document = coco_document()
        if change is not None:
            change(document)
        folder = tmp_path / "coco"
        save_picture(folder / "images" / "a.png", seed=1)
        save_picture(folder / "images" / "sub" / "b.png", seed=2)
        path = folder / name
        path.write_text(json.dumps(document))
        return path

    return write


OBJECT = """<object><name>{name}</name><difficult>{difficult}</difficult><truncated>1</truncated>
<bndbox><xmin>{x1}</xmin><ymin>{y1}</ymin><xmax>{x2}</xmax><ymax>{y2}</ymax></bndbox></object>"""


def voc_xml(objects: str, width: int = 40, height: int = 30, filename: str = "000005.png") -> str:
    return (
        f"<annotation><filename>{filename}</filename><source>kept</source><size><width>{width}</width>"
        f"<height>{height}</height><depth>3</depth></size>{objects}</annotation>"
    )


@pytest.fixture
def voc_folder(tmp_path: Path) -> Path:
    """A devkit year with two pictures and an image set that names one."""
    year = tmp_path / "VOCdevkit" / "VOC2007"
    (year / "Annotations").mkdir(parents=True)
    (year / "ImageSets" / "Main").mkdir(parents=True)
    whole = OBJECT.format(name="cat", difficult=0, x1=1, y1=1, x2=40, y2=30)
    part = OBJECT.format(name="dog", difficult=1, x1=11, y1=6, x2=20, y2=15.5)
    (year / "Annotations" / "000005.xml").write_text(voc_xml(whole + part))
    (year / "Annotations" / "000007.xml").write_text(voc_xml("", filename="000007.png"))
    (year / "ImageSets" / "Main" / "train.txt").write_text("000005\n")
    (year / "ImageSets" / "Main" / "cat_train.txt").write_text("000005  1\n000007 -1\n")
    save_picture(year / "JPEGImages" / "000005.png")
    save_picture(year / "JPEGImages" / "000007.png")
    return year


@pytest.fixture
def yolo_folder(tmp_path: Path) -> Path:
    """A YOLO folder with a box, a polygon and a picture without objects."""
    folder = tmp_path / "yolo"
    save_picture(folder / "images" / "train" / "a.png")
    save_picture(folder / "images" / "train" / "b.png")
    (folder / "labels" / "train").mkdir(parents=True)
    (folder / "labels" / "train" / "a.txt").write_text("1 0.5 0.5 0.5 0.2\n\n0 0.1 0.1 0.3 0.1 0.2 0.4\n")
    (folder / "data.yaml").write_text("names:\n  0: cat\n  1: dog\ntrain: images/train\n")
    return folder
