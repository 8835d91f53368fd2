"""Where the authority's tables are: a SQLite file in its folder, or a schema of its own in PostgreSQL.

Several processes use either at once, so every change is one transaction that keeps other writers out from its start.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from .errors import RegistryError

# Serials are written as ids are. Revocations are numbered and never taken back, so the highest number tells whether a
# reader is up to date.
SCHEMA = """
CREATE TABLE devices (device_id TEXT PRIMARY KEY, certificate BLOB NOT NULL) STRICT;
CREATE TABLE tokens (
    token_sha256 BLOB PRIMARY KEY,
    expires_unix_seconds INTEGER NOT NULL,
    request_sha256 BLOB,
    device_id TEXT REFERENCES devices
) STRICT;
CREATE TABLE revocations (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    device_id TEXT NOT NULL UNIQUE REFERENCES devices
) STRICT;
CREATE TABLE member_keys (member_key BLOB PRIMARY KEY, device_id TEXT NOT NULL REFERENCES devices) STRICT;
CREATE TABLE renewals (
    serial TEXT PRIMARY KEY,
    device_id TEXT NOT NULL REFERENCES devices,
    request_sha256 BLOB NOT NULL,
    certificate BLOB NOT NULL,
    UNIQUE (device_id, request_sha256)
) STRICT;
"""

# FULL: a certificate that was handed out must be revocable after a power cut too. The time-out is in milliseconds.
_SETTINGS = ("busy_timeout = 10000", "journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON")


class Database(Protocol):
    """A connection to the tables. One thread uses it at a time; what fails raises RegistryError."""

    def run(self, statement: str, values: Sequence[str | bytes | int] = ()) -> Sequence[tuple[Any, ...]]:
        """Do one statement, in the words of SQLite; the rows that it gives."""

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing; other writers wait."""

    def close(self) -> None:
        """Let go of it."""


class SqliteFile:
    """A file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._errors():
            self.connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            for setting in _SETTINGS:
                self.run(f"PRAGMA {setting}")
        except RegistryError:
            self.close()
            raise

    @classmethod
    def create(cls, path: Path) -> None:
        """Make the empty tables as one file."""
        made = cls(path)
        with made._errors():
            made.connection.executescript(SCHEMA)
        made.close()

    def run(self, statement: str, values: Sequence[str | bytes | int] = ()) -> Sequence[tuple[Any, ...]]:
        with self._errors():
            return self.connection.execute(statement, values).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._errors():
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.connection.execute("COMMIT")
            finally:
                # SQLite rolls back by itself after some failures, a full disk for one.
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")

    def close(self) -> None:
        self.connection.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            advice = "Try again; if it stays, check the disk and restore the folder from a copy."
            raise RegistryError(f"{self._path}: the database failed ({error}). {advice}") from error
