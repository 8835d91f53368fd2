"""The steps of secure aggregation as targets of spoiled messages: a cohort that waits before one step."""

import asyncio
import shutil
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import secure_pb2
from lightfr_harness.server.coordinator.refusals import Refusal
from tests.campaigns.step_targets import signatures_checked_once
from tests.harness.server.coordinator.helpers import Clock
from tests.harness.server.coordinator.secure import STEPS, secure

SLOTS = 16
# Seconds by the coordinator's own clock that a batch takes: a phase ends after 60 batches, and a new round begins.
BATCH_SECONDS = 1.0
PROCEDURES = {
    "AdvertiseKeys": secure_pb2.AdvertiseKeysRequest,
    "ShareKeys": secure_pb2.ShareKeysRequest,
    "AcknowledgeShares": secure_pb2.AcknowledgeSharesRequest,
    "SignIncluded": secure_pb2.SignIncludedRequest,
    "Upload": pb.UploadRequest,
    "SignSurvivors": secure_pb2.SignSurvivorsRequest,
    "RevealShares": secure_pb2.RevealSharesRequest,
    "GetStep": secure_pb2.GetStepRequest,
}


class SecureTarget:
    """One procedure. A device whose spoiled message was taken goes on to contradict itself until the round ends."""

    allowed, waits, slots = Refusal, True, SLOTS

    def __init__(self, method):
        self._method, self.kind = method, PROCEDURES[method]
        self.name = f"{method} (secure)"

    @asynccontextmanager
    async def opened(self, folder):
        self._before, self._copy = Path(folder) / "before", Path(folder) / "copy"
        async with secure(self._before, clock=Clock(), goal=SLOTS, minimum=SLOTS) as it:
            self.limit_bytes = it.service.limit_bytes(self._method)
            self._valid = await self._walk(it)
        self._began, self._clock, self._it = it.clock.now, Clock(), None
        # Each copy checks again what was delivered before the step.
        with signatures_checked_once():
            async with AsyncExitStack() as self._running:
                yield

    async def _walk(self, it):
        """Take a cohort up to the step; the right message of each device, not sent."""
        devices = it.devices(SLOTS)
        before = STEPS[: STEPS.index("ShareKeys" if self._method == "GetStep" else self._method)]
        if before:
            await it.run_steps(devices, before[-1])
        else:
            await asyncio.gather(*(device.check_in() for device in devices))
        current = it.coordinator.book.current
        self._round_id, self._phase = current.round_id, current.cohort.phase
        self._names = [device.name for device in devices]
        return [await self._prepared(device) for device in devices]

    async def valid(self):
        """The right message of each device, not sent."""
        self._clock.now += BATCH_SECONDS
        if self._it is not None:
            await self._it.go_on()
        if self._it is None or self._is_over():
            await self._begin_round()
        return self._valid

    def _is_over(self):
        """Whether the phase is over: by its deadline, or because so many spoiled messages were taken."""
        current = self._it.coordinator.book.current
        return current.round_id != self._round_id or current.cohort.phase != self._phase

    async def _begin_round(self):
        """Let the round end, then go on from a copy of what was durable before the step.

        To walk a new cohort up to the step would take longer than to try all the messages that it is tried with.
        """
        while self._it is not None and self._it.coordinator.book.current.assigned:
            self._clock.now += 60
            await self._it.go_on()
        await self._running.aclose()
        shutil.rmtree(self._copy, ignore_errors=True)
        shutil.copytree(self._before, self._copy)
        self._clock.now = self._began
        self._it = await self._running.enter_async_context(
            secure(self._copy, clock=self._clock, goal=SLOTS, minimum=SLOTS)
        )

    async def _prepared(self, device):
        if self._method == "GetStep":
            return secure_pb2.GetStepRequest(round_id=device.place.round_id).SerializeToString()
        return await device.only_prepare()

    async def judge(self, slot, message):
        """Send a message; what it was answered with."""
        answer = await self._it.call(self._names[slot], self._method, message)
        if self._method == "GetStep":
            return secure_pb2.GetStepResponse.FromString(answer).WhichOneof("step")
        return "taken"


def secure_targets():
    """One target for each step."""
    return [SecureTarget(method) for method in PROCEDURES]
