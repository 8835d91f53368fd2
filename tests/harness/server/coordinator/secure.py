"""Devices that take part in secure aggregation by the bytes of proto/, and whole rounds of them."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import numpy as np

from lightfr.secagg import DeviceSession, Roster, SealedShare, Vector, gate_blocks, round_blocks
from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import model_pb2, secure_pb2
from lightfr_harness.server.coordinator.folder import no_crash
from lightfr_harness.server.coordinator.options import ItemList
from lightfr_harness.server.coordinator.rounds import Plan
from lightfr_harness.server.rules.bits import unpack_signs
from tests.harness.server.coordinator.helpers import BITS, ITEMS, N_ITEMS, SETTINGS, Clock, Signer, Small, row_update

SECURE = replace(SETTINGS, privacy="secagg")
UNCOUNTED = ItemList(ITEMS.ids, None, ITEMS.sha256)
N_OPEN = 26
CAPABILITIES = pb.Capabilities(
    wire_versions=[1], upload_kinds=[model_pb2.UPLOAD_KIND_TERNARY], privacy_modes=[model_pb2.PRIVACY_MODE_SECAGG]
)
CHECK_IN = pb.CheckInRequest(capabilities=CAPABILITIES).SerializeToString()
SERVER_KEY = Signer.manifest_key.public_key().public_bytes_raw()
STEPS = ("advertise", "share", "upload", "reveal")


def update_of(seed):
    """The same rows that the device of this seed would send in the clear."""
    return row_update(np.random.default_rng(seed))


def training_vector(update, devices, n_open=N_OPEN):
    """A RowUpdate as the dense vector of docs/secagg.md, without noise: sums can then be foretold."""
    indices = np.frombuffer(update.item_indices, "<u4")
    shape = (len(indices), BITS)
    planes = (unpack_signs(plane, shape) > 0 for plane in (update.ternary.nonzero, update.ternary.positive))
    nonzero, positive = planes
    rows = np.zeros((n_open, BITS), int)
    rows[indices] = nonzero * (2 * positive.astype(int) - 1)
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


class SecureDevice:
    """One device in one round. Each step is the request that it sends; sent ones are kept, to be sent again."""

    def __init__(self, seed, call, server_key=SERVER_KEY):
        self.seed, self._call, self._server_key = seed, call, server_key
        self.name = f"device-{seed}"
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
        self.place = place
        self.session = DeviceSession(self.place.round_id, self.place.peer_id, self._server_key, minimum_cohort=2)

    async def step(self, max_wait_ms=0):
        request = secure_pb2.GetStepRequest(round_id=self.place.round_id, max_wait_ms=max_wait_ms)
        return await self.call("GetStep", request, secure_pb2.GetStepResponse)

    async def advertise(self):
        entry = self.session.advertise()
        keys = {"mask_public_key": entry.mask_key, "share_public_key": entry.share_key}
        await self.send("AdvertiseKeys", secure_pb2.AdvertiseKeysRequest(round_id=self.place.round_id, **keys))

    async def share(self, step=None):
        step = (step or await self.step()).share
        self.roster = Roster(self.place.round_id, step.degree, step.threshold, step.entries)
        sealed = self.session.share(self.roster, step.signature)
        records = b"".join(self._index(m.receiver).to_bytes(4, "little") + m.sealed for m in sealed)
        await self.send("ShareKeys", secure_pb2.ShareKeysRequest(round_id=self.place.round_id, sealed_shares=records))

    def _index(self, peer_id):
        return self.roster.index_of(peer_id)

    async def upload(self, step=None):
        step = (step or await self.step()).upload
        inbox = [self._opened(step.sealed_shares[at : at + 98]) for at in range(0, len(step.sealed_shares), 98)]
        masked = self.session.mask(self.vector(), inbox, step.included)
        await self.send("Upload", self.upload_request(masked))

    def upload_request(self, masked):
        place = self.place
        return pb.UploadRequest(
            round_id=place.round_id,
            manifest_sha256=place.manifest_sha256,
            upload_id=np.random.default_rng(self.seed).bytes(16),
            masked_vector=masked,
        )

    def _opened(self, record):
        sender = self.roster.entry(int.from_bytes(record[:4], "little")).peer_id
        return SealedShare(sender, self.place.peer_id, record[4:])

    def vector(self):
        if self.place.kind == pb.ROUND_KIND_GATE_REFRESH:
            return counts_vector(self.seed, self.roster.size)
        return training_vector(update_of(self.seed), self.roster.size)

    async def reveal(self, step=None):
        step = (step or await self.step()).reveal
        shares = self.session.unmask(step.survivors, step.signature)
        fields = {"self_masks": shares.self_masks, "mask_keys": shares.mask_keys}
        await self.send("RevealShares", secure_pb2.RevealSharesRequest(round_id=self.place.round_id, **fields))

    async def send(self, method, request):
        self.sent[method] = request.SerializeToString()
        return b"" if self.is_silent else await self.call(method, self.sent[method])

    async def only_prepare(self, step, method):
        """The request of a step, not sent."""
        due = [] if step == "advertise" else [await self.step()]
        self.is_silent = True
        await getattr(self, step)(*due)
        self.is_silent = False
        return self.sent[method]


class SecureSmall(Small):
    """A small coordinator in mode secagg."""

    def __init__(self, folder, clock, plan, settings=SECURE, items=ITEMS, crash_point=no_crash):
        super().__init__(folder, clock, plan, settings, items, crash_point)

    async def call(self, device, method, body):
        return await self.service.methods[method](device, body)

    def devices(self, n, first=0):
        return [SecureDevice(seed, self.call) for seed in range(first, first + n)]

    async def go_on(self):
        """Let the coordinator do what is due."""
        while await self.coordinator.end_due_round():
            pass

    async def run_steps(self, devices, until="reveal", absent=None):
        """All devices through the steps; `absent` says which leave before a step. Those who are left."""
        for device in devices:
            await device.check_in()
        for name in STEPS[: STEPS.index(until) + 1]:
            gone = (absent or {}).get(name, ())
            devices = [device for device in devices if device.seed not in gone]
            await asyncio.gather(*(getattr(device, name)() for device in devices))
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
