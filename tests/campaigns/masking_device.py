"""A device of the campaign against the coordinator that takes part in secure aggregation."""

import asyncio
import time
from collections import defaultdict

import numpy as np

from lightfr.errors import LightFRError
from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import error_pb2
from tests.campaigns.kill_coordinator import N_ITEMS, Device, post
from tests.harness.server.coordinator.helpers import upload_request
from tests.harness.server.coordinator.live import reason_of
from tests.harness.server.coordinator.secure import CHECK_IN, SecureDevice, training_vector

# Round and step to everything that the coordinator has said of it: more than one is an equivocation.
TOLD = defaultdict(set)
# What every device of the cohort must be told alike; an inbox is for one device.
COMMON = ("share", "included", "upload", "survivors", "reveal")


class RefusedError(Exception):
    def __init__(self, reason):
        super().__init__(error_pb2.ErrorReason.Name(reason))
        self.reason = reason


class Part(SecureDevice):
    """The part of a device in one round."""

    def __init__(self, owner, place):
        super().__init__(owner.seed, owner.call, owner.server_key, owner.member, owner.membership_keys)
        self.owner = owner
        self.begin(place)

    def vector(self, kind, devices):
        update = pb.UploadRequest.FromString(self.owner.in_the_clear(self.place)).row_update
        return training_vector(update, devices, self.owner.open_indices)

    async def send(self, method, request):
        """Kept until it is answered, then sent again as it was."""
        self.sent[method] = request
        if method == "Upload":
            self.owner.pending = self.sent[method]
        else:
            self.owner.unanswered = (method, self.sent[method])
        await self.owner.send_unanswered()


class MaskingDevice(Device):
    """Its ratings, and what it knows for sure, are those of the device that sends the same rows in the clear."""

    server_key, membership_keys = b"", ()
    # Of the rows that a round's vector has, in their order.
    open_indices = np.arange(N_ITEMS)
    member = None
    part = None
    unanswered = None
    left = b""

    async def call(self, _, method, body):
        status, answer = post(self.connection, method, body)
        if status != 200:
            raise RefusedError(reason_of(answer).reason)
        return answer

    def in_the_clear(self, place):
        return upload_request(place, self.seed)

    def _take_part(self, connection):
        self.connection = connection
        try:
            asyncio.run(self._turn())
        except RefusedError as refused:
            self.contradictions += refused.reason == error_pb2.ERROR_REASON_UPLOAD_CONFLICT
            if refused.reason != error_pb2.ERROR_REASON_OVERLOADED:
                self._leave()
        except LightFRError:
            self._leave()  # Too few are left.

    def _leave(self):
        self.left, self.part, self.unanswered = self.part.place.round_id if self.part else b"", None, None

    async def _turn(self):
        if self.unanswered:
            await self.send_unanswered()
        elif self.part is None:
            await self._check_in()
        elif not self.part.sent:
            await self.part.deliver()
        else:
            await self._next_step()

    async def _check_in(self):
        answer = pb.CheckInResponse.FromString(await self.call("", "CheckIn", CHECK_IN))
        if not answer.HasField("assignment") or answer.assignment.round_id == self.left:
            time.sleep(0.02)
            return
        self.begin(answer.assignment)

    def begin(self, place):
        """Take the place."""
        self.seed += 1
        self.part = Part(self, place)

    async def _next_step(self):
        step = await self.part.step()
        name = step.WhichOneof("step")
        if name == "done":
            self._leave()
        if name in ("done", "wait_ms"):
            time.sleep(0.01)
            return
        if name in COMMON:
            TOLD[self.part.place.round_id, name].add(step.SerializeToString())
        await self.part.deliver(step)

    async def send_unanswered(self):
        if self.pending:
            self._upload(self.connection)
            return
        await self.call("", *self.unanswered)
        self.unanswered = None

    def _upload(self, connection):
        place = self.part.place
        is_in = super()._upload(connection)
        if is_in:
            self.uploads[place.round_id] = self.in_the_clear(place)
        elif is_in is False:
            self._leave()
        return is_in
