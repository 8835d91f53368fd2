"""What a cohort's devices do, kept so that it survives a crash: places, what they delivered, what that settled, sums.

The database decides: whether a place is left, whether a phase still takes what is delivered, whether it ends with what
was settled. So several processes can work on one database, and none of them can promise what another has made untrue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import astuple
from enum import Enum, auto
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from lightfr.errors import LightFRError
from lightfr_harness.server.coordinator.bodies import cipher_of, packed_sums, sealed
from lightfr_harness.server.coordinator.database import (
    RoundEndedError,
    SqliteDatabase,
    StorageError,
    StorageUnavailableError,
)
from lightfr_harness.server.coordinator.folder import CrashPoint, no_crash
from lightfr_harness.server.coordinator.phases import PhaseResult
from lightfr_harness.server.coordinator.plan import MOST_COHORTS
from lightfr_harness.server.coordinator.rounds import AGGREGATING, OPEN, Round
from lightfr_harness.server.coordinator.schema import SCHEMA, SCHEMA_VERSION
from lightfr_harness.server.coordinator.standing import Fault
from lightfr_harness.server.coordinator.stored import Stored

T = TypeVar("T")


class Outcome(Enum):
    """What became of a delivery."""

    TAKEN = auto()
    # The same bytes are in already, or others are.
    SAME = auto()
    OTHER = auto()
    # The phase is over, or the goal reached.
    CLOSED = auto()
    # Another device of the cohort has one of its keys.
    NOT_NEW = auto()


class Delivered(NamedTuple):
    """An outcome, and how many deliveries of the phase are in; 0: only this process takes any, and knows."""

    outcome: Outcome
    deliveries: int = 0


class Placed(NamedTuple):
    """A place, and the times that the first one of its cohort started."""

    peer_id: bytes
    first_place_at: float
    deadline: float


class CohortStorage:
    """The database of one coordinator, or of all its replicas, as far as one cohort is concerned."""

    def __init__(self, database: Any) -> None:
        self.database = database
        # Of the cohorts at hand, for the writer's thread.
        self._ciphers: dict[bytes, AESGCM] = {}
        self.start, self.close, self.settled = database.start, database.close, database.settled

    @classmethod
    def in_file(
        cls, path: Path, on_failure: Callable[[BaseException], None], crash_point: CrashPoint = no_crash
    ) -> Self:
        """SQLite."""
        return cls(SqliteDatabase(path, SCHEMA, SCHEMA_VERSION, on_failure, crash_point))

    @classmethod
    def in_postgres(cls, address: str, on_change: Callable[[], None]) -> Self:
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
        self,
        addressed: Round,
        phase: int,
        device: str,
        digest: bytes,
        body: bytes,
        upload_id: bytes = b"",
        keys: Collection[bytes] = (),
    ) -> asyncio.Future[Delivered]:
        """Keep what a device delivered in a phase, if the phase still takes it. In the clear a goal is no more.

        No other device of the cohort may have one of these keys.
        """
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
                    if not _claim(connection, round_id, device, keys):
                        return Delivered(Outcome.NOT_NEW)
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
            add_faults(connection, faults)
            self.database.notify(connection)
            return True

        return self._submit(job)


def _claim(connection: Any, round_id: bytes, device: str, keys: Collection[bytes]) -> bool:
    """Let a device of a cohort have its keys; False, and its delivery is gone, if another has one of them."""
    claim = "INSERT INTO advertised VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
    # Whoever waits for another process does so in the order of the keys.
    if all(connection.execute(claim, (round_id, key, device)).rowcount == 1 for key in sorted(keys)):
        return True
    for table in ("advertised", "deliveries"):
        connection.execute(f"DELETE FROM {table} WHERE round_id = ? AND device = ?", (round_id, device))  # noqa: S608
    return False


def add_faults(connection: Any, faults: Sequence[Fault]) -> None:
    for fault in faults:
        connection.execute("DELETE FROM faults WHERE device = ?", (fault.device,))
        connection.execute("INSERT INTO faults VALUES (?, ?, ?, ?)", astuple(fault))
