"""What the commands on banks share: their model, and how a shot is written on the command line."""

import argparse
import hashlib
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tenet.errors import InputError, WeightsError

if TYPE_CHECKING:
    from tenet.bank import ClassBank
    from tenet.predictor import Tenet

Box = tuple[float, float, float, float]
OUTSIDE = 0.1
"""A box that lies outside its picture by more than this share of its side may have been meant otherwise."""


def add_model_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model", metavar="NAME", help="the model (default: that of the bank, or what comes with tenet)"
    )


def load_model(name: str | None) -> "Tenet":
    """The model of `--model`."""
    from tenet.predictor import Tenet

    return Tenet.load(name) if name else Tenet.load()


def load_to_look(path: Path, name: str | None) -> tuple["Tenet", "ClassBank"]:
    """The model of `--model` and a bank of it with classes to look for."""
    from tenet.bank import ClassBank

    opened = ClassBank.open(path)  # a bank that is none is refused before the model, which takes seconds
    if not len(opened):
        raise InputError(
            f"{path}: expected at least one class to look for, got an empty bank; "
            f"register one: `tenet register {shlex.quote(str(path))} NAME IMAGE`"
        )
    model = load_maker(path, opened, name)
    return model, ClassBank.load(path, model)


@contextmanager
def changing(path: Path) -> Iterator[None]:
    """Load, change and save a bank while no other command of this user does, so that none loses what the
    other put into it."""
    from tenet.engine.locks import locked

    user = os.getuid() if hasattr(os, "getuid") else 0
    digest = hashlib.blake2b(str(path.resolve()).encode(), digest_size=12).hexdigest()
    lock = Path(tempfile.gettempdir()) / f"tenet-{user}-{digest}.lock"
    with locked(lock, lambda: print(f"{path}: waiting for another command to save it", file=sys.stderr)):
        yield


def load_maker(path: Path, bank: "ClassBank", name: str | None) -> "Tenet":
    """The model of `--model`; without it that of the bank, if it came with the package. Another than made the
    bank is refused, with the commands that help."""
    from tenet.runtime.shipped import shipped_models

    known = name is None and bank.model_name in shipped_models()
    model = load_model(bank.model_name if known else name)
    made, wanted = bank.fingerprint, model.runtime.fingerprint
    if made == wanted:
        return model
    rebuild = ["tenet", "classes", str(path), "--rebuild", *(["--model", name] if name else [])]
    raise WeightsError(
        f"{path}: expected a bank of model {model.name} ({wanted[:12]}), got one of {bank.model_name} "
        f"({made[:12]}); give the model that made it: `--model NAME`, or encode its stored shots anew: "
        f"`{shlex.join(rebuild)}`"
    )


def parse_shot(text: str) -> tuple[Path, Box | None]:
    """`IMAGE` or `IMAGE:x,y,w,h`, as a path and a box (xyxy in pixels of that picture).

    A path may have colons and commas of its own (a drive letter, a time of day): what exists under the
    whole text is a path, and only what follows the last colon can be a box.
    """
    path, colon, tail = text.rpartition(":")
    if not colon or not path or "," not in tail or "/" in tail or "\\" in tail or os.path.exists(text):
        return Path(text), None
    try:
        x, y, width, height = (float(word) for word in tail.split(","))
    except ValueError:
        raise InputError(f"{text}: expected IMAGE:x,y,w,h with four numbers, got {tail!r}") from None
    if not (width > 0 and height > 0):
        raise InputError(f"{text}: expected a box x,y,w,h with w and h above 0, got {tail!r}")
    return Path(path), (x, y, x + width, y + height)


def check_inside(text: str, size: tuple[int, int], box: Box) -> None:
    """Refuse a box (xyxy) that leaves its picture (width, height) and would fit had corners been written."""
    x1, y1, x2, y2 = box
    width, height = x2 - x1, y2 - y1
    outside = max((x2 - size[0]) / width, (y2 - size[1]) / height)
    if outside > OUTSIDE and x1 < width <= size[0] and y1 < height <= size[1]:
        raise InputError(
            f"{text}: expected x,y,w,h inside {size[0]} x {size[1]} px, got a box that ends at {x2:g}, "
            f"{y2:g}; if these are corners, write {x1:g},{y1:g},{width - x1:g},{height - y1:g}"
        )
