"""What the authority remembers, in SQLite: devices, their later certificates and member keys, tokens, revocations.

Of tokens it keeps the hashes alone. Several `ca` commands use the file at once, so every change is one transaction that
takes the write lock at its start.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import AuthorityError

# FULL: a certificate that was handed out must be revocable after a power cut too. The time-out is in milliseconds.
_SETTINGS = ("busy_timeout = 10000", "journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON")

# Serials are written as ids are. Revocations are numbered and never taken back, so the highest number tells whether a
# reader is up to date.
_SCHEMA = """
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


@dataclass(frozen=True)
class Token:
    """An invitation's secret as it is kept; the last two are None until it is spent."""

    expires_unix_seconds: int
    request_sha256: bytes | None
    certificate: bytes | None


class Registry:
    """The database; every method may be called from every thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        with self._errors():
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            for setting in _SETTINGS:
                self._run(f"PRAGMA {setting}")
        except AuthorityError:
            self.close()
            raise

    @classmethod
    def create(cls, path: Path) -> None:
        """Make the empty database as one file."""
        registry = cls(path)
        with registry._errors():
            registry._connection.executescript(_SCHEMA)
        registry.close()

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing; other writers wait."""
        with self._lock, self._errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            finally:
                # SQLite rolls back by itself after some failures, a full disk for one.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def add_device(self, device_id: str, certificate: bytes) -> None:
        self._run("INSERT INTO devices VALUES (?, ?)", device_id, certificate)

    def first_certificate(self, device_id: str) -> bytes:
        return bytes(self._run("SELECT certificate FROM devices WHERE device_id = ?", device_id)[0][0])

    def devices(self) -> list[tuple[str, bytes, bytes, bool]]:
        """Of every device: its id, its first and its newest certificate, and whether it is revoked; oldest first."""
        newest = "SELECT certificate FROM renewals r WHERE r.device_id = d.device_id ORDER BY r.rowid DESC LIMIT 1"
        rows = self._run(
            f"SELECT device_id, certificate, coalesce(({newest}), certificate), number IS NOT NULL "  # noqa: S608 # all ours
            "FROM devices d LEFT JOIN revocations USING (device_id) ORDER BY d.rowid"
        )
        return [(device_id, first, last, bool(is_revoked)) for device_id, first, last, is_revoked in rows]

    def has_device(self, device_id: str) -> bool:
        return bool(self._run("SELECT 1 FROM devices WHERE device_id = ?", device_id))

    def claim(self, member_key: bytes, device_id: str) -> str:
        """Give a member key to a device unless another has it; returns the device that has it."""
        self._run("INSERT OR IGNORE INTO member_keys VALUES (?, ?)", member_key, device_id)
        rows = self._run("SELECT device_id FROM member_keys WHERE member_key = ?", member_key)
        return str(rows[0][0])

    def add_token(self, token_sha256: bytes, expires_unix_seconds: int) -> None:
        self._run("INSERT INTO tokens VALUES (?, ?, NULL, NULL)", token_sha256, expires_unix_seconds)

    def find_token(self, token_sha256: bytes) -> Token | None:
        rows = self._run(
            "SELECT expires_unix_seconds, request_sha256, certificate FROM tokens LEFT JOIN devices USING (device_id) "
            "WHERE token_sha256 = ?",
            token_sha256,
        )
        return Token(*rows[0]) if rows else None

    def spend_token(self, token_sha256: bytes, request_sha256: bytes, device_id: str) -> None:
        self._run(
            "UPDATE tokens SET request_sha256 = ?, device_id = ? WHERE token_sha256 = ?",
            *(request_sha256, device_id, token_sha256),
        )

    def add_renewal(self, serial: str, device_id: str, request_sha256: bytes, certificate: bytes) -> None:
        self._run("INSERT INTO renewals VALUES (?, ?, ?, ?)", serial, device_id, request_sha256, certificate)

    def renewals(self, device_id: str) -> dict[bytes, bytes]:
        """The certificates that a device got after its first, by the digest of the request."""
        rows = self._run("SELECT request_sha256, certificate FROM renewals WHERE device_id = ?", device_id)
        return dict(rows)

    def remove_renewal(self, device_id: str, request_sha256: bytes) -> None:
        self._run("DELETE FROM renewals WHERE device_id = ? AND request_sha256 = ?", device_id, request_sha256)

    def revoke(self, device_id: str) -> None:
        self._run("INSERT OR IGNORE INTO revocations (device_id) VALUES (?)", device_id)

    def last_revocation(self) -> int:
        """The number of the newest revocation, 0 before the first."""
        return int(self._run("SELECT coalesce(max(number), 0) FROM revocations")[0][0])

    def revoked(self) -> frozenset[str]:
        return frozenset(device_id for (device_id,) in self._run("SELECT device_id FROM revocations"))

    def revoked_serials(self) -> list[str]:
        """Of every certificate of every revoked device; ended ones may be missing. That of the first one is the id."""
        renewed = "SELECT serial FROM renewals JOIN revocations USING (device_id)"
        return [serial for (serial,) in self._run(f"SELECT device_id FROM revocations UNION ALL {renewed}")]  # noqa: S608

    def _run(self, statement: str, *values: str | bytes | int) -> Sequence[tuple[Any, ...]]:
        with self._lock, self._errors():
            return self._connection.execute(statement, values).fetchall()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            advice = "Try again; if it stays, check the disk and restore the folder from a copy."
            raise AuthorityError(f"{self.path}: the database failed ({error}). {advice}") from error
