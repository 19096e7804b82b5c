"""Items in order, made ahead of time by other processes.

`load(source, indices, workers)` yields `source[index]` for each index, in order. What comes out is the
same for any number of workers: an item is a function of its index. Workers are started afresh (spawn),
which is safe beside threads and the same on every system; `source` must be picklable. They load what
the source needs and no torch.
"""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import Any, Protocol, TypeVar

from tenet.errors import DataError, InputError

Item = TypeVar("Item", covariant=True)


class Source(Protocol[Item]):
    """Anything with `source[index]`, such as `EpisodeSource`."""

    def __getitem__(self, index: int) -> Item: ...


_source: Any = None
"""In a worker: the source that it makes items of."""


def load(
    source: Source[Item], indices: Iterable[int], workers: int = 0, ahead: int | None = None
) -> Iterator[Item]:
    """`source[index]` for each of `indices`, in their order.

    workers  processes that make items; 0 makes them here, when they are asked for
    ahead    items under way at once; by default four for each worker and at least eight, so that a batch
             is ready when a step ends
    A worker that dies, by the system for want of memory or otherwise, is a DataError; what an item
    itself raises is raised here in its place. Leaving the loop early stops the workers.
    """
    if workers < 0:
        raise InputError(f"workers: expected at least 0, got {workers}")
    if workers == 0:
        for index in indices:
            yield source[index]
        return
    ahead = max(8, 4 * workers) if ahead is None else max(ahead, 1)
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin, initargs=(source,))
    try:
        yield from _in_order(pool, iter(indices), ahead)
    except BrokenProcessPool as error:
        raise DataError(
            f"expected {workers} loading processes to live, but one died (out of memory? killed?); "
            "use fewer workers, or 0 to see the error itself"
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _in_order(pool: ProcessPoolExecutor, indices: Iterator[int], ahead: int) -> Iterator[Any]:
    waiting: deque[Future[Any]] = deque(pool.submit(_make, index) for index in islice(indices, ahead))
    while waiting:
        item = waiting.popleft().result()
        waiting.extend(pool.submit(_make, index) for index in islice(indices, 1))
        yield item


def _begin(source: Any) -> None:
    """Set a worker up."""
    global _source
    _source = source
    # Ctrl-C reaches the whole group of processes; the parent answers it for all.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Any) -> None:
    """A parent that was killed cannot stop its workers: they stop by themselves."""
    parent.join()
    os._exit(1)


def _make(index: int) -> Any:
    return _source[index]
