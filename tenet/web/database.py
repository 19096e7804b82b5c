"""The connection to the store: one SQLite file, or PostgreSQL by URL.

SQLite runs with a write-ahead log and waits for the disk at every commit: what was answered with success is
there after `kill -9` and after a power cut. A writer takes its lock at the beginning, so two of them wait
for each other and never fail half-way.
"""

import logging
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from tenet.errors import DataError, InputError, MissingExtraError
from tenet.web.failures import BusyError
from tenet.web.tables import SCHEMA, facts, metadata

BUSY_SECONDS = 20
"""How long a writer waits for another one."""
RETRY_SECONDS = 0.02
"""How soon it tries again, where SQLite does not wait by itself."""
CONNECT_SECONDS = 5
"""How long a connection to PostgreSQL may take to come about."""
AWAY_SECONDS = 5
"""When to ask again while the store is away."""
log = logging.getLogger("tenet.web")
_LOCK = 0x74656E6574
"""A number by which servers on one PostgreSQL know each other."""


class Database:
    """Reads see one moment of the store; writes are whole or nothing."""

    def __init__(self, where: Path | str) -> None:
        self.url = store_url(where)
        self.sqlite = self.url.get_backend_name() == "sqlite"
        try:
            self._engine = _engine(self.url)
            try:
                self._prepare()
            except BaseException:
                self._engine.dispose()
                raise
        except ModuleNotFoundError as error:
            raise MissingExtraError("a store in PostgreSQL", "postgres") from error
        except (SQLAlchemyError, OSError) as error:
            raise DataError(
                f"{self.shown}: expected a store that can be opened and written, but it cannot "
                f"({_cause(error)}); choose another with --store"
            ) from error
        level = {"begin": "BEGIN"} if self.sqlite else {"isolation_level": "REPEATABLE READ"}
        self._reader = self._engine.execution_options(**level)

    @property
    def shown(self) -> str:
        """Where the store is, without a password."""
        return str(self.url.database) if self.sqlite else self.url.render_as_string(hide_password=True)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A moment of the store."""
        with _or_busy(), self._reader.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """All or nothing; on the disk when the block is left."""
        with _or_busy(), self._engine.begin() as connection:
            yield connection

    def close(self) -> None:
        self._engine.dispose()

    def _prepare(self) -> None:
        """The tables, made once even where several servers start together, and a look at their schema."""
        with self._engine.begin() as connection:
            if not self.sqlite:
                connection.execute(sql.select(sql.func.pg_advisory_xact_lock(_LOCK)))
            metadata.create_all(connection)
            rows = {row.name: row.value for row in connection.execute(sql.select(facts))}
            if not rows:
                first = [{"name": "schema", "value": SCHEMA}, {"name": "revision", "value": 0}]
                connection.execute(sql.insert(facts), first)
                rows = {"schema": SCHEMA}
        if rows["schema"] != SCHEMA:
            raise DataError(
                f"{self.shown}: expected a store of schema {SCHEMA}, got {rows['schema']}; "
                "serve it with the tenet that made it"
            )


@contextmanager
def _or_busy() -> Iterator[None]:
    """A store that is away or locked comes back: whoever needs it now is to ask again."""
    try:
        yield
    except (OperationalError, PoolTimeoutError) as error:
        log.warning("the store cannot be used now: %s", _cause(error))
        raise BusyError("the store is away or locked by another program; ask again", AWAY_SECONDS) from error


def store_url(where: Path | str) -> URL:
    """A file, or a URL of PostgreSQL."""
    text = str(where)
    if "://" not in text:
        if not text or Path(text).is_dir():
            raise InputError(f"--store: expected a file or a postgresql:// URL, got {text or 'nothing'}")
        return URL.create("sqlite+pysqlite", database=text)
    try:
        url = make_url(text)
    except SQLAlchemyError as error:
        raise InputError("--store: expected postgresql://user:password@host/name, got another URL") from error
    if url.get_backend_name() != "postgresql":
        raise InputError(f"--store: expected a file or a postgresql:// URL, got {url.drivername}://")
    return url.set(drivername="postgresql+psycopg")


def _engine(url: URL) -> Engine:
    if url.get_backend_name() != "sqlite":
        timeout = {"connect_timeout": CONNECT_SECONDS}
        return sql.create_engine(url, pool_pre_ping=True, pool_size=8, pool_timeout=10, connect_args=timeout)
    Path(str(url.database)).parent.mkdir(parents=True, exist_ok=True)
    engine = sql.create_engine(url, connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False})
    sql.event.listen(engine, "connect", _prepare_sqlite)
    sql.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    # The driver shall begin no transaction by itself: `_begin_sqlite` does, of the kind that is needed.
    connection.isolation_level = None
    _use_write_ahead_log(connection)
    for pragma in ("synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}").close()


def _use_write_ahead_log(connection: Any) -> None:
    """SQLite does not wait by itself where two connections change a new file's journal at the same moment."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL").close()
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(RETRY_SECONDS)


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("begin", "BEGIN IMMEDIATE"))


def _cause(error: Exception) -> str:
    """The driver's own words, in one line and without the statement."""
    origin = getattr(error, "orig", None) or error
    return " ".join(str(origin).split())[:200]
