"""Rounds in the clear as the suite walks them, and who has done what in each."""

from __future__ import annotations

import hashlib
import random
import struct
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
from google.protobuf.message import Message

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import manifest_pb2, update_pb2
from lightfr_harness.conformance.client import Answer, NoAnswer
from lightfr_harness.conformance.expectations import Unexpected, expect, expect_equal
from lightfr_harness.conformance.twin import Contribution

if TYPE_CHECKING:
    from lightfr_harness.conformance.kit import Kit
    from lightfr_harness.conformance.world import Device, World

# Between two questions about a round that is being added up.
POLL_SECONDS = 0.01
# Beyond its deadline, how long a round may take to end.
PATIENCE_SECONDS = 5.0
ENDED = (pb.ROUND_STATE_FINISHED, pb.ROUND_STATE_ABANDONED)


class ClearRound:
    """One round: its places, and the uploads that got a receipt."""

    def __init__(self, world: World, first: Device, assignment: pb.Assignment) -> None:
        self._world = world
        self.round_id, self.assignment = assignment.round_id, assignment
        self.placed: dict[Device, pb.Assignment] = {first: assignment}
        self.counted: dict[Device, pb.UploadRequest] = {}
        # None while it lasts; then FINISHED or ABANDONED.
        self.ended_as: int | None = None
        self._began = time.monotonic()

    @property
    def first(self) -> Device:
        """The device that opened it."""
        return next(iter(self.placed))

    def check_in(self, device: Device) -> pb.Assignment:
        """Give a device a place in this round."""
        answer = self._world.check_in(device)
        expect(answer.HasField("assignment"), "a place in a round that has some left", answer)
        expect_equal("round_id of the open round", answer.assignment.round_id, self.round_id)
        self.placed[device] = answer.assignment
        return answer.assignment

    def request(self, update: update_pb2.RowUpdate | None = None, **changes: object) -> pb.UploadRequest:
        """A legal upload for this round, with some fields changed."""
        fields = {
            "round_id": self.round_id,
            "manifest_sha256": self.assignment.manifest_sha256,
            "upload_id": self._world.random_id(),
            "row_update": update or self.random_update(),
        }
        return pb.UploadRequest(**{**fields, **changes})  # type: ignore[arg-type]

    def random_update(self, rows: int | None = None) -> update_pb2.RowUpdate:
        """Some open rows with random elements, and a random user code, as the kit has them."""
        return self.update_of(random_part(self._world.kit, rows))

    def update_of(self, part: Contribution) -> update_pb2.RowUpdate:
        """What a device says, in the kind that the kit asks for."""
        settings = self._world.kit.settings
        return part.as_update(settings.upload_kind, has_user_code=settings.objective == "catalogue")

    def send(self, device: Device, request: Message | bytes) -> Answer:
        """Upload and say what came; remembers what was accepted."""
        answer = device.call("Upload", request)
        if answer.status == 200 and device not in self.counted:
            body = request if isinstance(request, bytes) else request.SerializeToString()
            self.counted[device] = pb.UploadRequest.FromString(body)
        return answer

    def upload(self, device: Device, request: pb.UploadRequest | None = None) -> pb.UploadResponse:
        """Upload something legal, with a check-in before if needed; the receipt."""
        if device not in self.placed:
            self.check_in(device)
        request = request or self.request()
        receipt = self.send(device, request).message(pb.UploadResponse)
        expect_equal("upload_id of the receipt", receipt.upload_id, request.upload_id)
        digest = hashlib.sha256(request.SerializeToString()).digest()
        expect_equal("request_sha256 of the receipt", receipt.request_sha256, digest)
        return receipt

    def status(self, device: Device | None = None) -> pb.GetRoundStatusResponse:
        request = pb.GetRoundStatusRequest(round_id=self.round_id)
        return (device or self.first).call("GetRoundStatus", request).message(pb.GetRoundStatusResponse)

    def finish(self) -> manifest_pb2.Manifest:
        """Bring the uploads to the goal with legal ones; the manifest of the version that comes of it."""
        goal, spare = self._world.kit.settings.goal, iter(self._world.devices(self._world.kit.settings.places))
        waiting = [device for device in self.placed if device not in self.counted]
        while len(self.counted) < goal:
            device = waiting.pop() if waiting else next((one for one in spare if one not in self.placed), None)
            if device is None:
                raise Unexpected(f"{goal} uploads of the devices that have a place", f"{len(self.counted)}")
            self.upload(device)
        expect_equal("state of a round whose goal is reached", self.wait(), pb.ROUND_STATE_FINISHED)
        return self._world.manifest()

    def wait(self) -> int:
        """Wait until the round has ended, by itself or by its goal; how. The twin follows."""
        if self.ended_as is None:
            status = self._ended_status()
            self.ended_as = status.state
            if status.state == pb.ROUND_STATE_FINISHED:
                self._world.twin.finish_round(self._contributions())
        return self.ended_as

    def _contributions(self) -> list[Contribution]:
        """What was accepted, without what no server could have added up; its case has said so."""
        kit, legal = self._world.kit.settings, []
        user_bits = kit.code_bits if kit.objective == "catalogue" else 0
        for update in (one.row_update for one in self.counted.values()):
            with suppress(ValueError, IndexError, struct.error):
                part = Contribution.of(update)
                if len(part.user) == user_bits and max(part.rows, default=0) < kit.item_count:
                    legal.append(part)
        return legal

    def _ended_status(self) -> pb.GetRoundStatusResponse:
        deadline = self._world.kit.settings.deadline_seconds
        ends = self._began + deadline + PATIENCE_SECONDS
        while True:
            status = self.status()
            if status.state in ENDED:
                return status
            if time.monotonic() > ends:
                name = pb.RoundState.Name(status.state)
                raise Unexpected(f"the round to end within {deadline} s of its first place", f"it still is {name}")
            time.sleep(POLL_SECONDS)


class ClearRounds:
    """All rounds of a run, one after the other."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.all: list[ClearRound] = []

    def fresh(self) -> ClearRound:
        """End the last round, and open the next with device 0."""
        self._end_last()
        device, ends = self._world.device(0), time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < ends:
            answer = self._world.check_in(device)
            if answer.HasField("assignment"):
                return self._opened(device, answer.assignment)
            time.sleep(POLL_SECONDS)
        raise Unexpected("a place in a new round soon after the last one ended", f"no place: {answer}")

    def _opened(self, device: Device, assignment: pb.Assignment) -> ClearRound:
        known = {one.round_id for one in self.all}
        expect(assignment.round_id not in known, "another round_id than those of rounds before", "one of them again")
        made = ClearRound(self._world, device, assignment)
        self.all.append(made)
        return made

    def _end_last(self) -> None:
        """By its goal, which is quick; where that fails, by its deadline. What a case finds is its own business."""
        if not self.all or self.all[-1].ended_as is not None:
            return
        try:
            self.all[-1].finish()
        except (Unexpected, NoAnswer):
            self.all[-1].wait()


def random_update(is_open: list[bool], code_bits: int, most: int, rows: int | None = None) -> update_pb2.RowUpdate:
    """A legal RowUpdate: `rows` open rows, or a random number of them."""
    generator = random.Random()
    candidates = [row for row, it_is in enumerate(is_open) if it_is]
    count = generator.randint(0, min(most, len(candidates))) if rows is None else rows
    elements = {
        row: np.array(generator.choices((-1, 0, 1), k=code_bits)) for row in generator.sample(candidates, count)
    }
    return Contribution(elements, np.array(generator.choices((-1, 1), k=code_bits))).as_update()


def random_part(kit: Kit, rows: int | None = None) -> Contribution:
    """What a device in the clear may say about `rows` open rows, or about a random number of them."""
    settings, generator = kit.settings, random.Random()
    if settings.upload_kind == "ternary":
        return Contribution.of(random_update(kit.open_rows, settings.code_bits, settings.max_rows, rows))
    candidates = [row for row, it_is in enumerate(kit.open_rows) if it_is]
    count = generator.randint(0, len(candidates)) if rows is None else rows
    # What a gradient reaches at most: docs/protocol.md, "The device" and "The paper's objective".
    largest = 2 * settings.code_bits * (2520 if settings.objective == "paper" else 1)
    elements: Sequence[int] = (-1, 1) if settings.upload_kind == "codes" else range(-largest, largest + 1)
    made = {
        row: np.array(generator.choices(elements, k=settings.code_bits)) for row in generator.sample(candidates, count)
    }
    return Contribution(made, np.array(generator.choices((-1, 1), k=settings.code_bits)))


def random_gradients(is_open: list[bool], code_bits: int) -> Contribution:
    """Exact gradients of some open rows, short enough that no device would clip them, and a user code."""
    generator = random.Random()
    candidates = [row for row, it_is in enumerate(is_open) if it_is]
    rows = generator.sample(candidates, generator.randint(0, 20))
    elements = {row: np.array(generator.choices(range(-9, 10), k=code_bits)) for row in rows}
    return Contribution(elements, np.array(generator.choices((-1, 1), k=code_bits)))
