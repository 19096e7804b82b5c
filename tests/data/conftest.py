"""Small sets, written by the tests themselves."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_sets import OBJECT, coco_document, save_picture, voc_xml


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
