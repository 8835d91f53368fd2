"""The devices and the server of vectors/v1/secagg_round.json, step by step, with the SDK and our server."""

import asyncio

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lightfr._wire.secure import encode_sealed_records, sealed_records
from lightfr.membership import Member, MemberKey
from lightfr.secagg import Block, DeviceSession, Place, Roster, Vector
from lightfr.v1 import coordinator_pb2, secure_pb2
from lightfr_harness.server.coordinator.cohort import Cohort
from lightfr_harness.server.coordinator.deliveries import RoundFacts
from lightfr_harness.server.coordinator.phases import ADVERTISING
from lightfr_harness.server.coordinator.plan import Plan
from lightfr_harness.server.coordinator.rounds import Round
from lightfr_harness.server.coordinator.secure_steps import SecureSteps
from lightfr_harness.server.coordinator.storage import Storage
from lightfr_harness.server.coordinator.stored import CatalogueChange
from tests.vectors.reading import Replay, vector

ROUND = vector("secagg_round")
BLOCKS = [Block(*block) for block in ROUND["blocks"]]
STEPS = ("advertise", "share", "acknowledge", "sign_included", "upload", "sign_survivors", "reveal")
METHODS = (
    "AdvertiseKeys", "ShareKeys", "AcknowledgeShares", "SignIncluded", "Upload", "SignSurvivors", "RevealShares"
)  # fmt: skip


def of(known, name):
    return bytes.fromhex(known[name])


def filled(values, blocks=BLOCKS):
    made = Vector(blocks)
    for block, numbers in zip(blocks, values, strict=True):
        for i, number in enumerate(numbers):
            made[block.name][i] = number
    return made


def roster_of(known):
    numbers = (known[name] for name in ("kind", "degree", "holders", "threshold"))
    return Roster(of(known, "round_id"), of(known, "manifest_sha256"), *numbers, of(known, "entries"))


def session_of(known, device, least=2):
    """A device that has a place in the round, with its random bytes."""
    place = Place(
        of(known, "round_id"),
        of(device, "peer_id"),
        of(known, "manifest_sha256"),
        known["kind"],
        of(known, "server_key"),
        [bytes.fromhex(key) for key in known["membership_keys"]],
    )
    member = Member(MemberKey.from_private(of(device, "member_private_key")), of(device, "membership"))
    now, random = known["now_unix_seconds"], Replay(device["random"])
    return DeviceSession(place, member, now_unix_seconds=now, minimum_cohort=least, random=random)


def inbox_of(receiver):
    """What the others sealed for a device, one of it spoilt on its way, as bytes."""
    inbox = {i: of(sender["sealed"], str(receiver)) for i, sender in enumerate(ROUND["devices"]) if i != receiver}
    spoilt = ROUND["spoilt"]
    if receiver == spoilt["receiver"]:
        inbox[spoilt["sender"]] = of(spoilt, "sealed")
    return encode_sealed_records(inbox.items())


def walk(session, step, told, device):
    """One step of a device; `told` has what it hears in it. Returns what it sends."""
    if step == "advertise":
        return session.advertise()
    if step == "share":
        return session.share(roster_of(told), of(told, "vouchers"), of(told, "roster_signature"))
    if step == "acknowledge":
        return session.acknowledge(sealed_records(of(told, "inbox")))
    if step == "sign_included":
        return session.sign_included(of(told, "included"), of(told, "included_signature"))
    if step == "upload":
        return session.mask(filled(device["vector"]), of(told, "included_signers"), of(told, "included_signatures"))
    if step == "sign_survivors":
        return session.sign_survivors(of(told, "survivors"), of(told, "survivors_signature"))
    return session.reveal(of(told, "survivors_signers"), of(told, "survivors_signatures"))


class Server:
    """Our server's cohort: the fourteen devices, and a fifteenth that has a place.

    Keys go to a storage in `folder`, which finds those that another device has.
    """

    def __init__(self, folder, fifteenth):
        self.names = [f"device {i}" for i in range(len(ROUND["devices"]))]
        peers = {name: of(device, "peer_id") for name, device in zip(self.names, ROUND["devices"], strict=True)}
        facts = RoundFacts(
            of(ROUND, "round_id"),
            of(ROUND, "manifest_sha256"),
            ROUND["kind"],
            [bytes.fromhex(key) for key in ROUND["membership_keys"]],
            lambda: ROUND["now_unix_seconds"],
        )
        peers["fifteenth"] = fifteenth
        self.cohort = Cohort(facts, len(peers), peers, lambda _: tuple(BLOCKS))
        self.key = Ed25519PrivateKey.from_private_bytes(of(ROUND, "server_private_key"))
        self._round = Round.new(1, 1, facts.manifest_sha256, Plan(goal=len(peers)), 0.0)
        self._round.cohort = self.cohort
        self._loop = asyncio.new_event_loop()
        self._storage = Storage.in_file(folder / "coordinator.sqlite", lambda _: None)
        self._loop.run_until_complete(self._begin())

    async def _begin(self):
        nothing = CatalogueChange(1, "0" * 64, True, 0, 0, 0, is_renumbered=False, at=0.0)
        await self._storage.begin({}, b"", self._round, nothing)
        self._steps = SecureSteps(
            self._storage, lambda: 0.0, lambda _: self._round, _nobody_else, lambda: None, is_masked=True
        )

    def close(self):
        self._loop.run_until_complete(self._storage.close())
        self._loop.close()

    def take(self, method, name, request):
        phase = 1 + METHODS.index(method)
        if phase == ADVERTISING:
            checked = self.cohort.check(phase, name, request)
            body = request.SerializeToString()
            self._loop.run_until_complete(self._steps.keep(self._round, phase, name, b"", body, checked))
        else:
            self.cohort.take(phase, name, b"", request)

    def deliver_all(self, method):
        """Everybody who gets so far delivers."""
        for i, (name, device) in enumerate(zip(self.names, ROUND["devices"], strict=True)):
            request = request_of(method, i, device)
            if request is not None:
                self.take(method, name, request)

    def reach(self, method):
        """Go on until this method is due."""
        for earlier in METHODS[: METHODS.index(method)]:
            self.deliver_all(earlier)
            self.cohort.advance(self.key)


async def _nobody_else(*_):
    """No other process takes part."""


def request_of(method, index, device):
    """What a device of the vector sends; None: it is gone by then."""
    if method == "AdvertiseKeys":
        entry = of(ROUND, "entries")[112 * index : 112 * (index + 1)]
        return secure_pb2.AdvertiseKeysRequest(
            mask_public_key=entry[16:48],
            share_public_key=entry[48:80],
            membership=of(device, "membership"),
            signature=of(device, "entry_signature"),
        )
    if method == "ShareKeys":
        sealed = encode_sealed_records((int(i), bytes.fromhex(content)) for i, content in device["sealed"].items())
        return secure_pb2.ShareKeysRequest(sealed_shares=sealed)
    if method == "AcknowledgeShares" and device["unopened"]:
        return secure_pb2.AcknowledgeSharesRequest(unopened=of(device, "unopened"))
    if method == "SignIncluded" and device["included_signature"]:
        return secure_pb2.SignIncludedRequest(signature=of(device, "included_signature"))
    if method == "Upload" and device["upload"]:
        return coordinator_pb2.UploadRequest(masked_vector=of(device, "upload"))
    if method == "SignSurvivors" and device["survivors_signature"]:
        return secure_pb2.SignSurvivorsRequest(signature=of(device, "survivors_signature"))
    if method == "RevealShares" and device["seeds"]:
        seeds = ROUND["false_seeds"].get(str(index), device["seeds"])
        return secure_pb2.RevealSharesRequest(seeds=bytes.fromhex(seeds), mask_keys=of(device, "mask_keys"))
    return None
