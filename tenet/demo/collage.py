"""The collage of the demonstration: photographs laid on a table, as data, and how it is put together.

It is made of the photographs beside this file and shipped as collage.jpg; a test makes it again. Needs
Pillow and numpy alone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

Box = tuple[float, float, float, float]
SIZE = (960, 720)
TABLE, PAPER, BORDER = (84, 74, 64), (236, 233, 226), 6


@dataclass(frozen=True)
class Print:
    """A photograph on the table: its file, its size there, its left upper corner; mirrored, in grey, or with
    another brightness."""

    file: str
    size: tuple[int, int]
    corner: tuple[int, int]
    mirrored: bool = False
    grey: bool = False
    light: float = 1.0


# Original sizes: chelsea 451 × 300, coffee 600 × 400, rocket 640 × 427; the others are square.
PRINTS: tuple[Print, ...] = (
    Print("chelsea.jpg", (300, 200), (32, 34), mirrored=True),
    Print("astronaut.jpg", (196, 196), (364, 28)),
    Print("coffee.jpg", (330, 220), (594, 40), mirrored=True),
    Print("rocket.jpg", (285, 190), (48, 272)),
    Print("chelsea.jpg", (211, 140), (374, 292), light=0.55),
    Print("camera.jpg", (190, 190), (664, 296)),
    Print("coffee.jpg", (240, 160), (60, 514), grey=True),
    Print("chelsea.jpg", (270, 180), (352, 492), grey=True),
    Print("retina.jpg", (176, 176), (716, 516)),
)
# class: the photograph that shows it
SHOWN_BY = {"cat": "chelsea.jpg", "cup": "coffee.jpg"}
SIZES = {"chelsea.jpg": (451, 300), "coffee.jpg": (600, 400)}


def make_collage(folder: Path) -> NDArray[np.uint8]:
    """(720, 960, 3) uint8 RGB, from the photographs in `folder`."""
    table = Image.new("RGB", SIZE, TABLE)
    for one in PRINTS:
        left, top = one.corner
        width, height = one.size
        table.paste(PAPER, (left - BORDER, top - BORDER, left + width + BORDER, top + height + BORDER))
        table.paste(_printed(folder / one.file, one), one.corner)
    return np.array(table)


def _printed(path: Path, one: Print) -> Image.Image:
    with Image.open(path) as photograph:
        image = photograph.convert("L").convert("RGB") if one.grey else photograph.convert("RGB")
    image = image.resize(one.size, Image.Resampling.LANCZOS)
    if one.mirrored:
        image = ImageOps.mirror(image)
    return image.point(lambda value: round(value * one.light)) if one.light != 1 else image


def things(boxes: Mapping[str, Box]) -> Iterator[tuple[str, Box]]:
    """(class, box in the collage) of every print, from each class's box in its own photograph; all xyxy, in
    pixels of the picture that they are in."""
    for one in PRINTS:
        for name, box in boxes.items():
            if SHOWN_BY[name] == one.file:
                yield name, _moved(box, one)


def _moved(box: Box, one: Print) -> Box:
    width, height = SIZES[one.file]
    x1, x2 = (width - box[2], width - box[0]) if one.mirrored else (box[0], box[2])
    across, down = one.size[0] / width, one.size[1] / height
    left, top = one.corner
    return (left + x1 * across, top + box[1] * down, left + x2 * across, top + box[3] * down)
