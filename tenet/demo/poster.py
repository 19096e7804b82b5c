"""The demonstration's picture: every scene with what was shown and what was found. Pillow and numpy alone."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from tenet.demo import Scene
from tenet.demo.outcome import Outcome
from tenet.drawing.colours import Colour
from tenet.drawing.explain import cut
from tenet.drawing.lettering import font_of, line_height, shortened, wrapped
from tenet.drawing.marks import Mark, draw_marks
from tenet.pictures import read_picture
from tenet.structures import Detections
from tenet.visualize import INK, PAPER, detection_marks, fitted, shot_marks

WIDTH, TALLEST, SHOT, GAP, MARGIN = 760, 600, 132, 16, 40
SOFT = (96, 103, 112)
LOST = (0, 0, 0)
WORDS = "White boxes were shown, coloured ones found, with their scores; black ones with a white rim missed."

Result = tuple[Scene, Detections, Outcome]


def poster(results: Sequence[Result], title: str, columns: int = 2) -> NDArray[np.uint8]:
    """Scenes side by side, each with its shots above it. Boxes xyxy in pixels of each scene's picture."""
    panels = [_panel(*result) for result in results]
    rows = [panels[start : start + columns] for start in range(0, len(panels), columns)]
    heights = [max(panel.height for panel in row) for row in rows]
    width = columns * WIDTH + (columns + 1) * MARGIN
    sheet = Image.new("RGB", (width, 124 + sum(tall + MARGIN for tall in heights)), PAPER)
    pen = ImageDraw.Draw(sheet)
    pen.text((MARGIN, 26), shortened(title, font_of(36), width - 2 * MARGIN), fill=INK, font=font_of(36))
    _say(pen, (MARGIN, 74), WORDS, 18, SOFT)
    y = 124
    for row, tall in zip(rows, heights, strict=True):
        for column, panel in enumerate(row):
            sheet.paste(panel, (MARGIN + column * (WIDTH + MARGIN), y))
        y += tall + MARGIN
    return np.array(sheet)


def _panel(scene: Scene, found: Detections, outcome: Outcome) -> Image.Image:
    """One scene: heading, what was shown, the picture with what was found."""
    picture = Image.fromarray(_marked(scene, found, outcome))
    top = 96 + SHOT + 2 * GAP
    panel = Image.new("RGB", (WIDTH, top + picture.height), PAPER)
    pen = ImageDraw.Draw(panel)
    _say(pen, (0, 0), f"{scene.name}: {sentence(outcome)}", 26, INK)
    y = 38
    for line in wrapped(scene.about, font_of(18), WIDTH):
        _say(pen, (0, y), line, 18, SOFT)
        y += line_height(font_of(18)) + 2
    left = 0
    for shot in scene.shots:
        image = fitted(cut(read_picture(shot.path), np.array(shot.box, np.float32)), 3 * SHOT, SHOT)
        panel.paste(image, (left, 96))
        left += image.width + GAP
    _say(pen, (left, 96), "shown", 18, SOFT)
    panel.paste(picture, (0, top))
    return panel


def _marked(scene: Scene, found: Detections, outcome: Outcome) -> NDArray[np.uint8]:
    """The scene at its size in the poster, with boxes drawn there."""
    picture = read_picture(scene.path)
    image = np.array(fitted(picture, WIDTH, TALLEST))
    scale = image.shape[1] / picture.shape[1]
    own = np.array([shot.box for shot in scene.shots if shot.file == scene.file], np.float64)
    scaled = replace(found, boxes=found.boxes * np.float32(scale))
    lost = (tuple(side * scale for side in thing.box) for thing in outcome.lost)
    missed = [Mark((x1, y1, x2, y2), LOST) for x1, y1, x2, y2 in lost]
    return draw_marks(image, [*shot_marks(own * scale), *detection_marks(scaled), *missed])


def sentence(outcome: Outcome) -> str:
    """What became of the scene, in words."""
    false = f"{outcome.false} false" if outcome.false else "none false"
    if not outcome.there:
        return f"nothing is there, {false}"
    return f"{outcome.right} of {outcome.there} found, {false}"


def _say(pen: ImageDraw.ImageDraw, corner: tuple[int, int], text: str, size: int, colour: Colour) -> None:
    pen.text(corner, text, fill=colour, font=font_of(size))
