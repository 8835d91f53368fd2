"""What a coordinator has in its data base, as it is read: once before a start, or beside a running coordinator."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from lightfr_harness.server.coordinator.accuracy import AccuracyReport, Evaluation, Evaluations
from lightfr_harness.server.coordinator.cohort import UPLOADING, PhaseResult
from lightfr_harness.server.coordinator.database import StorageError, require_schema
from lightfr_harness.server.coordinator.rounds import (
    ABANDONED,
    FINISHED,
    REMEMBERED_ROUNDS,
    TRAINING,
    Receipt,
    Round,
)
from lightfr_harness.server.coordinator.standing import Fault

SCHEMA_VERSION = 5
NONCE_BYTES = 12

ROUND_COLUMNS = (
    "number, round_id, model_version, manifest_sha256, goal, places, deadline_seconds, opened_at, state, kind,"
    " first_place_at, deadline, ended_at, upload_bytes, next_model_version"
)
SETTLED_COLUMNS = [field.name for field in fields(PhaseResult)]


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
class CatalogueChange:
    """That a list of items was taken up."""

    # The version that it made, and the SHA-256 of the list.
    model_version: int
    sha256: str
    has_counts: bool
    joined: int
    left: int
    returned: int
    is_renumbered: bool
    at: float


class Stored:
    """The data base of one folder, read."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def settings(self) -> dict[str, Any] | None:
        row = self._connection.execute("SELECT value FROM settings").fetchone()
        return None if row is None else json.loads(row[0])

    def manifests(self) -> list[bytes]:
        """The remembered manifests, newest first."""
        rows = self._connection.execute("SELECT manifest FROM versions ORDER BY model_version DESC")
        return [manifest for (manifest,) in rows]

    def rounds(self) -> list[Round]:
        """The remembered rounds, oldest first, with their places and receipts."""
        query = f"SELECT {ROUND_COLUMNS} FROM rounds ORDER BY number DESC LIMIT ?"  # noqa: S608
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
        query = f"SELECT {', '.join(SETTLED_COLUMNS)} FROM settled WHERE number = ?"  # noqa: S608
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
            yield device, unsealed(self._connection, number, sealed)

    def catalogue_changes(self) -> list[CatalogueChange]:
        """The lists of items that were taken up, oldest first: that of the beginning, and those of updates."""
        return [CatalogueChange(*row) for row in self._connection.execute("SELECT * FROM catalogues ORDER BY 1")]

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


def unsealed(connection: sqlite3.Connection, number: int, sealed: bytes) -> bytes:
    try:
        return cipher_of(connection, number).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], None)
    except (InvalidTag, ValueError) as error:
        raise StorageError(f"what devices sent in round {number} is damaged: restore the folder") from error


def cipher_of(connection: sqlite3.Connection, number: int) -> AESGCM:
    row = connection.execute("SELECT key FROM body_keys WHERE number = ?", (number,)).fetchone()
    if row is None:
        raise StorageError(f"the key of round {number} is missing: restore the folder")
    return AESGCM(row[0])


@contextmanager
def reading(path: Path) -> Iterator[Stored]:
    """Read the data base of a folder, whether or not a coordinator is running on it."""
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            require_schema(connection, SCHEMA_VERSION)
            yield Stored(connection)
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise StorageError(f"cannot read {path.name}: {error}") from error
