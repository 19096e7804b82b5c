"""What the service keeps of jobs: many pictures to be looked at in the background.

A job that is being done is leased: who does it says so again and again, and when that stops (its server was
killed) another one takes over where it ended. A picture's file is forgotten once its result is written.
"""

import json
import secrets
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sql

from tenet.web.database import Database
from tenet.web.failures import BusyError, NotFoundError
from tenet.web.limits import MEGABYTE
from tenet.web.tables import job_pictures, jobs

LEASE = 15.0
"""Seconds after which a job whose server fell silent is taken over."""
LOADING_LEASE = 4 * LEASE
"""The same while its pictures come in: one of them may take a while to be unpacked and written."""
MOST_OPEN = 20
"""Jobs that are not finished."""
MOST_DONE = 200
"""Finished jobs that are kept."""
AT_ONCE = 32
"""Pictures written in one transaction; others may write between."""
BYTES_AT_ONCE = 32 * MEGABYTE
"""The same, for large ones."""


@dataclass(frozen=True)
class Job:
    """A job and how far it is. `state`: loading, waiting or done; `failed` counts its bad pictures."""

    id: str
    state: str
    options: dict[str, Any]
    created: float
    total: int = 0
    done: int = 0
    failed: int = 0


class JobStore:
    """Jobs and their pictures in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, options: dict[str, Any], pictures: Iterable[tuple[str, bytes]]) -> str:
        """A job with all its pictures. Until the last of them is written nobody begins it."""
        key, now = secrets.token_hex(8), time.time()
        row = {"id": key, "state": "loading", "options": json.dumps(options), "created": now}
        with self._database.writing() as connection:
            open_jobs = sql.select(sql.func.count()).where(jobs.c.state.in_(("loading", "waiting")))
            if connection.execute(open_jobs).scalar_one() >= MOST_OPEN:
                raise BusyError(f"{MOST_OPEN} jobs wait already; ask again when one is done", 30)
            connection.execute(sql.insert(jobs).values(**row, owner="", lease=now + LOADING_LEASE))
        try:
            some: list[dict[str, Any]] = []
            size, last = 0, now
            for name, file in pictures:
                some.append({"job_id": key, "name": name, "state": "waiting", "file": file, "result": ""})
                size += len(file)
                # Also when it takes long: the job must not be taken for one whose server is gone.
                if len(some) == AT_ONCE or size > BYTES_AT_ONCE or time.time() - last > LEASE / 3:
                    self._insert(key, some)
                    some, size, last = [], 0, time.time()
            self._insert(key, some, "waiting")
        except BaseException:
            with suppress(NotFoundError):
                self.remove(key)
            raise
        return key

    def _insert(self, key: str, rows: Sequence[dict[str, Any]], state: str = "loading") -> None:
        with self._database.writing() as connection:
            lease = time.time() + LOADING_LEASE if state == "loading" else 0.0
            own = sql.update(jobs).where(jobs.c.id == key).values(state=state, lease=lease)
            if connection.execute(own).rowcount != 1:
                raise _no_job(key)
            if rows:
                connection.execute(sql.insert(job_pictures), list(rows))

    def get(self, key: str) -> Job:
        """A job by its id."""
        found = self._jobs(jobs.c.id == key)
        if not found:
            raise _no_job(key)
        return found[0]

    def newest(self, most: int = 100) -> list[Job]:
        """The newest jobs."""
        return self._jobs(sql.true(), most)

    def _jobs(self, where: Any, most: int = 1) -> list[Job]:
        newest = sql.select(jobs).where(where).order_by(jobs.c.created.desc()).limit(most)
        with self._database.reading() as connection:
            rows = connection.execute(newest).all()
            counts = sql.select(job_pictures.c.job_id, job_pictures.c.state, sql.func.count()).where(
                job_pictures.c.job_id.in_([row.id for row in rows])
            )
            grouped = connection.execute(counts.group_by(job_pictures.c.job_id, job_pictures.c.state)).all()
        count = {(job, state): number for job, state, number in grouped}
        return [
            Job(
                row.id,
                row.state,
                json.loads(row.options),
                row.created,
                sum(count.get((row.id, state), 0) for state in ("waiting", "done", "failed")),
                count.get((row.id, "done"), 0),
                count.get((row.id, "failed"), 0),
            )
            for row in rows
        ]

    def results(self, key: str, start: int = 0, most: int = 10_000) -> list[tuple[str, str, Any]]:
        """(name, state, result or message) of pictures that are done or failed, in the job's order."""
        self.get(key)
        columns = (job_pictures.c.name, job_pictures.c.state, job_pictures.c.result)
        ready = (job_pictures.c.job_id == key, job_pictures.c.state != "waiting")
        query = sql.select(*columns).where(*ready).order_by(job_pictures.c.id).offset(start).limit(most)
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        return [
            (row.name, row.state, json.loads(row.result) if row.state == "done" else row.result)
            for row in rows
        ]

    def remove(self, key: str) -> None:
        """Forget a job, whatever its state; who is at it stops."""
        with self._database.writing() as connection:
            if connection.execute(sql.delete(jobs).where(jobs.c.id == key)).rowcount != 1:
                raise _no_job(key)

    # ---- for who does them

    def claim(self, owner: str) -> Job | None:
        """The oldest job that nobody is at, now ours; jobs whose pictures never all came are forgotten."""
        now = time.time()
        silent = jobs.c.lease < now
        with self._database.writing() as connection:
            connection.execute(sql.delete(jobs).where(jobs.c.state == "loading", silent))
            oldest = sql.select(jobs.c.id).where(jobs.c.state == "waiting", silent).order_by(jobs.c.created)
            # Two servers on PostgreSQL take different jobs; SQLite has one writer at a time anyway.
            key = connection.execute(oldest.limit(1).with_for_update(skip_locked=True)).scalar()
            if key is None:
                return None
            ours = {"owner": owner, "lease": now + LEASE}
            connection.execute(sql.update(jobs).where(jobs.c.id == key).values(ours))
        return self.get(key)

    def waiting(self, key: str, most: int) -> list[tuple[int, str, bytes]]:
        """(id, name, file) of the next pictures of a job."""
        columns = (job_pictures.c.id, job_pictures.c.name, job_pictures.c.file)
        own = (job_pictures.c.job_id == key, job_pictures.c.state == "waiting")
        query = sql.select(*columns).where(*own).order_by(job_pictures.c.id).limit(most)
        with self._database.reading() as connection:
            return [(row.id, row.name, bytes(row.file)) for row in connection.execute(query)]

    def write(self, key: str, owner: str, found: Sequence[tuple[int, str, str]]) -> bool:
        """(id, state, result) of some pictures, and that we are still at it; False if it is not ours."""
        with self._database.writing() as connection:
            ours = (jobs.c.id == key, jobs.c.owner == owner)
            lease = {"lease": time.time() + LEASE}
            if connection.execute(sql.update(jobs).where(*ours).values(lease)).rowcount != 1:
                return False
            for picture, state, result in found:
                values = {"state": state, "result": result, "file": None}
                connection.execute(
                    sql.update(job_pictures).where(job_pictures.c.id == picture).values(values)
                )
        return True

    def finish(self, key: str, owner: str) -> None:
        """Nothing is left to be done. Of the jobs that are done the newest are kept."""
        done = jobs.c.state == "done"
        old = sql.select(jobs.c.id).where(done).order_by(jobs.c.created.desc()).offset(MOST_DONE)
        with self._database.writing() as connection:
            ours = (jobs.c.id == key, jobs.c.owner == owner)
            connection.execute(sql.update(jobs).where(*ours).values(state="done"))
            connection.execute(sql.delete(jobs).where(done, jobs.c.id.in_(old.scalar_subquery())))


def _no_job(key: str) -> NotFoundError:
    return NotFoundError(f"job {key[:40]}: expected a job of this store, found none")
