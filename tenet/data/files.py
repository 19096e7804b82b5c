"""Files that are whole or absent, and paths that stay where they belong.

Annotation files come from strangers: what they call a picture may not lead out of the image folder,
and nothing is ever unpickled.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from tenet.errors import DataError


def write_bytes(path: Path, content: bytes) -> None:
    """Write `path` in one step: a reader sees the old file or the new one, never a half."""
    write_chunks(path, (content,))


def write_chunks(path: Path, chunks: Iterable[bytes]) -> None:
    """`write_bytes` of a file that is too large to be in memory at once."""
    try:
        _write_chunks(path, chunks)
    except OSError as error:
        raise DataError(
            f"{path}: expected to write there, but it cannot be done ({error.strerror})"
        ) from error


def _write_chunks(path: Path, chunks: Iterable[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.writelines(chunks)
            stream.flush()
            os.fsync(stream.fileno())
        # mkstemp gives 0600; a data set is meant to be read by others as any new file is.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_text(path: Path, content: str) -> None:
    """`write_bytes` in UTF-8."""
    write_bytes(path, content.encode("utf-8"))


def write_json(path: Path, content: object, indent: int | None = None) -> None:
    """`write_bytes` of JSON; NaN is refused, because it is not JSON."""
    try:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, indent=indent)
    except ValueError as error:
        raise DataError(f"{path}: expected finite numbers to write, got NaN or infinity") from error
    write_text(path, text + "\n")


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number of JSON")


def read_json(path: Path, allow_nan: bool = False) -> Any:
    """The content of a JSON file; a file that is not there or not JSON is a DataError that names it."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: expected a JSON file in UTF-8, but it cannot be read ({error})") from error
    parse_constant: Callable[[str], float] = float if allow_nan else _no_constant
    try:
        return json.loads(text, parse_constant=parse_constant)
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{path}: expected JSON, but it does not parse ({error}); is the file complete?"
        ) from error


def inside(root: Path, name: str) -> Path | None:
    """`root / name`, or None where `name` is absolute, empty or leads out of `root`.

    Symbolic links are followed on purpose: image folders are often links, and whoever can place one
    in the folder can place the picture there as well.
    """
    if not isinstance(name, str) or not name or "\x00" in name:
        return None
    posix = PurePosixPath(name.replace("\\", "/"))
    if posix.is_absolute() or ".." in posix.parts or (posix.parts and ":" in posix.parts[0]):
        return None
    return root.joinpath(*posix.parts)


def place_picture(source: Path, destination: Path) -> None:
    """Put the picture `source` at `destination` as a hard link, or as a copy where that cannot be."""
    if not source.is_file():
        raise DataError(
            f"{source}: expected a picture to copy, found none; run `tenet data check` on the set"
        )
    destination.parent.mkdir(parents=True, exist_ok=True)
    if destination.exists():
        if os.path.samefile(source, destination):
            return
        raise DataError(f"{destination}: expected a free name for {source}, but there is another file")
    try:
        os.link(os.path.realpath(source), destination)
    except OSError:
        handle, temporary = tempfile.mkstemp(dir=destination.parent, prefix=".", suffix=".part")
        os.close(handle)
        shutil.copyfile(source, temporary)
        os.replace(temporary, destination)


def new_folder(path: Path) -> Path:
    """`path` as an empty folder, created where it is not there; a folder with content is refused."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise DataError(f"{path}: expected a new or empty folder to write to, but there is something in it")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"{path}: expected to create a folder there, but it cannot be done ({error})"
        ) from error
    return path
