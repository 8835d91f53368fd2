"""What devices ask for in the steps of secure aggregation: each delivery is durable before it is answered."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from google.protobuf.message import DecodeError, Message

from lightfr.errors import LightFRError
from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import error_pb2, secure_pb2
from lightfr_harness.server.coordinator.cohort import (
    ADVERTISING,
    DONE,
    PHASES,
    REVEALING,
    SHARING,
    UPLOADING,
    Cohort,
)
from lightfr_harness.server.coordinator.folder import FolderError
from lightfr_harness.server.coordinator.refusals import Refusal
from lightfr_harness.server.coordinator.rounds import AGGREGATING, FINISHED, OPEN, Round
from lightfr_harness.server.coordinator.storage import Storage

LONGEST_WAIT_SECONDS = 20.0
# A whole cohort together asks about this often.
QUESTIONS_PER_SECOND = 200
LEAST_WAIT_MS = 50
# More are told to come back: a request that waits takes the place of one that works.
MOST_WAITING = 2048

_TAKE: dict[int, Callable[[Cohort, str, bytes, Any], None]] = {
    ADVERTISING: Cohort.advertise,
    SHARING: Cohort.share,
    REVEALING: Cohort.reveal,
}
_REQUESTS: dict[int, type[Message]] = {
    ADVERTISING: secure_pb2.AdvertiseKeysRequest,
    SHARING: secure_pb2.ShareKeysRequest,
    REVEALING: secure_pb2.RevealSharesRequest,
}


class SecureSteps:
    """The deliveries and questions of devices in the phases of a round."""

    def __init__(
        self,
        storage: Storage,
        clock: Callable[[], float],
        find: Callable[[bytes], Round],
        phase_complete: Callable[[], None],
    ) -> None:
        self._storage, self._clock, self._find, self._phase_complete = storage, clock, find, phase_complete
        self._turn = asyncio.Event()
        self._waiting = 0

    def wake(self) -> None:
        """Answer everybody who waits for a step: there is a new one, or there will be none."""
        turn, self._turn = self._turn, asyncio.Event()
        turn.set()

    async def deliver(self, phase: int, device: str, request: Any, body: bytes) -> None:
        """Take what a device delivers in a phase; returns when it is durable. The same again changes nothing."""
        addressed = self._find(request.round_id)
        if phase == REVEALING and addressed.state == FINISHED and device in addressed.receipts:
            # Its answer was lost on the way, and what it revealed is deleted. The masks are off: nothing changes.
            await self._storage.settled()
            return
        cohort = _cohort_of(addressed, device)
        digest = hashlib.sha256(body).digest()
        if cohort.is_known(phase, device, digest):
            await self._storage.settled()
            return
        if addressed.state != OPEN or addressed.is_late(self._clock()):
            raise Refusal(error_pb2.ERROR_REASON_ROUND_CLOSED, "this step of the round is over")
        _TAKE[phase](cohort, device, digest, request)
        written = self._storage.deliver(addressed.number, phase, device, body)
        if cohort.is_complete():
            self._phase_complete()
        await written

    async def step(self, device: str, round_id: bytes, wait_seconds: float) -> secure_pb2.GetStepResponse:
        """What the device must do next, as soon as there is something, or when to ask again."""
        addressed, turn = self._find(round_id), self._turn
        step = _step(addressed, device)
        if step is None and wait_seconds > 0 and self._waiting < MOST_WAITING:
            await self._wait(turn, min(wait_seconds, LONGEST_WAIT_SECONDS))
            step = _step(addressed, device)
        await self._storage.settled()
        pace_ms = max(LEAST_WAIT_MS, 1000 * addressed.places // QUESTIONS_PER_SECOND)
        return step or secure_pb2.GetStepResponse(wait_ms=pace_ms)

    async def _wait(self, turn: asyncio.Event, seconds: float) -> None:
        self._waiting += 1
        try:
            async with asyncio.timeout(seconds):
                await turn.wait()
        except TimeoutError:
            pass
        finally:
            self._waiting -= 1


def resume(storage: Storage, current: Round, key: Ed25519PrivateKey) -> None:
    """Bring the cohort of a round to where it stood, from what is stored; before the storage starts."""
    cohort, settled = current.cohort, storage.settled_phases(current.number)
    if cohort is None:
        return
    try:
        for phase in PHASES[: settled.phase]:
            if phase != ADVERTISING:
                cohort.resume(settled, key)
            for device, body in storage.deliveries(current.number, phase):
                _take_again(cohort, phase, device, body)
    except (Refusal, DecodeError, LightFRError, KeyError) as error:
        raise FolderError("what is stored of the open round does not fit together: restore the folder") from error


def _take_again(cohort: Cohort, phase: int, device: str, body: bytes) -> None:
    digest = hashlib.sha256(body).digest()
    if phase == UPLOADING:
        cohort.upload(device, digest, pb.UploadRequest.FromString(body).masked_vector)
    else:
        _TAKE[phase](cohort, device, digest, _REQUESTS[phase].FromString(body))


def _cohort_of(addressed: Round, device: str) -> Cohort:
    if addressed.cohort is not None:
        return addressed.cohort
    if device not in addressed.assigned:
        raise Refusal(error_pb2.ERROR_REASON_NOT_ASSIGNED, "this device has no place in the round")
    if addressed.ended_at is None:
        raise Refusal(error_pb2.ERROR_REASON_UPLOAD_INVALID, "the round's privacy mode has no such step")
    raise Refusal(error_pb2.ERROR_REASON_ROUND_CLOSED, "the round is over")


def _step(addressed: Round, device: str) -> secure_pb2.GetStepResponse | None:
    if device in addressed.receipts and addressed.state in (AGGREGATING, FINISHED):
        return DONE
    return _cohort_of(addressed, device).step_for(device)
