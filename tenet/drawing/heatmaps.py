"""Attention maps as colours over the picture that they belong to. Pillow and numpy alone."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tenet.drawing.colours import heat_colours
from tenet.errors import InputError

Picture = NDArray[np.uint8]


def normalised(values: NDArray[np.floating]) -> NDArray[np.float32]:
    """A map (h, w) stretched to 0…1 by its own least and greatest value; a flat one is 0 all over."""
    if values.ndim != 2 or values.size == 0:
        raise InputError(f"map: expected an array of shape (h, w), got {values.shape}")
    if not np.isfinite(values).all():
        raise InputError("map: expected finite numbers, got NaN or infinity")
    wide = values.astype(np.float64)
    low, high = float(wide.min()), float(wide.max())
    # Rounding errors of a flat map are no attention.
    if high - low <= 1e-6 * max(abs(low), abs(high)):
        return np.zeros(values.shape, np.float32)
    return ((wide - low) / (high - low)).astype(np.float32)


def enlarged(values: NDArray[np.floating], width: int, height: int) -> NDArray[np.float32]:
    """A map at `width` × `height` pixels, smoothly; 0…1 stays 0…1."""
    image = Image.fromarray(np.ascontiguousarray(values, np.float32))
    return np.clip(np.asarray(image.resize((width, height), Image.Resampling.BICUBIC)), 0, 1)


def overlay(picture: Picture, values: NDArray[np.floating], strength: float = 0.75) -> Picture:
    """The picture (H, W, 3) in grey, with the map (h, w), spread over the whole of it, in colours.

    Where the map is low the picture shows through; `strength` is how much the colour covers at its
    highest. Each map is stretched to its own range: two of them tell where, not how much.
    """
    if picture.ndim != 3 or picture.shape[2] != 3 or picture.dtype != np.uint8 or picture.size == 0:
        raise InputError(f"picture: expected (H, W, 3) uint8, got {picture.shape} {picture.dtype}")
    if not 0 <= strength <= 1:
        raise InputError(f"strength: expected a number from 0 to 1, got {strength}")
    height, width = picture.shape[:2]
    heat = enlarged(normalised(values), width, height)
    colours = heat_colours()[np.round(heat * 255).astype(np.uint8)].astype(np.float32)
    grey = picture @ np.array([0.299, 0.587, 0.114], np.float32)
    cover = strength * (0.45 + 0.55 * heat)[:, :, None]
    return np.round(grey[:, :, None] * (1 - cover) + colours * cover).astype(np.uint8)
