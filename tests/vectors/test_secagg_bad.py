"""What devices and servers refuse in a round of secure aggregation, as vectors/v1 says."""

import hashlib

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lightfr.errors import LightFRError
from lightfr.secagg import Block, DeviceSession, RevealedShares, Roster, SealedShare, Vector
from lightfr.v1 import error_pb2, secure_pb2
from lightfr_harness.server.coordinator.cohort import Cohort
from lightfr_harness.server.coordinator.refusals import Refusal
from lightfr_harness.server.rules.secagg import MaskedSum, SecureSumError
from tests.vectors.reading import Replay, by_name, vector

ROUND, BAD = vector("secagg_round"), vector("secagg_bad")
DEVICE, SERVER = BAD["device_refuses"], BAD["server_refuses"]
BLOCKS = [Block(*block) for block in ROUND["blocks"]]


def of(known, name):
    return bytes.fromhex(known[name])


def good_roster():
    return Roster(of(ROUND, "round_id"), ROUND["degree"], ROUND["threshold"], of(ROUND, "entries"))


def advertised(least=2):
    """Device 0 after its first step."""
    known = ROUND["devices"][0]
    random = Replay(known["random"])
    session = DeviceSession(
        of(ROUND, "round_id"), of(known, "peer_id"), of(ROUND, "server_key"), minimum_cohort=least, random=random
    )
    session.advertise()
    return session


def shared(least=2):
    session = advertised(least)
    session.share(good_roster(), of(ROUND, "roster_signature"))
    return session


def inbox_of(sealed_by_sender):
    ids = [bytes.fromhex(device["peer_id"]) for device in ROUND["devices"]]
    return [SealedShare(ids[int(i)], ids[0], bytes.fromhex(sealed)) for i, sealed in sealed_by_sender.items()]


def masked(included, least=2):
    session = shared(least)
    senders = [i for i in range(1, 5) if included[0] >> i & 1]
    session.mask(Vector(BLOCKS), inbox_of({i: ROUND["devices"][i]["sealed"]["0"] for i in senders}), included)
    return session


@pytest.mark.parametrize(**by_name(DEVICE["rosters"]))
def test_a_device_refuses_a_bad_roster(known):
    session = advertised(known["minimum_cohort"])
    with pytest.raises(LightFRError):
        session.share(
            Roster(of(known, "round_id"), known["degree"], known["threshold"], of(known, "entries")),
            of(known, "signature"),
        )
    assert repr(session) == repr(advertised()), "nothing has changed"


@pytest.mark.parametrize(**by_name(DEVICE["inclusions"]))
def test_a_device_refuses_a_bad_included_set_or_inbox(known):
    session, vector = shared(known["minimum_cohort"]), Vector(BLOCKS)
    with pytest.raises(LightFRError):
        session.mask(vector, inbox_of(known["inbox"]), of(known, "included"))
    assert not any(vector.pack()), "nothing has been masked"


@pytest.mark.parametrize(**by_name(DEVICE["survivors"]))
def test_a_device_refuses_a_bad_survivor_set(known):
    session = masked(of(DEVICE, "included_before_survivors"))
    if known["minimum_cohort"] > 2:
        session = masked(of(DEVICE, "included_before_survivors"), known["minimum_cohort"])
    with pytest.raises(LightFRError):
        session.unmask(of(known, "survivors"), of(known, "signature"))


class Server:
    """A cohort of the five devices, and a sixth that has a place."""

    def __init__(self):
        names = [*"abcde"]
        peers = {name: of(device, "peer_id") for name, device in zip(names, ROUND["devices"], strict=True)}
        self.cohort = Cohort(of(ROUND, "round_id"), 6, {**peers, "f": bytes(16)}, lambda _: BLOCKS)
        entries = of(ROUND, "entries")
        for i, name in enumerate(names):
            self.advertise(name, entries[80 * i + 16 : 80 * (i + 1)])
        self.key = Ed25519PrivateKey.from_private_bytes(of(ROUND, "server_private_key"))

    def advertise(self, name, keys):
        request = secure_pb2.AdvertiseKeysRequest(mask_public_key=keys[:32], share_public_key=keys[32:])
        self.cohort.advertise(name, hashlib.sha256(keys).digest(), request)

    def share(self, name, records):
        request = secure_pb2.ShareKeysRequest(sealed_shares=records)
        self.cohort.share(name, hashlib.sha256(records).digest(), request)

    def share_all(self):
        self.cohort.advance(self.key)
        for i, name in enumerate("abcde"):
            sealed = ROUND["devices"][i]["sealed"]
            self.share(name, b"".join(int(j).to_bytes(4, "little") + bytes.fromhex(s) for j, s in sealed.items()))

    def begin_uploads(self):
        self.share_all()
        self.cohort.advance(self.key)

    def upload_all(self):
        for name, device in zip("abcde", ROUND["devices"], strict=True):
            if device["upload"]:
                self.cohort.upload(name, b"", of(device, "upload"))

    def begin_reveals(self):
        """Everybody who does has uploaded."""
        self.begin_uploads()
        self.upload_all()
        return self.cohort.advance(self.key)

    def reveal(self, name, self_masks, mask_keys):
        request = secure_pb2.RevealSharesRequest(self_masks=self_masks, mask_keys=mask_keys)
        self.cohort.reveal(name, b"", request)


def is_refused(call, *arguments):
    with pytest.raises(Refusal) as refused:
        call(*arguments)
    return error_pb2.ErrorReason.Name(refused.value.reason) == SERVER["reason"]


def test_a_server_settles_and_signs_what_the_vector_has():
    settled = Server().begin_reveals()
    assert settled.roster_signature.hex() == ROUND["roster_signature"]
    assert (settled.included.hex(), settled.survivors.hex()) == (ROUND["included"], ROUND["survivors"])
    assert settled.survivors_signature.hex() == ROUND["survivors_signature"]


@pytest.mark.parametrize(**by_name(SERVER["keys"]))
def test_a_server_refuses_bad_keys(known):
    assert is_refused(Server().advertise, "f", of(known, "keys"))


@pytest.mark.parametrize(**by_name(SERVER["shares"]))
def test_a_server_refuses_bad_sealed_shares(known):
    server = Server()
    server.cohort.advance(server.key)
    assert is_refused(server.share, "a", of(known, "sealed_shares"))


@pytest.mark.parametrize(**by_name(SERVER["vectors"]))
def test_a_server_refuses_bad_masked_vectors(known):
    server = Server()
    server.begin_uploads()
    assert is_refused(server.cohort.upload, "a", b"", of(known, "masked_vector"))
    server.upload_all()
    server.cohort.advance(server.key)
    for name, device in zip("abcde", ROUND["devices"], strict=True):
        if device["self_masks"]:
            server.reveal(name, of(device, "self_masks"), of(device, "mask_keys"))
    assert [block.tolist() for block in server.cohort.finish().values()] == ROUND["sum"], "nothing of it was counted"


@pytest.mark.parametrize(**by_name(SERVER["reveals"]))
def test_a_server_refuses_bad_answers_of_the_last_step(known):
    server = Server()
    server.begin_reveals()
    assert is_refused(server.reveal, "a", of(known, "self_masks"), of(known, "mask_keys"))
    device = ROUND["devices"][0]
    server.reveal("a", of(device, "self_masks"), of(device, "mask_keys"))


@pytest.mark.parametrize(**by_name(BAD["round_ends_without_a_sum"]))
def test_a_round_ends_without_a_sum(known):
    total = MaskedSum(good_roster(), of(ROUND, "included"), BLOCKS)
    for device in ROUND["devices"]:
        if device["upload"]:
            total.add(of(device, "peer_id"), of(device, "upload"))
    total.close(Ed25519PrivateKey.generate())
    for i, answer in known["answers"].items():
        peer_id = of(ROUND["devices"][int(i)], "peer_id")
        total.reveal(RevealedShares(peer_id, of(answer, "self_masks"), of(answer, "mask_keys")))
    with pytest.raises(SecureSumError):
        total.finish()
