"""Disks: a device's, which loses power, fills up, tears writes and is slow; and the databases of coordinators.

The files are real ones in memory. A kill leaves what was written; a loss of power leaves what was flushed, and of the
rest as much as the seed says. SQLite runs as it is, so its own recovery from torn pages is not tried here: a kill ends
the program before, within or after a transaction.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lightfr import _files
from lightfr_harness.server.coordinator.database import Job, SqliteDatabase, StorageError, StorageUnavailableError
from lightfr_harness.server.coordinator.schema import SCHEMA, SCHEMA_VERSION
from tests.world.clock import Host, Killed
from tests.world.system import SYSTEM

if TYPE_CHECKING:
    from tests.world.world import World

# The operations of lightfr._files at which a device may be killed or refused.
_OPERATIONS = ("open_file", "write", "fsync", "truncate", "replace", "remove", "make_folder", "fsync_folder", "lock")
_REFUSED = ("write", "make_folder")


def install() -> None:
    """Put every file operation of the SDK before the disk of the device whose turn it is."""
    for name in _OPERATIONS:
        setattr(_files, name, _operation(name, getattr(_files, name)))


def _operation(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def operation(*arguments: Any) -> Any:
        world, host = SYSTEM.world, SYSTEM.host
        if world is None or host is None or host not in world.disks:
            return original(*arguments)
        return world.disks[host].do(name, original, arguments)

    return operation


class DeviceDisk:
    """What is on the medium of one device, beside what its files say now."""

    def __init__(self, world: World, host: Host, folder: Path) -> None:
        self._world, self._host, self._folder = world, host, folder
        # Inode to flushed content, folder to flushed names with their inodes.
        self._synced: dict[int, bytes] = {}
        self._names: dict[Path, dict[str, int]] = {}
        for place in (folder, *filter(Path.is_dir, folder.rglob("*"))):
            self._flush_names(place)
            for path in filter(Path.is_file, place.iterdir()):
                self._synced[path.stat().st_ino] = path.read_bytes()

    def do(self, name: str, original: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Do an operation, unless the weather has another idea."""
        if not self._host.is_alive:
            raise Killed
        fate = self._world.weather.fate_of_operation()
        if fate == "slow":
            SYSTEM.sleep(self._world.weather.slow_seconds())
        if fate == "full" and name in _REFUSED:
            self._host.was_refused = True
            self._world.note("disk_full", self._host.name)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if fate == "kill":
            if name == "write":
                file, data, offset = arguments
                original(file, data[: int(len(data) * self._world.weather.random())], offset)
            elif self._world.weather.random() < 0.5:
                result = self._really(name, original, arguments)
                if name in ("open_file", "lock"):
                    os.close(result)  # as the system does for a dead program
            self._world.kill_device(self._host, f"at {name}")
            raise Killed
        return self._really(name, original, arguments)

    def _really(self, name: str, original: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        if name == "fsync":
            found = os.fstat(arguments[0])
            self._synced[found.st_ino] = os.pread(arguments[0], found.st_size, 0)
            return None
        if name == "fsync_folder":
            self._flush_names(arguments[0])
            return None
        result = original(*arguments)
        if name == "open_file" and arguments[1] & os.O_EXCL:
            self._synced.pop(os.fstat(result).st_ino, None)  # inode numbers come back
        return result

    def _flush_names(self, folder: Path) -> None:
        with os.scandir(folder) as entries:
            self._names[folder] = {entry.name: entry.inode() for entry in entries}

    def lose_power(self) -> None:
        """Leave what was flushed; a file that only grew since keeps a drawn part of what was written behind."""
        self._lose_under(self._folder)

    def _lose_under(self, folder: Path) -> None:
        flushed, now = self._names.get(folder, {}), {}
        for entry in sorted(folder.iterdir()):
            if entry.is_dir() and entry.name in flushed:
                self._lose_under(entry)
            elif entry.is_dir():
                shutil.rmtree(entry)
            else:
                now[entry.stat().st_ino] = entry.read_bytes()
                entry.unlink()
        for name, inode in flushed.items():
            path = folder / name
            if not path.exists():
                kept = self._synced.get(inode, b"")
                grown = now.get(inode, b"")
                if grown.startswith(kept):
                    kept = grown[: len(kept) + int(self._world.weather.random() * (len(grown) - len(kept)))]
                path.write_bytes(kept)
                path.chmod(0o600)
                self._synced[path.stat().st_ino] = kept
        self._flush_names(folder)


class WorldDatabase(SqliteDatabase):
    """The coordinator's SQLite database, whose writer is an event in the place of a thread."""

    def __init__(
        self, world: World, host: Host, path: Path, on_failure: Callable[[BaseException], None],
        crash_point: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._world, self._host, self._is_started, self._is_due = world, host, False, False
        super().__init__(path, SCHEMA, SCHEMA_VERSION, on_failure, crash_point)

    @property
    def is_started(self) -> bool:
        return self._is_started

    def start(self) -> None:
        self._loop, self._is_started = asyncio.get_running_loop(), True

    def submit(self, job: Job) -> asyncio.Future[Any]:
        future = super().submit(job)
        self._plan_write()
        return future

    def _plan_write(self) -> None:
        if not self._is_due and not self._jobs.empty():
            self._is_due = True
            self._loop.call_later(self._world.weather.write_seconds(), self._write_due)

    def _write_due(self) -> None:
        self._is_due = False
        batch = []
        while not self._jobs.empty():
            entry = self._jobs.get()
            if entry is not None:
                batch.append(entry)
        if batch and self._write_batch(batch):
            self._plan_write()

    async def close(self) -> None:
        """Finish what was asked for and close."""
        while not self._jobs.empty() and not self._failed:
            self._write_due()
        self.connection.close()

    def drop(self) -> None:
        """The program is dead: what was not committed is gone."""
        self.connection.close()


class SharedDatabase(WorldDatabase):
    """What replicas share: PostgreSQL's part played by SQLite, each transaction at once and alone.

    It can be away: what was asked for then may or may not have been done. Its locks go with the connection.
    """

    is_shared = True

    def __init__(self, world: World, host: Host, path: Path, on_change: Callable[[], None]) -> None:
        super().__init__(world, host, path, lambda error: None, lambda step: None)
        self._on_change, self._held, self._has_notified, self._is_told = on_change, set[int](), False, False
        world.sharing.append(self)

    def notify(self, connection: Any) -> None:
        self._has_notified = True

    def try_lock(self, key: int) -> asyncio.Future[bool]:
        def job(_: Any) -> bool:
            if any(key in other._held for other in self._world.sharing if other is not self):
                return False
            self._held.add(key)
            return True

        return self.submit(job)

    def unlock(self, key: int) -> asyncio.Future[Any]:
        return self.submit(lambda _: self._held.discard(key))

    def drop(self) -> None:
        self._held.clear()
        if self in self._world.sharing:
            self._world.sharing.remove(self)
        super().drop()

    async def close(self) -> None:
        await super().close()
        self.drop()

    def _write_batch(self, batch: list[tuple[Job, asyncio.Future[Any]]]) -> bool:
        for job, future in batch:
            self._do(job, future)
        return True

    def _do(self, job: Job, future: asyncio.Future[Any]) -> None:
        fate, self._has_notified = self._world.weather.fate_of_transaction(), False
        if fate == "kill":
            self._world.kill_coordinator(self._host, "before a transaction")
            raise Killed
        if fate == "away":
            self._answer(future, error=StorageUnavailableError("the database is away: try again later"))
            return
        try:
            with _transaction(self.connection):
                result = job(self.connection)
        except Exception as error:
            self._answer(future, error=StorageError(f"the database refused: {type(error).__name__}"))
            self._world.fail("a job of a shared database raised", error)
            return
        if fate == "kill after":
            self._world.kill_coordinator(self._host, "after a transaction")
            raise Killed
        if self._has_notified:
            for other in self._world.sharing:
                other.tell()
        if fate == "away after":
            self._answer(future, error=StorageUnavailableError("the database is away: try again later"))
            return
        self._answer(future, result)

    def tell(self) -> None:
        """Tell this replica of a change, in a moment, and of what else changes until then."""
        if self._is_started and not self._is_told:
            self._is_told = True
            self._loop.call_later(self._world.weather.write_seconds(), self._hear)

    def _hear(self) -> None:
        self._is_told = False
        self._on_change()

    def _answer(self, future: asyncio.Future[Any], result: Any = None, error: Exception | None = None) -> None:
        def resolve() -> None:
            if future.done():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)
                future.exception()  # Nobody may be waiting for this one.

        self._loop.call_soon(resolve)


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
