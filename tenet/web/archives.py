"""Pictures out of a zip archive that a stranger sent: nothing is unpacked to the disk, and nothing grows.

A name never becomes a path here; one that leads out of its folder makes the whole archive suspect and is
refused. What is unpacked is counted as it comes, whatever the archive says of itself.
"""

import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from tenet.data.files import inside
from tenet.data.images import SUFFIXES
from tenet.errors import DataError
from tenet.results.pictures import plain
from tenet.web.failures import TooLargeError
from tenet.web.limits import MEGABYTE, Limits

DIRECTORY_BYTES = 16 * MEGABYTE
"""Of an archive's list of files, which is in memory as a whole."""
_END, _LARGE_END, _LONGEST_COMMENT = b"PK\x05\x06", b"PK\x06\x07", 65535
_DAMAGED = (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, NotImplementedError, RuntimeError)


def archive_pictures(stream: IO[bytes], limits: Limits) -> Iterator[tuple[str, bytes]]:
    """(name, file) of each picture in the archive, one at a time."""
    _check_directory(stream)
    try:
        with zipfile.ZipFile(stream) as archive:
            members = [one for one in archive.infolist() if _is_picture(one)]
            if len(members) > limits.job_pictures:
                raise TooLargeError(
                    f"archive: expected at most {limits.job_pictures} pictures, got {len(members)}"
                )
            left = limits.unpacked
            for member in members:
                content = _read(archive, member, min(left, limits.upload))
                left -= len(content)
                yield plain_name(member.filename), content
    except _DAMAGED as error:
        raise DataError(
            f"archive: expected a whole zip file, but it cannot be read ({_line(error)})"
        ) from error


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo, most: int) -> bytes:
    if member.flag_bits & 1:
        raise DataError("archive: expected one without a password, got an encrypted one")
    with archive.open(member) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise TooLargeError(
            f"archive: {plain_name(member.filename)} unpacks to more than the service takes; "
            "send smaller pictures, or fewer at a time"
        )
    return content


def _is_picture(member: zipfile.ZipInfo) -> bool:
    name = member.filename
    if member.is_dir():
        return False
    if inside(Path(), name) is None:
        raise DataError(f"archive: expected names inside it, got {plain_name(name)!r}, which leads out of it")
    path = PurePosixPath(name)
    hidden = any(part.startswith((".", "__MACOSX")) for part in path.parts)
    return not hidden and path.suffix.lower() in SUFFIXES


def _check_directory(stream: IO[bytes]) -> None:
    """Refuse an archive whose list of files is too long, before it is read."""
    size = stream.seek(0, 2)
    stream.seek(max(0, size - _LONGEST_COMMENT - 22))
    tail = stream.read()
    stream.seek(0)
    end = len(tail) - 22 if tail[-22:-18] == _END and tail[-2:] == b"\0\0" else tail.rfind(_END)
    if end < 0 or len(tail) - end < 22:
        raise DataError("archive: expected a zip file, got something else; send pictures or a .zip")
    directory = struct.unpack("<I", tail[end + 12 : end + 16])[0]
    if directory > DIRECTORY_BYTES or tail[max(0, end - 20) : end].startswith(_LARGE_END):
        raise TooLargeError("archive: it holds more files than the service takes; send fewer at a time")


def plain_name(name: str) -> str:
    """A picture's name as it may be shown and kept: no control characters, not too long."""
    return plain(name)[-200:] or "picture"


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__
