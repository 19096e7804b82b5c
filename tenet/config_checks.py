"""What a setting may be: each check refuses with one line that names the field."""

import math
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import get_args, get_origin, get_type_hints

from tenet.errors import ConfigError


def one_of(name: str, value: object, allowed: Sequence[object]) -> None:
    """Refuse a value that is none of those allowed."""
    if value not in allowed:
        raise ConfigError(f"{name}: expected one of {', '.join(map(str, allowed))}; got {value!r}")


def check_types(part: object) -> None:
    """Refuse a value whose type is not its field's; whole numbers may stand for others."""
    assert is_dataclass(part)
    hints = get_type_hints(type(part))
    for item in fields(part):
        value = getattr(part, item.name)
        if not _fits(value, hints[item.name]):
            wanted = getattr(hints[item.name], "__name__", None) or str(hints[item.name])
            wanted = str(hints[item.name]) if get_args(hints[item.name]) else wanted
            raise ConfigError(f"{item.name}: expected {wanted}, got {value!r}")


def _fits(value: object, hint: object) -> bool:
    if get_origin(hint) is tuple:
        inner = get_args(hint)
        if not isinstance(value, tuple):
            return False
        if inner[-1] is Ellipsis:
            return all(_fits(one, inner[0]) for one in value)
        return len(value) == len(inner) and all(_fits(a, b) for a, b in zip(value, inner, strict=True))
    if get_args(hint):  # a union
        return any(_fits(value, one) for one in get_args(hint))
    if isinstance(value, bool):
        return hint is bool
    if hint is float:
        return isinstance(value, (int, float)) and math.isfinite(value)
    return isinstance(value, hint) if isinstance(hint, type) else True


def between(name: str, value: float, least: float, most: float) -> None:
    """Refuse a number outside the limits, which are allowed."""
    if not least <= value <= most:
        raise ConfigError(f"{name}: expected a number from {least} to {most}, got {value!r}")


def at_least(name: str, value: float, least: float) -> None:
    """Refuse a number below the least."""
    if not value >= least:
        raise ConfigError(f"{name}: expected at least {least}, got {value!r}")
