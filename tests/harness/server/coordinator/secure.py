"""Devices that take part in secure aggregation by the bytes of proto/, and whole rounds of them."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import numpy as np

from lightfr._wire import secure as wire
from lightfr._wire.coordinator import Assignment
from lightfr.rounds import RoundParticipant, Trusted
from lightfr.secagg import Vector, evaluation_blocks, gate_blocks, round_blocks
from lightfr.secagg.work import OWN_WORK
from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import model_pb2, secure_pb2
from lightfr_harness.server.coordinator.folder import no_crash
from lightfr_harness.server.coordinator.options import ItemList
from lightfr_harness.server.coordinator.plan import Plan
from lightfr_harness.server.rules.bits import unpack_signs
from lightfr_harness.simulation.secure import SharedWork, simulated_member
from tests.harness.server.coordinator.helpers import (
    BITS,
    ITEMS,
    MEMBERSHIP_KEY,
    N_ITEMS,
    SETTINGS,
    Clock,
    Signer,
    Small,
    row_update,
)

SECURE = replace(SETTINGS, privacy="secagg")
UNCOUNTED = ItemList(ITEMS.ids, None, ITEMS.sha256)
N_OPEN = 26
# Of a catalogue with counts, without refinement.
N_CANDIDATES = 14
CAPABILITIES = pb.Capabilities(
    wire_versions=[1], upload_kinds=[model_pb2.UPLOAD_KIND_TERNARY], privacy_modes=[model_pb2.PRIVACY_MODE_SECAGG]
)
CHECK_IN = pb.CheckInRequest(capabilities=CAPABILITIES).SerializeToString()
SERVER_KEY = Signer.manifest_key.public_key().public_bytes_raw()
MEMBERSHIP_KEYS = [MEMBERSHIP_KEY.public_key().public_bytes_raw()]
# The steps of a round by their methods, in order.
STEPS = (
    "AdvertiseKeys", "ShareKeys", "AcknowledgeShares", "SignIncluded", "Upload", "SignSurvivors", "RevealShares"
)  # fmt: skip


def update_of(seed):
    """The same rows that the device of this seed would send in the clear."""
    return row_update(np.random.default_rng(seed))


def training_vector(update, devices, open_indices=range(N_OPEN)):
    """A RowUpdate as the dense vector of docs/secagg.md, without noise: sums can then be foretold."""
    indices = np.frombuffer(update.item_indices, "<u4")
    n_open = len(open_indices)
    shape = (len(indices), BITS)
    planes = (unpack_signs(plane, shape) > 0 for plane in (update.ternary.nonzero, update.ternary.positive))
    nonzero, positive = planes
    rows = np.zeros((n_open, BITS), int)
    rows[np.searchsorted(open_indices, indices)] = nonzero * (2 * positive.astype(int) - 1)
    user, weight = unpack_signs(update.user_code, (BITS,)).astype(int), max(len(indices), 32)
    vector = Vector(round_blocks(n_open, BITS, devices))
    for name, values in (("rows", rows), ("user_sum", weight * user), ("weight", [weight])):
        np.asarray(vector[name])[:] = np.ravel(values)
    return vector


def rated_by(seed):
    """Items that the device of this seed has rated: those at the front by nearly all."""
    return np.random.default_rng(seed).random(N_ITEMS) < np.linspace(1.2, 0, N_ITEMS)


def counts_vector(seed, devices):
    vector = Vector(gate_blocks(N_ITEMS, devices))
    for item in np.flatnonzero(rated_by(seed)):
        vector["counts"][int(item)] = 1
    return vector


def hits_of(seed):
    """What the device of this seed says in an evaluation: its opinion, and which candidates showed the item."""
    rng, group, opinion = np.random.default_rng(seed), seed % 4, int(seed % 5 == 0)
    hits = np.zeros((4, 2, 1 + 2 * N_CANDIDATES), int)
    # Devices like what the first candidates show, and dislike what the last ones show.
    shares = np.linspace(1.2, -0.2, 1 + 2 * N_CANDIDATES)
    hits[group, opinion] = rng.random(1 + 2 * N_CANDIDATES) < (1 - shares if opinion else shares)
    hits[group, opinion, 0] = 1
    return hits


def hits_vector(seed, devices):
    """Without noise."""
    vector = Vector(evaluation_blocks(N_CANDIDATES, devices))
    np.asarray(vector["hits"])[:] = hits_of(seed).ravel()
    return vector


class SecureDevice:
    """One device in one round. Each step is the request that it sends; sent ones are kept, to be sent again."""

    def __init__(self, seed, call, server_key=SERVER_KEY, member=None, membership_keys=MEMBERSHIP_KEYS, work=OWN_WORK):
        self.seed, self._call, self._server_key, self._membership_keys = seed, call, server_key, membership_keys
        self._work = work
        self.name, self.member = f"device-{seed}", member or simulated_member(MEMBERSHIP_KEY)
        self.sent, self.is_silent = {}, False

    async def call(self, method, request, response=None):
        body = request if isinstance(request, bytes) else request.SerializeToString()
        answer = await self._call(self.name, method, body)
        return response.FromString(answer) if response else answer

    async def check_in(self):
        answer = await self.call("CheckIn", CHECK_IN, pb.CheckInResponse)
        assert answer.HasField("assignment"), answer
        self.begin(answer.assignment)

    def begin(self, place):
        self.place, self.sent = place, {}
        assigned = Assignment(
            place.round_id, place.model_version, place.manifest_sha256, place.upload_limit_bytes, 1.0, place.peer_id,
            place.kind,
        )  # fmt: skip
        trusted = Trusted(self._server_key, self._membership_keys, self.member, now=0.0)
        self.participant = RoundParticipant.begin(assigned, trusted, 2, work=self._work)

    async def step(self, max_wait_ms=0):
        request = secure_pb2.GetStepRequest(round_id=self.place.round_id, max_wait_ms=max_wait_ms)
        return await self.call("GetStep", request, secure_pb2.GetStepResponse)

    async def deliver(self, step=None):
        """Do what is due: its keys at first, then what the server says, which is asked unless it is given."""
        if self.sent:
            due = await self.step() if step is None else step
            said = wire.decode_step(due.SerializeToString())
            assert self.participant.answer(said, self.vector), due
        method, request = self.participant.outgoing
        await self.send(method, request)

    def upload_request(self, masked):
        place = self.place
        return pb.UploadRequest(
            round_id=place.round_id,
            manifest_sha256=place.manifest_sha256,
            upload_id=np.random.default_rng(self.seed).bytes(16),
            masked_vector=masked,
        )

    def vector(self, kind, devices):
        if kind == pb.ROUND_KIND_EVALUATION:
            return hits_vector(self.seed, devices)
        is_refresh = kind == pb.ROUND_KIND_GATE_REFRESH
        return counts_vector(self.seed, devices) if is_refresh else training_vector(update_of(self.seed), devices)

    async def send(self, method, request):
        self.sent[method] = request
        return b"" if self.is_silent else await self.call(method, request)

    async def only_prepare(self):
        """The request that is due, not sent."""
        self.is_silent = True
        await self.deliver()
        self.is_silent = False
        return self.participant.outgoing.request


class SecureSmall(Small):
    """A small coordinator in mode secagg."""

    def __init__(self, folder, clock, plan, settings=SECURE, items=ITEMS, crash_point=no_crash):
        super().__init__(folder, clock, plan, settings, items, crash_point)

    async def call(self, device, method, body):
        return await self.service.methods[method](device, body)

    def devices(self, n, first=0):
        work = SharedWork()
        return [SecureDevice(seed, self.call, work=work) for seed in range(first, first + n)]

    async def go_on(self):
        """Let the coordinator do what is due."""
        while await self.coordinator.end_due_round():
            pass

    async def run_steps(self, devices, until="RevealShares", absent=None):
        """All devices through the steps; `absent` says which leave before a step. Those who are left."""
        for device in devices:
            await device.check_in()
        for name in STEPS[: STEPS.index(until) + 1]:
            gone = (absent or {}).get(name, ())
            devices = [device for device in devices if device.seed not in gone]
            await asyncio.gather(*(device.deliver() for device in devices))
            await self.go_on()
            if gone:
                self.clock.now += self.coordinator.plan.deadline_seconds
                await self.go_on()
        return devices


@asynccontextmanager
async def secure(folder, items=ITEMS, settings=SECURE, clock=None, crash_point=no_crash, **plan):
    how = {"goal": 6, "over_selection": 1.0, "minimum": 2, **plan}
    made = SecureSmall(folder, clock or Clock(), Plan(**how), settings, items, crash_point)
    try:
        await made.coordinator.start()
        yield made
    finally:
        await made.coordinator.close()
