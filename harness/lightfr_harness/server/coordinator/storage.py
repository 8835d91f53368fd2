"""What must survive a crash, in SQLite: versions, rounds, places, uploads.

An awaited method returns when its change is durable. Another data base would offer the same methods.

What devices send is kept under a key of its round, whose end overwrites the key: to overwrite all that was sent
would write as much again, twice.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from lightfr_harness.server.coordinator.accuracy import (
    REMEMBERED_EVALUATIONS,
    AccuracyReport,
    Evaluation,
    Evaluations,
)
from lightfr_harness.server.coordinator.cohort import UPLOADING, PhaseResult
from lightfr_harness.server.coordinator.database import Database, StorageError
from lightfr_harness.server.coordinator.folder import CrashPoint, no_crash
from lightfr_harness.server.coordinator.rounds import (
    ABANDONED,
    FINISHED,
    REMEMBERED_ROUNDS,
    TRAINING,
    Receipt,
    Round,
)
from lightfr_harness.server.coordinator.standing import Fault

SCHEMA_VERSION = 4
# Versions whose manifests, and so whose artifacts, are kept.
REMEMBERED_VERSIONS = 16
_KEY_BYTES, _NONCE_BYTES = 32, 12

_SCHEMA = """
CREATE TABLE IF NOT EXISTS settings (id INTEGER PRIMARY KEY CHECK (id = 1), value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS versions (model_version INTEGER PRIMARY KEY, manifest BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS rounds (
  number INTEGER PRIMARY KEY, round_id BLOB NOT NULL UNIQUE, model_version INTEGER NOT NULL,
  manifest_sha256 BLOB NOT NULL, goal INTEGER NOT NULL, places INTEGER NOT NULL, deadline_seconds REAL NOT NULL,
  opened_at REAL NOT NULL, state INTEGER NOT NULL, kind INTEGER NOT NULL, first_place_at REAL, deadline REAL,
  ended_at REAL,
  upload_bytes INTEGER NOT NULL DEFAULT 0, next_model_version INTEGER NOT NULL DEFAULT 0,
  upload_count INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS places (
  number INTEGER NOT NULL, device TEXT NOT NULL, peer_id BLOB NOT NULL, PRIMARY KEY (number, device)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS uploads (
  number INTEGER NOT NULL, device TEXT NOT NULL, upload_id BLOB NOT NULL, request_sha256 BLOB NOT NULL,
  body BLOB, size_bytes INTEGER NOT NULL, UNIQUE (number, device));
-- What the bodies of a round, in uploads and deliveries, are encrypted with while it lasts.
CREATE TABLE IF NOT EXISTS body_keys (number INTEGER PRIMARY KEY, key BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS accuracy (
  model_version INTEGER PRIMARY KEY, users INTEGER NOT NULL, hit_rate REAL NOT NULL, ndcg REAL NOT NULL);
-- What a round of secure aggregation leaves while it lasts.
CREATE TABLE IF NOT EXISTS settled (
  number INTEGER PRIMARY KEY, phase INTEGER NOT NULL, entries BLOB NOT NULL, vouchers BLOB NOT NULL,
  degree INTEGER NOT NULL, holders INTEGER NOT NULL, threshold INTEGER NOT NULL, roster_signature BLOB NOT NULL,
  included BLOB NOT NULL, included_signature BLOB NOT NULL, included_signers BLOB NOT NULL,
  survivors BLOB NOT NULL, survivors_signature BLOB NOT NULL, survivors_signers BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS deliveries (
  number INTEGER NOT NULL, phase INTEGER NOT NULL, device TEXT NOT NULL, request_sha256 BLOB NOT NULL, body BLOB,
  UNIQUE (number, phase, device));
-- Devices whose deliveries did not fit together: how often, how at last, and when.
CREATE TABLE IF NOT EXISTS faults (
  device TEXT PRIMARY KEY, count INTEGER NOT NULL, reason TEXT NOT NULL, at REAL NOT NULL) WITHOUT ROWID;
-- What cohorts added up in evaluation rounds, and what it is about.
CREATE TABLE IF NOT EXISTS evaluations (
  number INTEGER PRIMARY KEY, model_version INTEGER NOT NULL, candidates TEXT NOT NULL, sums BLOB NOT NULL,
  noise_variance REAL NOT NULL);
CREATE TABLE IF NOT EXISTS counted (device TEXT PRIMARY KEY) WITHOUT ROWID;
"""
_ROUND_COLUMNS = (
    "number, round_id, model_version, manifest_sha256, goal, places, deadline_seconds, opened_at, state, kind,"
    " first_place_at, deadline, ended_at, upload_bytes, next_model_version"
)
_SETTLED_COLUMNS = [field.name for field in fields(PhaseResult)]


@dataclass(frozen=True)
class PastRound:
    """An ended round as the history keeps it."""

    number: int
    state: int
    model_version: int
    upload_count: int
    upload_bytes: int
    seconds: float


@dataclass(frozen=True)
class RoundEnd:
    """What the end of a round leaves behind."""

    ended: Round
    # Number and manifest of the version that it made, if any.
    version: tuple[int, bytes] | None
    following: Round | None
    faults: Sequence[Fault]
    # The devices in the first of a pair of gate refreshes, while the second is still to come.
    counted: frozenset[str]
    # Of an evaluation round.
    evaluation: Evaluation | None = None


class Storage(Database):
    """The data base of one folder."""

    def __init__(
        self, path: Path, on_failure: Callable[[BaseException], None], crash_point: CrashPoint = no_crash
    ) -> None:
        super().__init__(path, _SCHEMA, SCHEMA_VERSION, on_failure, crash_point)

    # Read once, before start().

    def settings(self) -> dict[str, Any] | None:
        row = self._connection.execute("SELECT value FROM settings").fetchone()
        return None if row is None else json.loads(row[0])

    def manifests(self) -> list[bytes]:
        """The remembered manifests, newest first."""
        rows = self._connection.execute("SELECT manifest FROM versions ORDER BY model_version DESC")
        return [manifest for (manifest,) in rows]

    def rounds(self) -> list[Round]:
        """The remembered rounds, oldest first, with their places and receipts."""
        query = f"SELECT {_ROUND_COLUMNS} FROM rounds ORDER BY number DESC LIMIT ?"  # noqa: S608
        rows = self._connection.execute(query, (REMEMBERED_ROUNDS + 1,)).fetchall()
        return [self._with_devices(Round(*row)) for row in reversed(rows)]

    def finished_count(self) -> int:
        """Training rounds that have finished."""
        return self._count("state = ? AND kind = ?", FINISHED, TRAINING)

    def finished_since(self, kind: int) -> int:
        """Training rounds that have finished since the last round of another kind, or since the beginning."""
        last = "(SELECT coalesce(max(number), 0) FROM rounds WHERE state = ? AND kind = ?)"
        return self._count(f"state = ? AND kind = ? AND number > {last}", FINISHED, TRAINING, FINISHED, kind)

    def _count(self, condition: str, *values: object) -> int:
        query = f"SELECT count(*) FROM rounds WHERE {condition}"  # noqa: S608
        return int(self._connection.execute(query, values).fetchone()[0])

    def settled_phases(self, number: int) -> PhaseResult:
        """What the phases of a round of secure aggregation have fixed so far."""
        query = f"SELECT {', '.join(_SETTLED_COLUMNS)} FROM settled WHERE number = ?"  # noqa: S608
        row = self._connection.execute(query, (number,)).fetchone()
        return PhaseResult() if row is None else PhaseResult(*row)

    def deliveries(self, number: int, phase: int) -> Iterator[tuple[str, bytes]]:
        """Device and request, one at a time, of all that was delivered in a phase of a round."""
        if phase == UPLOADING:
            rows = self._connection.execute("SELECT device, body FROM uploads WHERE number = ?", (number,))
        else:
            query = "SELECT device, body FROM deliveries WHERE number = ? AND phase = ?"
            rows = self._connection.execute(query, (number, phase))
        for device, sealed in rows:
            yield device, _unsealed(self._connection, number, sealed)

    def history(self, limit: int) -> list[PastRound]:
        """Ended rounds, newest first."""
        rows = self._connection.execute(
            "SELECT number, state, model_version, upload_count, upload_bytes,"
            " max(ended_at - coalesce(first_place_at, opened_at), 0)"
            " FROM rounds WHERE state IN (?, ?) ORDER BY number DESC LIMIT ?",
            (FINISHED, ABANDONED, limit),
        )
        return [PastRound(*row) for row in rows]

    def faults(self) -> list[Fault]:
        return [Fault(*row) for row in self._connection.execute("SELECT device, count, reason, at FROM faults")]

    def counted(self) -> frozenset[str]:
        """The devices in the first of a pair of gate refreshes, while the second is still to come."""
        return frozenset(device for (device,) in self._connection.execute("SELECT device FROM counted"))

    def accuracy(self) -> list[AccuracyReport]:
        rows = self._connection.execute("SELECT model_version, users, hit_rate, ndcg FROM accuracy ORDER BY 1")
        return [AccuracyReport(*row) for row in rows]

    def evaluations(self) -> Evaluations:
        rows = self._connection.execute("SELECT * FROM evaluations ORDER BY number")
        return Evaluations(tuple(Evaluation.from_row(*row) for row in rows))

    def _with_devices(self, a_round: Round) -> Round:
        places = self._connection.execute("SELECT device, peer_id FROM places WHERE number = ?", (a_round.number,))
        a_round.assigned = dict(places)
        uploads = self._connection.execute(
            "SELECT device, upload_id, request_sha256, size_bytes FROM uploads WHERE number = ?", (a_round.number,)
        ).fetchall()
        a_round.receipts = {device: Receipt(upload_id, digest) for device, upload_id, digest, _ in uploads}
        a_round.upload_bytes = sum(size for *_, size in uploads)
        query = "SELECT phase, device, request_sha256 FROM deliveries WHERE number = ?"
        for phase, device, digest in self._connection.execute(query, (a_round.number,)):
            a_round.delivered[phase][device] = digest
        return a_round

    # Changes, in the order in which they are asked for.

    def begin(self, settings: dict[str, Any], manifest: bytes, first: Round) -> asyncio.Future[Any]:
        """The first version and the first round of a new folder."""

        def job(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT INTO settings VALUES (1, ?)", (json.dumps(settings),))
            connection.execute("INSERT INTO versions VALUES (1, ?)", (manifest,))
            _insert_round(connection, first)

        return self._submit(job)

    def open_round(self, opened: Round) -> asyncio.Future[Any]:
        return self._submit(lambda connection: _insert_round(connection, opened))

    def assign(self, current: Round, device: str) -> asyncio.Future[Any]:
        """Keep a place, and the times that the first one starts."""
        place = (current.number, device, current.assigned[device])
        times = (current.first_place_at, current.deadline, current.number)

        def job(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT INTO places VALUES (?, ?, ?)", place)
            connection.execute(
                "UPDATE rounds SET first_place_at = ?, deadline = ? WHERE number = ? AND deadline IS NULL", times
            )

        return self._submit(job)

    def deliver(self, number: int, phase: int, device: str, digest: bytes, body: bytes) -> asyncio.Future[Any]:
        """Keep what a device delivered in a phase of secure aggregation. Uploads are kept with their receipts."""

        def job(connection: sqlite3.Connection) -> None:
            row = (number, phase, device, digest, _sealed(connection, number, body))
            connection.execute("INSERT INTO deliveries VALUES (?, ?, ?, ?, ?)", row)

        return self._submit(job)

    def settle(self, current: Round, settled: PhaseResult) -> asyncio.Future[Any]:
        """Keep what a phase of secure aggregation fixed, and the deadline of the next one."""
        row, deadline = (current.number, *astuple(settled)), (current.deadline, current.number)

        def job(connection: sqlite3.Connection) -> None:
            connection.execute(f"INSERT OR REPLACE INTO settled VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608
            connection.execute("UPDATE rounds SET deadline = ? WHERE number = ?", deadline)

        return self._submit(job)

    def add_upload(self, number: int, device: str, receipt: Receipt, body: bytes) -> asyncio.Future[Any]:
        def job(connection: sqlite3.Connection) -> None:
            sealed = _sealed(connection, number, body)
            row = (number, device, receipt.upload_id, receipt.request_sha256, sealed, len(body))
            connection.execute("INSERT INTO uploads VALUES (?, ?, ?, ?, ?, ?)", row)

        return self._submit(job)

    def start_aggregating(self, a_round: Round) -> asyncio.Future[Any]:
        """Keep that the round takes no more; gives the bodies of its uploads, unless they are added up already."""
        number, state, is_masked = a_round.number, a_round.state, a_round.cohort is not None

        def job(connection: sqlite3.Connection) -> list[bytes]:
            connection.execute("UPDATE rounds SET state = ? WHERE number = ?", (state, number))
            if is_masked:
                return []
            rows = connection.execute("SELECT body FROM uploads WHERE number = ?", (number,))
            return [_unsealed(connection, number, sealed) for (sealed,) in rows]

        return self._submit(job)

    def end_round(self, ending: RoundEnd) -> asyncio.Future[Any]:
        """In one transaction: the round's end and all that came of it, its uploads' deletion, the next round."""
        ended, following = ending.ended, ending.following
        faults = [(fault.device, fault.count, fault.reason, fault.at) for fault in ending.faults]
        counted = [(device,) for device in ending.counted]

        def job(connection: sqlite3.Connection) -> None:
            self._has_deleted = True
            if ending.version is not None:
                _add_version(connection, *ending.version)
            _end(connection, ended)
            connection.executemany("INSERT OR REPLACE INTO faults VALUES (?, ?, ?, ?)", faults)
            connection.execute("DELETE FROM counted")
            connection.executemany("INSERT INTO counted VALUES (?)", counted)
            if ending.evaluation is not None:
                _add_evaluation(connection, ending.evaluation)
            if following is not None:
                _insert_round(connection, following)

        return self._submit(job)

    def roll_back(self, version: int, manifest: bytes, to: int, ended: Round | None) -> asyncio.Future[Any]:
        """In one transaction: a version that repeats an older one, and the end of the round that was open.

        What was evaluated since the older one does not count any more.
        """

        def job(connection: sqlite3.Connection) -> None:
            self._has_deleted = True
            _add_version(connection, version, manifest)
            connection.execute("DELETE FROM evaluations WHERE model_version > ?", (to,))
            if ended is not None:
                _end(connection, ended)

        return self._submit(job)

    def add_accuracy(self, report: AccuracyReport) -> asyncio.Future[Any]:
        row = (report.model_version, report.users, report.hit_rate, report.ndcg)
        return self._submit(
            lambda connection: connection.execute("INSERT OR REPLACE INTO accuracy VALUES (?, ?, ?, ?)", row)
        )


def _sealed(connection: sqlite3.Connection, number: int, body: bytes) -> bytes:
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + _cipher(connection, number).encrypt(nonce, body, None)


def _unsealed(connection: sqlite3.Connection, number: int, sealed: bytes) -> bytes:
    try:
        return _cipher(connection, number).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None)
    except (InvalidTag, ValueError) as error:
        raise StorageError(f"what devices sent in round {number} is damaged: restore the folder") from error


def _cipher(connection: sqlite3.Connection, number: int) -> AESGCM:
    row = connection.execute("SELECT key FROM body_keys WHERE number = ?", (number,)).fetchone()
    if row is None:
        raise StorageError(f"the key of round {number} is missing: restore the folder")
    return AESGCM(row[0])


def _insert_round(connection: sqlite3.Connection, opened: Round) -> None:
    connection.execute("INSERT INTO body_keys VALUES (?, ?)", (opened.number, os.urandom(_KEY_BYTES)))
    connection.execute(
        "INSERT INTO rounds (number, round_id, model_version, manifest_sha256, goal, places, deadline_seconds,"
        " opened_at, state, kind) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            opened.number,
            opened.round_id,
            opened.model_version,
            opened.manifest_sha256,
            opened.goal,
            opened.places,
            opened.deadline_seconds,
            opened.opened_at,
            opened.state,
            opened.kind,
        ),
    )


def _add_version(connection: sqlite3.Connection, version: int, manifest: bytes) -> None:
    connection.execute("INSERT INTO versions VALUES (?, ?)", (version, manifest))
    connection.execute("DELETE FROM versions WHERE model_version <= ?", (version - REMEMBERED_VERSIONS,))


def _add_evaluation(connection: sqlite3.Connection, evaluation: Evaluation) -> None:
    connection.execute("INSERT INTO evaluations VALUES (?, ?, ?, ?, ?)", evaluation.row())
    kept = "(SELECT number FROM evaluations ORDER BY number DESC LIMIT ?)"
    connection.execute(f"DELETE FROM evaluations WHERE number NOT IN {kept}", (REMEMBERED_EVALUATIONS,))  # noqa: S608


def _end(connection: sqlite3.Connection, ended: Round) -> None:
    connection.execute(
        "UPDATE rounds SET state = ?, ended_at = ?, upload_bytes = ?, upload_count = ?, next_model_version = ?"
        " WHERE number = ?",
        (
            ended.state,
            ended.ended_at,
            ended.upload_bytes,
            len(ended.receipts),
            ended.next_model_version,
            ended.number,
        ),
    )
    # The key is overwritten, so whole pages of what it encrypted need not be.
    connection.execute("DELETE FROM body_keys WHERE number = ?", (ended.number,))
    connection.execute("PRAGMA secure_delete = FAST")
    for table in ("uploads", "deliveries"):
        connection.execute(f"UPDATE {table} SET body = NULL WHERE number = ?", (ended.number,))  # noqa: S608
    connection.execute("PRAGMA secure_delete = ON")
    # Keys and sets of a masked round, and who was who in its roster.
    connection.execute("DELETE FROM settled WHERE number = ?", (ended.number,))
    connection.execute("UPDATE places SET peer_id = x'' WHERE number = ?", (ended.number,))
    for table in ("places", "uploads", "deliveries"):
        connection.execute(f"DELETE FROM {table} WHERE number <= ?", (ended.number - REMEMBERED_ROUNDS,))  # noqa: S608
