"""The parts of a running service, put together once and handed to the routes."""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from threading import Timer
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from tenet.drawing.colours import class_colour
from tenet.predictor import Tenet
from tenet.structures import Detections
from tenet.web.batching import Asked, Call, Look, ModelQueue
from tenet.web.database import Database
from tenet.web.failures import BusyError, ChangedError, TimeOutError
from tenet.web.job_store import JobStore
from tenet.web.jobs import JobRunner
from tenet.web.library import Library, Snapshot
from tenet.web.limits import Limits
from tenet.web.metrics import Metrics
from tenet.web.schemas import ClassInfo, ShotInfo
from tenet.web.store import ClassStore
from tenet.web.teaching import Teacher

Answer = TypeVar("Answer")
TRIES = 3
REBUILD_SECONDS = 5.0
"""Until a store that was away at the start is asked again."""
log = logging.getLogger("tenet.web")


class Service:
    """Model, store, queue and jobs of one server."""

    def __init__(self, model: Tenet, where: Path | str, limits: Limits) -> None:
        self.model, self.limits = model, limits
        self.metrics = Metrics()
        self.database = Database(where)
        self.library = Library(ClassStore(self.database), model.runtime)
        self.teacher = Teacher(self.library, limits)
        self.queue = ModelQueue(model, limits, self.metrics)
        self.job_store = JobStore(self.database)
        self.jobs = JobRunner(self.job_store, self.library, self.queue, limits)
        self.ready = False
        self.left_out = 0
        self._importing = asyncio.Lock()

    def start(self) -> None:
        """Begin to work. Ready once every class is known to this model."""
        self.queue.start()
        self._rebuild()

    def _rebuild(self) -> None:
        if self.queue.alive:
            rebuilding = Call(self.teacher.rebuild)
            rebuilding.future.add_done_callback(self._rebuilt)
            self.queue.submit(rebuilding)

    def _rebuilt(self, future: "Future[list[str]]") -> None:
        error = future.exception()
        if error is not None:
            log.error("the classes could not be encoded by this model; it is tried again: %s", error)
            later = Timer(REBUILD_SECONDS, self._rebuild)
            later.daemon = True
            later.start()
            return
        self.left_out = len(future.result())
        self.ready = True
        self.jobs.start()

    def close(self) -> None:
        self.jobs.close()
        self.queue.close()
        self.database.close()

    # ---- work, from within a request

    async def call(self, work: Callable[[], Answer]) -> Answer:
        """Work with the model, when its turn comes."""
        call = Call(work)
        self.queue.submit(call)
        found: Answer = await self._answer(call.future, time.monotonic() + self.limits.seconds)
        return found

    async def take_bank(self, path: Path, rebuild: bool) -> dict[str, int]:
        """Take in a bank file, class by class between the others' requests; new shots of each class."""
        # One at a time: each holds a thread for as long as it lasts.
        async with self._importing:
            return await run_in_threadpool(self.teacher.take_bank, path, rebuild, self._at_model)

    def _at_model(self, work: Callable[[], Answer]) -> Answer:
        """The same as `call`, from a thread that may wait; a full queue is asked again."""
        end = time.monotonic() + self.limits.seconds
        while True:
            call = Call(work)
            try:
                self.queue.submit(call)
            except BusyError as error:
                if not self.queue.alive or time.monotonic() + error.retry_after > end:
                    raise
                time.sleep(error.retry_after)
                continue
            found: Answer = call.future.result()
            return found

    async def snapshot(self) -> Snapshot:
        """The classes of this moment."""
        return await run_in_threadpool(self.library.snapshot)

    async def look(
        self, files: list[tuple[str, bytes, int]], asked: Asked, bank: Snapshot
    ) -> tuple[Snapshot, list[Detections | BaseException]]:
        """(name, file, pixels) of each picture → its detections or its error, and the classes looked for:
        those of `bank`, or newer ones where they changed meanwhile."""
        end = time.monotonic() + self.limits.seconds
        for left in reversed(range(TRIES)):
            looks = [Look(file, name, pixels, bank, asked) for name, file, pixels in files]
            self.queue.submit(*looks)
            found = await asyncio.gather(
                *(self._answer(look.future, end) for look in looks), return_exceptions=True
            )
            if not left or not any(isinstance(one, ChangedError) for one in found):
                break
            bank = await self.snapshot()
        return bank, found

    async def _answer(self, future: "Future[Any]", end: float) -> Any:
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), max(0.0, end - time.monotonic()))
        except asyncio.TimeoutError:  # Python 3.10 does not call it TimeoutError
            raise TimeOutError(
                f"expected an answer within {self.limits.seconds:g} s, but it is not done; ask for fewer "
                "pictures or classes, or make it a job"
            ) from None


def class_info(bank: Snapshot, name: str, added: int = 0, notes: tuple[str, ...] = ()) -> ClassInfo:
    """A class as it is told."""
    told = bank.registration(name, added, notes)
    shots = [
        ShotInfo(
            id=shot.id,
            number=number,
            thing=shot.seen.thing,
            picture=None if shot.scene_box is None else shot.seen.picture,
            scene_box=None if shot.scene_box is None else list(shot.scene_box),
        )
        for number, shot in enumerate(bank.shot_heads(name))
    ]
    return ClassInfo(
        name=name,
        colour="#{:02x}{:02x}{:02x}".format(*class_colour(name)),
        shots=shots,
        verdict=told.verdict,  # type: ignore[arg-type]
        sentence=told.sentence(),
        notes=list(told.notes),
        added=added,
    )


def service_of(request: Request) -> Service:
    """The service of the app that a request came to."""
    found: Service = request.app.state.service
    return found


Served = Annotated[Service, Depends(service_of)]
"""What a route asks for to get it."""
