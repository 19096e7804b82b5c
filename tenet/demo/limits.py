"""Where it ends: scenes that are hard, made from the demonstration's photographs, failures among them.

The three coins of the demonstration are shown as they are; the picture to look in is changed. Boxes follow
from how it is made. Pillow and numpy alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageFilter, ImageOps

from tenet.demo import SCENES, Box, Example, Scene
from tenet.demo.collage import TABLE

EYES: tuple[Box, Box] = ((135, 86, 207, 148), (298, 110, 344, 164))
"""In chelsea.jpg: the one that is shown, the one to find."""
ACROSS, SMALL, BLUR, NOISE = 3, 1 / 3, 2.0, 40.0
"""Pictures in a row of the wide view; scale of the small coins; radius and strength in pixels and levels."""

Made = tuple[Image.Image, list[Box]]


@dataclass(frozen=True)
class Change:
    """What is done to the picture of coins with its boxes, xyxy in its pixels."""

    name: str
    about: str
    make: Callable[[Image.Image, list[Box]], Made]


def _wide(picture: Image.Image, boxes: list[Box]) -> Made:
    width, height = picture.size
    sheet, found = Image.new("RGB", (ACROSS * width, ACROSS * height)), []
    for place in range(ACROSS**2):
        x, y = place % ACROSS * width, place // ACROSS * height
        sheet.paste(picture, (x, y))
        found += [(x1 + x, y1 + y, x2 + x, y2 + y) for x1, y1, x2, y2 in boxes]
    return sheet, found


def _small(picture: Image.Image, boxes: list[Box]) -> Made:
    table = Image.new("RGB", picture.size, TABLE)
    few = (round(SMALL * picture.width), round(SMALL * picture.height))
    left, top = (picture.width - few[0]) // 2, (picture.height - few[1]) // 2
    table.paste(picture.resize(few, Image.Resampling.LANCZOS), (left, top))
    across, down = few[0] / picture.width, few[1] / picture.height
    return table, [
        (left + x1 * across, top + y1 * down, left + x2 * across, top + y2 * down) for x1, y1, x2, y2 in boxes
    ]


def _turned(picture: Image.Image, boxes: list[Box]) -> Made:
    """By a right angle, and as a negative."""
    width = picture.width
    turned = ImageOps.invert(picture).transpose(Image.Transpose.ROTATE_90)
    return turned, [(y1, width - x2, y2, width - x1) for x1, y1, x2, y2 in boxes]


def _blurred(picture: Image.Image, boxes: list[Box]) -> Made:
    return picture.filter(ImageFilter.GaussianBlur(BLUR)), boxes


def _noisy(picture: Image.Image, boxes: list[Box]) -> Made:
    noise = np.random.default_rng(0).normal(0, NOISE, (picture.height, picture.width, 3))
    return Image.fromarray(np.clip(np.asarray(picture) + noise, 0, 255).astype(np.uint8)), boxes


CHANGES = (
    Change("wide", "the same three coins shown, nine such pictures in one", _wide),
    Change("turned", "turned by a right angle, as a negative", _turned),
    Change("small", "a third of the size, 14 pixels each", _small),
    Change("blurred", f"out of focus by {BLUR:g} pixels", _blurred),
    Change("noisy", f"noise of {NOISE:g} levels of 255", _noisy),
)


def hard_scenes(folder: Path) -> tuple[Scene, ...]:
    """The scenes, whose pictures are written to `folder`."""
    coins = SCENES[0]
    with Image.open(coins.path) as opened:
        picture = opened.convert("RGB")
    boxes = [thing.box for thing in (*coins.shots, *coins.truth)]
    scenes = []
    for change in CHANGES:
        made, found = change.make(picture, boxes)
        path = str(folder / f"{change.name}.png")
        made.save(path)
        truth = tuple(Example("coin", path, box) for box in found)
        scenes.append(Scene(change.name, change.about, path, coins.shots, truth))
    shown, other = (Example("eye", "chelsea.jpg", box) for box in EYES)
    about = "an eye is shown, the other is to be found: a part of a thing"
    return (*scenes, Scene("part", about, "chelsea.jpg", (shown,), (other,)))
