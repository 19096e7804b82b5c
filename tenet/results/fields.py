"""What one field of a file of results says: a number, or a DataError that names its place.

`where` is what an error calls the place: the file, and the row or object in it.
"""

import math
from typing import Any

import numpy as np

from tenet.errors import DataError

_MOST = float(np.finfo(np.float32).max)  # boxes are kept as float32, where more is infinity


def finite(value: float) -> bool:
    """Whether it is a number that a box can hold; NaN is none."""
    return abs(value) <= _MOST


def number(value: Any, where: str, field: str) -> float:
    """A finite number."""
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not finite(found):
        raise DataError(f"{where}: expected a finite number as {field}, got {value!r:.60}")
    return found


def whole(value: Any, where: str, field: str) -> int:
    """A whole number, written as `3` or `3.0`."""
    found = number(value, where, field)
    if not found.is_integer() or abs(found) >= 2**53:
        raise DataError(f"{where}: expected a whole number as {field}, got {value!r:.60}")
    return int(found)


def side(value: Any, where: str, field: str) -> int:
    """The width or the height of a picture."""
    found = whole(value, where, field)
    if found < 1:
        raise DataError(f"{where}: expected a {field} of at least 1 px, got {value!r:.60}")
    return found


def share(value: Any, where: str, field: str) -> float:
    """A number from 0 to 1."""
    found = number(value, where, field)
    if not 0 <= found <= 1:
        raise DataError(f"{where}: expected a {field} from 0 to 1, got {value!r:.60}")
    return found
