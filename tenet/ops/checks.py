"""Refusing what is not the tensor that a function needs, in one line, before torch stumbles over it."""

from torch import Tensor

from tenet.errors import InputError


def check_tensor(name: str, x: object, shape: str, ndim: int | None = None, least_ndim: int = 0) -> None:
    """Refuse what is not a floating tensor of `ndim` axes, or at least `least_ndim`; `shape` is told."""
    if not isinstance(x, Tensor):
        raise InputError(f"{name}: expected a tensor of shape {shape}, got {type(x).__name__}")
    if (ndim is not None and x.ndim != ndim) or x.ndim < least_ndim:
        raise InputError(f"{name}: expected a tensor of shape {shape}, got {tuple(x.shape)}")
    if not x.is_floating_point():
        raise InputError(f"{name}: expected floating-point numbers, got {x.dtype}; call .float() first")


def check_whole(name: str, value: object, least: int) -> None:
    """Refuse what is not a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{name}: expected a whole number of at least {least}, got {value!r}")
