"""Does the jobs of a store in the background, behind everybody who waits for an answer."""

import logging
import secrets
from concurrent.futures import Future, wait
from threading import Event, Thread

from tenet.errors import TenetError
from tenet.structures import Detections
from tenet.web.batching import Asked, Look, ModelQueue
from tenet.web.failures import BusyError, ChangedError
from tenet.web.job_store import LEASE, Job, JobStore
from tenet.web.library import Library
from tenet.web.limits import Limits
from tenet.web.looking import checked_size, picture_answer, result_text

PAUSE = 2.0
"""Seconds between two looks for jobs that another server left."""
log = logging.getLogger("tenet.web")


class JobRunner:
    """One thread that takes job after job."""

    def __init__(self, store: JobStore, library: Library, queue: ModelQueue, limits: Limits) -> None:
        self._store, self._library, self._queue, self._limits = store, library, queue, limits
        self._owner = secrets.token_hex(8)
        self._wake, self._end = Event(), Event()
        self._thread = Thread(target=self._run, name="jobs", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """There is a new job."""
        self._wake.set()

    def close(self) -> None:
        self._end.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    def _run(self) -> None:
        while not self._end.is_set():
            try:
                job = self._store.claim(self._owner)
                if job is not None:
                    self._do(job)
                    continue
            except Exception:  # the store may be away for a moment; the lease runs out and it is tried again
                log.exception("a job was interrupted")
            self._wake.wait(PAUSE)
            self._wake.clear()

    def _do(self, job: Job) -> None:
        asked = Asked(**{**job.options, "classes": tuple(job.options["classes"])})
        while not self._end.is_set():
            pictures = self._store.waiting(job.id, self._limits.batch)
            if not pictures:
                self._store.finish(job.id, self._owner)
                return
            found = self._look(job, pictures, asked)
            if not self._store.write(job.id, self._owner, found):
                return

    def _look(
        self, job: Job, pictures: list[tuple[int, str, bytes]], asked: Asked
    ) -> list[tuple[int, str, str]]:
        """(id, state, result) of each picture; a bad one fails, the others are done."""
        bank = self._library.snapshot()
        looks: dict[int, Look] = {}
        sizes: dict[int, tuple[int, int]] = {}
        answers: dict[int, tuple[str, str]] = {}
        for key, name, file in pictures:
            try:
                sizes[key] = checked_size(file, name, self._limits)
                looks[key] = Look(file, name, sizes[key][0] * sizes[key][1], bank, asked)
            except TenetError as error:
                answers[key] = ("failed", str(error))
        self._queue.submit(*looks.values(), job=True)
        for key, look in looks.items():
            try:
                answer = picture_answer(look.name, sizes[key], self._wait(job, look.future), bank)
                answers[key] = ("done", result_text(answer))
            except ChangedError:
                # The class changed under it: the picture stays as it is and has another turn.
                continue
            except BusyError:
                break
            except TenetError as error:
                answers[key] = ("failed", str(error))
            except Exception:
                log.exception("a picture of a job failed")
                answers[key] = ("failed", "the service failed at this picture; its log says why")
        return [(key, *answer) for key, answer in answers.items()]

    def _wait(self, job: Job, future: "Future[Detections]") -> Detections:
        """The result; meanwhile the job stays ours."""
        while True:
            done, _ = wait([future], timeout=LEASE / 3)
            if done:
                return future.result()
            self._store.write(job.id, self._owner, ())
