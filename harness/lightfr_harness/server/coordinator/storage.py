"""What must survive a crash: versions, rounds, places, what devices delivered, sums. In SQLite, or in PostgreSQL.

An awaited method returns when its change is durable. The data base decides: whether a place is left, whether a phase
still takes what is delivered, whether it ends with what was settled. So several processes can work on one data base,
and none of them can promise what another has made untrue.

What devices send is kept under a key of its cohort, whose end overwrites the key: to overwrite all that was sent
would write as much again, twice.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from lightfr.errors import LightFRError
from lightfr_harness.server.coordinator.accuracy import (
    REMEMBERED_EVALUATIONS,
    AccuracyReport,
    Evaluation,
)
from lightfr_harness.server.coordinator.cohort import UPLOADING, PhaseResult
from lightfr_harness.server.coordinator.database import (
    RoundEndedError,
    SqliteDatabase,
    StorageError,
    StorageUnavailableError,
)
from lightfr_harness.server.coordinator.folder import CrashPoint, no_crash
from lightfr_harness.server.coordinator.rounds import (
    AGGREGATING,
    MOST_COHORTS,
    OPEN,
    REMEMBERED_ROUNDS,
    Round,
)
from lightfr_harness.server.coordinator.schema import SCHEMA, SCHEMA_VERSION
from lightfr_harness.server.coordinator.standing import Fault
from lightfr_harness.server.coordinator.stored import CatalogueChange, Stored, cipher_of, packed_sums, sealed

# Versions whose manifests, and so whose artifacts, are kept.
REMEMBERED_VERSIONS = 16
_KEY_BYTES = 32

T = TypeVar("T")


class Outcome(Enum):
    """What became of a delivery."""

    TAKEN = auto()
    # The same bytes are in already, or others are.
    SAME = auto()
    OTHER = auto()
    # The phase is over, or the goal reached.
    CLOSED = auto()


class Delivered(NamedTuple):
    """An outcome, and how many deliveries of the phase are in; 0: only this process takes any, and knows."""

    outcome: Outcome
    deliveries: int = 0


class Placed(NamedTuple):
    """A place, and the times that the first one of its cohort started."""

    peer_id: bytes
    first_place_at: float
    deadline: float


@dataclass(frozen=True)
class RoundEnd:
    """What the end of a round leaves behind."""

    # Its cohorts that were not over yet.
    ended: Sequence[Round]
    # Number and manifest of the version that it made, if any.
    version: tuple[int, bytes] | None
    following: Round | None
    faults: Sequence[Fault]
    # The devices in the first of a pair of gate refreshes, while the second is still to come.
    counted: frozenset[str]
    # Of an evaluation round.
    evaluation: Evaluation | None = None


class Storage:
    """The data base of one coordinator, or of all its replicas."""

    def __init__(self, database: Any) -> None:
        self.database = database
        # Of the cohorts at hand, for the writer's thread.
        self._ciphers: dict[bytes, AESGCM] = {}
        self.start, self.close, self.settled = database.start, database.close, database.settled

    @classmethod
    def in_file(
        cls, path: Path, on_failure: Callable[[BaseException], None], crash_point: CrashPoint = no_crash
    ) -> Storage:
        """SQLite."""
        return cls(SqliteDatabase(path, SCHEMA, SCHEMA_VERSION, on_failure, crash_point))

    @classmethod
    def in_postgres(cls, address: str, on_change: Callable[[], None]) -> Storage:
        """PostgreSQL, by its address postgresql://..."""
        try:  # Here, so that SQLite needs nothing else.
            from lightfr_harness.server.coordinator.postgres import PostgresDatabase
        except ImportError as error:
            raise StorageError("--database needs psycopg: pip install 'lightfr-harness[postgres]'") from error
        return cls(PostgresDatabase(address, SCHEMA, SCHEMA_VERSION, on_change))

    @property
    def stored(self) -> Stored:
        """What is stored, before the start."""
        return Stored(self.database.connection)

    @property
    def is_shared(self) -> bool:
        """Whether other processes write to it too."""
        return bool(self.database.is_shared)

    async def read(self, ask: Callable[[Stored], T]) -> T:
        """What is stored."""
        if not self.database.is_started:
            return ask(Stored(self.database.connection))

        def job(connection: Any) -> T | LightFRError:
            try:
                return ask(Stored(connection))
            except LightFRError as error:  # What is damaged does not keep others from writing.
                return error

        found: T | LightFRError = await self._submit(job)
        if isinstance(found, LightFRError):
            raise found
        return found

    async def read_of(self, current: Round, ask: Callable[[Stored], T]) -> T:
        """What is stored of a cohort that is not over; raises RoundEndedError if another process has ended it."""
        try:
            return await self.read(ask)
        except StorageUnavailableError:
            raise
        except StorageError as error:
            if self.is_shared and await self.read(lambda stored: stored.is_over(current.round_id)):
                raise RoundEndedError("another process has ended the round") from error
            raise

    def _submit(self, job: Callable[[Any], Any], *, is_alone: bool = False) -> asyncio.Future[Any]:
        """Have a job done; one that locks a row for itself is alone in its transaction where others wait for it."""
        if is_alone:
            job.is_alone = True  # type: ignore[attr-defined]
        future: asyncio.Future[Any] = self.database.submit(job)
        return future

    # Changes, in the order in which they are asked for.

    def begin(
        self, settings: dict[str, Any], manifest: bytes, first: Round, catalogue: CatalogueChange
    ) -> asyncio.Future[bool]:
        """The first version and the first round of a new data base; False if another process was faster."""

        def job(connection: Any) -> bool:
            begun = "INSERT INTO settings VALUES (1, ?) ON CONFLICT DO NOTHING"
            if connection.execute(begun, (json.dumps(settings),)).rowcount != 1:
                return False
            _add_version(connection, 1, manifest)
            _add_catalogue(connection, catalogue)
            return _insert_round(connection, first)

        return self._submit(job)

    def open_round(self, opened: Round) -> asyncio.Future[bool]:
        """Begin a cohort; False if another process was faster."""

        def job(connection: Any) -> bool:
            self.database.notify(connection)
            return _insert_round(connection, opened)

        return self._submit(job)

    def assign(self, current: Round, device: str) -> asyncio.Future[Placed | None]:
        """Keep a place that a device got, and the times that the first one starts; None: none is left."""
        round_id, peer_id, phase = current.round_id, current.assigned[device], current.phase
        times = (current.first_place_at, current.deadline)

        def job(connection: Any) -> Placed | None:
            self.database.lock_device(connection, device)
            known = Stored(connection).place(current.number, device)
            if known is not None:
                return Placed(*known[1:]) if known[0] == round_id else None
            taken = connection.execute(
                "UPDATE rounds SET places_taken = places_taken + 1, first_place_at = coalesce(first_place_at, ?),"
                " deadline = coalesce(deadline, ?) WHERE round_id = ? AND state = ? AND phase = ?"
                " AND places_taken < places RETURNING first_place_at, deadline",
                (*times, round_id, OPEN, phase),
            ).fetchone()
            if taken is None:
                return None
            connection.execute("INSERT INTO places VALUES (?, ?, ?)", (round_id, device, peer_id))
            return Placed(peer_id, *taken)

        return self._submit(job)

    def deliver(
        self, addressed: Round, phase: int, device: str, digest: bytes, body: bytes, upload_id: bytes = b""
    ) -> asyncio.Future[Delivered]:
        """Keep what a device delivered in a phase, if the phase still takes it. In the clear a goal is no more."""
        round_id, goal = addressed.round_id, addressed.goal if addressed.cohort is None else None

        def job(connection: Any) -> Delivered:
            stored = Stored(connection)
            # Whoever ends the phase waits for this, and counts it.
            lock = self.database.for_key_share if goal is None else self.database.for_update
            row = connection.execute(f"SELECT phase, state FROM rounds WHERE round_id = ?{lock}", (round_id,))  # noqa: S608
            if row.fetchone() == (phase, OPEN) and (goal is None or stored.delivery_count(round_id, phase) < goal):
                delivery = (round_id, phase, device, digest, self._sealed(connection, round_id, body), upload_id)
                inserted = connection.execute(
                    "INSERT INTO deliveries VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", (*delivery, len(body))
                )
                if inserted.rowcount == 1:
                    return Delivered(Outcome.TAKEN, stored.delivery_count(round_id, phase) if self.is_shared else 0)
            known = stored.digest(round_id, phase, device)
            if known is None:
                return Delivered(Outcome.CLOSED)
            return Delivered(Outcome.SAME if known == digest else Outcome.OTHER)

        return self._submit(job, is_alone=goal is not None)

    def _sealed(self, connection: Any, round_id: bytes, body: bytes) -> bytes:
        """Under the key of a cohort that is not over."""
        if round_id not in self._ciphers:
            if len(self._ciphers) > MOST_COHORTS:
                self._ciphers.clear()
            self._ciphers[round_id] = cipher_of(connection, round_id)
        return sealed(self._ciphers[round_id], body)

    def settle(self, current: Round, settled: PhaseResult, deliveries: int, deadline: float) -> asyncio.Future[bool]:
        """Keep what the end of a phase settled, and the deadline of the next one.

        False, and nothing is kept, if the phase is over already or more was delivered than these.
        """
        round_id, ended = current.round_id, settled.phase - 1

        def job(connection: Any) -> bool:
            if not self._is_at(connection, round_id, ended) or (
                Stored(connection).delivery_count(round_id, ended) != deliveries
            ):
                return False
            row = (round_id, *astuple(settled))
            connection.execute("DELETE FROM settled WHERE round_id = ?", (round_id,))
            connection.execute(f"INSERT INTO settled VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608
            connection.execute(
                "UPDATE rounds SET deadline = ?, phase = ? WHERE round_id = ?", (deadline, settled.phase, round_id)
            )
            self.database.notify(connection)
            return True

        return self._submit(job, is_alone=True)

    def _is_at(self, connection: Any, round_id: bytes, phase: int) -> bool:
        """Whether a cohort is in this phase. It stays there until the job is done."""
        query = f"SELECT phase, state FROM rounds WHERE round_id = ?{self.database.for_update}"  # noqa: S608
        return bool(connection.execute(query, (round_id,)).fetchone() == (phase, OPEN))

    def start_aggregating(self, current: Round, deliveries: int) -> asyncio.Future[bool]:
        """Keep that the cohort takes no more; False if more was delivered in its last phase than this."""
        round_id, phase = current.round_id, current.phase

        def job(connection: Any) -> bool:
            stored = Stored(connection)
            if stored.state(round_id) == AGGREGATING:
                return True
            if not self._is_at(connection, round_id, phase) or stored.delivery_count(round_id, phase) != deliveries:
                return False
            connection.execute("UPDATE rounds SET state = ? WHERE round_id = ?", (AGGREGATING, round_id))
            self.database.notify(connection)
            return True

        return self._submit(job, is_alone=True)

    def keep_sums(
        self, current: Round, sums: Mapping[str, npt.NDArray[np.int64]], faults: Sequence[Fault]
    ) -> asyncio.Future[bool]:
        """Keep what a cohort added up until its round is combined; False if another process has."""
        round_id, body = current.round_id, packed_sums(sums)

        def job(connection: Any) -> bool:
            if Stored(connection).state(round_id) != AGGREGATING:
                return False
            row = (round_id, self._sealed(connection, round_id, body))
            if connection.execute("INSERT INTO sums VALUES (?, ?) ON CONFLICT DO NOTHING", row).rowcount != 1:
                return False
            _add_faults(connection, faults)
            self.database.notify(connection)
            return True

        return self._submit(job)

    def end_cohort(self, ended: Round, faults: Sequence[Fault]) -> asyncio.Future[bool]:
        """End one cohort alone, without a sum; False if another process has."""

        def job(connection: Any) -> bool:
            if not self._lock_open(connection, [ended]):
                return False
            self._end(connection, ended)
            _add_faults(connection, faults)
            self.database.notify(connection)
            return True

        return self._submit(job, is_alone=True)

    def end_round(self, ending: RoundEnd) -> asyncio.Future[bool]:
        """In one transaction: the round's end and all that came of it, its deliveries' deletion, the next round.

        False, and nothing is kept, if another process has ended it.
        """

        def job(connection: Any) -> bool:
            if not self._lock_open(connection, ending.ended):
                return False
            if ending.version is not None:
                _add_version(connection, *ending.version)
            for ended in ending.ended:
                self._end(connection, ended)
            _add_faults(connection, ending.faults)
            connection.execute("DELETE FROM counted")
            connection.executemany("INSERT INTO counted VALUES (?)", [(device,) for device in ending.counted])
            if ending.evaluation is not None:
                _add_evaluation(connection, ending.evaluation)
            if ending.following is not None:
                _insert_round(connection, ending.following)
            self.database.notify(connection)
            return True

        return self._submit(job, is_alone=True)

    def _lock_open(self, connection: Any, rounds: Sequence[Round]) -> bool:
        """Whether none of these has ended. It stays so until the job is done."""
        query = f"SELECT ended_at FROM rounds WHERE round_id = ?{self.database.for_update}"  # noqa: S608
        return all(connection.execute(query, (one.round_id,)).fetchone() == (None,) for one in rounds)

    def change_catalogue(self, manifest: bytes, change: CatalogueChange, opened: Round | None) -> asyncio.Future[bool]:
        """In one transaction: a version with other items, and a round on it in the place of one without devices.

        False, and nothing is kept, if the round has got a device or there is such a version.
        """

        def job(connection: Any) -> bool:
            stored = Stored(connection)
            if stored.newest_version() >= change.model_version:
                return False
            if opened is not None:
                replaced = connection.execute(
                    "DELETE FROM rounds WHERE number = ? AND places_taken = 0 RETURNING round_id", (opened.number,)
                ).fetchall()
                if len(replaced) != 1:
                    return False
                connection.execute("DELETE FROM body_keys WHERE round_id = ?", replaced[0])
                _insert_round(connection, opened)
            _add_version(connection, change.model_version, manifest)
            _add_catalogue(connection, change)
            self.database.notify(connection)
            return True

        return self._submit(job, is_alone=True)

    def roll_back(self, version: int, manifest: bytes, to: int, ended: Sequence[Round]) -> asyncio.Future[Any]:
        """In one transaction: a version that repeats an older one, and the end of the round that was open.

        What was evaluated since the older one does not count any more, and items are those of the older one.
        """

        def job(connection: Any) -> None:
            _add_version(connection, version, manifest)
            for table in ("evaluations", "catalogues"):
                connection.execute(f"DELETE FROM {table} WHERE model_version > ?", (to,))  # noqa: S608
            for one in ended:
                self._end(connection, one)

        return self._submit(job, is_alone=True)

    def add_accuracy(self, report: AccuracyReport) -> asyncio.Future[Any]:
        row = (report.model_version, report.users, report.hit_rate, report.ndcg)

        def job(connection: Any) -> None:
            connection.execute("DELETE FROM accuracy WHERE model_version = ?", row[:1])
            connection.execute("INSERT INTO accuracy VALUES (?, ?, ?, ?)", row)
            self.database.notify(connection)

        return self._submit(job)

    def _end(self, connection: Any, ended: Round) -> None:
        """Keep how a cohort ended, and forget what its devices sent."""
        round_id, stored = ended.round_id, Stored(connection)
        uploads = (stored.delivered_bytes(round_id, UPLOADING), stored.delivery_count(round_id, UPLOADING))
        connection.execute(
            "UPDATE rounds SET state = ?, ended_at = ?, next_model_version = ?, upload_bytes = ?, upload_count = ?"
            " WHERE round_id = ?",
            (ended.state, ended.ended_at, ended.next_model_version, *uploads, round_id),
        )
        connection.execute("DELETE FROM body_keys WHERE round_id = ?", (round_id,))
        self._ciphers.pop(round_id, None)
        with self.database.forgetting(connection):
            connection.execute("UPDATE deliveries SET body = NULL WHERE round_id = ?", (round_id,))
            connection.execute("DELETE FROM sums WHERE round_id = ?", (round_id,))
        # Keys and sets of a masked round, and who was who in its roster.
        connection.execute("DELETE FROM settled WHERE round_id = ?", (round_id,))
        connection.execute("UPDATE places SET peer_id = ? WHERE round_id = ?", (b"", round_id))
        old = "(SELECT round_id FROM rounds WHERE number = ?)"
        for table in ("places", "deliveries"):
            connection.execute(
                f"DELETE FROM {table} WHERE round_id IN {old}",  # noqa: S608
                (ended.number - REMEMBERED_ROUNDS,),
            )


def _insert_round(connection: Any, opened: Round) -> bool:
    row = (
        opened.round_id,
        opened.number,
        opened.index,
        opened.cohorts,
        opened.model_version,
        opened.manifest_sha256,
        opened.goal,
        opened.places,
        opened.deadline_seconds,
        opened.opened_at,
        opened.state,
        opened.kind,
        opened.phase,
    )
    inserted = connection.execute(
        "INSERT INTO rounds (round_id, number, cohort, cohorts, model_version, manifest_sha256, goal, places,"
        " deadline_seconds, opened_at, state, kind, phase) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT DO NOTHING",
        row,
    )
    if inserted.rowcount != 1:
        return False
    connection.execute("INSERT INTO body_keys VALUES (?, ?)", (opened.round_id, os.urandom(_KEY_BYTES)))
    return True


def _add_version(connection: Any, version: int, manifest: bytes) -> None:
    connection.execute("INSERT INTO versions VALUES (?, ?)", (version, manifest))
    connection.execute("DELETE FROM versions WHERE model_version <= ?", (version - REMEMBERED_VERSIONS,))


def _add_catalogue(connection: Any, change: CatalogueChange) -> None:
    row = [int(value) if isinstance(value, bool) else value for value in astuple(change)]
    connection.execute("INSERT INTO catalogues VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)


def _add_faults(connection: Any, faults: Sequence[Fault]) -> None:
    for fault in faults:
        connection.execute("DELETE FROM faults WHERE device = ?", (fault.device,))
        connection.execute("INSERT INTO faults VALUES (?, ?, ?, ?)", astuple(fault))


def _add_evaluation(connection: Any, evaluation: Evaluation) -> None:
    connection.execute("INSERT INTO evaluations VALUES (?, ?, ?, ?, ?)", evaluation.row())
    kept = "(SELECT number FROM evaluations ORDER BY number DESC LIMIT ?)"
    connection.execute(f"DELETE FROM evaluations WHERE number NOT IN {kept}", (REMEMBERED_EVALUATIONS,))  # noqa: S608
