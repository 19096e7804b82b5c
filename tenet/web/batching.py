"""The queue before the model: one thread owns the model, and what waits is looked at together.

The queue is bounded: who comes when it is full is told so at once, and nothing piles up. Pictures wait as the
files they came as and are decoded when their turn comes. People come before jobs.
"""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Condition, Thread
from typing import Any

from tenet.errors import TenetError
from tenet.pictures import read_picture
from tenet.predictor import Tenet
from tenet.runtime.protocol import Picture
from tenet.structures import Detections
from tenet.web.failures import BusyError
from tenet.web.library import Snapshot
from tenet.web.limits import Limits
from tenet.web.metrics import Metrics


@dataclass(frozen=True)
class Asked:
    """How a picture is to be looked at; pictures that are asked the same go together."""

    threshold: float | None = None
    classes: tuple[str, ...] | None = None
    size: str | int = "auto"
    tiles: bool = True
    limit: int = 300


@dataclass(frozen=True, eq=False)
class Look:
    """A picture file in the queue; the future gives its `Detections`, boxes xyxy in its pixels."""

    file: bytes
    name: str
    pixels: int
    bank: Snapshot
    asked: Asked
    future: "Future[Detections]" = field(default_factory=Future)


@dataclass(frozen=True, eq=False)
class Call:
    """Any other work with the model."""

    work: Callable[[], Any]
    future: "Future[Any]" = field(default_factory=Future)


class ModelQueue:
    """Bounded, first come first served, what is alike together."""

    def __init__(self, model: Tenet, limits: Limits, metrics: Metrics) -> None:
        self._model, self._limits, self._metrics = model, limits, metrics
        self._people: deque[Look | Call] = deque()
        self._jobs: deque[Look | Call] = deque()
        self._change = Condition()
        self._closed = False
        self._thread = Thread(target=self._run, name="model", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Finish what is at the model, give up what waits."""
        with self._change:
            self._closed = True
            waiting = [*self._people, *self._jobs]
            self._people.clear()
            self._jobs.clear()
            self._change.notify_all()
        for one in waiting:
            if one.future.set_running_or_notify_cancel():
                one.future.set_exception(BusyError("the service is closing; ask again later", 5))
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    def __len__(self) -> int:
        return len(self._people) + len(self._jobs)

    @property
    def alive(self) -> bool:
        """Whether the model is at work or ready to be."""
        return self._thread.is_alive() and not self._closed

    def submit(self, *work: Look | Call, job: bool = False) -> None:
        """All of it, or a `BusyError` and none."""
        with self._change:
            line = self._jobs if job else self._people
            if self._closed or len(line) + len(work) > self._limits.waiting:
                self._metrics.refused.inc()
                raise BusyError(
                    f"the queue is full ({len(line)} wait of at most {self._limits.waiting}); ask again"
                )
            line.extend(work)
            self._metrics.waiting.set(len(self))
            self._change.notify()

    def _run(self) -> None:
        while True:
            with self._change:
                while not self._closed and not self._people and not self._jobs:
                    self._change.wait()
                if self._closed:
                    return
                batch = self._next()
                self._metrics.waiting.set(len(self))
            # A future that was cancelled (its client gave up) costs nothing.
            begun = [one for one in batch if one.future.set_running_or_notify_cancel()]
            if not begun:
                continue
            first = begun[0]
            if isinstance(first, Call):
                _settle(first.future, first.work)
            else:
                self._look([one for one in begun if isinstance(one, Look)])

    def _next(self) -> list[Look | Call]:
        """The first in line, and those behind it that can be looked at together with it."""
        line = self._people or self._jobs
        first = line.popleft()
        batch = [first]
        if isinstance(first, Call):
            return batch
        pixels, rest = first.pixels, deque[Look | Call]()
        while line and len(batch) < self._limits.batch:
            one = line.popleft()
            fits = (
                isinstance(one, Look)
                and one.bank is first.bank
                and one.asked == first.asked
                and pixels + one.pixels <= self._limits.batch_pixels
            )
            if fits and isinstance(one, Look):
                batch.append(one)
                pixels += one.pixels
            else:
                rest.append(one)
        line.extendleft(reversed(rest))
        return batch

    def _look(self, batch: Sequence[Look]) -> None:
        decoded: list[tuple[Look, Picture]] = []
        for one in batch:
            try:
                decoded.append((one, read_picture(one.file, one.name)))
            except TenetError as error:
                one.future.set_exception(error)
        if not decoded:
            return
        asked = decoded[0][0].asked
        try:
            found = self._model.detect(
                [picture for _, picture in decoded],
                decoded[0][0].bank,
                asked.threshold,
                classes=asked.classes,
                size=asked.size,
                tiles=asked.tiles,
                limit=asked.limit,
                batch=self._limits.batch,
            )
        except BaseException as error:
            for one, _ in decoded:
                one.future.set_exception(error)
            return
        self._metrics.batch.observe(len(decoded))
        self._metrics.pictures.inc(len(decoded))
        for (one, _), detections in zip(decoded, found, strict=True):
            one.future.set_result(detections)


def _settle(future: "Future[Any]", work: Callable[[], Any]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:  # whatever it is, the one who asked hears of it and the thread lives
        future.set_exception(error)
