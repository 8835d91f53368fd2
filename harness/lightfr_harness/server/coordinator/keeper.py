"""Runs the rounds: opens them, adds them up, publishes what comes of it, and goes on after a crash."""

from __future__ import annotations

import asyncio
import functools
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import manifest_pb2
from lightfr_harness.server.coordinator import secure_steps
from lightfr_harness.server.coordinator.clock import SteadyClock
from lightfr_harness.server.coordinator.cohort import PHASE_NAMES, REVEALING, Cohort, RoundFacts
from lightfr_harness.server.coordinator.folder import CrashPoint, FolderError, lock_folder, no_crash
from lightfr_harness.server.coordinator.options import ItemList, MakeRule, Settings, make_rule
from lightfr_harness.server.coordinator.publishing import Publisher, Signer, Version, artifact_kinds, blocks_of
from lightfr_harness.server.coordinator.rounds import (
    ABANDONED,
    AGGREGATING,
    FINISHED,
    GATE_REFRESH,
    STATE_NAMES,
    TRAINING,
    Plan,
    Round,
    RoundBook,
)
from lightfr_harness.server.coordinator.secure_steps import SecureSteps
from lightfr_harness.server.coordinator.standing import Standing
from lightfr_harness.server.coordinator.storage import (
    REMEMBERED_VERSIONS,
    PastRound,
    RoundEnd,
    Storage,
)
from lightfr_harness.server.coordinator.telemetry import Log, Metrics
from lightfr_harness.server.rules import CatalogueRule
from lightfr_harness.server.rules.plausible import ImplausibleSumError
from lightfr_harness.server.rules.secagg import MissingSharesError, SecureSumError

SHOWN_ROUNDS = 50

T = TypeVar("T")


class RoundKeeper:
    """One folder, one model, one round at a time. What devices ask of it is in Coordinator."""

    def __init__(
        self,
        folder: Path,
        items: ItemList,
        settings: Settings,
        plan: Plan,
        signer: Signer,
        log: Log,
        metrics: Metrics | None = None,
        clock: Callable[[], float] | None = None,
        make_rule: MakeRule = make_rule,
        crash_point: CrashPoint = no_crash,
    ) -> None:
        if settings.is_secure:
            plan.require_cohort()
        self.items, self.settings, self.plan = items, settings, plan
        self.largest_upload_bytes = 0
        self.metrics = metrics or Metrics()
        self.log = log
        # Deadlines go by this clock. What is only shown is told by the system's, which somebody may set.
        self._signer, self._clock = signer, clock or SteadyClock()
        # Uploads are user data: nobody else on this machine reads them.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = lock_folder(folder)
        self._publisher = Publisher(folder, plan.artifacts_address, crash_point)
        self.artifacts = self._publisher.artifacts
        self._storage = Storage(folder / "coordinator.sqlite", self._storage_failed, crash_point)
        self._rule = make_rule(settings, items)
        # One thread for what takes long: it is waited for before the folder is let go.
        self._worker = ThreadPoolExecutor(1, "aggregation")
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
        self._manifests = deque(self._storage.manifests(), maxlen=REMEMBERED_VERSIONS)
        self._publisher.clean(self._manifests)
        self._finished = self._storage.finished_count()
        self._since_refresh = self._storage.finished_since_refresh()
        self.standing = Standing(self._storage.faults(), self._storage.counted())
        self.history: deque[PastRound] = deque(self._storage.history(SHOWN_ROUNDS), maxlen=SHOWN_ROUNDS)
        self.accuracy = {report.model_version: report for report in self._storage.accuracy()}
        if kept is None:
            self._storage.start()
            await self._begin()
        else:
            await self._resume(self._storage.rounds())
        self.log.event(
            "started", model_version=self.version.manifest.model_version, finished_rounds=self._finished,
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
        catalogue = self._publisher.put_catalogue(self.items)
        version = self._made_version(self._publisher.publish(self._rule, 1, time.time(), catalogue))
        first = self._new_round(1, version)
        await self._storage.begin(self.settings.as_dict(), version.serialised, first)
        self._adopt(version)
        self.book = RoundBook(self.plan, [], first)

    async def _resume(self, known: list[Round]) -> None:
        if not self._manifests or not known:
            raise FolderError("the folder has settings but no version or no round: restore it, or name a new one")
        newest = self._manifests.popleft()
        self._publisher.restore(self._rule, manifest_pb2.Manifest.FromString(newest))
        last = known[-1]
        version = self._made_version(newest, last.places)
        self._adopt(version)
        current = known.pop() if last.state not in (FINISHED, ABANDONED) else None
        if current is not None:
            current.resume(self._clock())
            self._gather(current)
            secure_steps.resume(self._storage, current, self._signer.manifest_key)
        self._storage.start()
        if current is None and not self._is_over():
            current = self._new_round(last.number + 1, version)
            await self._storage.open_round(current)
        self.book = RoundBook(self.plan, known, current)

    def _made_version(self, manifest: bytes, places: int = 0) -> Version:
        """For rounds of the plan, or of an older one with so many places."""
        return Version.of(manifest, self._rule, self._signer.sign, max(self.plan.places, places))

    def _adopt(self, version: Version) -> None:
        """Make a durable version the one that devices get."""
        self._manifests.appendleft(version.serialised)
        self.version = version
        # Never less than before: who has lost a receipt sends an upload of an older version again.
        self.largest_upload_bytes = max(self.largest_upload_bytes, version.upload_limit_bytes)
        self.metrics.model_version.set(version.manifest.model_version)

    def artifact_kind(self, digest: str) -> str:
        """What the artifact of a digest is: "codes", "catalogue", "delta" or "open_rows"; else "unknown"."""
        for manifest in self._manifests:
            kinds = artifact_kinds(manifest_pb2.Manifest.FromString(manifest))
            if digest in kinds:
                return kinds[digest]
        return "unknown"

    def most_places(self) -> int:
        """Of the current round or of later ones."""
        return max(self.plan.places, self.book.current.places if self.book.current else 0)

    def _is_over(self) -> bool:
        return self.plan.rounds is not None and self._finished >= self.plan.rounds

    def _new_round(self, number: int, version: Version) -> Round:
        made = Round.new(number, version.manifest.model_version, version.sha256, self.plan, self._clock())
        made.kind = GATE_REFRESH if self._is_refresh_due() else TRAINING
        self._gather(made)
        return made

    def _gather(self, a_round: Round) -> None:
        """Give a round the cohort that it needs if uploads are masked."""
        if not self.settings.is_secure:
            return
        facts = RoundFacts(
            a_round.round_id, a_round.manifest_sha256, a_round.kind, self._signer.membership_keys,
            # A membership must last until the last device of the cohort has begun, for that one checks it.
            lambda: a_round.started_at + a_round.deadline_seconds,
        )  # fmt: skip
        blocks = functools.partial(blocks_of, self._rule, a_round.kind)
        a_round.cohort = Cohort(facts, a_round.places, a_round.assigned, blocks)
        a_round.delivered = a_round.cohort.delivered

    def _is_refresh_due(self) -> bool:
        """Whether the cohort shall count who rates what: when no row is open yet, and again after many rounds."""
        if not self.settings.is_secure or self._rule.gate <= 1:
            return False
        is_due = not self._rule.open_rows.any() or self._since_refresh >= self.plan.gate_every
        return is_due or self._rule.awaits_refresh

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
        timeout = None if deadline is None else max(deadline - self._clock(), 0.001)
        try:
            async with asyncio.timeout(timeout):
                await self._changed.wait()
        except TimeoutError:
            pass
        self._changed.clear()

    async def end_due_round(self) -> bool:
        """End the current round, or its phase, if its goal is reached or its deadline over."""
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
            version, n_implausible = await self._in_worker(self._add_up, current, bodies)
        except (SecureSumError, ImplausibleSumError) as error:
            await self._drop(current, error)
            return
        if n_implausible:
            self.log.event("rows_implausible", round=current.number, rows=n_implausible)
        self.standing.added_up(current, is_good=not n_implausible)
        current.next_model_version = version.manifest.model_version
        if current.kind == GATE_REFRESH:
            self._since_refresh = 0
        else:
            self._finished, self._since_refresh = self._finished + 1, self._since_refresh + 1
        await self._end(current, FINISHED, version)
        self.metrics.aggregation_seconds.observe(time.perf_counter() - started)
        await self._in_worker(self._publisher.clean, list(self._manifests))

    async def _drop(self, current: Round, error: SecureSumError | ImplausibleSumError) -> None:
        """End a round without a sum. Its devices reveal once for a version, so the same codes get a new number."""
        self.metrics.sums_dropped.inc()
        self.log.event("sum_dropped", round=current.number, reason=str(error))
        if not isinstance(error, MissingSharesError):
            self.standing.added_up(current, is_good=False)
        await self._end(current, ABANDONED, await self._in_worker(self._published))

    async def _in_worker(self, function: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._worker, function, *arguments)

    def _add_up(self, current: Round, bodies: list[bytes]) -> tuple[Version, int]:
        """The next version, and how many rows were implausible. Sums do not depend on the order of uploads."""
        n_implausible, rule = 0, self._rule
        # Only the catalogue objective has masked rounds: Settings refuse the others.
        if current.cohort is None or not isinstance(rule, CatalogueRule):
            for body in bodies:
                rule.add(pb.UploadRequest.FromString(body).row_update.SerializeToString())
            rule.finish_round()
        elif current.kind == GATE_REFRESH:
            # The same codes if this is done again after a crash.
            seed = int.from_bytes(current.round_id, "little")
            rule.set_gate(**current.cohort.finish(), seed=seed, devices=len(current.receipts))
        else:
            n_implausible = rule.add_cohort(current.cohort.finish(), len(current.receipts))
            rule.finish_round()
        return self._published(), n_implausible

    def _published(self) -> Version:
        """What the rule has now as the next version, written but not yet the one that counts."""
        older = [manifest_pb2.Manifest.FromString(manifest) for manifest in self._manifests]
        number = self.version.manifest.model_version + 1
        return self._made_version(self._publisher.publish(self._rule, number, time.time(), older[0].catalogue, older))

    async def _end(self, current: Round, state: int, version: Version | None) -> None:
        """End a round for good. Whoever is told of it waits for the storage first."""
        current.state, current.ended_at = state, self._clock()
        following = None if self._is_over() else self._new_round(current.number + 1, version or self.version)
        if current.kind == GATE_REFRESH and state == FINISHED:
            self.standing.counted = frozenset(current.receipts) if self._rule.awaits_refresh else frozenset()
        made = (version.manifest.model_version, version.serialised) if version else None
        faults = self.standing.note(current, current.ended_at)
        await self._storage.end_round(RoundEnd(current, made, following, faults, self.standing.counted))
        for fault in faults:
            self.metrics.faults.inc()
            self.log.event("fault", round=current.number, device=fault.device, reason=fault.reason, count=fault.count)
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
