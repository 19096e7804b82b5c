"""What the commands on banks share: their model, and how a shot is written on the command line."""

import argparse
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from tenet.errors import InputError, WeightsError

if TYPE_CHECKING:
    from tenet.bank import ClassBank
    from tenet.predictor import Tenet

Box = tuple[float, float, float, float]


def add_model_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", metavar="NAME", help="the model (default: the one that comes with tenet)")


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
    model = load_model(name)
    check_maker(path, opened, model, name)
    return model, ClassBank.load(path, model)


def check_maker(path: Path, bank: "ClassBank", model: "Tenet", name: str | None) -> None:
    """Refuse a bank of another model than that of `--model`, with the commands that help."""
    made, wanted = bank.fingerprint, model.runtime.fingerprint
    if made == wanted:
        return
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
