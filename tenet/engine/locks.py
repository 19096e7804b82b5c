"""Locks between processes of one machine; the system lets go of them when a process ends, however it does.

Where the system has no `flock`, every process gets what it asks for: work may be done twice, never wrongly,
because files are written whole.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


@contextmanager
def locked(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Wait until no other process holds `path`, and hold it. `waiting` is called once if it has to wait."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as stream:
        if fcntl is not None:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(stream, fcntl.LOCK_EX)
        yield


@contextmanager
def claimed(path: Path) -> Iterator[bool]:
    """Hold `path` without waiting; False where another process holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as stream:
        if fcntl is not None:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
        yield True
