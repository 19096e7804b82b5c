"""The folder of `tenet detect --out`: annotated pictures as they come, and at the end what sums them up.

annotated/      each picture with its boxes drawn in
results.json    COCO annotations with scores; beside it what --format asks for
contact_sheet.jpg, report.html    the first pictures at a glance, where there are several
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tenet.data.files import write_bytes
from tenet.data.images import encode_jpeg
from tenet.errors import InputError
from tenet.results.folder import Stems, write_results
from tenet.results.pictures import PictureResult

if TYPE_CHECKING:
    from tenet.drawing.html_page import PageItem
    from tenet.runtime.protocol import Picture

ON_SHEET, ON_PAGE = 60, 200
"""Pictures on the contact sheet and on the page; the others are in the folder."""
CELL, PAGE_SIDE = 320, 800
"""Longer sides of pictures that wait for them, in pixels: memory stays small."""


JPEG_SIDE = 65_500
"""Pixels: more than that a JPEG file cannot have on a side."""


class Output:
    """The folder, while pictures arrive."""

    def __init__(self, folder: Path, layout: str) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"--out: expected a folder to write to, but {folder} cannot be made ({error.strerror})"
            ) from error
        self.folder, self.layout = folder, layout
        self._stems = Stems()
        self._cells: list[Picture] = []
        self._items: list[PageItem] = []

    def add(self, found: PictureResult, picture: "Picture") -> None:
        """Draw and write one picture, (H, W, 3) uint8 RGB."""
        from tenet.drawing.html_page import PageItem
        from tenet.visualize import draw_detections

        drawn = draw_detections(picture, found.detections)
        if len(self._cells) < ON_SHEET:
            self._cells.append(_within(drawn, CELL))
        if len(self._items) < ON_PAGE:
            small = _within(picture, PAGE_SIDE)
            boxes = found.detections.boxes * (small.shape[1] / picture.shape[1])
            self._items.append(PageItem(found.file_name, small, replace(found.detections, boxes=boxes)))
        # Last: where it fails, sheet and page still have every picture in its place.
        write_bytes(self.folder / "annotated" / f"{self._stems.of(found.file_name)}.jpg", _jpeg(drawn))

    def finish(self, found: Sequence[PictureResult]) -> list[str]:
        """Write what sums them up; a line for each of the things that are there to look at."""
        from tenet.drawing.html_page import write_page
        from tenet.visualize import contact_sheet

        written = [f"pictures: {self.folder / 'annotated'}"]
        write_results(found, self.folder)
        written.append(f"results: {self.folder / 'results.json'}")
        if self.layout != "coco":
            paths = write_results(found, self.folder, self.layout)
            written.append(f"{self.layout}: {paths[0] if len(paths) == 1 else paths[0].parent}")
        if len(found) > 1:
            captions = [
                f"{Path(one.file_name).name}: {len(one.detections)}" for one in found[: len(self._cells)]
            ]
            write_bytes(self.folder / "contact_sheet.jpg", _jpeg(contact_sheet(self._cells, captions)))
            written.append(
                f"contact sheet{_first(len(found), ON_SHEET)}: {self.folder / 'contact_sheet.jpg'}"
            )
        write_page(self.folder / "report.html", f"Found in {len(found)} pictures", self._items)
        written.append(f"report{_first(len(found), ON_PAGE)}: {self.folder / 'report.html'}")
        return written


def _first(count: int, most: int) -> str:
    return f" (the first {most} of {count})" if count > most else ""


def _jpeg(picture: "Picture") -> bytes:
    return encode_jpeg(_within(picture, JPEG_SIDE))


def _within(picture: "Picture", longer: int) -> "Picture":
    """The picture with its longer side at most `longer`; both sides scale alike within a pixel."""
    import numpy as np
    from PIL import Image

    height, width = picture.shape[:2]
    scale = longer / max(width, height)
    if scale >= 1:
        return picture
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    return np.array(Image.fromarray(picture).resize(size, Image.Resampling.BILINEAR, reducing_gap=2.0))
