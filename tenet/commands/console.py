"""What the commands share: progress on a terminal, where JSON goes, and whether a file can be written."""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tenet.data.files import write_json
from tenet.errors import InputError


def progress(items: Iterable[Any], total: int) -> Iterable[Any]:
    """`items` with a bar on stderr, only where that is a terminal."""
    if not sys.stderr.isatty():
        return items
    from tqdm import tqdm

    return iter(tqdm(items, total=total, file=sys.stderr, leave=False))


def emit_json(document: object, where: str) -> None:
    """Write `--json FILE`; `-` is stdout."""
    if where == "-":
        print(json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1))
    else:
        write_json(Path(where), document, indent=1)


def check_out(out: Path, suffixes: Sequence[str], flag: str = "--out") -> None:
    """Refuse a file that we cannot write, or of no kind that we write, before the work and not after it."""
    if out.suffix.lower() not in suffixes:
        raise InputError(f"{flag}: expected a name that ends in {', '.join(suffixes)}; got {out}")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{flag}: expected a folder for {out}, but it cannot be made ({error.strerror})"
        ) from error
    if out.is_dir() or not os.access(out.parent, os.W_OK):
        raise InputError(f"{flag}: expected a file that can be written, got {out}; choose another place")


def check_folder(out: Path, flag: str = "--out") -> None:
    """Refuse a folder that cannot be made or written, before the work and not after it; nothing is made."""
    folder = os.path.abspath(out)
    while not os.path.exists(folder):
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        raise InputError(f"{flag}: expected a folder that can be written, got {out}; choose another place")


def check_json(where: str | None) -> None:
    """Refuse a `--json FILE` that cannot be written, before the work and not after it; nothing is made."""
    if where in (None, "-"):
        return
    folder = os.path.dirname(os.path.abspath(str(where)))
    while not os.path.exists(folder):
        folder = os.path.dirname(folder)
    if os.path.isdir(str(where)) or not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        raise InputError(f"--json: expected a file that can be written, got {where}; choose another place")


def working_size(text: str) -> int | str:
    """`auto`, `thorough`, `once`, `original`, or a number of pixels."""
    from tenet.looks.views import WORDS

    if text in WORDS:
        return text
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected {', '.join(WORDS)} or a number, got {text!r}")
    return int(text)


def add_set_arguments(parser: argparse.ArgumentParser) -> None:
    """How to read a set: shared by the commands that do."""
    parser.add_argument(
        "--format", choices=("coco", "fsod", "voc", "yolo"), help="its format, if not detected"
    )
    parser.add_argument("--images", type=Path, metavar="FOLDER", help="where its pictures are, if elsewhere")
    parser.add_argument(
        "--set",
        dest="image_set",
        metavar="NAME",
        help="an image set of VOC or a part of YOLO, such as trainval",
    )


def add_results_argument(parser: argparse.ArgumentParser) -> None:
    """Where the command's record goes (`tenet.records`)."""
    parser.add_argument(
        "--results",
        type=Path,
        metavar="FILE.json",
        help="a record: figures, configuration, seeds, commit, time, command; `tenet results` reads it",
    )


def names(text: str) -> list[str]:
    """Class names, separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def size(text: str) -> tuple[int, int]:
    """`640x480` as (640, 480)."""
    try:
        width, height = (int(side) for side in text.lower().split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected WIDTHxHEIGHT such as 320x240, got {text!r}") from None
    return width, height


def at_least_one(text: str) -> int:
    """A whole number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got {text!r}")
    return int(text)


def whole_numbers(text: str) -> list[int]:
    """`0,1,2` as whole numbers from 0."""
    words = names(text)
    if not words or not all(word.isdecimal() for word in words):
        raise argparse.ArgumentTypeError(f"expected whole numbers such as 0,1,2; got {text!r}")
    return [int(word) for word in words]
