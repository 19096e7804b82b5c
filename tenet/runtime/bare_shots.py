"""Bare crops as little scenes: the thing at the size at which things are looked for, on an even ground.

A shot without its picture shows no surroundings, but it still tells the RPN what its cells look like on the
thing; cells of training pictures stand for all that it is not (`rpn.background`). The edges between thing and
ground would teach wrongly how boxes sit on it, so nothing else is learned there.
"""

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tenet.looks.sizes import OBJECT
from tenet.runtime.protocol import Picture
from tenet.structures import Shot

SIDE, MARGIN = 288, 8
GROUND = (124, 116, 104)
"""The mean colour of ImageNet's pictures."""


def on_ground(shot: Shot) -> tuple[Picture, NDArray[np.float32]]:
    """The thing in the middle of a square picture, and its box (1, 4), xyxy in pixels of that picture."""
    x1, y1 = np.floor(shot.box[:2]).astype(int).clip(0)
    x2, y2 = np.ceil(shot.box[2:]).astype(int)
    thing = shot.crop[y1:y2, x1:x2]
    height, width = thing.shape[:2]
    scale = min(OBJECT / np.sqrt(width * height), (SIDE - 2 * MARGIN) / max(width, height))
    size = (max(MARGIN, round(width * scale)), max(MARGIN, round(height * scale)))
    picture = np.empty((SIDE, SIDE, 3), np.uint8)
    picture[:] = GROUND
    left, top = (SIDE - size[0]) // 2, (SIDE - size[1]) // 2
    scaled = Image.fromarray(np.ascontiguousarray(thing)).resize(size, Image.Resampling.BILINEAR)
    picture[top : top + size[1], left : left + size[0]] = np.array(scaled)
    return picture, np.array([[left, top, left + size[0], top + size[1]]], np.float32)
