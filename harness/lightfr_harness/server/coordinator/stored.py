"""What a coordinator has in its database, as it is read: once before a start, or beside a running coordinator."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lightfr_harness.server.coordinator.accuracy import AccuracyReport, Evaluation, Evaluations
from lightfr_harness.server.coordinator.bodies import cipher_of, unpacked_sums, unsealed
from lightfr_harness.server.coordinator.database import StorageError, require_schema
from lightfr_harness.server.coordinator.phases import UPLOADING, PhaseResult
from lightfr_harness.server.coordinator.plan import EVALUATION, GATE_REFRESH, TRAINING
from lightfr_harness.server.coordinator.rounds import ABANDONED, FINISHED, REMEMBERED_ROUNDS, Receipt, Round
from lightfr_harness.server.coordinator.schema import SCHEMA_VERSION
from lightfr_harness.server.coordinator.standing import Fault

_ROUND_COLUMNS = (
    "number, round_id, model_version, manifest_sha256, goal, places, deadline_seconds, opened_at, state, kind, cohort,"
    " cohorts, first_place_at, deadline, ended_at, upload_bytes, next_model_version, places_taken"
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

    @classmethod
    def of(cls, cohorts: list[Any]) -> PastRound:
        """From number, state, version, uploads, their bytes, start and end of each of its cohorts."""
        numbers, states, versions, uploads, sizes, starts, ends = zip(*cohorts, strict=True)
        state = FINISHED if FINISHED in states else ABANDONED
        return cls(numbers[0], state, versions[0], sum(uploads), sum(sizes), max(max(ends) - min(starts), 0))


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


class Seen(NamedTuple):
    """A cohort that is not over, as it stands in the database."""

    round_id: bytes
    state: int
    phase: int
    first_place_at: float | None
    deadline: float | None
    places_taken: int
    is_summed: bool
    # In this phase.
    deliveries: int


@dataclass(frozen=True)
class Memory:
    """What a coordinator remembers of all that was."""

    # Newest first.
    manifests: list[bytes]
    evaluations: Evaluations
    catalogue_changes: list[CatalogueChange]
    # Training rounds that have finished: in all, since the last gate refresh, since the last evaluation.
    finished: tuple[int, int, int]
    faults: list[Fault]
    counted: frozenset[str]
    # As Suspects has them.
    suspects: str
    history: list[PastRound]
    accuracy: list[AccuracyReport]
    rounds: list[Round]


class Stored:
    """A database, read through a connection to it."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def settings(self) -> dict[str, Any] | None:
        row = self._connection.execute("SELECT value FROM settings").fetchone()
        return None if row is None else json.loads(row[0])

    def memory(self, shown_rounds: int, known: Mapping[bytes, Round]) -> Memory:
        """All that was, but the rounds that are known."""
        in_all = self._count("state = ? AND kind = ?", FINISHED, TRAINING)
        finished = (in_all, self._finished_since(GATE_REFRESH), self._finished_since(EVALUATION))
        return Memory(
            self.manifests(), self.evaluations(), self.catalogue_changes(), finished, self.faults(), self.counted(),
            self.suspects(), self.history(shown_rounds), self.accuracy(), self.rounds(known),
        )  # fmt: skip

    def manifests(self) -> list[bytes]:
        """The remembered manifests, newest first."""
        rows = self._connection.execute("SELECT manifest FROM versions ORDER BY model_version DESC")
        return [manifest for (manifest,) in rows]

    def newest_version(self) -> int:
        """0: there is none."""
        (newest,) = self._connection.execute("SELECT coalesce(max(model_version), 0) FROM versions").fetchone()
        return int(newest)

    def newest_round(self) -> int:
        """Its number; 0: there is none."""
        (newest,) = self._connection.execute("SELECT coalesce(max(number), 0) FROM rounds").fetchone()
        return int(newest)

    def rounds(self, known: Mapping[bytes, Round] | None = None) -> list[Round]:
        """The cohorts of the remembered rounds, oldest first, with their places and receipts.

        Those that are known, to be over or not, are not read again.
        """
        query = f"SELECT {_ROUND_COLUMNS} FROM rounds WHERE number >= ? ORDER BY number, cohort"  # noqa: S608
        found = []
        for row in self._connection.execute(query, (self.newest_round() - REMEMBERED_ROUNDS,)).fetchall():
            past, is_over = (known or {}).get(row[1]), row[8] in (FINISHED, ABANDONED)
            found.append(past if past and past.is_over == is_over else self._with_devices(Round(*row)))
        return found

    def seen(self) -> list[Seen]:
        """The cohorts that are not over."""
        rows = self._connection.execute(
            "SELECT r.round_id, state, phase, first_place_at, deadline, places_taken, s.round_id IS NOT NULL,"
            " (SELECT count(*) FROM deliveries d WHERE d.round_id = r.round_id AND d.phase = r.phase)"
            " FROM rounds r LEFT JOIN sums s ON s.round_id = r.round_id WHERE ended_at IS NULL"
        )
        return [Seen(*row) for row in rows]

    def device_in(self, device: str) -> tuple[list[Seen], dict[bytes, bytes], list[tuple[bytes, int, bytes, bytes]]]:
        """The cohorts that are not over; the device's peer ids by cohort; and what it delivered in their phases:

        cohort, phase, digest, upload id.
        """
        rows = self._connection.execute(
            "SELECT round_id, state, phase, first_place_at, deadline, places_taken, 0, 0 FROM rounds"
            " WHERE ended_at IS NULL"
        )
        seen = [Seen(*row) for row in rows]
        places, delivered = {}, []
        rows = self._connection.execute(
            "SELECT p.round_id, p.peer_id, d.phase, d.request_sha256, d.upload_id FROM rounds r JOIN places p"
            " ON p.round_id = r.round_id AND p.device = ? LEFT JOIN deliveries d ON d.round_id = p.round_id"
            " AND d.device = p.device WHERE r.ended_at IS NULL",
            (device,),
        )
        # Of the phases that were seen: another process may have ended one between the two questions.
        phases = {one.round_id: one.phase for one in seen}
        for round_id, peer_id, *delivery in rows:
            places[round_id] = peer_id
            if delivery[0] is not None and delivery[0] == phases.get(round_id):
                delivered.append((round_id, *delivery))
        return seen, places, delivered

    def place(self, number: int, device: str) -> tuple[bytes, bytes, float, float] | None:
        """Cohort, peer id and times of a device's place in a round. Those in abandoned cohorts do not count."""
        row: tuple[bytes, bytes, float, float] | None = self._connection.execute(
            "SELECT r.round_id, p.peer_id, r.first_place_at, r.deadline FROM rounds r JOIN places p"
            " ON p.round_id = r.round_id AND p.device = ? WHERE r.number = ? AND r.state != ?",
            (device, number, ABANDONED),
        ).fetchone()
        return row

    def places(self, round_id: bytes) -> dict[str, bytes]:
        """Device to peer id."""
        return dict(self._connection.execute("SELECT device, peer_id FROM places WHERE round_id = ?", (round_id,)))

    def state(self, round_id: bytes) -> int | None:
        row = self._connection.execute("SELECT state FROM rounds WHERE round_id = ?", (round_id,)).fetchone()
        return None if row is None else int(row[0])

    def is_over(self, round_id: bytes) -> bool:
        """A round that nobody knows is over too."""
        return self.state(round_id) in (None, FINISHED, ABANDONED)

    def digest(self, round_id: bytes, phase: int, device: str) -> bytes | None:
        """Of what a device delivered in a phase."""
        query = "SELECT request_sha256 FROM deliveries WHERE round_id = ? AND phase = ? AND device = ?"
        row = self._connection.execute(query, (round_id, phase, device)).fetchone()
        return None if row is None else bytes(row[0])

    def delivery_count(self, round_id: bytes, phase: int) -> int:
        query = "SELECT count(*) FROM deliveries WHERE round_id = ? AND phase = ?"
        return int(self._connection.execute(query, (round_id, phase)).fetchone()[0])

    def delivered_bytes(self, round_id: bytes, phase: int) -> int:
        query = "SELECT coalesce(sum(size_bytes), 0) FROM deliveries WHERE round_id = ? AND phase = ?"
        return int(self._connection.execute(query, (round_id, phase)).fetchone()[0])

    def _finished_since(self, kind: int) -> int:
        """Training rounds that have finished since the last round of another kind, or since the beginning."""
        last = "(SELECT coalesce(max(number), 0) FROM rounds WHERE state = ? AND kind = ?)"
        return self._count(f"state = ? AND kind = ? AND number > {last}", FINISHED, TRAINING, FINISHED, kind)

    def _count(self, condition: str, *values: object) -> int:
        query = f"SELECT count(DISTINCT number) FROM rounds WHERE {condition}"  # noqa: S608
        return int(self._connection.execute(query, values).fetchone()[0])

    def settled_phases(self, round_id: bytes) -> PhaseResult:
        """What the phases of a cohort have fixed so far."""
        query = f"SELECT {', '.join(_SETTLED_COLUMNS)} FROM settled WHERE round_id = ?"  # noqa: S608
        row = self._connection.execute(query, (round_id,)).fetchone()
        return PhaseResult() if row is None else PhaseResult(*row)

    def deliveries(self, round_id: bytes, phase: int, without: Collection[str] = ()) -> Iterator[tuple[str, bytes]]:
        """Device and request, one at a time, of what was delivered in a phase by others than these."""
        query = "SELECT device FROM deliveries WHERE round_id = ? AND phase = ?"
        devices = [device for (device,) in self._connection.execute(query, (round_id, phase)) if device not in without]
        query, cipher = f"{query.replace('device', 'body', 1)} AND device = ?", None
        for device in sorted(devices):
            row = self._connection.execute(query, (round_id, phase, device)).fetchone()
            if row is None or row[0] is None:
                # Another process may have ended the round since the last query: see read_of.
                raise StorageError("what devices sent is gone: restore the database")
            cipher = cipher or cipher_of(self._connection, round_id)
            yield device, unsealed(cipher, row[0])

    def digests(self, round_id: bytes, phase: int) -> dict[str, bytes]:
        """Device to digest of what it delivered in a phase."""
        query = "SELECT device, request_sha256 FROM deliveries WHERE round_id = ? AND phase = ?"
        return dict(self._connection.execute(query, (round_id, phase)))

    def receipts(self, round_id: bytes) -> dict[str, Receipt]:
        query = "SELECT device, upload_id, request_sha256 FROM deliveries WHERE round_id = ? AND phase = ?"
        rows = self._connection.execute(query, (round_id, UPLOADING))
        return {device: Receipt(upload_id, digest) for device, upload_id, digest in rows}

    def sums(self, round_id: bytes) -> dict[str, npt.NDArray[np.int64]]:
        """What a cohort added up; raises StorageError if that is not there."""
        row = self._connection.execute("SELECT body FROM sums WHERE round_id = ?", (round_id,)).fetchone()
        if row is None:
            raise StorageError("the sum of a cohort is missing: restore the database")
        return unpacked_sums(unsealed(cipher_of(self._connection, round_id), row[0]))

    def catalogue_changes(self) -> list[CatalogueChange]:
        """The lists of items that were taken up, oldest first: that of the beginning, and those of updates."""
        return [CatalogueChange(*row) for row in self._connection.execute("SELECT * FROM catalogues ORDER BY 1")]

    def history(self, limit: int) -> list[PastRound]:
        """Ended rounds, newest first; the cohorts of one round together."""
        rows = self._connection.execute(
            "SELECT number, state, model_version, upload_count, upload_bytes, coalesce(first_place_at, opened_at),"
            " ended_at FROM rounds WHERE number IN (SELECT DISTINCT number FROM rounds WHERE state IN (?, ?)"
            " ORDER BY number DESC LIMIT ?) AND number NOT IN (SELECT number FROM rounds WHERE ended_at IS NULL)"
            " ORDER BY number DESC, cohort",
            (FINISHED, ABANDONED, limit),
        )
        return [PastRound.of(list(cohorts)) for _, cohorts in groupby(rows, lambda row: row[0])]

    def faults(self) -> list[Fault]:
        return [Fault(*row) for row in self._connection.execute("SELECT device, count, reason, at FROM faults")]

    def counted(self) -> frozenset[str]:
        """The devices in the first of a pair of gate refreshes, while the second is still to come."""
        return frozenset(device for (device,) in self._connection.execute("SELECT device FROM counted"))

    def suspects(self) -> str:
        row = self._connection.execute("SELECT value FROM suspects").fetchone()
        return "" if row is None else str(row[0])

    def accuracy(self) -> list[AccuracyReport]:
        rows = self._connection.execute("SELECT model_version, users, hit_rate, ndcg FROM accuracy ORDER BY 1")
        return [AccuracyReport(*row) for row in rows]

    def evaluations(self) -> Evaluations:
        rows = self._connection.execute("SELECT * FROM evaluations ORDER BY number")
        return Evaluations(tuple(Evaluation.from_row(*row) for row in rows))

    def states(self) -> dict[int, str]:
        """Version to the name of its state, of those that the database keeps."""
        return dict(self._connection.execute("SELECT model_version, name FROM states"))

    def file_names(self) -> set[str]:
        """Of the files that the database keeps."""
        return {name for (name,) in self._connection.execute("SELECT name FROM pieces WHERE number = 0")}

    def piece(self, name: str, number: int) -> bytes | None:
        """Of a file; None: it has no further one."""
        query = "SELECT content FROM pieces WHERE name = ? AND number = ?"
        row = self._connection.execute(query, (name, number)).fetchone()
        return None if row is None else bytes(row[0])

    def next_catalogue_sha256(self) -> str:
        """Of the list of items that waits; empty: none does."""
        row = self._connection.execute("SELECT sha256 FROM next_catalogue").fetchone()
        return "" if row is None else str(row[0])

    def next_catalogue(self) -> bytes | None:
        row = self._connection.execute("SELECT content FROM next_catalogue").fetchone()
        return None if row is None else bytes(row[0])

    def _with_devices(self, a_round: Round) -> Round:
        round_id = a_round.round_id
        a_round.assigned, a_round.receipts = self.places(round_id), self.receipts(round_id)
        a_round.upload_bytes = self.delivered_bytes(round_id, UPLOADING)
        query = "SELECT phase, device, request_sha256 FROM deliveries WHERE round_id = ?"
        for phase, device, digest in self._connection.execute(query, (round_id,)):
            a_round.delivered[phase][device] = digest
        query = "SELECT 1 FROM sums WHERE round_id = ?"
        a_round.is_summed = self._connection.execute(query, (round_id,)).fetchone() is not None
        return a_round


@contextmanager
def reading(path: Path) -> Iterator[Stored]:
    """Read the database of a folder, whether or not a coordinator is running on it."""
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            require_schema(connection, SCHEMA_VERSION)
            yield Stored(connection)
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise StorageError(f"cannot read {path.name}: {error}") from error
