"""The formats: a plain table from name to reader and writer, and how a path tells which it is.

To add a format: one file with a scan and a writer, one row here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tenet.data.coco import scan_coco, write_coco
from tenet.data.dataset import Dataset, Scan
from tenet.data.fsod import is_fsod, scan_fsod, write_fsod
from tenet.data.voc import is_voc, scan_voc, write_voc
from tenet.data.yolo import is_yolo, scan_yolo, write_yolo
from tenet.errors import DataError, InputError


@dataclass(frozen=True)
class Format:
    """One format: `scan(path, images)` reads, `write(dataset, folder)` writes, `drops` names the flags of
    a `Target` that it cannot hold."""

    scan: Callable[[Path, Path | None], Scan]
    write: Callable[[Dataset, Path], None]
    drops: tuple[str, ...] = ()


def _write_coco(dataset: Dataset, folder: Path) -> None:
    write_coco(dataset, folder / "annotations.json")


FORMATS: dict[str, Format] = {
    "coco": Format(scan_coco, _write_coco),
    "fsod": Format(scan_fsod, write_fsod),
    "voc": Format(scan_voc, write_voc, drops=("crowd",)),
    "yolo": Format(scan_yolo, write_yolo, drops=("ignore", "crowd", "truncated")),
}


def detect_format(path: Path) -> str:
    """The format of a JSON file or a folder, by its layout."""
    if path.is_file() and path.suffix.lower() == ".json":
        return "fsod" if is_fsod(path) else "coco"
    if path.is_dir():
        if is_voc(path):
            return "voc"
        if is_yolo(path):
            return "yolo"
        jsons = sorted([*path.glob("*.json"), *path.glob("annotations/*.json")])
        if jsons:
            raise DataError(f"{path}: expected the JSON file itself, got its folder; give {jsons[0]}")
    found = "a file of another kind" if path.is_file() else "a folder" if path.is_dir() else "nothing"
    raise DataError(
        f"{path}: expected a COCO or FSOD JSON file, a VOC devkit (with Annotations) or a YOLO folder "
        f"(with labels), found {found}"
    )


def scan_path(
    path: Path, layout: str | None = None, images: Path | None = None, image_set: str | None = None
) -> Scan:
    """Whatever is at `path`, unchecked, its defects named. `image_set` is VOC's ImageSets/Main name."""
    name = layout or detect_format(path)
    if name not in FORMATS:
        raise InputError(f"format: expected one of {', '.join(FORMATS)}; got {name!r}")
    if image_set is not None:
        if name != "voc":
            raise InputError(f"image set {image_set!r}: expected a VOC devkit, got {name}; leave it out")
        return scan_voc(path, images, image_set)
    return FORMATS[name].scan(path, images)


def read_dataset(
    path: Path | str,
    layout: str | None = None,
    images: Path | str | None = None,
    image_set: str | None = None,
) -> Dataset:
    """The set at `path`, in whichever format. Boxes partly outside are clipped; any other defect is a
    DataError that names it."""
    where = Path(path)
    scan = scan_path(where, layout, Path(images) if images is not None else None, image_set)
    return Dataset.of(scan, f"{where.stem}_{image_set}" if image_set else where.stem)
