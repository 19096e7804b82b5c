"""What the user named on the command line, as picture files and video files."""

import glob
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tenet.errors import DataError
from tenet.looks.sources import is_folder, others_in, pictures_in
from tenet.looks.videos import is_video

CONVERTIBLE = (".heic", ".heif", ".jxl", ".dng", ".cr2", ".cr3", ".nef", ".arw", ".psd", ".svg", ".pdf")
"""Suffixes of pictures that we cannot read."""
TOLD = 5
"""Suffixes that a note names."""


class Sources(NamedTuple):
    """Picture and video files, each once, in the order given.

    failed    word → message of what cannot be found
    left_out  notes on files of the folders that are neither asked for by name nor pictures
    """

    pictures: list[Path]
    videos: list[Path]
    failed: dict[str, str]
    left_out: list[str]


def find_sources(words: Sequence[str], leave_out: Path | None = None) -> Sources:
    """What these words mean.

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
    others = {path for word in words for path in _others(word)} - set(files)
    notes = _notes([path for path in others if own is None or own not in path.resolve().parents])
    return Sources([p for p in kept if not is_video(p)], [p for p in kept if is_video(p)], failed, notes)


def _others(word: str) -> list[Path]:
    """What is left out of the folders that a word means."""
    names = [word] if os.path.exists(word) or not glob.has_magic(word) else glob.glob(word, recursive=True)
    return [path for name in names if is_folder(name) for path in others_in(Path(name))]


def _notes(paths: Sequence[Path]) -> list[str]:
    """One line: how many, of which suffixes, and what can be done for them."""
    if not paths:
        return []
    kinds = [kind for kind, _ in Counter(path.suffix.lower() for path in sorted(paths)).most_common()]
    told = [f"{kind or 'no suffix'}{_remedy(kind)}" for kind in kinds[:TOLD]]
    more = ", …" if len(kinds) > TOLD else ""
    count = "1 file" if len(paths) == 1 else f"{len(paths)} files"
    return [f"{count} left out: {', '.join(told)}{more}"]


def _remedy(suffix: str) -> str:
    if suffix in CONVERTIBLE:
        return " (convert to JPEG)"
    return " (name a video by itself)" if is_video(Path(f"a{suffix}")) else ""


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
