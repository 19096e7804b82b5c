"""Pictures out of a request, read and measured before anything is done with them."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import File, UploadFile

from tenet.errors import InputError
from tenet.web.archives import plain_name
from tenet.web.failures import TooLargeError
from tenet.web.limits import Limits

Pictures = Annotated[list[UploadFile], File(description="picture files: JPEG, PNG, WebP, AVIF, …")]


async def read_all(pictures: Sequence[UploadFile], limits: Limits) -> list[tuple[str, bytes]]:
    """(name, bytes) of each picture; its name is shown and kept, and never becomes a path."""
    if len(pictures) > limits.pictures:
        raise TooLargeError(
            f"pictures: expected at most {limits.pictures} in a request, got {len(pictures)}; make it a job"
        )
    return [(plain_name(one.filename or "picture"), await one.read()) for one in pictures]


def read_box(text: str, where: str) -> tuple[float, float, float, float] | None:
    """`x1,y1,x2,y2` (xyxy in pixels of the picture); `whole` or nothing: all of the picture is the thing."""
    if text.strip() in ("", "whole"):
        return None
    try:
        x1, y1, x2, y2 = (float(word) for word in text.split(","))
    except ValueError:
        shown = text[:60]
        raise InputError(f"{where}: expected x1,y1,x2,y2 in pixels, or `whole`; got {shown!r}") from None
    return x1, y1, x2, y2
