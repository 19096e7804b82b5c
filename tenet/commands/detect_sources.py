"""What the user named on the command line, as picture files and video files."""

import glob
import os
from collections.abc import Sequence
from pathlib import Path

from tenet.errors import DataError
from tenet.looks.sources import is_folder, pictures_in
from tenet.looks.videos import is_video


def find_sources(
    words: Sequence[str], leave_out: Path | None = None
) -> tuple[list[Path], list[Path], dict[str, str]]:
    """(pictures, videos, word → message of what cannot be found), each file once, in the order given.

    leave_out  the folder of our own output, which may lie inside a folder of pictures
    """
    files: dict[Path, None] = {}
    failed: dict[str, str] = {}
    for word in words:
        try:
            files.update(dict.fromkeys(_files(word)))
        except DataError as error:
            failed[word] = str(error)
    own = None if leave_out is None else leave_out.resolve()
    kept = [path for path in files if own is None or own not in path.resolve().parents]
    if files and not kept:
        failed[str(leave_out)] = f"{leave_out}: expected pictures outside the folder of --out, found none"
    return [p for p in kept if not is_video(p)], [p for p in kept if is_video(p)], failed


def _files(word: str) -> list[Path]:
    path = Path(word)
    if is_folder(path):
        return pictures_in(path)
    if os.path.exists(path):  # before patterns: a name may have brackets in it
        return [path]
    if glob.has_magic(word):
        found = [Path(name) for name in sorted(glob.glob(word, recursive=True))]
        if not found:
            raise DataError(f"{word}: expected a pattern that some files fit, found none")
        return [file for one in found for file in (pictures_in(one) if is_folder(one) else [one])]
    raise DataError(f"{word}: expected a picture, a folder, a pattern or a video, but there is no such file")
