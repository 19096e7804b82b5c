"""The formats: a plain table from name to reader and writer, and how a path tells which it is.

To add a format: one file with a scan and a writer, one row here.

A path may name a part of a set: `VOCdevkit/VOC2007:test`, `my_yolo:train`. Without one all parts are read.
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
    a `Target` that it cannot hold. `scan_part(path, images, part)` reads a part, where sets can have some."""

    scan: Callable[[Path, Path | None], Scan]
    write: Callable[[Dataset, Path], None]
    drops: tuple[str, ...] = ()
    scan_part: Callable[[Path, Path | None, str | None], Scan] | None = None


def _write_coco(dataset: Dataset, folder: Path) -> None:
    write_coco(dataset, folder / "annotations.json")


FORMATS: dict[str, Format] = {
    "coco": Format(scan_coco, _write_coco),
    "fsod": Format(scan_fsod, write_fsod),
    "voc": Format(scan_voc, write_voc, drops=("crowd",), scan_part=scan_voc),
    "yolo": Format(scan_yolo, write_yolo, drops=("ignore", "crowd", "truncated"), scan_part=scan_yolo),
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


def split_part(path: Path) -> tuple[Path, str | None]:
    """`VOC2007:test` as the set's own path and its part. A path that exists is whole, colon or not."""
    whole, _, part = str(path).rpartition(":")
    if ":" in path.name and whole and part and not path.exists() and Path(whole).exists():
        return Path(whole), part
    return path, None


def scan_path(
    path: Path, layout: str | None = None, images: Path | None = None, image_set: str | None = None
) -> Scan:
    """Whatever is at `path`, unchecked, its defects named. `image_set` is the part, as after a colon in the
    path: VOC's ImageSets/Main name, or a folder such as YOLO's `train`."""
    whole, part = split_part(path)
    if part is not None and image_set is not None:
        raise InputError(
            f"{path}: expected one part, got the image set {image_set!r} as well; give one of them"
        )
    part = image_set if part is None else part
    name = layout or detect_format(whole)
    if name not in FORMATS:
        raise InputError(f"format: expected one of {', '.join(FORMATS)}; got {name!r}")
    if part is None:
        return FORMATS[name].scan(whole, images)
    scan_part = FORMATS[name].scan_part
    if scan_part is None:
        raise InputError(
            f"{whole}, part {part!r}: expected a VOC devkit or a YOLO folder, got {name}, which has no "
            "parts; leave it out"
        )
    return scan_part(whole, images, part)


def read_dataset(
    path: Path | str,
    layout: str | None = None,
    images: Path | str | None = None,
    image_set: str | None = None,
) -> Dataset:
    """The set at `path`, or the part of it that `path` or `image_set` names, in whichever format. Boxes
    partly outside are clipped; any other defect is a DataError that names it."""
    scan = scan_path(Path(path), layout, Path(images) if images is not None else None, image_set)
    whole, part = split_part(Path(path))
    part = part or image_set
    return Dataset.of(scan, f"{whole.stem}_{part}" if part else whole.stem)
