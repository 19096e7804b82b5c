"""Colours of classes and of heat maps, and how well text can be read on them.

A class keeps its colour by name, in every picture and on every machine. The ten colours stay apart for
people who cannot tell red from green, or blue from yellow: a test looks at them through such eyes. More
than ten classes share them; the label says which is which.
"""

import zlib
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

Colour = tuple[int, int, int]
"""Red, green, blue, 0…255."""

CLASS_COLOURS: tuple[Colour, ...] = (
    (240, 240, 105),
    (165, 120, 255),
    (240, 45, 0),
    (60, 195, 180),
    (0, 0, 255),
    (180, 90, 150),
    (165, 0, 0),
    (120, 45, 150),
    (120, 255, 255),
    (255, 150, 0),
)
SHOT_COLOUR: Colour = (255, 255, 255)
"""Shots are no class's colour: what was shown should not look like what was found."""
BLACK: Colour = (0, 0, 0)
WHITE: Colour = (255, 255, 255)

# Knots of the heat map's colours in Oklab: lightness rises in a straight line, so that equal steps of
# the map look equal, and the colours can still be told apart in a grey print.
_HEAT_KNOTS = np.array(
    [
        (0.22, 0.01, -0.09),
        (0.405, 0.115, -0.105),
        (0.59, 0.175, 0.035),
        (0.775, 0.075, 0.14),
        (0.96, -0.025, 0.1),
    ]
)
_RGB_TO_CONES = np.array(
    [
        (0.4122214708, 0.5363325363, 0.0514459929),
        (0.2119034982, 0.6806995451, 0.1073969566),
        (0.0883024619, 0.2817188376, 0.6299787005),
    ]
)
_CONES_TO_LAB = np.array(
    [
        (0.2104542553, 0.7936177850, -0.0040720468),
        (1.9779984951, -2.4285922050, 0.4505937099),
        (0.0259040371, 0.7827717662, -0.8086757660),
    ]
)


def class_colour(name: str) -> Colour:
    """The colour of a class, by its name alone."""
    return CLASS_COLOURS[zlib.crc32(name.encode("utf-8", "surrogatepass")) % len(CLASS_COLOURS)]


def linear_light(colour: ArrayLike) -> NDArray[np.float64]:
    """(…, 3) sRGB 0…255 → light, 0…1."""
    value = np.asarray(colour, np.float64) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def contrast(one: ArrayLike, other: ArrayLike) -> float:
    """How well one colour is read on the other, 1…21 (WCAG); 4.5 is enough for small text."""
    weights = np.array([0.2126, 0.7152, 0.0722])
    low, high = sorted(float(linear_light(colour) @ weights) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def text_colour(plate: Colour) -> Colour:
    """Black or white, whichever is read better on the plate."""
    return max((BLACK, WHITE), key=lambda ink: contrast(ink, plate))


def oklab(colour: ArrayLike) -> NDArray[np.float64]:
    """(…, 3) sRGB 0…255 → Oklab, in which distances are about as large as they look."""
    return np.cbrt(linear_light(colour) @ _RGB_TO_CONES.T) @ _CONES_TO_LAB.T


@lru_cache(maxsize=1)
def heat_colours() -> NDArray[np.uint8]:
    """(256, 3): from dark blue, little, over red to pale yellow, much."""
    places = np.linspace(0, 1, len(_HEAT_KNOTS))
    wanted = np.linspace(0, 1, 256)
    lab = np.stack([np.interp(wanted, places, _HEAT_KNOTS[:, axis]) for axis in range(3)], 1)
    light = (lab @ np.linalg.inv(_CONES_TO_LAB).T) ** 3 @ np.linalg.inv(_RGB_TO_CONES).T
    light = np.clip(light, 0, 1)
    value = np.where(light <= 0.0031308, light * 12.92, 1.055 * light ** (1 / 2.4) - 0.055)
    table = np.round(value * 255).astype(np.uint8)
    table.setflags(write=False)
    return table
