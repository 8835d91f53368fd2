"""The steps of secure aggregation as targets of spoiled messages: a cohort that waits before one step."""

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import secure_pb2
from lightfr_harness.server.coordinator.refusals import Refusal
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
        self._clock, self._round_id = Clock(), None
        async with secure(Path(folder), clock=self._clock, goal=SLOTS, minimum=SLOTS) as it:
            self._it = it
            self.limit_bytes = it.service.limit_bytes(self._method)
            yield

    async def valid(self):
        """The right message of each device, not sent."""
        self._clock.now += BATCH_SECONDS
        await self._it.go_on()
        if self._it.coordinator.book.current.round_id != self._round_id or self._is_beyond():
            await self._begin_round()
        return self._valid

    def _is_beyond(self):
        """Whether so many spoiled messages were taken that the phase is over."""
        return self._it.coordinator.book.current.cohort.phase != self._phase

    async def _begin_round(self):
        while self._it.coordinator.book.current.assigned:
            self._clock.now += 60
            await self._it.go_on()
        # Others in every round: who delivers nonsense often enough gets no more places.
        self._devices = self._it.devices(SLOTS, first=SLOTS * self._it.coordinator.book.current.number)
        before = STEPS[: STEPS.index("ShareKeys" if self._method == "GetStep" else self._method)]
        if before:
            await self._it.run_steps(self._devices, before[-1])
        else:
            await asyncio.gather(*(device.check_in() for device in self._devices))
        current = self._it.coordinator.book.current
        self._round_id, self._phase = current.round_id, current.cohort.phase
        self._valid = [await self._prepared(device) for device in self._devices]

    async def _prepared(self, device):
        if self._method == "GetStep":
            return secure_pb2.GetStepRequest(round_id=device.place.round_id).SerializeToString()
        return await device.only_prepare()

    async def judge(self, slot, message):
        """Send a message; what it was answered with."""
        answer = await self._devices[slot].call(self._method, message)
        if self._method == "GetStep":
            return secure_pb2.GetStepResponse.FromString(answer).WhichOneof("step")
        return "taken"


def secure_targets():
    """One target for each step."""
    return [SecureTarget(method) for method in PROCEDURES]
