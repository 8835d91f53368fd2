"""The answers of GetStep as targets of spoiled messages: a device of a real cohort that stands before one step."""

from contextlib import asynccontextmanager, contextmanager
from functools import lru_cache
from unittest import mock

import numpy as np

from lightfr import ItemCodes, membership
from lightfr._wire import secure
from lightfr.errors import LightFRError
from lightfr.rounds import RoundParticipant
from lightfr.secagg import Vector, blocks_of, views
from lightfr.secagg.state import SessionState
from lightfr.training import PublishedModel
from lightfr.v1 import model_pb2, secure_pb2
from lightfr_harness.server.coordinator import deliveries
from lightfr_harness.simulation.secure import SecureRound

DEVICES, BITS = 7, 8
STEPS = ("share", "acknowledge", "included", "upload", "survivors", "reveal")


def small_model():
    message = model_pb2.RoundModel(
        code_bits=BITS,
        item_count=4,
        objective=model_pb2.OBJECTIVE_CATALOGUE,
        upload_kind=model_pb2.UPLOAD_KIND_TERNARY,
        max_rows=64,
        privacy_mode=model_pb2.PRIVACY_MODE_SECAGG,
    )
    return PublishedModel(ItemCodes(bytes(4), BITS), message)


@contextmanager
def signatures_checked_once():
    """A spoiled message has most signatures as they were: each is checked once, not for every message."""
    with (
        mock.patch.object(views, "is_signed", lru_cache(1000)(views.is_signed)),
        mock.patch.object(deliveries, "is_signed", lru_cache(1000)(deliveries.is_signed)),
        mock.patch.object(membership, "_is_signed", lru_cache(1000)(membership._is_signed)),
    ):
        yield


class RecordedRound(SecureRound):
    """Keeps what each device had before each step, and what it was told. Its vectors are zeros."""

    def __init__(self, model):
        super().__init__([None] * DEVICES, lambda size: blocks_of(model, size))
        self.model, self.before = model, {step: [] for step in STEPS}

    def _answered(self, i, body):
        step = secure_pb2.GetStepResponse.FromString(body).WhichOneof("step")
        self.before[step].append((self._participants[i].values(), body))
        self._participants[i].answer(secure.decode_step(body), self.make_vector)
        return self._participants[i].outgoing.request

    def make_vector(self, _, cohort):
        return Vector(blocks_of(self.model, cohort))


class StepTarget:
    """One step. Each message meets the device as it stood before the step."""

    allowed, waits, kind, limit_bytes = LightFRError, False, secure_pb2.GetStepResponse, 70_000
    slots = 8 * DEVICES

    def __init__(self, step):
        self._step, self.name = step, f"GetStepResponse ({step})"

    @asynccontextmanager
    async def opened(self, folder):
        walked = RecordedRound(small_model())
        nobody = np.zeros(DEVICES, np.bool_)
        walked.run(lambda phase: nobody)
        self._walked, self._before = walked, walked.before[self._step]
        # What a device kept cannot change, so it is read once.
        kept = mock.patch.object(SessionState, "from_bytes", lru_cache(100)(SessionState.from_bytes))
        with signatures_checked_once(), kept:
            yield

    async def valid(self):
        """What the devices were told, again and again."""
        return [body for _, body in self._before] * (self.slots // DEVICES)

    async def judge(self, slot, message):
        """Answer a message; what came of it."""
        # First: what cannot be read needs no device.
        said = secure.decode_step(message)
        values, _ = self._before[slot % DEVICES]
        participant = RoundParticipant.from_values(values.get)
        return "taken" if participant.answer(said, self._walked.make_vector) else "nothing due"


def step_targets():
    """One target for each step."""
    return [StepTarget(step) for step in STEPS]
