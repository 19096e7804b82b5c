"""Results as files in a folder, in the format that was asked for."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

from tenet.data.files import write_json, write_text
from tenet.errors import InputError
from tenet.results.coco import to_coco
from tenet.results.pictures import PictureResult, classes_of
from tenet.results.tables import to_csv
from tenet.results.voc import to_voc
from tenet.results.yolo import to_yolo


def file_stems(names: Sequence[str]) -> list[str]:
    """A file name without suffix for each picture: its own where no two share it, else its whole path."""
    own = [PurePosixPath(name).stem for name in names]
    count = Counter(own)
    stems: list[str] = []
    taken: set[str] = set()
    for name, stem in zip(names, own, strict=True):
        whole = (
            stem
            if count[stem] == 1
            else "_".join(PurePosixPath(name).parts).replace("/", "").replace(".", "_")
        )
        unique, number = whole, 2
        while unique in taken:
            unique, number = f"{whole}_{number}", number + 1
        taken.add(unique)
        stems.append(unique)
    return stems


def _coco(found: Sequence[PictureResult], folder: Path) -> list[Path]:
    write_json(folder / "results.json", to_coco(found))
    return [folder / "results.json"]


def _csv(found: Sequence[PictureResult], folder: Path) -> list[Path]:
    write_text(folder / "results.csv", to_csv(found))
    return [folder / "results.csv"]


def _yolo(found: Sequence[PictureResult], folder: Path) -> list[Path]:
    paths = []
    for one, stem in zip(found, file_stems([one.file_name for one in found]), strict=True):
        paths.append(folder / "labels" / f"{stem}.txt")
        write_text(paths[-1], to_yolo(one.detections, one.width, one.height))
    write_text(folder / "classes.txt", "".join(f"{name}\n" for name in classes_of(found)))
    return [*paths, folder / "classes.txt"]


def _voc(found: Sequence[PictureResult], folder: Path) -> list[Path]:
    paths = []
    for one, stem in zip(found, file_stems([one.file_name for one in found]), strict=True):
        paths.append(folder / "Annotations" / f"{stem}.xml")
        write_text(paths[-1], to_voc(one))
    return paths


WRITERS: dict[str, Callable[[Sequence[PictureResult], Path], list[Path]]] = {
    "coco": _coco,
    "csv": _csv,
    "voc": _voc,
    "yolo": _yolo,
}


def write_results(found: Sequence[PictureResult], folder: Path, layout: str = "coco") -> list[Path]:
    """Write `results.json` (coco), `results.csv`, `Annotations/*.xml` (voc) or `labels/*.txt` with
    `classes.txt` (yolo); returns the files."""
    if layout not in WRITERS:
        raise InputError(f"format: expected one of {', '.join(WRITERS)}; got {layout!r}")
    return WRITERS[layout](found, folder)
