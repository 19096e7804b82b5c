"""A picture, however it is given, as (H, W, 3) uint8 RGB: the one door for users' pictures."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tenet.data.images import MAX_PIXELS, decoded, open_picture
from tenet.errors import InputError

PictureLike = Any
"""A path, the bytes of a file, a PIL picture, or an array: (H, W, 3) or (H, W) uint8, RGB or grey."""


def read_picture(source: PictureLike, name: str = "picture") -> NDArray[np.uint8]:
    """(H, W, 3) uint8 RGB, upright. `name` is what an error calls a picture that is not a file."""
    if isinstance(source, (str, Path, bytes)):
        return open_picture(source, None if isinstance(source, (str, Path)) else name)
    if isinstance(source, Image.Image):
        return _from_pil(source, name)
    if isinstance(source, np.ndarray):
        return _from_array(source, name)
    raise InputError(
        f"{name}: expected a path, bytes, a PIL picture or an array, got {type(source).__name__}"
    )


def _from_pil(source: Image.Image, name: str) -> NDArray[np.uint8]:
    _check_size(source.width, source.height, name)
    return decoded(source, name)  # by the same rules as its file


def _from_array(source: NDArray[Any], name: str) -> NDArray[np.uint8]:
    if source.dtype != np.uint8:
        raise InputError(
            f"{name}: expected an array of uint8 (0…255), got {source.dtype}; scale it first: by 255 if it "
            "is 0…1, by 1/257 if it has 16 bits"
        )
    if source.ndim == 2:
        source = np.repeat(source[:, :, None], 3, 2)
    if source.ndim != 3 or source.shape[2] != 3:
        raise InputError(f"{name}: expected an array of shape (H, W, 3) or (H, W), got {source.shape}")
    _check_size(source.shape[1], source.shape[0], name)
    return np.ascontiguousarray(source)


def _check_size(width: int, height: int, name: str) -> None:
    if width < 1 or height < 1:
        raise InputError(f"{name}: expected at least 1 x 1 px, got {width} x {height}")
    if width * height > MAX_PIXELS:
        raise InputError(
            f"{name}: expected at most {MAX_PIXELS // 1_000_000} million pixels, got {width} x {height}; "
            "scale it down"
        )
