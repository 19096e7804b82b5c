"""What a user points at, as pictures one after another: a picture, many, a folder, a video file."""

import os
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from PIL import Image

from tenet.data.images import SUFFIXES
from tenet.errors import DataError, InputError, TenetError
from tenet.looks.videos import is_video, read_video
from tenet.pictures import PictureLike, read_picture
from tenet.runtime.protocol import Picture

Item = TypeVar("Item")

LONGEST_PATH = 4096
"""Letters: text that is longer is no path, but perhaps a picture in base64."""


@dataclass(frozen=True, eq=False)
class Loaded:
    """A picture on its way to the network, or the reason why there is none.

    number   its place in the source, from 0; a frame's number in its video
    path     its file, None for pictures in memory
    time     seconds from the start of the video, None for pictures
    picture  (H, W, 3) uint8 RGB, None where it cannot be read
    error    why it cannot be read
    """

    number: int
    path: Path | None
    time: float | None
    picture: Picture | None
    error: TenetError | None = None


def is_one_picture(source: object) -> bool:
    """Whether a source is a single picture: a file, the bytes of one, a PIL picture or an array."""
    if isinstance(source, (str, Path)):
        return not is_folder(source) and not is_video(Path(source))
    return isinstance(source, (bytes, np.ndarray, Image.Image))


def is_folder(source: object) -> bool:
    """Whether a source names a folder that is there."""
    # Unlike Path.is_dir, os.path raises nothing for names that are too long or may not be looked at.
    return isinstance(source, (str, Path)) and os.path.isdir(source)


def pictures_in(folder: Path) -> list[Path]:
    """The picture files of a folder and those below it, in the order of their names; hidden ones, which
    are other programs' notes, are left out."""
    if not is_folder(folder):
        raise DataError(f"{folder}: expected a folder of pictures, found none")
    found = [path for path in _files_in(folder) if path.suffix.lower() in SUFFIXES]
    if not found:
        raise DataError(
            f"{folder}: expected pictures ({', '.join(SUFFIXES[:5])}, …) in the folder, found none"
        )
    return found


def others_in(folder: Path) -> list[Path]:
    """The files that `pictures_in` leaves out, without the hidden ones."""
    return [path for path in _files_in(folder) if path.suffix.lower() not in SUFFIXES]


def _files_in(folder: Path) -> list[Path]:
    return sorted(
        path
        for path in folder.rglob("*")
        if os.path.isfile(path) and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )


def load_all(source: Any, every: int = 1) -> Iterator[Loaded]:
    """The pictures of a source in order; files are decoded ahead in a thread of their own."""
    if is_folder(source):
        return ahead(_files(pictures_in(Path(source)), every))
    if isinstance(source, (str, Path)) and is_video(Path(source)):
        return ahead(_frames(Path(source), every))
    if is_one_picture(source):
        return iter([_load(source, 0)])
    if not isinstance(source, Iterable):
        raise InputError(
            "source: expected a picture, a list of pictures, a folder, a video file or a generator of "
            f"pictures, such as the frames of a camera; got {type(source).__name__}"
        )
    if isinstance(source, (list, tuple)) and all(isinstance(one, (str, Path)) for one in source):
        return ahead(_files(source, every))
    # Someone's own generator is read in the thread that asks: it may be tied to it, as a camera can be.
    return _files(source, every)


def ahead(items: Generator[Item, None, None], depth: int = 2) -> Iterator[Item]:
    """The same items, up to `depth` of them made in another thread before they are asked for."""
    with ThreadPoolExecutor(1) as pool:
        waiting = deque(pool.submit(next, items, None) for _ in range(depth))
        try:
            while (item := waiting.popleft().result()) is not None:
                waiting.append(pool.submit(next, items, None))
                yield item
        finally:
            pool.shutdown(cancel_futures=True)
            items.close()


def _files(sources: Iterable[PictureLike], every: int) -> Generator[Loaded, None, None]:
    for number, one in enumerate(sources):
        if number % every == 0:
            yield _load(one, number)


def _frames(path: Path, every: int) -> Generator[Loaded, None, None]:
    for number, time, picture in read_video(path, every):
        yield Loaded(number, path, time, picture)


def _load(source: PictureLike, number: int) -> Loaded:
    path = Path(source) if isinstance(source, (str, Path)) else None
    try:
        if path is not None and len(str(path)) > LONGEST_PATH:
            raise InputError(
                f"picture {number}: expected a path, got text of {len(str(path))} letters; "
                "give a picture in base64 as bytes, decoded"
            )
        if path is not None and (is_folder(path) or is_video(path)):
            what = "a folder" if is_folder(path) else "a video"
            raise DataError(f"{path}: expected a picture in the list, got {what}; give it by itself")
        return Loaded(number, path, None, read_picture(source, f"picture {number}"))
    except TenetError as error:
        return Loaded(number, path, None, None, error)
