"""FSOD (Fan et al., CVPR 2020): COCO JSON under its own folders.

    fsod/annotations/fsod_train.json    800 classes, 52,350 pictures
    fsod/annotations/fsod_test.json     200 classes, 14,152 pictures
    fsod/images/part_1/…, part_2/…      `file_name` is relative to images/

`iscrowd` and `area` may be absent. Train and test share no class.
"""

from pathlib import Path

from tenet.data.coco import coco_document, place_pictures, scan_coco
from tenet.data.dataset import Dataset, Scan
from tenet.data.files import write_json


def is_fsod(path: Path) -> bool:
    """Whether a JSON file has FSOD's name: `fsod_train.json`, `fsod_test.json`, …"""
    return path.suffix == ".json" and path.stem.startswith("fsod_")


def scan_fsod(path: Path, images: Path | None = None) -> Scan:
    """Everything that an FSOD file says, each defect named."""
    beside = path.parent.parent / "images"
    if images is None and path.parent.name == "annotations" and beside.is_dir():
        images = beside
    return scan_coco(path, images, layout="fsod")


def read_fsod(path: Path, images: Path | None = None) -> Dataset:
    """The set of an FSOD file."""
    return Dataset.of(scan_fsod(path, images))


def write_fsod(dataset: Dataset, folder: Path, part: str = "train") -> None:
    """Write `annotations/fsod_<part>.json` and `images/` under `folder`."""
    file_names = place_pictures(dataset, folder / "images")
    write_json(folder / "annotations" / f"fsod_{part}.json", coco_document(dataset, file_names))
