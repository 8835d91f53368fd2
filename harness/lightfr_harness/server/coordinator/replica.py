"""One of several coordinators on one database: any of them answers any call of any device.

The database decides, and memory follows it: before a request is answered, it is compared with what is stored about its
device, and what other processes have settled since comes into memory as after a restart, phase by phase.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from lightfr_harness.server.coordinator import secure_steps
from lightfr_harness.server.coordinator.coordinator import Coordinator
from lightfr_harness.server.coordinator.database import RoundEndedError, StorageUnavailableError
from lightfr_harness.server.coordinator.phases import UPLOADING
from lightfr_harness.server.coordinator.rounds import AGGREGATING, OPEN, Receipt, Round
from lightfr_harness.server.coordinator.shelf import Shelf
from lightfr_harness.server.coordinator.stored import Seen
from lightfr_harness.server.coordinator.stored_catalogue import StoredCatalogue

# How long the rounds rest when the database is away.
_AWAY_SECONDS = 0.5


class Replica(Coordinator):
    """A coordinator beside others. Its storage is shared."""

    next_catalogue: StoredCatalogue
    _shelf: Shelf

    async def start(self) -> None:
        """Begin the database, or go on where it stands."""
        self._catching_up = asyncio.Lock()
        self._storage.files = self._shelf = Shelf(self._publisher, self._storage)
        self.next_catalogue = StoredCatalogue(self._storage)
        self.next_catalogue.seen = await self._storage.read(lambda stored: stored.next_catalogue_sha256())
        while True:
            try:
                await super().start()
            except RoundEndedError:
                continue  # While this one read it. What came of the round is stored.
            return

    # What requests need.

    async def follow(self, device: str, round_id: bytes = b"", phase: int = 0) -> None:
        """Learn what other processes know of a device, a round and its phase."""
        seen, places, delivered = await self._storage.read(lambda stored: stored.device_in(device))
        if self._is_behind(seen):
            await self.catch_up()
        cohorts = {one.round_id: one for one in self.book.cohorts}
        for one in seen:
            if one.round_id in cohorts:
                _note(cohorts[one.round_id], one)
        for known, peer_id in places.items():
            if known in cohorts:
                cohorts[known].assigned[device] = peer_id
        for known, delivered_in, digest, upload_id in delivered:
            if known in cohorts:
                cohorts[known].delivered[delivered_in].setdefault(device, digest)
                if delivered_in == UPLOADING:
                    cohorts[known].receipts.setdefault(device, Receipt(upload_id, digest))

    def _is_behind(self, seen: list[Seen]) -> bool:
        known = {one.round_id: one for one in self.book.cohorts if not one.is_over}
        if known.keys() != {one.round_id for one in seen}:
            return True
        return any(one.state != known[one.round_id].state or _has_moved(known[one.round_id], one) for one in seen)

    async def catch_up(self) -> None:
        """Bring memory to where the database stands."""
        async with self._catching_up:
            seen, newest, self.next_catalogue.seen = await self._storage.read(
                lambda stored: (stored.seen(), stored.newest_version(), stored.next_catalogue_sha256())
            )
            known = {one.round_id for one in self.book.cohorts if not one.is_over}
            is_other = newest != self.version.manifest.model_version or known != {one.round_id for one in seen}
            if is_other or self._is_doubtful:
                await self._load(self.book.known(), is_begun=True)
                self.steps.wake()
                self.wake()
            cohorts = {one.round_id: one for one in self.book.cohorts}
            for one in seen:
                if one.round_id in cohorts:
                    await self._catch_up_with(cohorts[one.round_id], one)

    async def _catch_up_with(self, current: Round, seen: Seen) -> None:
        """Bring one cohort to where it stands in the database."""
        _note(current, seen)
        if current.cohort is None:
            if seen.deliveries > len(current.receipts):
                current.receipts.update(await self._storage.read(lambda stored: stored.receipts(current.round_id)))
        elif _has_moved(current, seen):
            await secure_steps.catch_up(self._storage, current, self._signer.manifest_key)
            self.steps.wake()
            self.wake()
        elif seen.phase == current.cohort.phase:
            current.cohort.heard = max(current.cohort.heard, seen.deliveries)
        current.is_summed |= seen.is_summed
        if current.state == OPEN and seen.state == AGGREGATING:
            current.state = AGGREGATING
            self.wake()

    async def have_artifact(self, digest: str) -> None:
        """Have an artifact in the folder, if any replica has published it."""
        await self._shelf.fetch_artifact(digest)

    async def _have_files(self, newest: bytes) -> Path | None:
        is_other = not hasattr(self, "version") or self.version.serialised != newest
        state = await self._shelf.fetch_newest([newest, *(one for one in self._manifests if one != newest)])
        if is_other:
            # What this process may be about to publish comes too late, so that its files may go too.
            self._shelf.forget_states(state)
            await self._in_worker(self._clean)
        return state

    # What time does.

    async def end_due_phase(self) -> bool:
        await self.catch_up()
        return await super().end_due_phase()

    async def _repeat(self, end_due: Callable[[], Awaitable[bool]]) -> None:
        """Go on by itself when the database was away."""
        is_away = False
        while True:
            changed = self._changed
            try:
                is_done = await end_due()
                if is_away:
                    self.log.event("database_back")
                is_away = False
                if not is_done:
                    await self._wait(changed)
            except RoundEndedError:
                self._is_doubtful = True
            except StorageUnavailableError:
                self._is_doubtful = True
                if not is_away:
                    self.log.event("database_away")
                is_away = True
                await asyncio.sleep(_AWAY_SECONDS)

    async def _fall_behind(self) -> None:
        self._is_doubtful = True
        await self.catch_up()

    @asynccontextmanager
    async def _holding(self, key: bytes) -> AsyncIterator[bool]:
        """Do what takes long in one process at a time. That is only thrift: the database takes one result anyway."""
        number = lock_number(key)
        is_held = await self._storage.database.try_lock(number)
        try:
            if is_held:
                await self.catch_up()
            yield is_held
        finally:
            if is_held:
                with suppress(StorageUnavailableError):
                    await self._storage.database.unlock(number)

    def _tidy(self) -> None:
        """Nothing: files go when a version is taken up, and a list that waits is in the database."""


def lock_number(key: bytes) -> int:
    """Of the advisory lock under a key."""
    return int.from_bytes(key[:8], "little", signed=True)


def _has_moved(current: Round, seen: Seen) -> bool:
    """Whether another process has ended the phase of a cohort."""
    return current.cohort is not None and seen.phase > current.cohort.phase


def _note(current: Round, seen: Seen) -> None:
    current.places_taken = seen.places_taken
    if seen.deadline is not None:
        current.first_place_at, current.deadline = seen.first_place_at, seen.deadline
