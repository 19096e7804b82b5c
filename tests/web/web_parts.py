"""Pictures as files, and a whole service around the fake model."""

import io
from pathlib import Path

import numpy as np
from bank_parts import THING, picture
from fake_runtime import FakeRuntime
from PIL import Image

from tenet.predictor import Tenet
from tenet.web.database import Database
from tenet.web.library import Library
from tenet.web.limits import Limits
from tenet.web.store import ClassStore
from tenet.web.teaching import Teacher

BOX = THING
"""Where the thing is in `file`'s picture, xyxy in pixels."""


OPENED: list[Database] = []
"""Stores that a test opened; a fixture closes them after it."""


def png(pixels: np.ndarray) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


def file(colour: str = "red", seed: int = 0) -> bytes:
    """A picture file with a thing of that colour at `BOX`."""
    return png(picture(colour, seed=seed))


def school(where: Path | str, runtime: FakeRuntime | None = None, **limits: int) -> tuple[Library, Teacher]:
    """A library and its teacher on a store."""
    OPENED.append(Database(where))
    library = Library(ClassStore(OPENED[-1]), runtime or FakeRuntime())
    return library, Teacher(library, Limits(**limits))


def fake_model() -> Tenet:
    return Tenet(FakeRuntime())
