"""Pictures that people look at: what was found, what was shown, and many pictures on one sheet.

Pictures are (H, W, 3) uint8 RGB and are never changed; boxes are xyxy in pixels of the picture beside them.
Needs Pillow and numpy alone.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from PIL import Image, ImageDraw

from tenet.drawing.colours import SHOT_COLOUR, class_colour
from tenet.drawing.lettering import font_of, line_height, shortened, writable
from tenet.drawing.marks import Mark, Picture, draw_marks
from tenet.errors import InputError
from tenet.structures import Detections

PAPER, INK = (250, 250, 247), (29, 33, 38)
MOST_SHEET_PIXELS = 80_000_000


def draw_detections(
    picture: Picture,
    detections: Detections,
    names: Sequence[str] | None = None,
    *,
    scores: bool = True,
    font: Path | None = None,
) -> Picture:
    """A copy of the picture with a box, class and score for each detection, the surest on top.

    detections  boxes xyxy in pixels of `picture`
    names       of the classes, by label; those of the detections by default
    font        a TrueType file for names that the built-in font cannot write
    """
    return draw_marks(picture, detection_marks(detections, names, scores=scores, font=font), font)


def draw_shots(
    picture: Picture, boxes: ArrayLike, labels: Sequence[str] | None = None, font: Path | None = None
) -> Picture:
    """A copy of the picture with the things that were shown to the detector, in white.

    boxes   (n, 4) xyxy in pixels of `picture`
    labels  a word for each; `shot 0`, `shot 1`, … by default, as `Detections.shots` counts
    """
    return draw_marks(picture, shot_marks(boxes, labels, font), font)


def detection_marks(
    detections: Detections,
    names: Sequence[str] | None = None,
    *,
    scores: bool = True,
    font: Path | None = None,
) -> list[Mark]:
    """What `draw_detections` draws, the surest first, for those who draw more into the same picture."""
    known = detections.classes if names is None else tuple(names)
    marks = []
    for row in np.argsort(-detections.scores, kind="stable").tolist():
        label = int(detections.labels[row])
        name = known[label] if 0 <= label < len(known) else f"class {label}"
        score = f"{detections.scores[row]:.2f}" if scores else ""
        x1, y1, x2, y2 = detections.boxes[row].tolist()
        shown = writable(name, font) or f"#{label}"
        marks.append(Mark((x1, y1, x2, y2), class_colour(name), shown, score))
    return marks


def shot_marks(boxes: ArrayLike, labels: Sequence[str] | None = None, font: Path | None = None) -> list[Mark]:
    """What `draw_shots` draws; boxes (n, 4) xyxy in pixels of the picture."""
    rows = np.asarray(boxes, np.float64).reshape(-1, 4)
    if not np.isfinite(rows).all():
        raise InputError("boxes: expected finite numbers (x1, y1, x2, y2), got NaN or infinity")
    if labels is not None and len(labels) != len(rows):
        raise InputError(f"labels: expected {len(rows)}, one for each box, got {len(labels)}")
    marks = []
    for number, (x1, y1, x2, y2) in enumerate(rows.tolist()):
        text = f"shot {number}" if labels is None else writable(labels[number], font)
        marks.append(Mark((x1, y1, x2, y2), SHOT_COLOUR, text or f"#{number}"))
    return marks


def contact_sheet(
    pictures: Sequence[Picture], captions: Sequence[str], columns: int = 4, cell: int = 320
) -> Picture:
    """All pictures on one sheet, each within `cell` × `cell` pixels, with a caption of one line below."""
    if len(pictures) != len(captions):
        raise InputError(f"captions: expected {len(pictures)}, one for each picture, got {len(captions)}")
    if columns < 1 or cell < 16:
        raise InputError(f"sheet: expected at least 1 column of 16 pixels, got {columns} of {cell}")
    columns = max(1, min(columns, len(pictures)))
    gap, face = max(4, cell // 20), font_of(max(10, cell // 22))
    sizes = [_fitted_size(picture, cell, cell) for picture in pictures]
    rows = [sizes[start : start + columns] for start in range(0, len(sizes), columns)]
    heights = [max(tall for _, tall in row) + gap // 2 + line_height(face) for row in rows]
    width, height = columns * (cell + gap) + gap, sum(tall + gap for tall in heights) + gap
    if width * height > MOST_SHEET_PIXELS:
        raise InputError(
            f"sheet: expected at most {MOST_SHEET_PIXELS // 1_000_000} million pixels, "
            f"got {width} x {height}; make cells smaller, or several sheets"
        )
    sheet = Image.new("RGB", (width, height), PAPER)
    pen = ImageDraw.Draw(sheet)
    for number, (picture, caption) in enumerate(zip(pictures, captions, strict=True)):
        row, column = divmod(number, columns)
        image = fitted(picture, cell, cell)
        left, top = gap + column * (cell + gap), gap + sum(tall + gap for tall in heights[:row])
        under = top + heights[row] - line_height(face)
        sheet.paste(image, (left + (cell - image.width) // 2, under - gap // 2 - image.height))
        text = shortened(writable(caption) or f"#{number + 1}", face, cell)
        pen.text((left, under), text, fill=INK, font=face)
    return np.array(sheet)


def fitted(picture: Picture, width: int, height: int) -> Image.Image:
    """The whole picture, as large as it can be within `width` × `height`."""
    image, size = Image.fromarray(np.ascontiguousarray(picture)), _fitted_size(picture, width, height)
    smaller = size[0] < image.width
    return image.resize(size, Image.Resampling.LANCZOS if smaller else Image.Resampling.BICUBIC)


def _fitted_size(picture: Picture, width: int, height: int) -> tuple[int, int]:
    tall, wide = picture.shape[:2]
    scale = min(width / wide, height / tall)
    return max(1, round(wide * scale)), max(1, round(tall * scale))
