"""From what a user calls a shot to what a bank keeps of it.

A shot is a picture (path, bytes, PIL picture or array) that is the crop itself, or a pair
(picture, (x1, y1, x2, y2)) in pixels of that picture.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tenet.banks.stored_shots import CROP_QUALITY, SCENE_QUALITY, SUBSAMPLING, Box, Picture, StoredShot
from tenet.data.images import encode_jpeg
from tenet.data.transforms import resize, support_crop
from tenet.errors import DataError, InputError
from tenet.looks.sizes import LARGEST, SeenSize, scaled_to
from tenet.pictures import read_picture

ShotLike = Any
"""A picture (`tenet.pictures.PictureLike`), or (picture, (x1, y1, x2, y2)) in pixels of that picture."""

WHOLE = 0.95
"""A box that covers more than this share of its picture leaves no surroundings: it is a bare crop."""
LEAST_SIDE = 1.0
"""A box with a side below one pixel, inside its picture, is empty."""
SLACK = 0.5
"""A box that reaches less than this outside its picture, in pixels, is rounding and no mistake."""


def read_shots(shots: ShotLike | Iterable[ShotLike], size: int) -> list[tuple[StoredShot, str]]:
    """All shots of a call with crops of side `size`, each with what to tell the user about it ("": nothing).

    One bad shot is an error that names it, counted from 0; nothing is kept of the others then.
    """
    given = as_list(shots)
    if not given:
        raise InputError("shots: expected at least one, got none; give a crop, or (picture, box)")
    read = []
    for row, one in enumerate(given):
        try:
            read.append(read_shot(one, size))
        except (InputError, DataError) as error:
            raise type(error)(f"shot {row}: {error}") from error
    return read


def as_list(shots: ShotLike | Iterable[ShotLike]) -> list[ShotLike]:
    """The shots one by one; a single one need not be wrapped in a list."""
    if _is_picture(shots) or _is_pair(shots):
        return [shots]
    if isinstance(shots, dict) or not isinstance(shots, Iterable):
        raise InputError(
            f"shots: expected a list of pictures or (picture, (x1, y1, x2, y2)), got {type(shots).__name__}"
        )
    return list(shots)


def read_shot(shot: ShotLike, size: int) -> tuple[StoredShot, str]:
    """One shot with a crop of side `size`, and what to tell the user about it ("" where all is well)."""
    if not isinstance(shot, (tuple, list)):
        picture = read_picture(shot)
        height, width = picture.shape[:2]
        return _bare(picture, (0, 0, width, height), size), ""
    if not _is_pair(shot):
        raise InputError(
            "expected a picture or a pair (picture, (x1, y1, x2, y2)), "
            f"got a {type(shot).__name__} of {len(shot)}"
        )
    picture = read_picture(shot[0])
    box, note = _box_in(shot[1], picture)
    height, width = picture.shape[:2]
    if (box[2] - box[0]) * (box[3] - box[1]) > WHOLE * width * height:
        told = "its box covers the whole picture, so it counts as a bare crop without surroundings"
        return _bare(picture, box, size), f"{note}; {told}" if note else told
    return _in_picture(picture, box, size), note


def _is_picture(value: object) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim in (2, 3)
    return isinstance(value, (str, Path, bytes, Image.Image))


def _is_pair(value: object) -> bool:
    """(picture, box): the second is neither a picture nor text, and there is no third."""
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        return False
    box = value[1]
    if isinstance(box, np.ndarray):
        return box.ndim == 1
    return hasattr(box, "__len__") and not _is_picture(box) and not _holds_picture(box)


def _holds_picture(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and len(value) == 2 and _is_picture(value[0])


def _box_in(given: Any, picture: Picture) -> tuple[Box, str]:
    """A user's box (x1, y1, x2, y2) in pixels of the picture, clipped to it, and a note if that cut it."""
    try:
        box = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        box = np.zeros(0)
    if box.shape != (4,) or not np.isfinite(box).all():
        raise InputError(f"expected a box of four finite numbers (x1, y1, x2, y2), got {_shown(given)}")
    if box[2] <= box[0] or box[3] <= box[1]:
        raise InputError(
            f"expected a box (x1, y1, x2, y2) with x2 > x1 and y2 > y1, got {_shown(box.tolist())}; "
            "is it x, y, width, height?"
        )
    height, width = picture.shape[:2]
    clipped = np.clip(box, 0, (width, height, width, height))
    if (clipped[2:] - clipped[:2] < LEAST_SIDE).any():
        raise InputError(
            f"expected a box with at least {LEAST_SIDE:g} × {LEAST_SIDE:g} px inside its picture of "
            f"{width} × {height} px, got {_shown(box.tolist())}; does it belong to another picture?"
        )
    x1, y1, x2, y2 = clipped.tolist()
    outside = float(np.abs(clipped - box).max())
    note = f"its box reaches {outside:.0f} px outside the picture and was cut there"
    return (x1, y1, x2, y2), note if outside > SLACK else ""


def _shown(box: Any) -> str:
    numbers = isinstance(box, (list, tuple)) and all(isinstance(value, (int, float)) for value in box)
    text = ", ".join(f"{value:g}" for value in box) if numbers else " ".join(repr(box).split())
    return text if len(text) <= 80 else text[:80] + "…"


def _bare(picture: Picture, box: Box, size: int) -> StoredShot:
    """A shot without surroundings; `box` is xyxy in pixels of `picture`."""
    crop, inner = support_crop(picture, np.array(box, np.float32), size)
    seen = SeenSize((box[2] - box[0], box[3] - box[1]))
    return StoredShot(
        encode_jpeg(crop, CROP_QUALITY, SUBSAMPLING), _as_box(inner), seen, _source(picture, box)
    )


def _in_picture(picture: Picture, box: Box, size: int) -> StoredShot:
    """A shot with its surroundings; `box` is xyxy in pixels of `picture`."""
    height, width = picture.shape[:2]
    rows = np.array([box], np.float32)
    crop, inner = support_crop(picture, rows[0], size)
    longer = min(max(width, height), LARGEST)
    scene, scene_boxes = resize(picture, rows, *scaled_to((width, height), longer))
    return StoredShot(
        crop=encode_jpeg(crop, CROP_QUALITY, SUBSAMPLING),
        box=_as_box(inner),
        seen=SeenSize((box[2] - box[0], box[3] - box[1]), (width, height)),
        source=_source(picture, box),
        scene=encode_jpeg(scene, SCENE_QUALITY, SUBSAMPLING),
        scene_box=_as_box(scene_boxes[0]),
    )


def _as_box(row: NDArray[np.float32]) -> Box:
    x1, y1, x2, y2 = (float(value) for value in row)
    return x1, y1, x2, y2


def _source(picture: Picture, box: Box) -> bytes:
    """16 bytes that tell these pixels with this box (xyxy, pixels of the picture) from any others."""
    digest = hashlib.blake2b(np.array([*picture.shape, *box], "<f8").tobytes(), digest_size=16)
    digest.update(np.ascontiguousarray(picture).data)
    return digest.digest()
