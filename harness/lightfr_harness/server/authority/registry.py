"""What the authority remembers: devices, their later certificates and member keys, tokens, revocations.

Of tokens it keeps the hashes alone.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .databases import Database


@dataclass(frozen=True)
class Token:
    """An invitation's secret as it is kept; the last two are None until it is spent."""

    expires_unix_seconds: int
    request_sha256: bytes | None
    certificate: bytes | None


class Registry:
    """The tables; every method may be called from every thread."""

    def __init__(self, database: Database) -> None:
        self._database, self._lock = database, threading.RLock()

    def close(self) -> None:
        self._database.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing; other writers wait."""
        with self._lock, self._database.transaction():
            yield

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
        self._run("INSERT INTO member_keys VALUES (?, ?) ON CONFLICT DO NOTHING", member_key, device_id)
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
        self._run("INSERT INTO revocations (device_id) VALUES (?) ON CONFLICT DO NOTHING", device_id)

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
        with self._lock:
            return self._database.run(statement, values)
