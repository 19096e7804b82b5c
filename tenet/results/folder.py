"""Results as files in a folder, in the format that was asked for."""

from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

from tenet.data.files import write_json, write_text
from tenet.errors import InputError
from tenet.results.coco import to_coco
from tenet.results.pictures import PictureResult, classes_of
from tenet.results.tables import to_csv
from tenet.results.voc import to_voc
from tenet.results.yolo import to_yolo


class Stems:
    """File names without suffix, no two the same: a picture's own, or its whole path where that is taken."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def of(self, name: str) -> str:
        """For the next picture."""
        path = PurePosixPath(name)
        whole = "_".join(part.strip("/\\") for part in path.parts).replace(".", "_")
        stem, number = path.stem or "picture", 2
        # Some file systems do not tell A from a.
        if stem.lower() in self._taken:
            stem = whole
        while stem.lower() in self._taken:
            stem, number = f"{whole}_{number}", number + 1
        self._taken.add(stem.lower())
        return stem


def file_stems(names: Sequence[str]) -> list[str]:
    """A file name without suffix for each picture, in their order."""
    stems = Stems()
    return [stems.of(name) for name in names]


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


def write_results(found: Sequence[PictureResult], folder: Path | str, layout: str = "coco") -> list[Path]:
    """Write `results.json` (coco), `results.csv`, `Annotations/*.xml` (voc) or `labels/*.txt` with
    `classes.txt` (yolo); returns the files."""
    if layout not in WRITERS:
        raise InputError(f"format: expected one of {', '.join(WRITERS)}; got {layout!r}")
    return WRITERS[layout](found, Path(folder))
