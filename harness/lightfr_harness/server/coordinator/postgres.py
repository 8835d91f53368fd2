"""A PostgreSQL database that several coordinators write to.

As with SQLite one thread writes, and what was asked for while it wrote the last transaction goes into the next one. A
job may be done again after a deadlock or a conflict with another process, so it changes nothing but the database. When
the connection is lost, nothing of what was under way is promised: whoever waits for it is told to try again, and finds
out then what became of it.
"""

from __future__ import annotations

import asyncio
import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from math import inf
from typing import Any

import psycopg
from psycopg import conninfo, errors

from lightfr_harness.server.coordinator.database import Job, StorageError, StorageUnavailableError

_LARGEST_BATCH = 64
_TRIES = 8
_RETRY_SECONDS = 0.2
# How long one statement may take before its server counts as lost, and how long when this process is to end.
SILENCE_SECONDS, CLOSING_SECONDS = 30.0, 5.0
# Of the connection, unless its address says something else: networks are lost without a word. The last is in ms.
_PATIENCE = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
_CHANNEL = "lightfr_changed"
# Of the advisory locks under which the tables are made, and under which rounds begin and end.
_MAKING_TABLES, _ROUNDS = 0x6C66725F, 0x6C667260
# What another transaction that comes at the same time may cause; done again, the job sees what that one did.
_CONFLICTS = (errors.DeadlockDetected, errors.SerializationFailure, errors.IntegrityError)
# A server that is gone or on its way out.
_LOST = (psycopg.OperationalError, psycopg.InterfaceError, errors.AdminShutdown)

_TYPES = {"BLOB": "BYTEA", "REAL": "DOUBLE PRECISION", "INTEGER": "BIGINT", " WITHOUT ROWID": "", " STRICT": ""}
# What is encrypted cannot be compressed, nor can codes or what is compressed already.
_AFTERWARDS = """
CREATE TABLE IF NOT EXISTS schema_version (id BIGINT PRIMARY KEY CHECK (id = 1), version BIGINT NOT NULL);
ALTER TABLE deliveries ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE sums ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE pieces ALTER COLUMN content SET STORAGE EXTERNAL;
"""


def connect(address: str, **options: Any) -> psycopg.Connection[Any]:
    """Connect to postgresql://..., and notice when the network is lost."""
    try:
        wanted = {**_PATIENCE, **conninfo.conninfo_to_dict(address), **options}
        return psycopg.connect(**wanted)
    except UnicodeError as error:
        raise psycopg.OperationalError("its address names no host") from error


class Session:
    """A connection that takes statements as SQLite does."""

    # When the last statement was sent, by time.monotonic().
    sent_at = inf

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self._closing = threading.Lock()

    def execute(self, statement: str, values: Sequence[Any] = ()) -> psycopg.Cursor[Any]:
        self.sent_at = time.monotonic()
        return self.connection.execute(statement.replace("?", "%s").encode(), values, binary=True)

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        with self.connection.cursor() as cursor:
            self.sent_at = time.monotonic()
            cursor.executemany(statement.replace("?", "%s").encode(), rows)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing."""
        self.sent_at = time.monotonic()
        try:
            with self.connection.transaction():
                yield
        finally:
            self.sent_at = inf

    def close(self) -> None:
        """Let go of it."""
        with self._closing, suppress(psycopg.Error):
            self.connection.close()

    def break_off(self) -> None:
        """End it under whoever waits for it in another thread."""
        with (
            self._closing,
            suppress(psycopg.Error, OSError),
            socket.socket(fileno=os.dup(self.connection.fileno())) as end,
        ):
            end.shutdown(socket.SHUT_RDWR)


class PostgresDatabase:
    """One database. Reads happen before the start; from the first change on everything is a job for the writer."""

    is_shared = True
    # Deliveries share a cohort's row with each other and with places; whoever ends a phase has it alone.
    for_key_share, for_update = " FOR KEY SHARE", " FOR UPDATE"

    def __init__(self, address: str, schema: str, schema_version: int, on_change: Callable[[], None]) -> None:
        """Connect, and make the tables if there are none. `on_change` is called when another process changed much."""
        self._address, self._on_change = address, on_change
        self._jobs: queue.SimpleQueue[tuple[Job, asyncio.Future[Any]] | None] = queue.SimpleQueue()
        self._last: asyncio.Future[Any] | None = None
        self._is_closed = threading.Event()
        self._session: Session | None = None
        try:
            self._session = Session(connect(address))
            _prepare(self._session, schema, schema_version)
        except psycopg.Error as error:
            self._drop()
            raise StorageError(f"cannot use the database: {in_one_line(error)}") from error
        except StorageError:
            self._drop()
            raise
        self._writer = threading.Thread(target=self._write, name="storage", daemon=True)
        self._listener = threading.Thread(target=self._listen, name="notifications", daemon=True)
        self._watcher = threading.Thread(target=self._watch, name="patience", daemon=True)

    @property
    def is_started(self) -> bool:
        return self._writer.ident is not None

    @property
    def connection(self) -> Session | None:
        """Before the start."""
        return self._session

    def start(self) -> None:
        """Begin to write; needs the running loop that later calls come from."""
        self._loop = asyncio.get_running_loop()
        if self._session is not None:
            self._session.connection.rollback()  # Reads have begun a transaction.
        self._writer.start()
        self._listener.start()
        self._watcher.start()

    async def close(self) -> None:
        """Finish what was asked for and close."""
        self._is_closed.set()
        self._jobs.put(None)
        if self._writer.is_alive():
            await asyncio.to_thread(self._writer.join)
            # It may wait for a server that does not answer, and changes nothing any more.
            await asyncio.to_thread(self._listener.join, _RETRY_SECONDS)
        self._drop()

    @contextmanager
    def forgetting(self, connection: Session) -> Iterator[None]:
        """While a job deletes what is encrypted."""
        yield

    def lock_device(self, connection: Session, device: str) -> None:
        """Keep other processes from giving this device a place until the job is done."""
        connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", (device,))

    def lock_rounds(self, connection: Session) -> None:
        """Keep other processes from beginning or ending a round, or making a version, until the job is done."""
        connection.execute("SELECT pg_advisory_xact_lock(?)", (_ROUNDS,))

    def notify(self, connection: Session) -> None:
        """Tell other processes of a change when the job is done."""
        connection.execute("SELECT pg_notify(?, '')", (_CHANNEL,))

    def try_lock(self, key: int) -> asyncio.Future[bool]:
        """Take an advisory lock, unless another process has it. It is lost with the connection."""
        return self.submit(
            lambda connection: connection.execute("SELECT pg_try_advisory_lock(?)", (key,)).fetchone()[0]
        )

    def unlock(self, key: int) -> asyncio.Future[Any]:
        return self.submit(lambda connection: connection.execute("SELECT pg_advisory_unlock(?)", (key,)))

    def settled(self) -> asyncio.Future[Any]:
        """Done when everything that was asked for so far is durable."""
        return self.submit(lambda _: None) if self._last is None else asyncio.shield(self._last)

    def submit(self, job: Job) -> asyncio.Future[Any]:
        """Have a job done in the next transaction; its result comes when that is durable."""
        if not self.is_started:
            self.start()
        future: asyncio.Future[Any] = self._loop.create_future()
        if self._session is None or self._is_closed.is_set():
            future.set_exception(StorageUnavailableError("the database is away: try again later"))
        else:
            self._jobs.put((job, future))
        self._last = future
        future.add_done_callback(_seen)
        return asyncio.shield(future)

    # In the writer's thread.

    def _write(self) -> None:
        while True:
            batch = [self._jobs.get()]
            while len(batch) < _LARGEST_BATCH and not self._jobs.empty():
                batch.append(self._jobs.get())
            asked = [entry for entry in batch if entry is not None]
            for transaction in _transactions(asked):
                self._do(transaction)
            if None in batch:
                return
            if self._session is None:
                self._connect()

    def _do(self, batch: list[tuple[Job, asyncio.Future[Any]]]) -> None:
        """One transaction. If one of several jobs fails by itself, each is done alone, so that only that one fails."""
        if self._session is None:
            self._answer(batch, error=StorageUnavailableError("the database is away: try again later"))
            return
        for _ in range(_TRIES):
            try:
                with self._session.transaction():
                    results = [job(self._session) for job, _ in batch]
            except _CONFLICTS:
                continue
            except _LOST:
                self._drop()
                self._answer(batch, error=StorageUnavailableError("the database is away: try again later"))
            except Exception as error:
                if len(batch) > 1:
                    for one in batch:
                        self._do([one])
                else:
                    self._answer(batch, error=StorageError(f"the database refused: {type(error).__name__}"))
            else:
                self._answer(batch, results)
            return
        self._answer(batch, error=StorageUnavailableError("the database is busy: try again later"))

    def _answer(
        self, batch: list[tuple[Job, asyncio.Future[Any]]], results: Sequence[Any] = (), error: Exception | None = None
    ) -> None:
        futures = [future for _, future in batch]
        with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
            self._loop.call_soon_threadsafe(_resolve, futures, results, error)

    def _drop(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _connect(self) -> None:
        """Until there is a connection again; whoever asks meanwhile is told so at once."""
        while not self._is_closed.is_set():
            try:
                self._session = Session(connect(self._address))
            except psycopg.Error:
                time.sleep(_RETRY_SECONDS)
            else:
                return

    # In the watcher's thread.

    def _watch(self) -> None:
        """Give a server up that says nothing and does not hang up either: one that is frozen, for instance."""
        while self._writer.is_alive():
            session, most = self._session, CLOSING_SECONDS if self._is_closed.is_set() else SILENCE_SECONDS
            if session is not None and time.monotonic() - session.sent_at > most:
                session.break_off()
            time.sleep(_RETRY_SECONDS)

    # In the listener's thread.

    def _listen(self) -> None:
        while not self._is_closed.is_set():
            with suppress(psycopg.Error), connect(self._address, autocommit=True) as connection:
                connection.execute(f"LISTEN {_CHANNEL}")
                while not self._is_closed.is_set():
                    for _ in connection.notifies(timeout=_RETRY_SECONDS, stop_after=1):
                        self._tell()
            self._is_closed.wait(_RETRY_SECONDS)

    def _tell(self) -> None:
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._on_change)


def _transactions(
    batch: list[tuple[Job, asyncio.Future[Any]]],
) -> Iterator[list[tuple[Job, asyncio.Future[Any]]]]:
    """Jobs that lock a row alone have a transaction of their own, so that they do not hold others' rows meanwhile."""
    together: list[tuple[Job, asyncio.Future[Any]]] = []
    for entry in batch:
        if getattr(entry[0], "is_alone", False):
            if together:
                yield together
            together = []
            yield [entry]
        else:
            together.append(entry)
    if together:
        yield together


def _resolve(futures: list[asyncio.Future[Any]], results: Sequence[Any], error: Exception | None) -> None:
    for at, future in enumerate(futures):
        if future.done():
            continue
        if error is None:
            future.set_result(results[at])
        else:
            future.set_exception(error)


def _seen(future: asyncio.Future[Any]) -> None:
    """Nobody may be waiting for this one."""
    if not future.cancelled():
        future.exception()


def translated(schema: str) -> str:
    """Tables in the words of SQLite, with PostgreSQL's names of types."""
    for ours, theirs in _TYPES.items():
        schema = schema.replace(ours, theirs)
    return schema


def _prepare(session: Session, schema: str, schema_version: int) -> None:
    with session.transaction():
        session.execute("SELECT pg_advisory_xact_lock(?)", (_MAKING_TABLES,))
        (is_there,) = session.execute("SELECT to_regclass('schema_version') IS NOT NULL").fetchone() or (False,)
        if not is_there:
            session.connection.execute(translated(schema).encode())
            session.connection.execute(_AFTERWARDS.encode())
            session.execute("INSERT INTO schema_version VALUES (1, ?)", (schema_version,))
        (version,) = session.execute("SELECT version FROM schema_version").fetchone() or (0,)
    if version != schema_version:
        raise StorageError(
            f"the database was made by another release: schema {version}, this one reads {schema_version}. Stop all"
            " replicas before an upgrade, or name a new database, whose first codes may be a file of the old one's"
            " artifacts (--codes)"
        )


def in_one_line(error: psycopg.Error) -> str:
    """What PostgreSQL says, in one line. It names hosts and databases, and no password."""
    return " ".join(str(error).split()) or type(error).__name__
