"""Pictures that people look at: boxes drawn in, and many pictures on one sheet."""

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw

from tenet.runtime.protocol import Picture
from tenet.structures import Detections


def draw_detections(picture: Picture, detections: Detections) -> Picture:
    """A copy of the picture with each box, xyxy in its pixels, and its class and score."""
    image = Image.fromarray(picture)
    draw = ImageDraw.Draw(image)
    for box, name, score in zip(detections.boxes.tolist(), detections.names, detections.scores, strict=True):
        draw.rectangle(box, outline=(255, 140, 0), width=2)
        draw.text((box[0] + 3, box[1] + 3), f"{name} {score:.2f}", fill=(255, 255, 255))
    return np.array(image)


def contact_sheet(
    pictures: Sequence[Picture], captions: Sequence[str], columns: int = 4, cell: int = 320
) -> Picture:
    """The pictures in cells, row by row, each with its caption."""
    rows = -(-len(pictures) // columns)
    sheet = Image.new("RGB", (min(columns, len(pictures)) * cell, rows * cell), (255, 255, 255))
    for place, (picture, caption) in enumerate(zip(pictures, captions, strict=True)):
        small = Image.fromarray(picture)
        small.thumbnail((cell - 8, cell - 24))
        corner = (place % columns * cell + 4, place // columns * cell + 4)
        sheet.paste(small, corner)
        ImageDraw.Draw(sheet).text((corner[0], corner[1] + cell - 20), caption, fill=(0, 0, 0))
    return np.array(sheet)
