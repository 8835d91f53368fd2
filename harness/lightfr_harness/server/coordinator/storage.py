"""What must survive a crash: versions, rounds and their ends. In SQLite, or in PostgreSQL.

An awaited method returns when its change is durable. Changes happen in the order in which they are asked for.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any, Protocol

from lightfr_harness.server.coordinator.accuracy import REMEMBERED_EVALUATIONS, AccuracyReport, Evaluation
from lightfr_harness.server.coordinator.bodies import KEY_BYTES
from lightfr_harness.server.coordinator.cohort_storage import CohortStorage, add_faults
from lightfr_harness.server.coordinator.phases import UPLOADING
from lightfr_harness.server.coordinator.rounds import ABANDONED, REMEMBERED_ROUNDS, Round
from lightfr_harness.server.coordinator.standing import Fault
from lightfr_harness.server.coordinator.stored import CatalogueChange, Stored

# Versions whose manifests, and so whose artifacts, are kept.
REMEMBERED_VERSIONS = 16


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
    # As Standing has them.
    suspects: str = ""
    # Of an evaluation round.
    evaluation: Evaluation | None = None


class VersionFiles(Protocol):
    """Keeps the files of versions in the database too."""

    def keep(self, connection: Any) -> None:
        """Store what the newest version needs, and delete what no version does any more."""


class Storage(CohortStorage):
    """The database of one coordinator, or of all its replicas."""

    # None: the files of versions lie in a folder.
    files: VersionFiles | None = None

    def begin(
        self, settings: dict[str, Any], manifest: bytes, first: Round, catalogue: CatalogueChange
    ) -> asyncio.Future[bool]:
        """The first version and the first round of a new database; False if another process was faster."""

        def job(connection: Any) -> bool:
            begun = "INSERT INTO settings VALUES (1, ?) ON CONFLICT DO NOTHING"
            if connection.execute(begun, (json.dumps(settings),)).rowcount != 1:
                return False
            _add_version(connection, 1, manifest)
            _add_catalogue(connection, catalogue)
            self._keep_files(connection)
            return _insert_round(connection, first)

        return self._submit(job)

    def open_round(self, opened: Round) -> asyncio.Future[bool]:
        """Begin a cohort; False if another process was faster, has ended its round or made another version."""

        def job(connection: Any) -> bool:
            self.database.lock_rounds(connection)
            stored = Stored(connection)
            if stored.newest_version() != opened.model_version or stored.newest_round() > opened.number:
                return False
            self.database.notify(connection)
            return _insert_round(connection, opened)

        return self._submit(job, is_alone=True)

    def end_cohort(self, ended: Round, faults: Sequence[Fault], suspects: str) -> asyncio.Future[bool]:
        """End one cohort alone, without a sum; False if another process has."""

        def job(connection: Any) -> bool:
            self.database.lock_rounds(connection)
            if not self._lock_open(connection, [ended]):
                return False
            self._end(connection, ended)
            add_faults(connection, faults)
            _keep_suspects(connection, suspects)
            self.database.notify(connection)
            return True

        return self._submit(job, is_alone=True)

    def end_round(self, ending: RoundEnd) -> asyncio.Future[bool]:
        """In one transaction: the round's end and all that came of it, its deliveries' deletion, the next round.

        False, and nothing is kept, if another process has ended it.
        """

        def job(connection: Any) -> bool:
            self.database.lock_rounds(connection)
            if not self._lock_open(connection, ending.ended):
                return False
            if ending.version is not None:
                _add_version(connection, *ending.version)
            for ended in ending.ended:
                self._end(connection, ended)
            add_faults(connection, ending.faults)
            _keep_suspects(connection, ending.suspects)
            connection.execute("DELETE FROM counted")
            connection.executemany("INSERT INTO counted VALUES (?)", [(device,) for device in ending.counted])
            if ending.evaluation is not None:
                _add_evaluation(connection, ending.evaluation)
            if ending.following is not None:
                _insert_round(connection, ending.following)
            if ending.version is not None:
                self._keep_files(connection)
            self.database.notify(connection)
            return True

        return self._submit(job, is_alone=True)

    def _lock_open(self, connection: Any, rounds: Sequence[Round]) -> bool:
        """Whether none of these has ended. It stays so until the job is done."""
        query = f"SELECT ended_at FROM rounds WHERE round_id = ?{self.database.for_update}"  # noqa: S608
        return all(connection.execute(query, (one.round_id,)).fetchone() == (None,) for one in rounds)

    def change_catalogue(self, manifest: bytes, change: CatalogueChange, opened: Round | None) -> asyncio.Future[bool]:
        """In one transaction: a version with other items, and a round on it in the place of one without devices.

        False, and nothing is kept, if the round has got a device or there is such a version. The list waits no more.
        """

        def job(connection: Any) -> bool:
            self.database.lock_rounds(connection)
            if Stored(connection).newest_version() >= change.model_version:
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
            _drop_list(connection, change.sha256)
            self._keep_files(connection)
            self.database.notify(connection)
            return True

        return self._submit(job, is_alone=True)

    def offer_catalogue(self, content: bytes) -> asyncio.Future[Any]:
        """Keep a list of items that replicas are to take up, in the place of one that waits."""
        row = (hashlib.sha256(content).hexdigest(), content)

        def job(connection: Any) -> None:
            connection.execute("DELETE FROM next_catalogue")
            connection.execute("INSERT INTO next_catalogue VALUES (1, ?, ?)", row)
            self.database.notify(connection)

        return self._submit(job)

    def drop_catalogue(self, sha256: str) -> asyncio.Future[Any]:
        """Forget a list of items that cannot be taken up, unless another one waits by now."""
        return self._submit(lambda connection: _drop_list(connection, sha256))

    def roll_back(self, version: int, manifest: bytes, to: int, now: float) -> asyncio.Future[bool]:
        """In one transaction: a version that repeats an older one, and the end of the round that was open.

        What was evaluated since the older one does not count any more, and items are those of the older one. False, and
        nothing is kept, if there is such a version by now.
        """

        def job(connection: Any) -> bool:
            self.database.lock_rounds(connection)
            stored = Stored(connection)
            if stored.newest_version() >= version:
                return False
            _add_version(connection, version, manifest)
            for table in ("evaluations", "catalogues"):
                connection.execute(f"DELETE FROM {table} WHERE model_version > ?", (to,))  # noqa: S608
            for one in stored.rounds():
                if not one.is_over:
                    self._end(connection, replace(one, state=ABANDONED, ended_at=now))
            self._keep_files(connection)
            self.database.notify(connection)
            return True

        return self._submit(job, is_alone=True)

    def _keep_files(self, connection: Any) -> None:
        if self.files is not None:
            self.files.keep(connection)

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
        for table in ("settled", "advertised"):
            connection.execute(f"DELETE FROM {table} WHERE round_id = ?", (round_id,))  # noqa: S608
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
    connection.execute("INSERT INTO body_keys VALUES (?, ?)", (opened.round_id, os.urandom(KEY_BYTES)))
    return True


def _add_version(connection: Any, version: int, manifest: bytes) -> None:
    connection.execute("INSERT INTO versions VALUES (?, ?)", (version, manifest))
    connection.execute("DELETE FROM versions WHERE model_version <= ?", (version - REMEMBERED_VERSIONS,))


def _add_catalogue(connection: Any, change: CatalogueChange) -> None:
    row = [int(value) if isinstance(value, bool) else value for value in astuple(change)]
    connection.execute("INSERT INTO catalogues VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)


def _keep_suspects(connection: Any, suspects: str) -> None:
    connection.execute("DELETE FROM suspects")
    if suspects:
        connection.execute("INSERT INTO suspects VALUES (1, ?)", (suspects,))


def _drop_list(connection: Any, sha256: str) -> None:
    connection.execute("DELETE FROM next_catalogue WHERE sha256 = ?", (sha256,))


def _add_evaluation(connection: Any, evaluation: Evaluation) -> None:
    connection.execute("INSERT INTO evaluations VALUES (?, ?, ?, ?, ?)", evaluation.row())
    kept = "(SELECT number FROM evaluations ORDER BY number DESC LIMIT ?)"
    connection.execute(f"DELETE FROM evaluations WHERE number NOT IN {kept}", (REMEMBERED_EVALUATIONS,))  # noqa: S608
