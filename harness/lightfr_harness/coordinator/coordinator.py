"""Runs the rounds: opens them, takes uploads, adds them up, publishes what comes of it, and goes on after a crash.

Memory is what requests are answered from; it is ahead of the storage by what is being written at this moment, and no
request is answered before what it relies on is durable.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeVar

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import error_pb2, manifest_pb2, model_pb2
from lightfr_harness.aggregate import UploadError, UploadReader
from lightfr_harness.coordinator.logs import Log
from lightfr_harness.coordinator.metrics import Metrics
from lightfr_harness.coordinator.options import ItemList, Settings
from lightfr_harness.coordinator.publishing import FolderError, Publisher
from lightfr_harness.coordinator.refusals import Refusal
from lightfr_harness.coordinator.rounds import (
    ABANDONED,
    AGGREGATING,
    FINISHED,
    STATE_NAMES,
    Plan,
    Receipt,
    Round,
    RoundBook,
)
from lightfr_harness.coordinator.storage import REMEMBERED_VERSIONS, AccuracyReport, PastRound, Storage

SHOWN_ROUNDS = 50
# Around a RowUpdate: three ids with their tags, and lengths.
REQUEST_OVERHEAD_BYTES = 200

T = TypeVar("T")
Sign = Callable[[bytes], manifest_pb2.SignedManifest]


@dataclass(frozen=True)
class Version:
    """A published version, with what checking uploads for it needs."""

    serialised: bytes
    manifest: manifest_pb2.Manifest
    sha256: bytes
    signed: manifest_pb2.SignedManifest
    reader: UploadReader
    upload_limit_bytes: int


def upload_limit_bytes(model: model_pb2.RoundModel) -> int:
    """The largest legal RowUpdate, ternary, and what stands around it."""
    rows = min(model.max_rows or model.item_count, model.item_count)
    return rows * (4 + 2 * model.code_bits // 8) + model.code_bits // 8 + REQUEST_OVERHEAD_BYTES


class Coordinator:
    """One folder, one model, one round at a time."""

    def __init__(
        self,
        folder: Path,
        items: ItemList,
        settings: Settings,
        plan: Plan,
        sign: Sign,
        log: Log,
        metrics: Metrics | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.items, self.settings, self.plan = items, settings, plan
        self.metrics = metrics or Metrics()
        self.log = log
        self._sign, self._clock = sign, clock
        # Uploads are user data: nobody else on this machine reads them.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = _lock(folder / "lock")
        self._publisher = Publisher(folder)
        self.artifacts = self._publisher.artifacts
        self._storage = Storage(folder / "coordinator.sqlite", self._storage_failed)
        self._server = settings.make_server(items)
        # One thread for what takes long: it is waited for before the folder is let go.
        self._worker = ThreadPoolExecutor(1, "aggregation")
        self._changed = asyncio.Event()
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
        self.history: deque[PastRound] = deque(self._storage.history(SHOWN_ROUNDS), maxlen=SHOWN_ROUNDS)
        self.accuracy = {report.model_version: report for report in self._storage.accuracy()}
        known = self._storage.rounds()
        self._storage.start()
        await (self._begin() if kept is None else self._resume(known))
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
        """Seconds since 1970 by the clock that deadlines go by."""
        return self._clock()

    def _storage_failed(self, error: BaseException) -> None:
        self.log.fault("storage_failed", error)
        self.failed.set()

    async def _begin(self) -> None:
        catalogue = self._publisher.put_catalogue(self.items)
        version = self._made_version(self._publisher.publish(self._server, 1, self._clock(), catalogue))
        first = Round.new(1, 1, version.sha256, self.plan, self._clock())
        await self._storage.begin(self.settings.as_dict(), version.serialised, first)
        self._adopt(version)
        self.book = RoundBook(self.plan, [], first)

    async def _resume(self, known: list[Round]) -> None:
        if not self._manifests or not known:
            raise FolderError("the folder has settings but no version or no round: restore it, or name a new one")
        version = self._made_version(self._manifests.popleft())
        self._publisher.restore(self._server, version.manifest)
        self._adopt(version)
        last = known[-1]
        current = known.pop() if last.state not in (FINISHED, ABANDONED) else None
        if current is None and not self._is_over():
            current = self._following(last, version)
            await self._storage.open_round(current)
        self.book = RoundBook(self.plan, known, current)

    def _made_version(self, manifest: bytes) -> Version:
        parsed = manifest_pb2.Manifest.FromString(manifest)
        return Version(
            manifest,
            parsed,
            hashlib.sha256(manifest).digest(),
            self._sign(manifest),
            UploadReader(parsed.model, self._server.open_rows_bitmap()),
            upload_limit_bytes(parsed.model),
        )

    def _adopt(self, version: Version) -> None:
        """Make a durable version the one that devices get."""
        self._manifests.appendleft(version.serialised)
        self.version = version
        self.metrics.model_version.set(version.manifest.model_version)

    def _is_over(self) -> bool:
        return self.plan.rounds is not None and self._finished >= self.plan.rounds

    def _following(self, ended: Round, version: Version) -> Round:
        return Round.new(ended.number + 1, version.manifest.model_version, version.sha256, self.plan, self._clock())

    # What devices ask for.

    async def check_in(self, device: str) -> pb.CheckInResponse:
        now = self._clock()
        placed = self.book.check_in(device, now)
        if isinstance(placed, int):
            if placed == pb.RETRY_REASON_ALREADY_UPLOADED:
                await self._storage.settled()
            return self.retry(placed)
        current, is_new = placed
        if is_new:
            if len(current.assigned) == 1:
                self._changed.set()  # The first place starts the time.
            await self._storage.assign(current.number, device, current.deadline)
        else:
            await self._storage.settled()
        self.metrics.check_ins.labels("assignment").inc()
        return pb.CheckInResponse(assignment=self._assignment(current, self._clock()))

    def retry(self, reason: int) -> pb.CheckInResponse:
        """When to come back, and why."""
        name = pb.RetryReason.Name(reason).removeprefix("RETRY_REASON_").lower()  # type: ignore[arg-type]
        self.metrics.check_ins.labels(name).inc()
        return pb.CheckInResponse(retry_window=self.book.retry_window(reason, self._clock()))

    def _assignment(self, current: Round, now: float) -> pb.Assignment:
        return pb.Assignment(
            round_id=current.round_id,
            model_version=current.model_version,
            manifest_sha256=current.manifest_sha256,
            deadline_ms=current.deadline_ms(now),
            upload_limit_bytes=self.version.upload_limit_bytes,
        )

    async def upload(self, device: str, request: pb.UploadRequest, body: bytes) -> Receipt:
        """Take an upload; the receipt when it is durable. A stored receipt comes before every other question."""
        addressed = self.book.find(request.round_id)
        digest = hashlib.sha256(body).digest()
        known = addressed.receipt_for(device, digest)
        if known is not None:
            await self._storage.settled()
            return known
        addressed.require_place(device, request.manifest_sha256, self._clock())
        self._require_legal(request)
        receipt = Receipt(request.upload_id, digest)
        addressed.take(device, receipt, len(body))
        written = self._storage.add_upload(addressed.number, device, receipt, body)
        if len(addressed.receipts) >= addressed.goal:
            self._changed.set()
        await written
        self._count_upload(addressed, len(body))
        return receipt

    def _require_legal(self, request: pb.UploadRequest) -> None:
        if request.WhichOneof("body") != "row_update":
            raise Refusal(error_pb2.ERROR_REASON_UPLOAD_INVALID, "the round's privacy mode asks for a row_update")
        try:
            self.version.reader.check(request.row_update)
        except UploadError as error:
            raise Refusal(error_pb2.ERROR_REASON_UPLOAD_INVALID, str(error)) from error

    def _count_upload(self, addressed: Round, size_bytes: int) -> None:
        self.metrics.uploads.inc()
        self.metrics.upload_bytes.inc(size_bytes)
        self.metrics.round_uploads.set(len(addressed.receipts))

    async def round_status(self, device: str, round_id: bytes) -> pb.GetRoundStatusResponse:
        """How a round stands, in what is durable."""
        asked = self.book.find(round_id)
        answer = pb.GetRoundStatusResponse(
            state=asked.state,  # type: ignore[arg-type]
            upload_count=len(asked.receipts),
            upload_goal=asked.goal,
            has_your_upload=device in asked.receipts,
            next_model_version=asked.next_model_version,
        )
        await self._storage.settled()
        return answer

    async def report_accuracy(self, report: AccuracyReport) -> None:
        """Keep what somebody measured, to be shown."""
        self.accuracy[report.model_version] = report
        await self._storage.add_accuracy(report)

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
        """End the current round if its goal is reached or its deadline over."""
        closing, current = self.book.closes_as(self._clock()), self.book.current
        if closing is None or current is None:
            return False
        if closing == ABANDONED:
            await self._end(current, ABANDONED, None)
        else:
            await self._aggregate(current)
        return True

    async def _aggregate(self, current: Round) -> None:
        started = time.perf_counter()
        current.state = AGGREGATING
        bodies = await self._storage.start_aggregating(current)
        version = await self._in_worker(self._add_up, bodies)
        current.next_model_version = version.manifest.model_version
        self._finished += 1
        await self._end(current, FINISHED, version)
        self.metrics.aggregation_seconds.observe(time.perf_counter() - started)
        await self._in_worker(self._publisher.clean, list(self._manifests))

    async def _in_worker(self, function: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._worker, function, *arguments)

    def _add_up(self, bodies: list[bytes]) -> Version:
        """The next version, written but not yet the one that counts. Sums do not depend on the order of uploads."""
        for body in bodies:
            self._server.add(pb.UploadRequest.FromString(body).row_update.SerializeToString())
        self._server.finish_round()
        older = [manifest_pb2.Manifest.FromString(manifest) for manifest in self._manifests]
        number = self.version.manifest.model_version + 1
        return self._made_version(
            self._publisher.publish(self._server, number, self._clock(), older[0].catalogue, older)
        )

    async def _end(self, current: Round, state: int, version: Version | None) -> None:
        """End a round for good. Whoever is told of it waits for the storage first."""
        current.state, current.ended_at = state, self._clock()
        following = None if self._is_over() else self._following(current, version or self.version)
        await self._storage.end_round(current, version.serialised if version else None, following)
        if version is not None:
            self._adopt(version)
        self.book.replace_current(following)
        self._note_end(current)

    def _note_end(self, ended: Round) -> None:
        seconds, uploads = ended.ended_at - ended.started_at, len(ended.receipts)  # type: ignore[operator]
        past = PastRound(ended.number, ended.state, ended.model_version, uploads, ended.upload_bytes, seconds)
        self.history.appendleft(past)
        self.metrics.rounds.labels(STATE_NAMES[ended.state]).inc()
        self.metrics.round_uploads.set(0)
        self.log.event(
            f"round_{STATE_NAMES[ended.state]}", round=ended.number, uploads=uploads, places=len(ended.assigned),
            upload_bytes=ended.upload_bytes, seconds=round(seconds, 3),
        )  # fmt: skip


def _lock(path: Path) -> BinaryIO:
    """Hold the folder until the file is closed or the process dies."""
    file = path.open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise FolderError("another coordinator is using this folder: stop it first") from error
    return file
