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
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from lightfr_harness.server.coordinator.accuracy import (
    REMEMBERED_EVALUATIONS,
    AccuracyReport,
    Evaluation,
)
from lightfr_harness.server.coordinator.cohort import PhaseResult
from lightfr_harness.server.coordinator.database import Database
from lightfr_harness.server.coordinator.folder import CrashPoint, no_crash
from lightfr_harness.server.coordinator.rounds import (
    REMEMBERED_ROUNDS,
    Receipt,
    Round,
)
from lightfr_harness.server.coordinator.standing import Fault
from lightfr_harness.server.coordinator.stored import (
    NONCE_BYTES,
    SCHEMA_VERSION,
    CatalogueChange,
    Stored,
    cipher_of,
    unsealed,
)

# Versions whose manifests, and so whose artifacts, are kept.
REMEMBERED_VERSIONS = 16
_KEY_BYTES = 32

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
-- The lists of items that were taken up, by the version that each made.
CREATE TABLE IF NOT EXISTS catalogues (
  model_version INTEGER PRIMARY KEY, sha256 TEXT NOT NULL, has_counts INTEGER NOT NULL, joined INTEGER NOT NULL,
  "left" INTEGER NOT NULL, returned INTEGER NOT NULL, is_renumbered INTEGER NOT NULL, at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS counted (device TEXT PRIMARY KEY) WITHOUT ROWID;
"""


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


class Storage(Database, Stored):
    """The data base of one folder."""

    def __init__(
        self, path: Path, on_failure: Callable[[BaseException], None], crash_point: CrashPoint = no_crash
    ) -> None:
        super().__init__(path, _SCHEMA, SCHEMA_VERSION, on_failure, crash_point)

    # Changes, in the order in which they are asked for.

    def begin(
        self, settings: dict[str, Any], manifest: bytes, first: Round, catalogue: CatalogueChange
    ) -> asyncio.Future[Any]:
        """The first version and the first round of a new folder."""

        def job(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT INTO settings VALUES (1, ?)", (json.dumps(settings),))
            _add_version(connection, 1, manifest)
            _add_catalogue(connection, catalogue)
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
            return [unsealed(connection, number, sealed) for (sealed,) in rows]

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

    def change_catalogue(self, manifest: bytes, change: CatalogueChange, opened: Round | None) -> asyncio.Future[Any]:
        """In one transaction: a version with other items, and a round on it in the place of one without devices."""

        def job(connection: sqlite3.Connection) -> None:
            _add_version(connection, change.model_version, manifest)
            _add_catalogue(connection, change)
            if opened is not None:
                for table in ("rounds", "body_keys"):
                    connection.execute(f"DELETE FROM {table} WHERE number = ?", (opened.number,))  # noqa: S608
                _insert_round(connection, opened)

        return self._submit(job)

    def roll_back(self, version: int, manifest: bytes, to: int, ended: Round | None) -> asyncio.Future[Any]:
        """In one transaction: a version that repeats an older one, and the end of the round that was open.

        What was evaluated since the older one does not count any more, and items are those of the older one.
        """

        def job(connection: sqlite3.Connection) -> None:
            self._has_deleted = True
            _add_version(connection, version, manifest)
            for table in ("evaluations", "catalogues"):
                connection.execute(f"DELETE FROM {table} WHERE model_version > ?", (to,))  # noqa: S608
            if ended is not None:
                _end(connection, ended)

        return self._submit(job)

    def add_accuracy(self, report: AccuracyReport) -> asyncio.Future[Any]:
        row = (report.model_version, report.users, report.hit_rate, report.ndcg)
        return self._submit(
            lambda connection: connection.execute("INSERT OR REPLACE INTO accuracy VALUES (?, ?, ?, ?)", row)
        )


def _sealed(connection: sqlite3.Connection, number: int, body: bytes) -> bytes:
    nonce = os.urandom(NONCE_BYTES)
    return nonce + cipher_of(connection, number).encrypt(nonce, body, None)


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


def _add_catalogue(connection: sqlite3.Connection, change: CatalogueChange) -> None:
    connection.execute("INSERT INTO catalogues VALUES (?, ?, ?, ?, ?, ?, ?, ?)", astuple(change))


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
