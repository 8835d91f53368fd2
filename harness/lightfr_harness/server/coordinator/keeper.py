"""Runs the rounds: opens them, adds them up, publishes what comes of it, and goes on after a crash."""

from __future__ import annotations

import asyncio
import functools
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from lightfr.v1 import coordinator_pb2 as pb
from lightfr_harness.server.coordinator import secure_steps
from lightfr_harness.server.coordinator.accuracy import Evaluation
from lightfr_harness.server.coordinator.clock import SteadyClock
from lightfr_harness.server.coordinator.cohort import PHASE_NAMES, REVEALING, Cohort, RoundFacts
from lightfr_harness.server.coordinator.folder import CrashPoint, FolderError, lock_folder, no_crash
from lightfr_harness.server.coordinator.options import ItemList, MakeRule, Settings, SettingsError, make_rule
from lightfr_harness.server.coordinator.publishing import Signer, Version, blocks_of
from lightfr_harness.server.coordinator.rounds import (
    ABANDONED,
    AGGREGATING,
    EVALUATION,
    FINISHED,
    GATE_REFRESH,
    STATE_NAMES,
    Plan,
    Round,
    RoundBook,
    Schedule,
)
from lightfr_harness.server.coordinator.secure_steps import SecureSteps
from lightfr_harness.server.coordinator.standing import Standing
from lightfr_harness.server.coordinator.storage import RoundEnd, Storage
from lightfr_harness.server.coordinator.stored import PastRound
from lightfr_harness.server.coordinator.telemetry import Log, Metrics
from lightfr_harness.server.coordinator.versions import VersionKeeper
from lightfr_harness.server.rules import CatalogueRule
from lightfr_harness.server.rules.plausible import ImplausibleSumError
from lightfr_harness.server.rules.secagg import MissingSharesError, SecureSumError

SHOWN_ROUNDS = 50
# How long another list of items may lie in the folder before it is seen.
LOOK_SECONDS = 0.5


class Added(NamedTuple):
    """What came of a round's sum."""

    version: Version
    # Rows that stayed as they were.
    n_implausible: int = 0
    evaluation: Evaluation | None = None


class RoundKeeper(VersionKeeper):
    """One folder, one model, one round at a time. What devices ask of it is in Coordinator."""

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
    ) -> None:
        """Hold a folder. Its items are needed to begin it, and may be None later."""
        if settings.is_secure:
            plan.require_cohort()
        # Uploads are user data: nobody else on this machine reads them.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = lock_folder(folder)
        super().__init__(folder, settings, plan, signer, metrics or Metrics(), crash_point, make_rule)
        self._items, self.log = items, log
        # Deadlines go by this clock. What is only shown is told by the system's, which somebody may set.
        self._clock = clock or SteadyClock()
        self._storage = Storage(folder / "coordinator.sqlite", self._storage_failed, crash_point)
        self._changed = asyncio.Event()
        self.steps = SecureSteps(
            self._storage, self._clock, lambda round_id: self.book.find(round_id), self._changed.set,
            is_masked=settings.is_secure,
        )  # fmt: skip
        # Set when nothing can be promised any more: the process must end and start again.
        self.failed = asyncio.Event()

    async def start(self) -> None:
        """Begin the folder, or go on where it stands."""
        kept = self._storage.settings()
        if kept is not None:
            self.settings.require_same(kept)
        self._remember(self._storage)
        since = (self._storage.finished_since(kind) for kind in (GATE_REFRESH, EVALUATION))
        self._schedule = Schedule(self.plan, self._storage.finished_count(), *since)
        self.standing = Standing(self._storage.faults(), self._storage.counted())
        self.history: deque[PastRound] = deque(self._storage.history(SHOWN_ROUNDS), maxlen=SHOWN_ROUNDS)
        self.accuracy = {report.model_version: report for report in self._storage.accuracy()}
        self.metrics.show(self.evaluations)
        if kept is None:
            self._storage.start()
            await self._begin()
        else:
            await self._resume(self._storage.rounds())
        self.log.event(
            "started", model_version=self.version.manifest.model_version, finished_rounds=self._schedule.finished,
            resumed_uploads=len(self.book.current.receipts) if self.book.current else 0,
        )  # fmt: skip

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

    async def _begin(self) -> None:
        version = self._first_version(self._items)
        first = self._new_round(1, version)
        await self._storage.begin(self.settings.as_dict(), version.serialised, first, self.catalogue_changes[0])
        self._adopt(version)
        self.book = RoundBook(self.plan, [], first)

    async def _resume(self, known: list[Round]) -> None:
        if not self._manifests or not known:
            raise FolderError("the folder has settings but no version or no round: restore it, or name a new one")
        self.next_catalogue.recover(self.catalogue_changes[-1].model_version)
        last = known[-1]
        version = self._newest_version(self._items, last.places)
        self._adopt(version)
        current = known.pop() if last.state not in (FINISHED, ABANDONED) else None
        if current is not None:
            current.resume(self._clock())
            self._gather(current, version)
            secure_steps.resume(self._storage, current, self._signer.manifest_key)
        self._storage.start()
        if current is None and not self._is_over(version):
            current = self._new_round(last.number + 1, version)
            await self._storage.open_round(current)
        self.book = RoundBook(self.plan, known, current)

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
        self._gather(made, version)
        return made

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

    # What time does.

    async def run(self) -> None:
        """End rounds when their time has come, until that fails."""
        try:
            while True:
                if not await self.end_due_round():
                    await self._wait()
        except Exception as error:  # A full disk, for one: nothing can be promised, and a restart adds up again.
            self.log.fault("round_failed", error)
            self.failed.set()

    async def _wait(self) -> None:
        deadline = self.book.current.deadline if self.book.current else None
        # Somebody may put another list of items into the folder at any time.
        timeout = LOOK_SECONDS if deadline is None else min(max(deadline - self._clock(), 0.001), LOOK_SECONDS)
        try:
            async with asyncio.timeout(timeout):
                await self._changed.wait()
        except TimeoutError:
            pass
        self._changed.clear()

    async def end_due_round(self) -> bool:
        """End the current round, or its phase, if its goal is reached or its deadline over; or change the items."""
        if self.awaits_catalogue:
            await self._change_catalogue()
            return True
        closing, current = self.book.closes_as(self._clock()), self.book.current
        if current is not None and current.is_phase_due(self._clock()):
            await self._end_phase(current)
            return True
        if closing is None or current is None:
            return False
        if closing == ABANDONED:
            await self._end(current, ABANDONED, None)
        else:
            await self._aggregate(current)
        return True

    @property
    def awaits_catalogue(self) -> bool:
        """Whether another list of items is to be taken up now: no device has a place in a round."""
        is_idle = self.book.current is None or not self.book.current.assigned
        return is_idle and self.next_catalogue.is_there

    async def _change_catalogue(self) -> None:
        """Publish a version with other items, and open the round anew on it. A list that is none is dropped."""
        content = self.next_catalogue.take(self.version.manifest.model_version + 1)
        try:
            version, change = await self._in_worker(self._with_items, content, self._schedule.finished > 0)
        except SettingsError as error:
            self.log.event("catalogue_refused", reason=str(error))
            self.next_catalogue.drop()
            return
        current = self.book.current
        opened = None if current is None else self._new_round(current.number, version)
        await self._storage.change_catalogue(version.serialised, change, opened)
        self.catalogue_changes.append(change)
        self._adopt(version)
        self.book.current = opened
        self.next_catalogue.drop()
        self.log.event(
            "catalogue_changed", model_version=change.model_version, joined=change.joined, left=change.left,
            returned=change.returned, renumbered=change.is_renumbered,
        )  # fmt: skip
        await self._in_worker(self._clean)

    async def _end_phase(self, current: Round) -> None:
        """Go on to the next phase with those who delivered, or drop the round if they are too few."""
        cohort = current.cohort
        if cohort is None or not current.can_go_on(self.plan.minimum):
            self.standing.too_few()
            await self._end(current, ABANDONED, None)
        elif cohort.phase == REVEALING:
            await self._aggregate(current)
        else:
            ended = cohort.phase
            settled = cohort.advance(self._signer.manifest_key)
            current.deadline = self._clock() + current.deadline_seconds
            await self._storage.settle(current, settled)
            self.log.event(
                "phase_ended", round=current.number, phase=PHASE_NAMES[ended], devices=len(cohort.delivered[ended])
            )
            self.steps.wake()

    async def _aggregate(self, current: Round) -> None:
        started = time.perf_counter()
        current.state = AGGREGATING
        bodies = await self._storage.start_aggregating(current)
        try:
            added = await self._in_worker(self._add_up, current, bodies)
        except (SecureSumError, ImplausibleSumError) as error:
            await self._drop(current, error)
            return
        if added.n_implausible:
            self.log.event("rows_implausible", round=current.number, rows=added.n_implausible)
        self.standing.added_up(current, is_good=not added.n_implausible)
        current.next_model_version = added.version.manifest.model_version
        self._schedule.count(current.kind)
        await self._end(current, FINISHED, added.version, added.evaluation)
        self.metrics.aggregation_seconds.observe(time.perf_counter() - started)
        await self._in_worker(self._clean)

    async def _drop(self, current: Round, error: SecureSumError | ImplausibleSumError) -> None:
        """End a round without a sum. Its devices reveal once for a version, so the same codes get a new number."""
        self.metrics.sums_dropped.inc()
        self.log.event("sum_dropped", round=current.number, reason=str(error))
        if not isinstance(error, MissingSharesError):
            self.standing.added_up(current, is_good=False)
        await self._end(current, ABANDONED, await self._in_worker(self._published, self._schedule.finished > 0))

    def _add_up(self, current: Round, bodies: list[bytes]) -> Added:
        """Sums do not depend on the order of uploads."""
        rule = self._rule
        # Only the catalogue objective has masked rounds: Settings refuse the others.
        if current.cohort is None or not isinstance(rule, CatalogueRule):
            for body in bodies:
                rule.add(pb.UploadRequest.FromString(body).row_update.SerializeToString())
            rule.finish_round()
            return Added(self._published(True))
        sums, devices = current.cohort.finish(), len(current.receipts)
        if current.kind == EVALUATION:
            evaluation = Evaluation.of(current.number, self.version.manifest, sums["hits"], devices)
            return Added(self._published(True, evaluation), evaluation=evaluation)
        if current.kind == GATE_REFRESH:
            # The same codes if this is done again after a crash.
            rule.set_gate(**sums, seed=int.from_bytes(current.round_id, "little"), devices=devices)
            return Added(self._published(self._schedule.finished > 0))
        n_implausible = rule.add_cohort(sums, devices)
        rule.finish_round()
        return Added(self._published(True), n_implausible)

    async def _end(
        self, current: Round, state: int, version: Version | None, evaluation: Evaluation | None = None
    ) -> None:
        """End a round for good. Whoever is told of it waits for the storage first."""
        current.state, current.ended_at = state, self._clock()
        newest = version or self.version
        following = None if self._is_over(newest) else self._new_round(current.number + 1, newest)
        if current.kind == GATE_REFRESH and state == FINISHED:
            self.standing.counted = frozenset(current.receipts) if self._rule.awaits_refresh else frozenset()
        made = (version.manifest.model_version, version.serialised) if version else None
        faults = self.standing.note(current, current.ended_at)
        await self._storage.end_round(RoundEnd(current, made, following, faults, self.standing.counted, evaluation))
        for fault in faults:
            self.metrics.faults.inc()
            self.log.event("fault", round=current.number, device=fault.device, reason=fault.reason, count=fault.count)
        if evaluation is not None:
            self._show(evaluation)
        if version is not None:
            self._adopt(version)
        self.book.replace_current(following)
        current.cohort = None
        self.steps.wake()
        seconds, uploads = current.ended_at - current.started_at, len(current.receipts)
        past = PastRound(current.number, state, current.model_version, uploads, current.upload_bytes, seconds)
        self.history.appendleft(past)
        self.metrics.rounds.labels(STATE_NAMES[state]).inc()
        self.metrics.round_uploads.set(0)
        self.log.event(
            f"round_{STATE_NAMES[state]}", round=current.number, uploads=uploads, places=len(current.assigned),
            upload_bytes=current.upload_bytes, seconds=round(seconds, 3),
        )  # fmt: skip

    def _show(self, evaluation: Evaluation) -> None:
        """Tell people of a durable evaluation."""
        self.evaluations = self.evaluations.plus(evaluation)
        self.metrics.show(self.evaluations)
        newest = self.evaluations.qualities[-1]
        self.log.event("evaluated", round=evaluation.round_number, **newest.facts())
        if self.evaluations.has_fallen(self.plan.tolerance):
            self.log.event("accuracy_fell", model_version=newest.model_version, hit_rate=round(newest.chosen.hr, 4))
