"""Boxes with labels that stay legible on any picture.

A box is three lines, black, its colour, white, so that one of them stands out whatever is below. A label
is a plate of the box's colour with black or white letters; it stays inside the picture, and takes the first
free place around its box. Where no place is free it is cut to its score, then left away: two labels on
top of each other tell nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from tenet.drawing.colours import BLACK, WHITE, Colour, text_colour
from tenet.drawing.lettering import Font, font_of, line_height, shortened, width_of
from tenet.errors import InputError

Picture = NDArray[np.uint8]
Place = tuple[int, int, int, int]
MOST_LABELS = 400
"""Of one picture: beyond that no place is free anyway."""


@dataclass(frozen=True)
class Mark:
    """A box, xyxy in pixels of the picture; its colour; its name, which may be cut, and its score, which is
    told before the name where space is short."""

    box: tuple[float, float, float, float]
    colour: Colour
    name: str = ""
    score: str = ""


@dataclass(frozen=True)
class Look:
    """Widths in pixels: the line of a box's colour, the lines on either side of it, and the letters."""

    line: int
    edge: int
    letters: int


def look_for(width: int, height: int) -> Look:
    """What suits a picture of that size, seen as a whole."""
    longer = max(width, height)
    edge = max(1, round(longer / 900))
    return Look(max(2, round(longer / 280)), edge, min(max(11, round(longer / 44)), 160))


def draw_marks(picture: Picture, marks: Sequence[Mark], font: Path | None = None) -> Picture:
    """A copy of the picture (H, W, 3) with its marks, the first on top. Boxes xyxy in its pixels."""
    if picture.ndim != 3 or picture.shape[2] != 3 or picture.dtype != np.uint8 or picture.size == 0:
        raise InputError(f"picture: expected (H, W, 3) uint8, got {picture.shape} {picture.dtype}")
    height, width = picture.shape[:2]
    look = look_for(width, height)
    image = Image.fromarray(np.ascontiguousarray(picture))
    pen = ImageDraw.Draw(image)
    for mark in reversed(marks):
        _draw_box(pen, mark, look, width, height)
    face = font_of(look.letters, font)
    for place, text, mark in placed_labels(marks, width, height, face):
        _draw_label(pen, place, text, mark.colour, face, look)
    return np.array(image)


def placed_labels(
    marks: Sequence[Mark], width: int, height: int, face: Font
) -> list[tuple[Place, str, Mark]]:
    """Where each label goes (first and last column and row), and what it says; the first mark chooses."""
    look = look_for(width, height)
    taken = np.zeros((0, 4), np.int64)
    labels = []
    for mark in marks[:MOST_LABELS]:
        found = _free_place(mark, face, look, (width, height), taken)
        if found is not None:
            taken = np.concatenate([taken, np.array([found[0]])])
            labels.append((*found, mark))
    return labels


def _inside(box: tuple[float, float, float, float], width: int, height: int) -> Place:
    """First and last pixel of a box (columns, rows), in the picture; boxes are edges, not pixel numbers."""
    x1, y1, x2, y2 = (min(max(value, -1e6), 1e6) for value in box)
    left, top = (min(max(round(v), 0), most - 1) for v, most in ((x1, width), (y1, height)))
    right, bottom = (min(max(round(v) - 1, 0), most - 1) for v, most in ((x2, width), (y2, height)))
    return left, top, max(left, right), max(top, bottom)


def _draw_box(pen: ImageDraw.ImageDraw, mark: Mark, look: Look, width: int, height: int) -> None:
    left, top, right, bottom = _inside(mark.box, width, height)
    # A box smaller than its lines would be a blot: thinner ones keep the thing visible.
    small = min(right - left, bottom - top) < 6 * (look.line + 2 * look.edge)
    line, edge = (max(1, look.line // 2), 1) if small else (look.line, look.edge)
    out = line // 2
    for inset, thick, colour in (
        (-out - edge, edge, BLACK),
        (-out, line, mark.colour),
        (line - out, edge, WHITE),
    ):
        frame = (left + inset, top + inset, right - inset, bottom - inset)
        # Lines that would leave the picture are moved to its border instead of vanishing.
        frame = (max(frame[0], 0), max(frame[1], 0), min(frame[2], width - 1), min(frame[3], height - 1))
        if frame[2] >= frame[0] and frame[3] >= frame[1]:
            pen.rectangle(frame, outline=colour, width=thick)


def _free_place(
    mark: Mark, face: Font, look: Look, size: tuple[int, int], taken: NDArray[np.int64]
) -> tuple[Place, str] | None:
    """Where the label goes, first and last pixel, and its text."""
    width, height = size
    pad = max(1, look.letters // 4)
    tall = line_height(face) + 2 * (pad // 2)
    if tall > height:
        return None
    for text in _texts(mark, face, min(width - 2 * pad, 14 * look.letters)):
        wide = width_of(text, face) + 2 * pad
        if not text or wide > width:
            continue
        for x, y in _candidates(_inside(mark.box, width, height), wide, tall, look):
            left, top = min(max(x, 0), width - wide), min(max(y, 0), height - tall)
            place = (left, top, left + wide - 1, top + tall - 1)
            if abs(top - y) <= look.line + look.edge and not _hits(place, taken):
                return place, text
    return None


def _texts(mark: Mark, face: Font, most: int) -> list[str]:
    """What a label may say, longest first, at most `most` pixels wide."""
    score = f" {mark.score}" if mark.score else ""
    name = shortened(mark.name, face, most - width_of(score, face))
    return [name + score, mark.score] if name and score else [name or mark.score]


def _candidates(box: Place, wide: int, tall: int, look: Look) -> list[tuple[int, int]]:
    """Left upper corners of a label, best first: above the box, below it, inside it, beside it."""
    left, top, right, bottom = box
    out = look.line // 2 + look.edge
    over, under, start, end = top - out - tall, bottom + out + 1, left - out, right + out - wide + 1
    return [
        (start, over),
        (end, over),
        (start, under),
        (end, under),
        (left + look.line, top + look.line),
        (left + look.line, bottom - look.line - tall + 1),
        (right + out + 1, top),
        (left - out - wide, top),
    ]


def _hits(place: Place, taken: NDArray[np.int64]) -> bool:
    x1, y1, x2, y2 = place
    return bool(((taken[:, 0] <= x2) & (taken[:, 2] >= x1) & (taken[:, 1] <= y2) & (taken[:, 3] >= y1)).any())


def _draw_label(
    pen: ImageDraw.ImageDraw, place: Place, text: str, colour: Colour, face: Font, look: Look
) -> None:
    left, top, _, _ = place
    pad = max(1, look.letters // 4)
    pen.rectangle(place, fill=colour, outline=BLACK if text_colour(colour) == WHITE else colour)
    pen.text((left + pad, top + pad // 2), text, fill=text_colour(colour), font=face)
