"""A SQLite database with one thread that writes.

Everything that was asked for while it wrote the last transaction goes into the next one, so that a crowd shares one
wait for the disk. Changes take effect in the order in which they were asked for. Any failure ends the database: what
was not answered was not promised, and a restart resumes from what is durable.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lightfr.errors import LightFRError
from lightfr_harness.server.coordinator.folder import CrashPoint, no_crash

_LARGEST_BATCH = 1024
# How soon it is tried again to empty the write-ahead log, while a backup reads it.
_LOG_SECONDS = 1.0
_BUSY_MS = 5000

# Gets a connection, of SQLite or one that takes the same statements.
Job = Callable[[Any], Any]


class StorageError(LightFRError):
    """The database cannot be read or written: free disk space or restore the folder, then start again."""


class StorageUnavailableError(StorageError):
    """The database is away for now. What was asked for may or may not have been done: ask again."""


class RoundEndedError(StorageUnavailableError):
    """Another process has ended the round meanwhile, and what its devices sent is gone."""


class SqliteDatabase:
    """One file. Reads happen before the start; from the first change on everything is a job for the writer's thread."""

    # Whether other processes write to it too, and what a statement says to lock the rows that it reads.
    is_shared = False
    for_key_share = for_update = ""

    def __init__(
        self,
        path: Path,
        schema: str,
        schema_version: int,
        on_failure: Callable[[BaseException], None],
        crash_point: CrashPoint = no_crash,
    ) -> None:
        self._on_failure, self._crash_point = on_failure, crash_point
        self._failed = False
        # Set by jobs that delete user data, which must then leave the write-ahead log too. At the start as well: the
        # last process may have been killed before it did so.
        self._has_deleted = True
        self._jobs: queue.SimpleQueue[tuple[Job, asyncio.Future[Any]] | None] = queue.SimpleQueue()
        self._last: asyncio.Future[Any] | None = None
        try:
            self.connection = sqlite3.connect(path, _BUSY_MS / 1000, isolation_level=None, check_same_thread=False)
            _prepare(self.connection, schema, schema_version)
        except sqlite3.Error as error:
            raise StorageError(f"cannot open {path.name}: {error}") from error
        self._thread = threading.Thread(target=self._write, name="storage", daemon=True)

    @property
    def is_started(self) -> bool:
        return self._thread.ident is not None

    def start(self) -> None:
        """Begin to write; needs the running loop that later calls come from."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    async def close(self) -> None:
        """Finish what was asked for and close."""
        self._jobs.put(None)
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join)
        else:
            self.connection.close()

    @contextmanager
    def forgetting(self, connection: Any) -> Iterator[None]:
        """While a job deletes what is encrypted: its key is overwritten, so whole pages of it need not be."""
        self._has_deleted = True
        connection.execute("PRAGMA secure_delete = FAST")
        yield
        connection.execute("PRAGMA secure_delete = ON")

    def lock_device(self, connection: Any, device: str) -> None:
        """Keep other processes from giving this device a place: there are none."""

    def lock_rounds(self, connection: Any) -> None:
        """Keep other processes from beginning or ending a round: there are none."""

    def notify(self, connection: Any) -> None:
        """Tell other processes of a change: there are none."""

    def settled(self) -> asyncio.Future[Any]:
        """Done when everything that was asked for so far is durable."""
        return self.submit(lambda _: None) if self._last is None else asyncio.shield(self._last)

    def submit(self, job: Job) -> asyncio.Future[Any]:
        """Have a job done in the next transaction; its result comes when that is durable."""
        if not self.is_started:
            self.start()
        future: asyncio.Future[Any] = self._loop.create_future()
        if self._failed:
            future.set_exception(StorageError("the storage has failed; the coordinator must be started again"))
        else:
            self._jobs.put((job, future))
        self._last = future
        # Shielded: a request that gives up waiting must not take back what others rely on.
        return asyncio.shield(future)

    # In the writer's thread.

    def _write(self) -> None:
        is_over = False
        while not is_over:
            batch = self._next_batch()
            is_over = None in batch
            is_over |= not self._write_batch([entry for entry in batch if entry is not None])
        self.connection.close()

    def _next_batch(self) -> list[tuple[Job, asyncio.Future[Any]] | None]:
        """What was asked for, when something was; nothing, when it is time to empty the log after all."""
        try:
            batch = [self._jobs.get(timeout=_LOG_SECONDS if self._has_deleted else None)]
        except queue.Empty:
            return []
        while len(batch) < _LARGEST_BATCH and not self._jobs.empty():
            batch.append(self._jobs.get())
        return batch

    def _write_batch(self, batch: list[tuple[Job, asyncio.Future[Any]]]) -> bool:
        """One transaction; False when it failed, and with it the database."""
        futures = [future for _, future in batch]
        try:
            self._crash_point("transaction begins")
            self.connection.execute("BEGIN IMMEDIATE")
            results = [job(self.connection) for job, _ in batch]
            self._crash_point("transaction ends")
            self.connection.execute("COMMIT")
            self._crash_point("transaction is durable")
            self._loop.call_soon_threadsafe(_resolve, futures, results)
            if self._has_deleted:
                self._empty_log()
        except BaseException as error:  # Whatever it was, nothing more may be promised.
            self.connection.close()
            self._loop.call_soon_threadsafe(self._fail, futures, error)
            return False
        return True

    def _empty_log(self) -> None:
        """Overwrite what was deleted in the write-ahead log too, unless somebody reads it: no job waits."""
        self.connection.execute("PRAGMA busy_timeout = 0")
        is_busy, _, _ = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        self.connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
        self._has_deleted = bool(is_busy)

    def _fail(self, futures: list[asyncio.Future[Any]], error: BaseException) -> None:
        self._failed = True
        while not self._jobs.empty():
            entry = self._jobs.get()
            if entry is not None:
                futures.append(entry[1])
        for future in futures:
            if not future.done():
                future.set_exception(StorageError(f"the storage has failed: {type(error).__name__}"))
                future.exception()  # Seen: nobody may be waiting for this one.
        self._on_failure(error)


def _prepare(connection: sqlite3.Connection, schema: str, schema_version: int) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    # Uploads are user data: deleting them overwrites them.
    connection.execute("PRAGMA secure_delete = ON")
    require_schema(connection, schema_version, 0)
    connection.executescript(f"BEGIN; {schema} PRAGMA user_version = {schema_version}; COMMIT;")


def require_schema(connection: sqlite3.Connection, schema_version: int, *others: int) -> None:
    """Raise StorageError unless the database has this schema, or one of the others."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version not in (schema_version, *others):
        raise StorageError(
            f"the folder was written by another release: schema {version}, this one reads {schema_version}. Go on with"
            " that release, or begin a new folder, whose first codes may be a file of the old one's artifacts (--codes)"
        )


def _resolve(futures: list[asyncio.Future[Any]], results: list[Any]) -> None:
    for future, result in zip(futures, results, strict=True):
        if not future.done():
            future.set_result(result)
