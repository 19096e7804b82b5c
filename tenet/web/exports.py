"""Results as a file to download: COCO, CSV, or a zip of YOLO or VOC files. No file is written."""

import io
import json
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from tenet.errors import InputError
from tenet.results.coco import to_coco
from tenet.results.folder import file_stems
from tenet.results.pictures import PictureResult, classes_of
from tenet.results.tables import to_csv
from tenet.results.voc import to_voc
from tenet.results.yolo import to_yolo


class Download(NamedTuple):
    """A file for the browser."""

    content: bytes
    media_type: str
    file_name: str


def _coco(found: Sequence[PictureResult]) -> Download:
    text = json.dumps(to_coco(found), ensure_ascii=False, allow_nan=False)
    return Download(text.encode(), "application/json", "results.json")


def _csv(found: Sequence[PictureResult]) -> Download:
    return Download(to_csv(found).encode(), "text/csv; charset=utf-8", "results.csv")


def _yolo(found: Sequence[PictureResult]) -> Download:
    stems = _stems(found)
    files = {
        f"labels/{stem}.txt": to_yolo(one.detections, one.width, one.height)
        for stem, one in zip(stems, found, strict=True)
    }
    names = "".join(f"{name}\n" for name in classes_of(found))
    return Download(_zip({**files, "classes.txt": names}), "application/zip", "results-yolo.zip")


def _voc(found: Sequence[PictureResult]) -> Download:
    files = {f"Annotations/{stem}.xml": to_voc(one) for stem, one in zip(_stems(found), found, strict=True)}
    return Download(_zip(files), "application/zip", "results-voc.zip")


FORMATS: dict[str, Callable[[Sequence[PictureResult]], Download]] = {
    "coco": _coco,
    "csv": _csv,
    "voc": _voc,
    "yolo": _yolo,
}


def export(found: Iterable[PictureResult], layout: str) -> Download:
    """The results in a format of `FORMATS`."""
    if layout not in FORMATS:
        raise InputError(f"format: expected one of {', '.join(FORMATS)}; got {layout!r}")
    return FORMATS[layout](list(found))


def _stems(found: Sequence[PictureResult]) -> list[str]:
    """Names without suffix that stay in their folder wherever the archive is unpacked."""
    plain = ["".join(c if c.isalnum() or c in "-_. " else "_" for c in one.file_name) for one in found]
    return file_stems([name.replace("..", "_").strip(". ") or "picture" for name in plain])


def _zip(files: Mapping[str, str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return stream.getvalue()
