"""Pictures and their boxes, changed together. Pure functions over numpy; no argument is changed.

Pictures are (H, W, 3) uint8 RGB. Boxes are (n, 4) float32 xyxy in pixels of the picture beside them.
"""

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tenet.errors import InputError

Picture = NDArray[np.uint8]
Boxes = NDArray[np.float32]
LUMINANCE = np.array([0.299, 0.587, 0.114], np.float32)
"""Shares of red, green and blue in what looks bright (ITU-R BT.601)."""


def resize(picture: Picture, boxes: Boxes, width: int, height: int) -> tuple[Picture, Boxes]:
    """Picture and boxes at `width` × `height`, bilinear with anti-aliasing; boxes in the new pixels."""
    if width < 1 or height < 1:
        raise InputError(f"resize: expected a size of at least 1 × 1, got {width} × {height}")
    old_height, old_width = picture.shape[:2]
    scale = np.array([width / old_width, height / old_height] * 2, np.float32)
    if (width, height) == (old_width, old_height):
        return picture.copy(), boxes.copy()
    scaled = Image.fromarray(picture).resize((width, height), Image.Resampling.BILINEAR)
    return np.array(scaled), boxes * scale


def query_size(width: int, height: int, shorter: int, longer: int) -> tuple[int, int]:
    """(W, H) with the shorter side at `shorter`, unless the longer one would then exceed `longer`."""
    if not 1 <= shorter <= longer:
        raise InputError(f"query size: expected 1 <= shorter <= longer, got {shorter} and {longer}")
    scale = min(shorter / min(width, height), longer / max(width, height))
    return max(1, round(width * scale)), max(1, round(height * scale))


def stretched_size(width: int, height: int, aspect: float) -> tuple[float, float]:
    """(W, H) of the same area whose aspect W / H is `aspect` times what it was."""
    if aspect <= 0:
        raise InputError(f"aspect: expected more than 0, got {aspect}")
    root = float(np.sqrt(aspect))
    return width * root, height / root


def flip(picture: Picture, boxes: Boxes) -> tuple[Picture, Boxes]:
    """Left and right exchanged; boxes in the mirrored picture."""
    width = picture.shape[1]
    mirrored = boxes.copy()
    mirrored[:, 0], mirrored[:, 2] = width - boxes[:, 2], width - boxes[:, 0]
    return np.ascontiguousarray(picture[:, ::-1]), mirrored


def turn(picture: Picture, boxes: Boxes, quarters: int) -> tuple[Picture, Boxes]:
    """Turned by `quarters` right angles against the clock; boxes in the turned picture."""
    for _ in range(quarters % 4):
        width = picture.shape[1]
        picture = np.ascontiguousarray(np.rot90(picture))
        x1, y1, x2, y2 = boxes.T
        boxes = np.stack([y1, width - x2, y2, width - x1], 1)
    return picture.copy(), boxes.copy()


def recolour(picture: Picture, rng: np.random.Generator) -> Picture:
    """The same scene as another camera might see it: grey, negative (as heat is often shown), with its
    colours exchanged, or as it was; then with another brightness and contrast."""
    values = picture.astype(np.float32) / 255
    kind = int(rng.integers(4))
    if kind < 2:
        values = np.repeat(values @ LUMINANCE[:, None], 3, 2)
    if kind == 1:
        values = 1 - values
    if kind == 2:
        values = values[..., rng.permutation(3)]
    low, high = rng.uniform(0, 0.3), rng.uniform(0.7, 1)
    values = low + (high - low) * values ** rng.uniform(0.6, 1.6)
    return np.asarray(np.round(values * 255), np.uint8)


def support_crop(
    picture: Picture, box: NDArray[np.float32], size: int, context: float = 16
) -> tuple[Picture, NDArray[np.float32]]:
    """A shot as the network sees it: (size, size, 3) uint8, and the object's box inside it.

    box      (4,) xyxy in pixels of `picture`
    context  pixels of surroundings on each side, as far as the picture goes
    The longer side is scaled to `size`; the rest is zero, half on each side. The second value is (4,)
    float32 xyxy in pixels of the crop: the object without context and padding.
    """
    height, width = picture.shape[:2]
    x1, y1, x2, y2 = (float(value) for value in box)
    if not (np.isfinite(box).all() and x2 > x1 and y2 > y1):
        raise InputError(
            f"support crop: expected a box (x1, y1, x2, y2) with x2 > x1, y2 > y1; got {box.tolist()}"
        )
    left, top = max(0, int(np.floor(x1 - context))), max(0, int(np.floor(y1 - context)))
    right, bottom = min(width, int(np.ceil(x2 + context))), min(height, int(np.ceil(y2 + context)))
    if right <= left or bottom <= top:
        raise InputError(f"support crop: expected a box inside {width} × {height}, got {box.tolist()}")
    crop_width, crop_height = right - left, bottom - top
    scale = size / max(crop_width, crop_height)
    new_width = max(1, min(size, round(crop_width * scale)))
    new_height = max(1, min(size, round(crop_height * scale)))
    region = Image.fromarray(np.ascontiguousarray(picture[top:bottom, left:right]))
    scaled = np.asarray(region.resize((new_width, new_height), Image.Resampling.BILINEAR))
    pad_x, pad_y = (size - new_width) // 2, (size - new_height) // 2
    crop = np.zeros((size, size, 3), np.uint8)
    crop[pad_y : pad_y + new_height, pad_x : pad_x + new_width] = scaled
    ratio_x, ratio_y = new_width / crop_width, new_height / crop_height
    inner = np.array(
        [
            (x1 - left) * ratio_x + pad_x,
            (y1 - top) * ratio_y + pad_y,
            (x2 - left) * ratio_x + pad_x,
            (y2 - top) * ratio_y + pad_y,
        ],
        np.float32,
    )
    low = np.array([pad_x, pad_y] * 2, np.float32)
    high = np.array([pad_x + new_width, pad_y + new_height] * 2, np.float32)
    return crop, np.clip(inner, low, high)
