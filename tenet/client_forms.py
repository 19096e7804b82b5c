"""Forms as the client sends them: files and plain values of one request."""

import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tenet.errors import DataError, InputError

PictureFile = Path | str | bytes
"""A path, or the bytes of a picture file."""
Box = tuple[float, float, float, float]
Field = tuple[str, str | None, bytes]
"""Name, file name (None: a plain value) and content of a part of a form."""


def asked_fields(threshold: float | None, classes: Iterable[str] | None) -> list[Field]:
    """What is looked for."""
    fields: list[Field] = [] if threshold is None else [("threshold", None, repr(float(threshold)).encode())]
    names = [classes] if isinstance(classes, str) else list(classes or ())
    return [*fields, *(("classes", None, name.encode()) for name in names)]


def look_fields(size: str | int, tiles: bool, limit: int) -> list[Field]:
    """How it is looked for."""
    values = {"size": str(size), "tiles": str(tiles).lower(), "limit": str(limit)}
    return [(name, None, value.encode()) for name, value in values.items()]


def reason_fields(
    picture: PictureFile,
    top: int,
    threshold: float | None,
    classes: Iterable[str] | None,
    box: Box | None,
) -> list[Field]:
    """What is to be explained; `box` is xyxy in pixels of the picture."""
    form = [
        ("picture", *file_of(picture)),
        *asked_fields(threshold, classes),
        ("top", None, str(top).encode()),
    ]
    return form if box is None else [*form, ("box", None, corners(box))]


def shot_list(shots: Any) -> list[Any]:
    """Shots one by one; a single one, a picture or (picture, box), need not be wrapped in a list."""
    pair = isinstance(shots, tuple) and len(shots) == 2 and isinstance(shots[1], (tuple, list))
    return [shots] if pair or isinstance(shots, (str, bytes, Path)) else list(shots)


def corners(box: Box) -> bytes:
    """A box as a form carries it, xyxy in pixels."""
    return ",".join(repr(float(value)) for value in box).encode()


def file_of(source: PictureFile) -> tuple[str, bytes]:
    """A file's name and content."""
    if isinstance(source, bytes):
        return "picture", source
    if not isinstance(source, (str, Path)):
        raise InputError(
            f"picture: expected the path of one picture file or its bytes, got {type(source).__name__}; save "
            "an array as PNG first, and give several pictures to `start_job`"
        )
    try:
        return Path(source).name, Path(source).read_bytes()
    except OSError as error:
        raise DataError(
            f"{source}: expected a file to send, but it cannot be read ({error.strerror})"
        ) from error


def multipart(form: Sequence[Field]) -> tuple[str, bytes]:
    """(content type, body) of a form with files."""
    mark = secrets.token_hex(16)
    parts = []
    for name, file_name, content in form:
        head = f'--{mark}\r\nContent-Disposition: form-data; name="{name}"'
        if file_name is not None:
            safe = file_name.replace("\\", "_").replace('"', "%22").replace("\r", " ").replace("\n", " ")
            head += f'; filename="{safe}"\r\nContent-Type: application/octet-stream'
        parts += [head.encode("utf-8", "replace"), b"\r\n\r\n", content, b"\r\n"]
    return f"multipart/form-data; boundary={mark}", b"".join([*parts, f"--{mark}--\r\n".encode()])
