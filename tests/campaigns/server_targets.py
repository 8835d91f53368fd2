"""What a device can send: the procedures of both services, with a real coordinator and a real authority underneath."""

import asyncio
import hashlib
import sqlite3
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from functools import lru_cache
from pathlib import Path
from unittest import mock

from cryptography import x509

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import enrollment_pb2
from lightfr_harness.server.authority import Authority, authority
from lightfr_harness.server.authority.service import EnrollmentService
from lightfr_harness.server.coordinator.refusals import Refusal
from tests.campaigns.secure_targets import secure_targets
from tests.certificates import member_key, signing_request
from tests.harness.server.coordinator.helpers import CAPABILITIES, Clock, small, upload_request

# Messages that are under way at once, so that those that are kept share the waits for the disk.
SLOTS = 256
# Seconds by the coordinator's own clock that a batch takes: a round ends after 60 batches, with uploads or without.
BATCH_SECONDS = 1.0


class CoordinatorTarget:
    """One procedure of CoordinatorService. Places and rounds go on turning over while it is tried."""

    allowed, waits = Refusal, True

    def __init__(self, method, kind, answer):
        self.name, self.kind, self._answer = method, kind, answer
        self.slots = SLOTS
        self._batches = 0

    @asynccontextmanager
    async def opened(self, folder):
        self._clock = Clock()
        async with small(Path(folder), self._clock, goal=2000) as it:
            self._it = it
            self.limit_bytes = it.service.limit_bytes(self.name)
            self._method = it.service.methods[self.name]
            yield

    async def valid(self):
        """A valid message for each slot, as things stand."""
        self._clock.now += BATCH_SECONDS
        await self._it.coordinator.end_due_round()
        self._batches += 1
        return await self._messages()

    async def _messages(self):
        if self.name == "GetRoundStatus":
            request = pb.GetRoundStatusRequest(round_id=self._it.coordinator.book.current.round_id)
        else:
            request = self.kind(capabilities=CAPABILITIES, known_model_version=self._batches % 3)
        return [request.SerializeToString()] * SLOTS

    async def judge(self, slot, message):
        """Send a message; what it was answered with."""
        answer = self._answer.FromString(await self._method(self._device(slot), message))
        return self._judge_answer(slot, message, answer)

    def _device(self, slot):
        # A device comes back in eight batches, then another takes its place.
        return f"device {slot} {self._batches // 8}"

    def _judge_answer(self, slot, message, answer):
        return answer.WhichOneof("answer") if self.name == "CheckIn" else "answered"


class UploadTarget(CoordinatorTarget):
    """Uploads of devices that have a place; a device whose spoiled upload was taken is followed by a new one."""

    def __init__(self):
        super().__init__("Upload", pb.UploadRequest, pb.UploadResponse)
        self._round_id = None
        self._generation = [0] * SLOTS
        self._spent = set(range(SLOTS))

    async def _messages(self):
        current = self._it.coordinator.book.current.round_id
        if current != self._round_id:
            self._round_id, self._spent = current, set(range(SLOTS))
            self._valid = [b""] * SLOTS
        await asyncio.gather(*(self._new_device(slot) for slot in self._spent))
        self._spent = set()
        return self._valid

    async def _new_device(self, slot):
        self._generation[slot] += 1
        answer = await self._it.check_in(self._device(slot))
        # A full round: the slot goes on with what is refused anyway, until the next round.
        if answer.WhichOneof("answer") == "assignment":
            self._valid[slot] = upload_request(answer.assignment, slot)

    def _device(self, slot):
        return f"device {slot} {self._generation[slot]}"

    def _judge_answer(self, slot, message, answer):
        if answer.request_sha256 != hashlib.sha256(message).digest():
            raise AssertionError("the receipt is for another upload")
        self._spent.add(slot)
        return "receipt"


class AtOnce(ThreadPoolExecutor):
    """Does everything in the thread that asks: to wake another one would take longer than most requests."""

    def submit(self, work, /, *arguments, **named):
        """Do it; what came of it."""
        done = Future()
        try:
            done.set_result(work(*arguments, **named))
        except Exception as error:
            done.set_exception(error)
        return done


class AuthorityTarget:
    """One procedure of EnrollmentService. Each batch finds the authority's database as it was before the first."""

    allowed, waits, slots = Refusal, False, SLOTS

    @asynccontextmanager
    async def opened(self, folder):
        asyncio.get_running_loop().set_default_executor(AtOnce())
        self._authority = Authority.init(Path(folder) / "ca", ["localhost"])
        self._service = EnrollmentService(self._authority)
        self.limit_bytes = self._service.limit_bytes(self.name)
        request = signing_request()
        self._valid = [self._prepared(request, member_key()) for _ in range(self.slots)]
        self._database = self._authority._registry._database.connection
        # Most signing requests are as they were: each that is good is checked once.
        good = mock.patch.object(authority, "requested_key", lru_cache(1000)(authority.requested_key))
        with closing(sqlite3.connect(":memory:")) as self._before, good:
            self._database.backup(self._before)
            yield
        self._authority.close()

    async def valid(self):
        """A request for each slot that would be granted."""
        self._before.backup(self._database)
        return self._valid


class EnrollTarget(AuthorityTarget):
    """Each slot holds a token that is good."""

    name, kind = "Enroll", enrollment_pb2.EnrollRequest

    def _prepared(self, request, key):
        token = self._authority.invite("https://localhost:1", "https://localhost:2", 86_400)["token"]
        return self.kind(token=token, signing_request=request, member_key=key).SerializeToString()

    async def judge(self, slot, message):
        """Send a message; what it was answered with."""
        answer = enrollment_pb2.EnrollResponse.FromString(await self._service.enroll("", message))
        if len(answer.certificates) != 1 or len(answer.membership) != 104:
            raise AssertionError("enrolled without a certificate or a membership")
        return "certificate"


class RenewTarget(AuthorityTarget):
    """Each slot is a device with one certificate."""

    name, kind = "RenewCertificate", enrollment_pb2.RenewCertificateRequest

    def __init__(self):
        self._devices = []

    def _prepared(self, request, key):
        self._devices.append(self._authority.issue(request, key)[0])
        return self.kind(signing_request=request, member_key=key).SerializeToString()

    async def judge(self, slot, message):
        """Send a message; what it was answered with."""
        body = await self._service.renew_certificate(self._devices[slot], message)
        (der,) = enrollment_pb2.RenewCertificateResponse.FromString(body).certificates
        (name,) = x509.load_der_x509_certificate(der).subject
        if name.value != self._devices[slot]:
            raise AssertionError("the certificate is another device's")
        return "certificate"


def server_targets():
    """One target for each procedure."""
    return [
        CoordinatorTarget("GetManifest", pb.GetManifestRequest, pb.GetManifestResponse),
        CoordinatorTarget("CheckIn", pb.CheckInRequest, pb.CheckInResponse),
        UploadTarget(),
        CoordinatorTarget("GetRoundStatus", pb.GetRoundStatusRequest, pb.GetRoundStatusResponse),
        EnrollTarget(),
        RenewTarget(),
        *secure_targets(),
    ]
