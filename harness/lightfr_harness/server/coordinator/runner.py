"""Runs the rounds: ends phases, adds cohorts up, publishes what comes of it, and opens the next round."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from lightfr_harness.server.coordinator import secure_steps
from lightfr_harness.server.coordinator.accuracy import Evaluation
from lightfr_harness.server.coordinator.keeper import RoundKeeper
from lightfr_harness.server.coordinator.options import SettingsError
from lightfr_harness.server.coordinator.phases import PHASE_NAMES, REVEALING, UPLOADING
from lightfr_harness.server.coordinator.plan import GATE_REFRESH
from lightfr_harness.server.coordinator.publishing import Version
from lightfr_harness.server.coordinator.rounds import ABANDONED, AGGREGATING, FINISHED, OPEN, STATE_NAMES, Round
from lightfr_harness.server.coordinator.standing import Fault
from lightfr_harness.server.coordinator.storage import RoundEnd
from lightfr_harness.server.coordinator.stored import PastRound
from lightfr_harness.server.rules.cohorts import CohortSum, Combined
from lightfr_harness.server.rules.plausible import ImplausibleSumError
from lightfr_harness.server.rules.secagg import MissingSharesError, SecureSumError

# Under this key a process publishes versions.
PUBLISHING = b"lightfr1"
# How long another list of items may lie in the folder before it is seen.
LOOK_SECONDS = 0.5
# How late it may be at most. While a slow disk keeps a phase from ending, its deadline is over all the time.
_LEAST_WAIT_SECONDS = 0.05


class RoundRunner(RoundKeeper):
    """What time does to rounds. What devices ask is in Coordinator."""

    async def run(self) -> None:
        """End phases, and make versions of rounds, when their time has come, until that fails."""
        try:
            # Adding up takes seconds, and other cohorts go on meanwhile.
            async with asyncio.TaskGroup() as both:
                both.create_task(self._repeat(self.end_due_phase))
                both.create_task(self._repeat(self.end_due_sum))
        except* Exception as errors:  # A full disk, for one: nothing can be promised, and a restart adds up again.
            self.log.fault("round_failed", errors.exceptions[0])
            self.failed.set()

    async def _repeat(self, end_due: Callable[[], Awaitable[bool]]) -> None:
        while True:
            changed = self._changed
            if not await end_due():
                await self._wait(changed)

    async def _wait(self, changed: asyncio.Event) -> None:
        now, cohorts = self._clock(), self.book.cohorts
        deadlines = [one.deadline for one in cohorts if one.deadline is not None and one.state == OPEN]
        if cohorts and self.book.deadline > now:
            deadlines.append(self.book.deadline)
        # Somebody may put another list of items into the folder at any time.
        timeout = min(max(min(deadlines, default=math.inf) - now, _LEAST_WAIT_SECONDS), LOOK_SECONDS)
        try:
            async with asyncio.timeout(timeout):
                await changed.wait()
        except TimeoutError:
            pass

    async def end_due_round(self) -> bool:
        """Do the next thing that is due; False: nothing is."""
        return await self.end_due_phase() or await self.end_due_sum()

    async def end_due_phase(self) -> bool:
        """End a phase that is complete, or whose deadline is over."""
        for cohort in self.book.cohorts:
            if cohort.is_phase_due(self._clock()):
                await self._end_phase(cohort)
                return True
        return False

    async def end_due_sum(self) -> bool:
        """Add up a cohort that has revealed, combine the cohorts of the round, or change the items."""
        for cohort in self.book.cohorts:
            if cohort.is_to_be_added_up:
                async with self._holding(cohort.round_id) as is_held:
                    if is_held and cohort.is_to_be_added_up:
                        await self._add_cohort(cohort)
                        return True
        if not self._is_publishing_due:
            return False
        async with self._holding(PUBLISHING) as is_held:
            return is_held and await self._publish_due()

    @property
    def _is_publishing_due(self) -> bool:
        now = self._clock()
        is_over = self.book.closes_as(now) is not None and not self.settings.is_secure
        return self.awaits_catalogue or self.book.is_due(now) or is_over

    @asynccontextmanager
    async def _holding(self, key: bytes) -> AsyncIterator[bool]:
        """Keep other processes from doing the same: there are none."""
        yield True

    async def _publish_due(self) -> bool:
        if self.awaits_catalogue:
            await self._change_catalogue()
            return True
        if self.book.is_due(self._clock()):
            await self._combine()
            return True
        closing, current = self.book.closes_as(self._clock()), self.book.current
        if closing is None or current is None or current.cohort is not None:
            return False
        if closing == ABANDONED:
            await self._end(ABANDONED, None)
        else:
            await self._aggregate(current)
        return True

    @property
    def awaits_catalogue(self) -> bool:
        """Whether another list of items is to be taken up now: no device has a place in a round."""
        current = self.book.current
        is_idle = current is None or not (self.book.others or current.assigned or current.places_taken)
        return is_idle and self.next_catalogue.is_there

    async def _change_catalogue(self) -> None:
        """Publish a version with other items, and open the round anew on it. A list that is none is dropped."""
        content = await self.next_catalogue.take(self.version.manifest.model_version + 1)
        if content is None:
            return
        try:
            version, change = await self._in_worker(self._with_items, content, self._schedule.finished > 0)
        except SettingsError as error:
            self.log.event("catalogue_refused", reason=str(error))
            await self.next_catalogue.drop()
            return
        current = self.book.current
        opened = None if current is None else self._new_round(current.number, version)
        if not await self._storage.change_catalogue(version.serialised, change, opened):
            await self._fall_behind()
            return
        self.catalogue_changes.append(change)
        self._adopt(version)
        self.book.current = opened
        await self.next_catalogue.drop()
        self.log.event(
            "catalogue_changed", model_version=change.model_version, joined=change.joined, left=change.left,
            returned=change.returned, renumbered=change.is_renumbered,
        )  # fmt: skip
        await self._in_worker(self._clean)

    async def _end_phase(self, current: Round) -> None:
        """Go on to the next phase with those who delivered, or drop the cohort if they are too few."""
        cohort = current.cohort
        if cohort is None:
            return
        if self._storage.is_shared:
            await secure_steps.take_missing(self._storage, current)
        ended, deliveries = cohort.phase, len(cohort.delivered[cohort.phase])
        if not current.can_go_on(self.plan.minimum):
            self.standing.too_few()
            await self._abandon(current)
            return
        cohort.is_closing = True
        try:
            if ended == REVEALING:
                if await self._storage.start_aggregating(current, deliveries):
                    current.state = AGGREGATING
                    self.wake()
                else:
                    await self._fall_behind()
                return
            settled, deadline = cohort.settlement(self._signer.manifest_key), self._clock() + current.deadline_seconds
            if not await self._storage.settle(current, settled, deliveries, deadline):
                await self._fall_behind()
                return
        finally:
            cohort.is_closing = False
        cohort.adopt(settled)
        current.deadline = deadline
        self.log.event("phase_ended", **_named(current), phase=PHASE_NAMES[ended], devices=deliveries)
        self.steps.wake()
        self.wake()

    async def _fall_behind(self) -> None:
        """More is stored than was known: it comes into memory before the next try."""
        await asyncio.sleep(0)

    async def _abandon(self, current: Round, error: SecureSumError | None = None) -> None:
        """End one cohort without a sum, and the round with it if that has no other."""
        others = [one for one in self.book.cohorts if one is not current]
        if not any(one.is_summed or one.is_running for one in others):
            await (self._end(ABANDONED, None) if error is None else self._drop(error))
            return
        ended = replace(current, state=ABANDONED, ended_at=self._clock())
        faults = self.standing.note(current, self._clock())
        if not await self._storage.end_cohort(ended, faults, self.standing.suspects):
            await self._fall_behind()
            return
        current.state, current.ended_at, current.cohort = ABANDONED, ended.ended_at, None
        self._tell_faults(current, faults)
        self.log.event("cohort_abandoned", **_named(current), places=len(current.assigned))
        self.steps.wake()
        self.wake()

    async def _add_cohort(self, current: Round) -> None:
        """Take the masks off the sum of a cohort, and keep it until the round is combined."""
        cohort = current.cohort
        if cohort is None:
            return
        try:
            await secure_steps.take_missing(self._storage, current)
            await self._storage.read_of(current, lambda stored: secure_steps.take_uploads(stored, current))
            sums = await self._in_worker(cohort.finish)
        except SecureSumError as error:
            self.metrics.sums_dropped.inc()
            self.log.event("sum_dropped", **_named(current), reason=str(error))
            await self._abandon(current, error)
            return
        faults = self.standing.note(current, self._clock())
        if await self._storage.keep_sums(current, sums, faults):
            self._tell_faults(current, faults)
            cohort.faults.clear()
            cohort.refused.clear()
            current.is_summed = True
        else:
            await self._fall_behind()
        self.wake()

    async def _combine(self) -> None:
        """Make a version of the sums of the round's cohorts."""
        started, cohorts = time.perf_counter(), [one for one in self.book.cohorts if one.is_summed]
        kept = await self._storage.read_of(cohorts[0], lambda stored: [stored.sums(one.round_id) for one in cohorts])
        sums = [CohortSum(sums, len(one.receipts)) for sums, one in zip(kept, cohorts, strict=True)]
        try:
            added = await self._in_worker(self._add_up_cohorts, cohorts[0], sums)
        except ImplausibleSumError as error:
            self.metrics.sums_dropped.inc()
            self.log.event("sum_dropped", round=cohorts[0].number, reason=str(error))
            await self._drop(error)
            return
        faults = self._judge(cohorts, added.combined)
        self._schedule.count(cohorts[0].kind)
        await self._end(FINISHED, added.version, added.evaluation, faults)
        self.metrics.aggregation_seconds.observe(time.perf_counter() - started)
        await self._in_worker(self._clean)

    def _judge(self, cohorts: Sequence[Round], combined: Combined | None) -> list[Fault]:
        """Say which cohorts said more than their devices can, and suspect these; returns what is to be kept."""
        implausible = combined.implausible if combined else (0,) * len(cohorts)
        for one, rows in zip(cohorts, implausible, strict=True):
            if rows is None:
                self.metrics.sums_dropped.inc()
                self.log.event("sum_dropped", **_named(one), reason="its cohort said more than its devices can")
            elif rows:
                self.log.event("rows_implausible", **_named(one), rows=rows)
        good = [one for one, rows in zip(cohorts, implausible, strict=True) if rows == 0]
        spoilt = [one for one, rows in zip(cohorts, implausible, strict=True) if rows != 0]
        return self.standing.added_up(good, spoilt, self._clock())

    async def _aggregate(self, current: Round) -> None:
        """Make a version of a round in the clear."""
        started = time.perf_counter()
        if not await self._storage.start_aggregating(current, len(current.receipts)):
            await self._fall_behind()
            return
        current.state = AGGREGATING
        bodies = await self._storage.read_of(
            current, lambda stored: [body for _, body in stored.deliveries(current.round_id, UPLOADING)]
        )
        added = await self._in_worker(self._add_up, current, bodies)
        self._schedule.count(current.kind)
        await self._end(FINISHED, added.version)
        self.metrics.aggregation_seconds.observe(time.perf_counter() - started)
        await self._in_worker(self._clean)

    async def _drop(self, error: SecureSumError | ImplausibleSumError) -> None:
        """End a round without a sum. Its devices reveal once for a version, so the same codes get a new number."""
        version, faults = await self._in_worker(self._published, self._schedule.finished > 0), list[Fault]()
        if not isinstance(error, MissingSharesError):
            # Not before: what is stored by now may have come into memory meanwhile.
            cohorts = [one for one in self.book.cohorts if one.state != ABANDONED]
            faults = self.standing.added_up([], cohorts, self._clock())
        await self._end(ABANDONED, version, faults=faults)

    async def _end(
        self, state: int, version: Version | None, evaluation: Evaluation | None = None, faults: Sequence[Fault] = ()
    ) -> None:
        """End the round for good, with all its cohorts. Whoever is told of it waits for the storage first."""
        now, newest = self._clock(), version or self.version
        ending = [one for one in self.book.cohorts if not one.is_over]
        made_version = version.manifest.model_version if version and state == FINISHED else 0
        ended = []
        for one in ending:
            has_sum = state == FINISHED and (one.is_summed or one.cohort is None)
            fields = (FINISHED, made_version) if has_sum else (ABANDONED, 0)
            ended.append(replace(one, state=fields[0], next_model_version=fields[1], ended_at=now))
        last = ending[-1]
        following = None if self._is_over(newest) else self._new_round(last.number + 1, newest)
        counted = self.standing.counted
        if last.kind == GATE_REFRESH and state == FINISHED:
            counted = frozenset(last.receipts) if self._rule.awaits_refresh else frozenset()
        made = (newest.manifest.model_version, newest.serialised) if version else None
        all_faults = [*faults, *(fault for one in ending for fault in self.standing.note(one, now))]
        suspects = self.standing.suspects
        end = RoundEnd(ended, made, following, all_faults, counted, suspects, evaluation)
        if not await self._storage.end_round(end):
            await self._fall_behind()
            return
        self.standing.counted = counted
        for one, past in zip(ending, ended, strict=True):
            one.state, one.next_model_version, one.ended_at, one.cohort = (
                past.state, past.next_model_version, now, None
            )  # fmt: skip
        self._tell_faults(last, all_faults)
        if evaluation is not None:
            self._show(evaluation)
        if version is not None:
            self._adopt(version)
        cohorts = self.book.cohorts
        self.book.replace_current(following)
        self.steps.wake()
        self.wake()
        self._tell_end(state, cohorts, now)

    def _tell_faults(self, current: Round, faults: Sequence[Fault]) -> None:
        for fault in faults:
            self.metrics.faults.inc()
            self.log.event("fault", round=current.number, device=fault.device, reason=fault.reason, count=fault.count)

    def _tell_end(self, state: int, cohorts: list[Round], now: float) -> None:
        """Tell people of the end of a round."""
        first, seconds = cohorts[0], now - cohorts[0].started_at
        uploads, size = sum(len(one.receipts) for one in cohorts), sum(one.upload_bytes for one in cohorts)
        self.history.appendleft(PastRound(first.number, state, first.model_version, uploads, size, seconds))
        self.metrics.rounds.labels(STATE_NAMES[state]).inc()
        self.metrics.round_uploads.set(0)
        self.log.event(
            f"round_{STATE_NAMES[state]}", round=first.number, uploads=uploads,
            places=sum(len(one.assigned) for one in cohorts), upload_bytes=size, seconds=round(seconds, 3),
            cohorts=len(cohorts),
        )  # fmt: skip

    def _show(self, evaluation: Evaluation) -> None:
        """Tell people of a durable evaluation."""
        self.evaluations = self.evaluations.plus(evaluation)
        self.metrics.show(self.evaluations)
        newest = self.evaluations.qualities[-1]
        self.log.event("evaluated", round=evaluation.round_number, **newest.facts())
        if self.evaluations.has_fallen(self.plan.tolerance):
            self.log.event("accuracy_fell", model_version=newest.model_version, hit_rate=round(newest.chosen.hr, 4))


def _named(current: Round) -> dict[str, int]:
    """A cohort as the log calls it."""
    return {"round": current.number, "cohort": current.index}
