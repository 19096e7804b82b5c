"""Outlines and textures of the synthetic objects: pure functions on a grid.

u and v are coordinates of a grid's points, about −1 to 1 across an object. An outline returns where the
object is; a texture returns a value in [0, 1] that mixes the object's two colours.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Grid = NDArray[np.float64]
Mask = NDArray[np.bool_]


def _square(u: Grid, v: Grid) -> Grid:
    """Distance from the middle in which a square is round."""
    return np.maximum(np.abs(u), np.abs(v))


def _polar(u: Grid, v: Grid) -> tuple[Grid, Grid]:
    return np.hypot(u, v), np.arctan2(v, u)


def _polygon(u: Grid, v: Grid, corners: int) -> Mask:
    radius, angle = _polar(u, v)
    step = 2 * np.pi / corners
    return radius * np.cos((angle + np.pi / 2) % step - step / 2) <= np.cos(step / 2)


def _star(u: Grid, v: Grid, points: int, depth: float) -> Mask:
    radius, angle = _polar(u, v)
    wave = np.abs(((angle + np.pi / 2) * points / (2 * np.pi)) % 1 - 0.5) * 2
    return radius <= 1 - depth + depth * wave


def _gear(u: Grid, v: Grid, teeth: int) -> Mask:
    radius, angle = _polar(u, v)
    edge = np.where(np.cos(angle * teeth) > 0, 1.0, 0.74)
    return (radius <= edge) & (radius >= 0.28)


def _flower(u: Grid, v: Grid, petals: int) -> Mask:
    radius, angle = _polar(u, v)
    return radius <= 0.62 + 0.38 * np.cos(petals * angle)


def _heart(u: Grid, v: Grid) -> Mask:
    x, y = u * 1.15, -v * 1.15 + 0.1
    return (x**2 + y**2 - 0.75) ** 3 - x**2 * y**3 * 1.6 <= 0


def _crescent(u: Grid, v: Grid) -> Mask:
    return (np.hypot(u, v) <= 1) & (np.hypot(u - 0.45, v) > 0.78)


def _arrow(u: Grid, v: Grid) -> Mask:
    head = (u >= 0) & (np.abs(v) <= (1 - u) * 0.9)
    shaft = (u >= -1) & (u < 0) & (np.abs(v) <= 0.32)
    return head | shaft


def _bottle(u: Grid, v: Grid) -> Mask:
    body = (np.abs(u) <= 0.5) & (v >= -0.25) & (v <= 1)
    neck = (np.abs(u) <= 0.2) & (v >= -1) & (v < -0.2)
    return body | neck | (np.hypot(u / 0.5, (v + 0.25) / 0.3) <= 1)


def _fish(u: Grid, v: Grid) -> Mask:
    body = np.hypot((u - 0.2) / 0.8, v / 0.48) <= 1
    tail = (u >= -1) & (u <= -0.4) & (np.abs(v) <= (-u - 0.35) * 0.85)
    return body | tail


OUTLINES: dict[str, Callable[[Grid, Grid], Mask]] = {
    "disc": lambda u, v: np.hypot(u, v) <= 1,
    "ring": lambda u, v: (np.hypot(u, v) <= 1) & (np.hypot(u, v) >= 0.52),
    "plate": lambda u, v: (np.abs(u) <= 1) & (np.abs(v) <= 0.55),
    "triangle": lambda u, v: _polygon(u, v, 3),
    "pentagon": lambda u, v: _polygon(u, v, 5),
    "star": lambda u, v: _star(u, v, 5, 0.58),
    "burst": lambda u, v: _star(u, v, 11, 0.36),
    "cross": lambda u, v: ((np.abs(u) <= 0.34) | (np.abs(v) <= 0.34)) & (_square(u, v) <= 1),
    "gear": lambda u, v: _gear(u, v, 9),
    "flower": lambda u, v: _flower(u, v, 6),
    "clover": lambda u, v: _flower(u, v, 3),
    "heart": _heart,
    "crescent": _crescent,
    "arrow": _arrow,
    "bottle": _bottle,
    "fish": _fish,
    "capsule": lambda u, v: np.hypot(np.maximum(np.abs(u) - 0.55, 0), v) <= 0.45,
    "frame": lambda u, v: (_square(u, v) <= 0.9) & (_square(u, v) >= 0.5),
}


def _wave(value: Grid) -> Grid:
    """A soft square wave of period 1."""
    return np.clip(0.5 + 2.5 * np.sin(2 * np.pi * value), 0, 1)


def _bricks(u: Grid, v: Grid) -> Grid:
    row = np.floor(v * 3.5)
    across = (u * 2 + 0.5 * (row % 2)) % 1
    return np.where((across < 0.12) | ((v * 3.5) % 1 < 0.2), 1.0, 0.0)


def _scales(u: Grid, v: Grid) -> Grid:
    row = np.floor(v * 4)
    return np.hypot((u * 4 + 0.5 * (row % 2)) % 1 - 0.5, (v * 4) % 1 - 0.1) % 0.8 / 0.8


TEXTURES: dict[str, Callable[[Grid, Grid], Grid]] = {
    "plain": lambda u, v: np.zeros_like(u),
    "shaded": lambda u, v: np.clip(0.5 + 0.5 * u + 0.25 * v, 0, 1),
    "striped": lambda u, v: _wave(u * 2.5),
    "banded": lambda u, v: _wave(v * 1.2),
    "checked": lambda u, v: ((np.floor(u * 2.5) + np.floor(v * 2.5)) % 2).astype(np.float64),
    "dotted": lambda u, v: np.where(np.hypot((u * 3) % 1 - 0.5, (v * 3) % 1 - 0.5) < 0.3, 1.0, 0.0),
    "ringed": lambda u, v: _wave(np.hypot(u, v) * 2.4),
    "zigzag": lambda u, v: _wave(v * 2.5 + np.abs((u * 3) % 1 - 0.5)),
    "rayed": lambda u, v: _wave(np.arctan2(v, u) * 8 / (2 * np.pi)),
    "brick": _bricks,
    "scaled": _scales,
    "marbled": lambda u, v: _wave(u * 1.3 + 0.45 * np.sin(v * 4.1 + np.sin(u * 5.3))),
}

COLOURS: dict[str, tuple[int, int, int]] = {
    "red": (205, 45, 40),
    "orange": (238, 132, 30),
    "yellow": (240, 208, 50),
    "green": (60, 150, 65),
    "teal": (30, 150, 150),
    "blue": (45, 90, 200),
    "violet": (125, 65, 175),
    "pink": (235, 125, 170),
    "brown": (125, 80, 45),
    "white": (238, 236, 230),
    "grey": (130, 132, 138),
    "black": (35, 34, 38),
}
