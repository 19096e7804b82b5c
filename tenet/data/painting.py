"""How made pictures are painted: backgrounds, and objects that may hide each other a little.

Who is where is a map of owners: for each pixel the number of the object that one sees there, or −1. A box is
the extent of an object's pixels in it, exact by construction.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenet.data.shapes import TEXTURES

Progress = Callable[[Iterable[Any], int], Iterable[Any]]
"""Wraps an iterable and its length, as tqdm does."""
MAX_HIDDEN = 1 / 3
"""Share of an object that others may hide."""
SUPERSAMPLING = 2


def extent(mask: NDArray[np.bool_]) -> tuple[int, int, int, int]:
    """xyxy edges of the tightest box around the set pixels."""
    columns, rows = np.flatnonzero(mask.any(axis=0)), np.flatnonzero(mask.any(axis=1))
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def leaves_enough(
    under: NDArray[np.int64], solid: NDArray[np.bool_], owners: NDArray[np.int64], areas: list[int]
) -> bool:
    """Whether every object below would still show enough of itself."""
    for number in np.unique(under[solid]).tolist():
        if number >= 0:
            shown = int((owners == number).sum()) - int((under[solid] == number).sum())
            if shown < areas[number] * (1 - MAX_HIDDEN):
                return False
    return True


def pooled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean over blocks of the supersampled grid."""
    s = SUPERSAMPLING
    rows, columns, channels = values.shape
    return values.reshape(rows // s, s, columns // s, s, channels).mean(axis=(1, 3))


def eroded(mask: NDArray[np.bool_], by: int) -> NDArray[np.bool_]:
    inner = mask.copy()
    for axis in (0, 1):
        for step in (-by, by):
            inner &= np.roll(mask, step, axis)
    return inner


def tinted(rng: np.random.Generator, colour: tuple[int, int, int]) -> NDArray[np.float64]:
    return np.clip(np.array(colour) * rng.uniform(0.82, 1.12) + rng.normal(0, 9, 3), 0, 255)


def clouds(rng: np.random.Generator, width: int, height: int) -> NDArray[np.float64]:
    """Clouds of noise of several sizes between two muted colours, now and then with a horizon."""
    field = np.zeros((height, width))
    for octave, weight in ((2, 1.0), (5, 0.6), (11, 0.35), (27, 0.2)):
        field += weight * _smooth(rng, octave, width, height)
    field = (field - field.min()) / max(float(np.ptp(field)), 1e-6)
    low, high = (_muted(rng) for _ in range(2))
    canvas = low + (high - low) * field[..., None]
    if rng.random() < 0.5:
        level = height * (rng.uniform(0.3, 0.7) + 0.12 * _smooth(rng, 6, width, 1)[0])
        below = np.arange(height)[:, None] >= level[None]
        canvas = np.where(below[..., None], canvas * 0.55 + _muted(rng) * 0.45, canvas)
    if rng.random() < 0.6:
        canvas = canvas + _weave(rng, width, height)[..., None]
    return canvas


def _weave(rng: np.random.Generator, width: int, height: int) -> NDArray[np.float64]:
    """A faint pattern over a part of the picture: texture alone does not make an object."""
    texture = TEXTURES[list(TEXTURES)[int(rng.integers(len(TEXTURES)))]]
    scale, angle = rng.uniform(1.5, 6), rng.uniform(0, np.pi)
    x, y = np.meshgrid(np.arange(width) / min(width, height), np.arange(height) / min(width, height))
    u, v = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
    where = np.clip(4 * (_smooth(rng, 3, width, height) - 0.45), 0, 1)
    return rng.uniform(8, 30) * where * (texture(u * scale, v * scale) - 0.5)


def _smooth(rng: np.random.Generator, cells: int, width: int, height: int) -> NDArray[np.float64]:
    """Noise with about `cells` blobs across, in [0, 1]."""
    knots = rng.random((cells + 2, cells + 2))
    y, x = np.linspace(0, cells, height), np.linspace(0, cells, width)
    row, column = np.floor(y).astype(int), np.floor(x).astype(int)
    fy, fx = (t * t * (3 - 2 * t) for t in (y - row, x - column))
    top = knots[np.ix_(row, column)] * (1 - fx) + knots[np.ix_(row, column + 1)] * fx
    bottom = knots[np.ix_(row + 1, column)] * (1 - fx) + knots[np.ix_(row + 1, column + 1)] * fx
    return top * (1 - fy)[:, None] + bottom * fy[:, None]


def _muted(rng: np.random.Generator) -> NDArray[np.float64]:
    grey = rng.uniform(60, 200)
    return np.clip(grey + rng.normal(0, 22, 3), 20, 235)
