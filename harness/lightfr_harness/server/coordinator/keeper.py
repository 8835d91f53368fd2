"""Opens rounds, and goes on after a crash with those that were open. RoundRunner runs and ends them."""

from __future__ import annotations

import asyncio
import functools
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path

from lightfr_harness.server.coordinator import secure_steps
from lightfr_harness.server.coordinator.book import RoundBook
from lightfr_harness.server.coordinator.clock import SteadyClock
from lightfr_harness.server.coordinator.cohort import Cohort
from lightfr_harness.server.coordinator.deliveries import RoundFacts
from lightfr_harness.server.coordinator.folder import CrashPoint, FolderError, lock_folder, no_crash
from lightfr_harness.server.coordinator.options import ItemList, MakeRule, Settings, SettingsError, make_rule
from lightfr_harness.server.coordinator.plan import TRAINING, Plan
from lightfr_harness.server.coordinator.publishing import Signer, Version, blocks_of
from lightfr_harness.server.coordinator.rounds import Round
from lightfr_harness.server.coordinator.secure_steps import SecureSteps
from lightfr_harness.server.coordinator.standing import Standing
from lightfr_harness.server.coordinator.storage import Storage
from lightfr_harness.server.coordinator.stored import PastRound
from lightfr_harness.server.coordinator.telemetry import Log, Metrics
from lightfr_harness.server.coordinator.versions import VersionKeeper

SHOWN_ROUNDS = 50


class RoundKeeper(VersionKeeper):
    """One folder, one model, one round at a time. What devices ask of it is in Coordinator."""

    book: RoundBook
    # Whether the rule and the version are to be read anew.
    _is_doubtful = True

    def __init__(
        self,
        folder: Path,
        items: ItemList | None,
        settings: Settings,
        plan: Plan,
        signer: Signer,
        log: Log,
        metrics: Metrics | None = None,
        clock: Callable[[], float] | None = None,
        make_rule: MakeRule = make_rule,
        crash_point: CrashPoint = no_crash,
        database: str = "",
    ) -> None:
        """Hold a folder. Its items are needed to begin it, and may be None later.

        Replicas name a database, which has their artifacts and states too.
        """
        if settings.is_secure:
            plan.require_cohort()
        elif plan.cohorts > 1:
            raise SettingsError("--cohorts needs secure aggregation: in mode clear a round has one cohort")
        # Uploads are user data: nobody else on this machine reads them.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = lock_folder(folder)
        super().__init__(folder, settings, plan, signer, metrics or Metrics(), crash_point, make_rule)
        self._items, self.log = items, log
        # Deadlines go by this clock. What is only shown is told by the system's, which somebody may set.
        self._clock = clock or SteadyClock()
        self._storage = self._open_storage(folder, database, crash_point)
        self._changed = asyncio.Event()
        self._opening = asyncio.Lock()
        self.standing = Standing([], frozenset())
        self.steps = SecureSteps(
            self._storage, self._clock, lambda round_id: self.book.find(round_id), self.follow, self.wake,
            is_masked=settings.is_secure,
        )  # fmt: skip
        # Set when nothing can be promised any more: the process must end and start again.
        self.failed = asyncio.Event()

    def _open_storage(self, folder: Path, database: str, crash_point: CrashPoint) -> Storage:
        """Return the database with this address, or the file in the folder. A simulation has one of its own."""
        if database:
            return Storage.in_postgres(database, lambda: self.wake())
        return Storage.in_file(folder / "coordinator.sqlite", self._storage_failed, crash_point)

    def wake(self) -> None:
        """Have looked whether something is due."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def start(self) -> None:
        """Begin the folder, or go on where it stands."""
        kept = await self._storage.read(lambda stored: stored.settings())
        if kept is not None:
            self.settings.require_same(kept)
        await self._load({}, is_begun=kept is not None)
        self.log.event(
            "started", model_version=self.version.manifest.model_version, finished_rounds=self._schedule.finished,
            resumed_uploads=sum(len(cohort.receipts) for cohort in self.book.cohorts),
        )  # fmt: skip
        if not self._storage.database.is_started:
            self._storage.start()

    async def close(self) -> None:
        """Write what is pending and let the folder go."""
        await asyncio.to_thread(self._worker.shutdown)
        await self._storage.close()
        self._lock.close()

    def now(self) -> float:
        """By the clock that deadlines go by."""
        return self._clock()

    def _storage_failed(self, error: BaseException) -> None:
        self.log.fault("storage_failed", error)
        self.failed.set()

    async def follow(self, device: str, round_id: bytes = b"", phase: int = 0) -> None:
        """Learn what other processes know of a device, a round and its phase: there are none."""

    async def _load(self, known: Mapping[bytes, Round], *, is_begun: bool) -> None:
        """Take up what is stored, but for the rounds that are known; begin if nothing is."""
        memory = await self._storage.read(lambda stored: stored.memory(SHOWN_ROUNDS, known))
        self._remember(memory)
        self.standing.remember(memory.faults, memory.counted, memory.suspects)
        self.history: deque[PastRound] = deque(memory.history, maxlen=SHOWN_ROUNDS)
        self.accuracy = {report.model_version: report for report in memory.accuracy}
        self.metrics.show(self.evaluations)
        if is_begun:
            await self._resume(memory.rounds)
        else:
            self._tidy()
            await self._begin()

    def _tidy(self) -> None:
        """Remove what a crash left behind."""
        self._clean()
        if self.catalogue_changes:
            self.next_catalogue.recover(self.catalogue_changes[-1].model_version)

    async def _have_files(self, newest: bytes) -> Path | None:
        """Have the files of the newest version in the folder; where its state lies, if not there."""
        return None

    async def have_artifact(self, digest: str) -> None:
        """Have an artifact in the folder, if any process has it: this one is alone."""

    async def _begin(self) -> None:
        version = self._first_version(self._items)
        first = self._new_round(1, version)
        if await self._storage.begin(self.settings.as_dict(), version.serialised, first, self.catalogue_changes[0]):
            self._adopt(version)
            self.book = RoundBook(self.plan, [], first)
            return
        kept = await self._storage.read(lambda stored: stored.settings())
        self.settings.require_same(kept or {})
        await self._load({}, is_begun=True)

    async def _resume(self, known: list[Round]) -> None:
        if not self._manifests or not known:
            raise FolderError("the folder has settings but no version or no round: restore it, or name a new one")
        self._tidy()
        last = known[-1]
        if self._is_doubtful or self.version.serialised != self._manifests[0]:
            state = await self._have_files(self._manifests[0])
            self._adopt(await self._in_worker(self._newest_version, self._items, last.places, state))
            self._is_doubtful = False
        version = self.version
        cohorts = [one for one in known if one.number == last.number]
        is_open = not all(one.is_over for one in cohorts)
        for one in cohorts:
            if not one.is_over:
                await self._take_up(one, version)
        if is_open:
            self._take_book(RoundBook(self.plan, known[: -len(cohorts)], last, cohorts[:-1]))
            return
        following = None if self._is_over(version) else self._new_round(last.number + 1, version)
        if following is not None and not await self._storage.open_round(following):
            following = None  # Another process has opened it, and this one learns that in a moment.
        self._take_book(RoundBook(self.plan, known, following))

    def _take_book(self, book: RoundBook) -> None:
        if hasattr(self, "book"):
            book.pace.go_on(self.book.pace)
        self.book = book

    async def _take_up(self, one: Round, version: Version) -> None:
        """Go on with a cohort that is not over."""
        if one.cohort is not None or one.is_summed:
            return
        one.resume(self._clock())
        self._gather(one, version)
        await secure_steps.catch_up(self._storage, one, self._signer.manifest_key)

    def most_places(self) -> int:
        """Of the current round or of later ones."""
        return max(self.plan.places, self.book.current.places if self.book.current else 0)

    def _is_over(self, version: Version) -> bool:
        return self._schedule.is_over(can_evaluate=self._can_evaluate(version))

    def _new_round(self, number: int, version: Version) -> Round:
        made = Round.new(number, version.manifest.model_version, version.sha256, self.plan, self._clock())
        has_gate = self.settings.is_secure and self._rule.gate > 1
        # No row is open yet, or one refresh of a pair is in.
        must_refresh = has_gate and (not self._rule.open_rows.any() or self._rule.awaits_refresh)
        made.kind = self._schedule.next_kind(
            has_gate=has_gate, must_refresh=must_refresh, can_evaluate=self._can_evaluate(version)
        )
        # Counts and evaluations are of one cohort each.
        made.cohorts = self.plan.cohorts if made.kind == TRAINING else 1
        self._gather(made, version)
        return made

    async def open_cohort(self) -> None:
        """Begin another cohort of the round, if it may have one."""
        async with self._opening:
            current = self.book.current
            if current is None or not self.book.may_open(self._clock()):
                return
            following = current.another(self._clock())
            self._gather(following, self.version)
            if await self._storage.open_round(following):
                self.book.others.append(current)
                self.book.current = following
                self.log.event("cohort_opened", round=following.number, cohort=following.index)

    def _can_evaluate(self, version: Version) -> bool:
        """Versions in the clear have no candidates, and those of older releases have none."""
        return len(version.manifest.candidates) > 0

    def _gather(self, a_round: Round, version: Version) -> None:
        """Give a round on this version the cohort that it needs if uploads are masked."""
        if not self.settings.is_secure:
            return
        facts = RoundFacts(
            a_round.round_id, a_round.manifest_sha256, a_round.kind, self._signer.membership_keys,
            # A membership must last until the last device of the cohort has begun, for that one checks it.
            lambda: a_round.started_at + a_round.deadline_seconds,
        )  # fmt: skip
        blocks = functools.partial(blocks_of, self._rule, len(version.manifest.candidates), a_round.kind)
        a_round.cohort = Cohort(facts, a_round.places, a_round.assigned, blocks)
        a_round.delivered = a_round.cohort.delivered
