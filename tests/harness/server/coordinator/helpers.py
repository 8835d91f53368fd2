"""A small coordinator with a clock of its own, devices that make things up, and the crash that stops both."""

import asyncio
import hashlib
import io
import sqlite3
from contextlib import asynccontextmanager, closing

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import manifest_pb2, model_pb2
from lightfr_harness.server.coordinator.coordinator import Coordinator
from lightfr_harness.server.coordinator.folder import no_crash
from lightfr_harness.server.coordinator.options import ItemList, Settings, make_rule
from lightfr_harness.server.coordinator.plan import Plan
from lightfr_harness.server.coordinator.service import CoordinatorService
from lightfr_harness.server.coordinator.telemetry import Log

N_ITEMS, BITS = 30, 16
ITEMS = ItemList([f"item-{i}" for i in range(N_ITEMS)], [50 - i for i in range(N_ITEMS)], "0" * 64)
SETTINGS = Settings(bits=BITS, gate=25, seed=3, integer_ids=False, privacy="clear")
CAPABILITIES = pb.Capabilities(
    wire_versions=[1], upload_kinds=[model_pb2.UPLOAD_KIND_TERNARY], privacy_modes=[model_pb2.PRIVACY_MODE_CLEAR]
)
CHECK_IN = pb.CheckInRequest(capabilities=CAPABILITIES).SerializeToString()


# The authority's key that signs memberships, the same for all tests.
MEMBERSHIP_KEY = Ed25519PrivateKey.from_private_bytes(bytes([1]) * 32)


class Clock:
    def __init__(self, now=1_000_000.0):
        self.now = now

    def __call__(self):
        return self.now


class Crash(BaseException):
    """Stands for the end of the process."""


class Signer:
    """Signs rosters with a key that is the same for all tests; manifests not at all."""

    manifest_key = Ed25519PrivateKey.from_private_bytes(bytes(32))
    membership_keys = (MEMBERSHIP_KEY.public_key().public_bytes_raw(),)

    def sign(self, manifest):
        return manifest_pb2.SignedManifest(manifest=manifest, signature=bytes(64), key_id=bytes(8))


class Small:
    """A coordinator and its service, as a device that is already identified meets them."""

    def __init__(self, folder, clock, plan, settings=SETTINGS, items=ITEMS, crash_point=no_crash):
        self.clock, self.log = clock, io.StringIO()
        self.coordinator = Coordinator(
            folder, items, settings, plan, Signer(), Log(self.log), clock=clock, crash_point=crash_point
        )
        self.service = CoordinatorService(self.coordinator)

    async def check_in(self, device):
        answer = await self.service.check_in(device, CHECK_IN)
        return pb.CheckInResponse.FromString(answer)

    async def assignment(self, device):
        answer = await self.check_in(device)
        assert answer.WhichOneof("answer") == "assignment", answer
        return answer.assignment

    async def upload(self, device, body):
        return pb.UploadResponse.FromString(await self.service.upload(device, body))

    async def status(self, device, round_id):
        request = pb.GetRoundStatusRequest(round_id=round_id).SerializeToString()
        return pb.GetRoundStatusResponse.FromString(await self.service.get_round_status(device, request))

    async def crash(self):
        """Leave as a killed process does: nothing is finished, the folder is free."""
        self.coordinator._worker.shutdown()
        await self.coordinator._storage.close()
        self.coordinator._lock.close()


@asynccontextmanager
async def small(folder, clock=None, **plan):
    made = Small(folder, clock or Clock(), Plan(**{"goal": 3, "over_selection": 1.5, **plan}))
    try:
        await made.coordinator.start()
        yield made
    finally:
        await made.coordinator.close()


def run(coroutine):
    return asyncio.run(coroutine)


def row_update(rng, n_rows=None):
    """A legal RowUpdate for the small model, whose rows 0 to 25 are open."""
    n_rows = int(rng.integers(0, 12)) if n_rows is None else n_rows
    indices = np.sort(rng.permutation(N_ITEMS - 5)[:n_rows]).astype("<u4")
    values = rng.integers(-1, 2, (n_rows, BITS))
    message = pb.UploadRequest().row_update
    message.code_bits, message.item_indices = BITS, indices.tobytes()
    message.user_code = rng.bytes(BITS // 8)
    message.ternary.nonzero = np.packbits(values != 0, bitorder="little").tobytes()
    message.ternary.positive = np.packbits(values > 0, bitorder="little").tobytes()
    return message


def upload_request(assignment, seed, **changes):
    """A serialised UploadRequest that answers an assignment."""
    rng = np.random.default_rng(seed)
    fields = {
        "round_id": assignment.round_id,
        "manifest_sha256": assignment.manifest_sha256,
        "upload_id": rng.bytes(16),
        "row_update": row_update(rng),
        **changes,
    }
    return pb.UploadRequest(**fields).SerializeToString()


def oracle():
    """The aggregation rule on its own, fed without a coordinator."""
    return make_rule(SETTINGS, ITEMS)


def feed(server, bodies):
    for body in bodies:
        server.add(pb.UploadRequest.FromString(body).row_update.SerializeToString())
    server.finish_round()


def same_state(server, other):
    return all(np.array_equal(value, other.state()[name]) for name, value in server.state().items())


def body_keys(folder):
    """What the bodies of the open round are encrypted with."""
    with closing(sqlite3.connect(folder / "coordinator.sqlite")) as connection:
        return [key for (key,) in connection.execute("SELECT key FROM body_keys")]


def is_in_files(folder, secret):
    """Whether any file of a folder, the database's log for one, has these bytes."""
    return any(secret in path.read_bytes() for path in folder.iterdir() if path.is_file())


def digest(body):
    return hashlib.sha256(body).digest()
