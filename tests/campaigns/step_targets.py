"""The answers of GetStep as targets of spoiled messages: a device of a real cohort that stands before one step."""

from contextlib import asynccontextmanager

import numpy as np

from lightfr import ItemCodes
from lightfr._wire import secure
from lightfr.errors import LightFRError
from lightfr.rounds import RoundParticipant
from lightfr.secagg import Vector, blocks_of
from lightfr.training import PublishedModel
from lightfr.v1 import model_pb2, secure_pb2
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
        yield

    async def valid(self):
        """What the devices were told, again and again."""
        return [body for _, body in self._before] * (self.slots // DEVICES)

    async def judge(self, slot, message):
        """Answer a message; what came of it."""
        values, _ = self._before[slot % DEVICES]
        participant = RoundParticipant.from_values(values.get)
        return "taken" if participant.answer(secure.decode_step(message), self._walked.make_vector) else "nothing due"


def step_targets():
    """One target for each step."""
    return [StepTarget(step) for step in STEPS]
