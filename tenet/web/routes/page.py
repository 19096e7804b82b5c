"""The page: files of the package, read once. What is asked for is looked up and never made into a path."""

import hashlib
from functools import lru_cache
from importlib.resources import files
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Header, Response

from tenet.demo import FOLDER
from tenet.web.failures import NotFoundError

router = APIRouter(include_in_schema=False)
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


EXAMPLE = "coins.png"


class Asset(NamedTuple):
    content: bytes
    media_type: str
    tag: str


@lru_cache(maxsize=1)
def assets() -> dict[str, Asset]:
    """Name → file, of everything in `static`."""
    found = {}
    for entry in files("tenet.web").joinpath("static").iterdir():
        suffix = "." + entry.name.rpartition(".")[2]
        if suffix in TYPES:
            content = entry.read_bytes()
            found[entry.name] = _asset(content, TYPES[suffix])
    # The photograph that a person without pictures may begin with.
    found[EXAMPLE] = _asset((FOLDER / EXAMPLE).read_bytes(), "image/png")
    return found


def _asset(content: bytes, media_type: str) -> Asset:
    return Asset(content, media_type, f'"{hashlib.sha256(content).hexdigest()[:20]}"')


@router.get("/")
async def index(if_none_match: Annotated[str | None, Header()] = None) -> Response:
    return _answer("index.html", if_none_match)


@router.get("/favicon.ico")
async def icon(if_none_match: Annotated[str | None, Header()] = None) -> Response:
    return _answer("icon.svg", if_none_match)


@router.get("/static/{name}")
async def static(name: str, if_none_match: Annotated[str | None, Header()] = None) -> Response:
    return _answer(name, if_none_match)


def _answer(name: str, known: str | None) -> Response:
    asset = assets().get(name)
    if asset is None:
        raise NotFoundError("no such page")
    headers = {"ETag": asset.tag, "Cache-Control": "no-cache"}
    if known == asset.tag:
        return Response(status_code=304, headers=headers)
    return Response(asset.content, media_type=asset.media_type, headers=headers)
