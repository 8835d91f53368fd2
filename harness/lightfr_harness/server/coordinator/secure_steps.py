"""What devices ask for in the steps of secure aggregation: each delivery is durable before it is answered."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from google.protobuf.message import DecodeError, Message

from lightfr.errors import LightFRError
from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import error_pb2, secure_pb2
from lightfr_harness.server.coordinator.cohort import DONE
from lightfr_harness.server.coordinator.cohort_storage import Outcome
from lightfr_harness.server.coordinator.database import RoundEndedError, StorageUnavailableError
from lightfr_harness.server.coordinator.deliveries import NOT_NEW, invalid
from lightfr_harness.server.coordinator.folder import FolderError
from lightfr_harness.server.coordinator.phases import (
    ACKNOWLEDGING,
    ADVERTISING,
    CONFIRMING,
    INCLUDING,
    REVEALING,
    SHARING,
    UPLOADING,
)
from lightfr_harness.server.coordinator.refusals import Refusal
from lightfr_harness.server.coordinator.rounds import AGGREGATING, FINISHED, OPEN, Round
from lightfr_harness.server.coordinator.storage import Storage
from lightfr_harness.server.coordinator.stored import Stored

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
        follow: Callable[[str, bytes, int], Awaitable[None]],
        phase_complete: Callable[[], None],
        *,
        is_masked: bool,
    ) -> None:
        """`follow` looks what other processes know of a device, a round and its phase.

        `is_masked`: whether rounds have these steps at all; in the clear they have not.
        """
        self._follow = follow
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
        await self._follow(device, request.round_id, phase)
        addressed = self._addressed(request.round_id, device)
        digest = hashlib.sha256(body).digest()
        if addressed.has_delivered(phase, device, digest):
            return
        cohort = addressed.cohort
        if cohort is None or addressed.state != OPEN:
            raise Refusal(error_pb2.ERROR_REASON_ROUND_CLOSED, "the round is over")
        cohort.require_turn(phase, device)
        if addressed.is_late(self._clock()):
            raise Refusal(error_pb2.ERROR_REASON_ROUND_CLOSED, "this step of the round is over")
        checked = cohort.check(phase, device, request)
        await self.keep(addressed, phase, device, digest, body, checked)

    async def keep(
        self, addressed: Round, phase: int, device: str, digest: bytes, body: bytes, checked: Any,
        upload_id: bytes = b"",
    ) -> None:  # fmt: skip
        """Make durable what was checked, and then count it."""
        # Keys that no other device of the cohort may have.
        keys = (
            (checked.entry.mask_key, checked.entry.share_key, checked.entry.member_key) if phase == ADVERTISING else ()
        )
        outcome, count = await self._storage.deliver(addressed, phase, device, digest, body, upload_id, keys)
        if outcome == Outcome.CLOSED:
            raise Refusal(error_pb2.ERROR_REASON_ROUND_CLOSED, "this step of the round is over")
        if outcome == Outcome.OTHER:
            raise Refusal(error_pb2.ERROR_REASON_UPLOAD_CONFLICT, "this device delivered other bytes for this step")
        cohort = addressed.cohort
        if cohort is not None and outcome == Outcome.NOT_NEW:
            cohort.refuse_keys(device, checked)
            raise invalid(NOT_NEW)
        if cohort is None or cohort.phase != phase:
            return
        cohort.keep(phase, device, digest, checked)
        cohort.heard = max(cohort.heard, count)
        if cohort.is_complete():
            self._phase_complete()

    def _addressed(self, round_id: bytes, device: str) -> Round:
        """A masked round in which the device has a place."""
        addressed = self._find(round_id)
        if device not in addressed.assigned:
            raise Refusal(error_pb2.ERROR_REASON_NOT_ASSIGNED, "this device has no place in the round")
        if not self._is_masked:
            raise Refusal(error_pb2.ERROR_REASON_UPLOAD_INVALID, "the round's privacy mode has no such step")
        return addressed

    async def step(self, device: str, round_id: bytes, wait_seconds: float) -> bytes:
        """A GetStepResponse: what the device must do next, as soon as there is something, or when to ask again."""
        turn = self._turn
        await self._follow(device, round_id, 0)
        addressed = self._addressed(round_id, device)
        step = _step(addressed, device)
        if step is None and wait_seconds > 0 and self._waiting < MOST_WAITING:
            await self._wait(turn, min(wait_seconds, LONGEST_WAIT_SECONDS))
            step = _step(self._addressed(round_id, device), device)
        pace_ms = max(LEAST_WAIT_MS, 1000 * addressed.places // QUESTIONS_PER_SECOND)
        return step or secure_pb2.GetStepResponse(wait_ms=pace_ms).SerializeToString()

    async def _wait(self, turn: asyncio.Event, seconds: float) -> None:
        self._waiting += 1
        try:
            async with asyncio.timeout(seconds):
                await turn.wait()
        except TimeoutError:
            pass
        finally:
            self._waiting -= 1


async def catch_up(storage: Storage, current: Round, key: Ed25519PrivateKey) -> None:
    """Bring a cohort to the phase where it stands in the database.

    After a start that is all of it; later it is what other processes have taken and settled meanwhile.
    """
    cohort = current.cohort
    if cohort is None:
        return
    try:
        settled = await storage.read(lambda stored: stored.settled_phases(current.round_id))
        while cohort.phase < settled.phase:
            ended = cohort.phase
            if ended == ADVERTISING:
                current.assigned.update(await storage.read(lambda stored: stored.places(current.round_id)))
            await take_missing(storage, current)
            if cohort.phase == ended:
                cohort.resume(settled, key)
        if not storage.is_shared:
            # Nobody else will take the rest.
            await take_missing(storage, current)
            await storage.read_of(current, lambda stored: take_uploads(stored, current))
    except StorageUnavailableError:
        raise
    except (Refusal, DecodeError, LightFRError, KeyError) as error:
        if storage.is_shared and await storage.read(lambda stored: stored.is_over(current.round_id)):
            raise RoundEndedError("another process has ended the round") from error
        raise FolderError("what is stored of the open round does not fit together: restore the folder") from error


async def take_missing(storage: Storage, current: Round) -> None:
    """Take what is stored of a cohort's phase and is not in its memory yet. Of uploads that is their receipts."""
    cohort, round_id = current.cohort, current.round_id
    if cohort is None:
        return
    phase = cohort.phase
    if phase == ADVERTISING:
        current.assigned.update(await storage.read(lambda stored: stored.places(round_id)))
    if phase == UPLOADING:
        receipts = await storage.read(lambda stored: stored.receipts(round_id))
        current.receipts.update(receipts)
        cohort.delivered[UPLOADING].update({device: known.request_sha256 for device, known in receipts.items()})
        return
    missing = await storage.read_of(
        current, lambda stored: list(stored.deliveries(round_id, phase, cohort.taken[phase]))
    )
    for device, body in missing:
        cohort.take(phase, device, hashlib.sha256(body).digest(), REQUESTS[phase].FromString(body))


def take_uploads(stored: Stored, current: Round) -> None:
    """Add up the uploads of a cohort that are not in its sum yet."""
    cohort = current.cohort
    if cohort is None:
        return
    for device, body in stored.deliveries(current.round_id, UPLOADING, cohort.taken[UPLOADING]):
        cohort.take(UPLOADING, device, hashlib.sha256(body).digest(), pb.UploadRequest.FromString(body))


def _step(addressed: Round, device: str) -> bytes | None:
    """What a device with a place must do now; None: wait."""
    is_added_up = device in addressed.receipts and addressed.state in (AGGREGATING, FINISHED)
    if is_added_up or device in addressed.delivered[REVEALING]:
        return DONE
    if addressed.cohort is None or addressed.state != OPEN:
        raise Refusal(error_pb2.ERROR_REASON_ROUND_CLOSED, "the round is over, or goes on without this device")
    return addressed.cohort.step_for(device)
