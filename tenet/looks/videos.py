"""Frames of a video file, one by one: PyAV, the extra `video`, loaded only here."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tenet.errors import DataError, InputError, MissingExtraError
from tenet.pictures import read_picture
from tenet.runtime.protocol import Picture

SUFFIXES = (".mp4", ".mov", ".m4v", ".avi", ".mkv", ".webm", ".mpg", ".mpeg", ".ts", ".wmv", ".flv", ".ogv")
# FFmpeg also knows play lists, which name other files and hosts to open: a file from a stranger may not.
_CONTAINERS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpeg,mpegts,asf,flv,ogg"


class VideoFrame(NamedTuple):
    """Number in the file from 0, time in seconds, and the picture (H, W, 3) uint8 RGB, upright."""

    number: int
    time: float
    picture: Picture


def is_video(path: Path) -> bool:
    """Whether a name is a video's."""
    return path.suffix.lower() in SUFFIXES


def read_video(path: Path, every: int = 1) -> Iterator[VideoFrame]:
    """Frame 0 and every n-th after it. Only one frame is in memory at a time."""
    try:
        import av
    except ImportError as error:
        raise MissingExtraError("Reading videos", "video") from error
    number = 0
    try:
        with open(path, "rb") as file, av.open(file, options={"format_whitelist": _CONTAINERS}) as container:
            if not container.streams.video:
                raise DataError(f"{path}: expected a video, but it has no pictures")
            rate = container.streams.video[0].average_rate
            for number, frame in enumerate(container.decode(video=0)):
                if number % every == 0:
                    pixels = np.rot90(frame.to_ndarray(format="rgb24"), round(frame.rotation / 90))
                    time = frame.time if frame.time is not None else number / float(rate or 25)
                    yield VideoFrame(number, float(time), read_picture(pixels, f"{path}, frame {number}"))
    except FileNotFoundError as error:
        raise DataError(f"{path}: expected a video, but there is no such file") from error
    except (OSError, ValueError, ArithmeticError, av.FFmpegError) as error:
        if isinstance(error, InputError):
            raise
        where = f"after frame {number} " if number else ""
        raise DataError(
            f"{path}: expected a video ({', '.join(SUFFIXES[:6])}, …), but it cannot be decoded {where}"
            f"({_cause(error)}); it is damaged or no video"
        ) from error


def _cause(error: BaseException) -> str:
    return str(getattr(error, "strerror", None) or error).splitlines()[0]
