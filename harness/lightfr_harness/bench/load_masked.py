"""Devices of masked rounds for `bench load --privacy secagg`, as cheap as the server lets them be.

They share the machine with the server, so they do what it checks and nothing else. What they send is of the right size,
signed, and adds up, but keeps no secret: shares lie open where sealed ones should be, every share of a secret is the
secret, and a device masks its vector against no neighbour but those that it knows to drop out. Nobody's data is in it.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from lightfr._wire import secure, tls
from lightfr.device import Identity, Trust
from lightfr.membership import Member
from lightfr.secagg import RevealedShares, Roster
from lightfr.secagg.agreement import Agreement, pair_mask_key, self_mask_key
from lightfr.secagg.roster import RosterEntry, VouchedEntry
from lightfr.secagg.shamir import SHARE_BYTES
from lightfr.secagg.vector import Vector, round_blocks
from lightfr.secagg.views import entry_message, included_message, members, survivors_message
from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import model_pb2, secure_pb2
from lightfr_harness.bench.load_devices import Connection, LoadError, called

CHECK_IN = pb.CheckInRequest(
    capabilities=pb.Capabilities(
        wire_versions=[1], upload_kinds=[model_pb2.UPLOAD_KIND_TERNARY], privacy_modes=[model_pb2.PRIVACY_MODE_SECAGG]
    )
).SerializeToString()
_WEIGHT = 50
_RETRY_SECONDS = 0.2
_INDEX_BYTES, _SEALED_BYTES = 4, 94
_MAX_WAIT_MS = 15_000


@dataclass(frozen=True)
class Orders:
    """What the devices of one process are told."""

    trust: Path
    identities: Sequence[Path]
    open_rows: int
    code_bits: int
    # The share of devices that leave before they upload.
    dropout: float


@dataclass
class Outcome:
    """What the devices of one process did in one round. Times are in seconds."""

    uploaded: int = 0
    dropped: int = 0
    errors: list[str] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    cpu_seconds: float = 0.0
    request_bytes: int = 0


def work(pipe: Pipe, orders: Orders) -> None:
    """The main function of a process: a round for each list of addresses that it is sent, until None comes."""
    devices = [MaskedDevice(orders, path) for path in orders.identities]
    pipe.send(None)
    while (addresses := pipe.recv()) is not None:
        outcome, rosters = Outcome(), Rosters()
        started = time.process_time()
        threads = [
            threading.Thread(target=device.take_part, args=[addresses[turn % len(addresses)], rosters, outcome])
            for turn, device in enumerate(devices)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        outcome.cpu_seconds = time.process_time() - started
        pipe.send(outcome)


class Rosters:
    """The roster of each cohort, read once for all devices of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rosters: dict[bytes, Roster] = {}

    def read(self, place: pb.Assignment, step: secure_pb2.ShareStep) -> Roster:
        with self._lock:
            if place.round_id not in self._rosters:
                numbers = step.degree, step.holders, step.threshold
                roster = Roster(place.round_id, place.manifest_sha256, place.kind, *numbers, step.entries)
                roster.neighbours(0)
                self._rosters[place.round_id] = roster
            return self._rosters[place.round_id]


class MaskedDevice:
    """One identity."""

    def __init__(self, orders: Orders, identity: Path) -> None:
        self._orders, self._context = orders, tls.context(orders.trust, identity)
        self._member = Identity(identity, Trust(orders.trust)).member()
        self._last_round = b""

    def take_part(self, address: tuple[str, int], rosters: Rosters, outcome: Outcome) -> None:
        """One round, from a new connection on."""
        try:
            with Connection(address, self._context) as connection:
                part = Part(self._orders, self._member, self._place(connection), connection, outcome)
                has_uploaded = part.run(rosters)
            outcome.uploaded += has_uploaded
            outcome.dropped += not has_uploaded
        except Exception as error:  # Whatever it was, the others go on.
            outcome.errors.append(f"{type(error).__name__}: {error}")

    def _place(self, connection: Connection) -> pb.Assignment:
        """A place in another round than the last one."""
        while True:
            answer = pb.CheckInResponse.FromString(called(connection, "CheckIn", CHECK_IN))
            if answer.WhichOneof("answer") == "assignment" and answer.assignment.round_id != self._last_round:
                self._last_round = answer.assignment.round_id
                return answer.assignment
            time.sleep(_RETRY_SECONDS)


class Part:
    """A device's part in one round."""

    def __init__(
        self, orders: Orders, member: Member, place: pb.Assignment, connection: Connection, outcome: Outcome
    ) -> None:
        self._orders, self._member, self._place = orders, member, place
        self._connection, self._outcome = connection, outcome
        self._key, self._seed = X25519PrivateKey.generate(), os.urandom(32)

    def run(self, rosters: Rosters) -> bool:
        """All steps; False: it dropped out, as it had to."""
        self._advertise()
        self._roster = rosters.read(self._place, self._step("share").share)
        self._index = self._roster.index_of(self._place.peer_id)
        self._share()
        self._acknowledge()
        self._included = self._step("included").included.included
        self._sign("SignIncluded", secure.encode_signed_included, included_message(self._roster.digest, self._included))
        self._step("upload")
        if self._drops(self._place.peer_id):
            return False
        self._upload()
        self._survivors = self._step("survivors").survivors.survivors
        message = survivors_message(self._roster.digest, self._included, self._survivors)
        self._sign("SignSurvivors", secure.encode_signed_survivors, message)
        self._step("reveal")
        self._deliver("RevealShares", secure.encode_revealed(self._place.round_id, self._revealed()))
        self._step("done")
        return True

    def _drops(self, peer_id: bytes) -> bool:
        """Whether a device leaves: all know it of each other, by the id that the server drew for the round."""
        return int.from_bytes(peer_id[:4], "little") < self._orders.dropout * 2**32

    def _advertise(self) -> None:
        mask_key = self._key.public_key().public_bytes_raw()
        # Nobody seals anything with the share key, so any 32 bytes do.
        entry = RosterEntry(self._place.peer_id, mask_key, os.urandom(32), self._member.key.public)
        message = entry_message(self._place.round_id, entry.peer_id, entry.mask_key, entry.share_key)
        vouched = VouchedEntry(entry, self._member.membership, self._member.key.sign(message))
        self._deliver("AdvertiseKeys", secure.encode_keys(self._place.round_id, vouched))

    def _share(self) -> None:
        others = [i for i in range(self._roster.size) if i != self._index]
        secrets = self._seed, self._key.private_bytes_raw()
        shares = b"".join(secret.ljust(SHARE_BYTES, b"\0") for secret in secrets).ljust(_SEALED_BYTES, b"\0")
        holders = sorted(random.sample(others, self._roster.holders))
        self._deliver("ShareKeys", secure.encode_shares(self._place.round_id, [(i, shares) for i in holders]))

    def _acknowledge(self) -> None:
        records = self._step("acknowledge").acknowledge.sealed_shares
        starts = range(0, len(records), _INDEX_BYTES + _SEALED_BYTES)
        self._held = {
            int.from_bytes(records[at : at + _INDEX_BYTES], "little"): records[at + _INDEX_BYTES :][: 2 * SHARE_BYTES]
            for at in starts
        }
        nothing = bytes((self._roster.size + 7) // 8)
        self._deliver("AcknowledgeShares", secure.encode_acknowledgement(self._place.round_id, nothing))

    def _sign(self, method: str, encode: Callable[[bytes, bytes], bytes], message: bytes) -> None:
        self._deliver(method, encode(self._place.round_id, self._member.key.sign(message)))

    def _upload(self) -> None:
        vector = Vector(round_blocks(self._orders.open_rows, self._orders.code_bits, self._roster.size))
        self._fill(vector)
        own, round_id = self._place.peer_id, self._place.round_id
        vector.mask(self_mask_key(self._seed, round_id, own), subtract=False)
        # Masks with a neighbour that stays would cancel its own.
        agreement, included = Agreement(self._key.private_bytes_raw()), members(self._included, self._roster.size)
        for index in included.intersection(self._roster.neighbours(self._index)):
            peer = self._roster.entry(index)
            if self._drops(peer.peer_id):
                key = pair_mask_key(agreement.with_peer(peer.mask_key), round_id, own, peer.peer_id)
                vector.mask(key, subtract=peer.peer_id < own)
        request = secure.encode_masked(round_id, self._place.manifest_sha256, os.urandom(16), vector.pack())
        self._outcome.request_bytes = len(request)
        self._deliver("Upload", request)

    def _fill(self, vector: Vector) -> None:
        """What it has learned: nothing, here."""
        vector["weight"][0] = _WEIGHT

    def _revealed(self) -> RevealedShares:
        size = self._roster.size
        included, alive = members(self._included, size), members(self._survivors, size)
        own = self._seed.ljust(2 * SHARE_BYTES, b"\0")
        held = sorted([*self._held.items(), (self._index, own)])
        seeds = [(i, shares[:SHARE_BYTES]) for i, shares in held if i in alive]
        keys = [(i, shares[SHARE_BYTES:]) for i, shares in held if i in included - alive]
        return RevealedShares(_records(seeds), _records(keys))

    def _deliver(self, method: str, request: bytes) -> None:
        started = time.perf_counter()
        self._call(method, request)
        self._outcome.latencies.append(time.perf_counter() - started)

    def _call(self, method: str, request: bytes) -> bytes:
        return called(self._connection, method, request)

    def _step(self, name: str) -> secure_pb2.GetStepResponse:
        """Ask until the server tells a step, which must be this one."""
        request = secure_pb2.GetStepRequest(round_id=self._place.round_id, max_wait_ms=_MAX_WAIT_MS)
        while True:
            step = secure_pb2.GetStepResponse.FromString(self._call("GetStep", request.SerializeToString()))
            told = step.WhichOneof("step")
            if told == name:
                return step
            if told != "wait_ms":
                raise LoadError(f"the server asks for the step {told}, not {name}")
            time.sleep(step.wait_ms / 1000)


def _records(shares: Sequence[tuple[int, bytes]]) -> bytes:
    return b"".join(index.to_bytes(_INDEX_BYTES, "little") + share for index, share in shares)
