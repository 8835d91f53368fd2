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
    ACKNOWLEDGING,
    ADVERTISING,
    CONFIRMING,
    DONE,
    INCLUDING,
    PHASES,
    REVEALING,
    SHARING,
    UPLOADING,
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

REQUESTS: dict[int, type[Message]] = {
    ADVERTISING: secure_pb2.AdvertiseKeysRequest,
    SHARING: secure_pb2.ShareKeysRequest,
    ACKNOWLEDGING: secure_pb2.AcknowledgeSharesRequest,
    INCLUDING: secure_pb2.SignIncludedRequest,
    UPLOADING: pb.UploadRequest,
    CONFIRMING: secure_pb2.SignSurvivorsRequest,
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
        *,
        is_masked: bool,
    ) -> None:
        """`is_masked`: whether rounds have these steps at all; in the clear they have not."""
        self._storage, self._clock, self._find, self._phase_complete = storage, clock, find, phase_complete
        self._is_masked = is_masked
        self._turn = asyncio.Event()
        self._waiting = 0

    def wake(self) -> None:
        """Answer everybody who waits for a step: there is a new one, or there will be none."""
        turn, self._turn = self._turn, asyncio.Event()
        turn.set()

    async def deliver(self, phase: int, device: str, request: Any, body: bytes) -> None:
        """Take what a device delivers in a phase; returns when it is durable. The same again changes nothing."""
        addressed = self._addressed(request.round_id, device)
        digest = hashlib.sha256(body).digest()
        if addressed.has_delivered(phase, device, digest):
            await self._storage.settled()
            return
        cohort = addressed.cohort
        if cohort is None or addressed.state != OPEN:
            raise Refusal(error_pb2.ERROR_REASON_ROUND_CLOSED, "the round is over")
        cohort.require_turn(phase, device)
        if addressed.is_late(self._clock()):
            raise Refusal(error_pb2.ERROR_REASON_ROUND_CLOSED, "this step of the round is over")
        cohort.take(phase, device, digest, request)
        written = self._storage.deliver(addressed.number, phase, device, digest, body)
        if cohort.is_complete():
            self._phase_complete()
        await written

    def _addressed(self, round_id: bytes, device: str) -> Round:
        """A masked round in which the device has a place."""
        addressed = self._find(round_id)
        if device not in addressed.assigned:
            raise Refusal(error_pb2.ERROR_REASON_NOT_ASSIGNED, "this device has no place in the round")
        if not self._is_masked:
            raise Refusal(error_pb2.ERROR_REASON_UPLOAD_INVALID, "the round's privacy mode has no such step")
        return addressed

    async def step(self, device: str, round_id: bytes, wait_seconds: float) -> secure_pb2.GetStepResponse:
        """What the device must do next, as soon as there is something, or when to ask again."""
        addressed, turn = self._addressed(round_id, device), self._turn
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
                cohort.take(phase, device, hashlib.sha256(body).digest(), REQUESTS[phase].FromString(body))
    except (Refusal, DecodeError, LightFRError, KeyError) as error:
        raise FolderError("what is stored of the open round does not fit together: restore the folder") from error


def _step(addressed: Round, device: str) -> secure_pb2.GetStepResponse | None:
    """What a device with a place must do now; None: wait."""
    is_added_up = device in addressed.receipts and addressed.state in (AGGREGATING, FINISHED)
    if is_added_up or device in addressed.delivered[REVEALING]:
        return DONE
    if addressed.cohort is None or addressed.state != OPEN:
        raise Refusal(error_pb2.ERROR_REASON_ROUND_CLOSED, "the round is over, or goes on without this device")
    return addressed.cohort.step_for(device)
