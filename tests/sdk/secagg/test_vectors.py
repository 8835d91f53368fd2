"""The known answers of vectors/v1, byte for byte; they come of an oracle that shares no code with lightfr."""

import pytest

from lightfr.secagg import Block, DeviceSession, Roster, SealedShare, Vector, agreement, shamir
from lightfr_harness.server.rules.secagg import MaskedSum
from tests.vectors import generate_secagg
from tests.vectors.reading import Replay, vector


def load(name):
    return vector(f"secagg_{name}")


def unhex(known, *names):
    return [bytes.fromhex(known[name]) for name in names]


def test_keys():
    known = load("keys")
    secret, salt, info, key = unhex(known["hkdf"], "secret", "salt", "info", "key")
    assert agreement.hkdf(secret, salt, info) == key
    private, public, peer, shared = unhex(known, "private_key", "public_key", "peer_key", "shared")
    assert agreement.public_key(private) == public
    assert agreement.Agreement(private).with_peer(peer) == shared
    round_id, digest, seed = unhex(known, "round_id", "roster_digest", "self_mask_seed")
    one, other = map(bytes.fromhex, known["peer_ids"])
    pair_key, self_key, there, back = unhex(
        known, "pair_mask_key", "self_mask_key", "share_key_one_to_other", "share_key_other_to_one"
    )
    assert agreement.pair_mask_key(shared, round_id, one, other) == pair_key
    assert agreement.pair_mask_key(shared, round_id, other, one) == pair_key
    assert agreement.self_mask_key(seed, round_id, one) == self_key
    assert agreement.share_key(shared, round_id, digest, one, other) == there
    assert agreement.share_key(shared, round_id, digest, other, one) == back


def test_sealing():
    key, nonce, plain, sealed = unhex(load("sealing"), "key", "nonce", "plain", "sealed")
    assert agreement.seal(key, nonce, plain) == sealed
    assert agreement.unseal(key, sealed, len(plain)) == plain


@pytest.mark.parametrize("known", load("shamir"))
def test_shamir(known):
    source, shares = Replay(known["random"]), [bytes.fromhex(share) for share in known["shares"]]
    (secret,) = unhex(known, "secret")
    assert shamir.split(secret, known["holders"], known["threshold"], source) == shares
    assert not source.left
    last = list(zip(known["holders"], shares, strict=True))[-known["threshold"] :]
    assert shamir.join(dict(last)) == secret


def fill(blocks, values):
    vector = Vector([Block(*block) for block in blocks])
    for (name, _, _), numbers in zip(blocks, values, strict=True):
        for i, number in enumerate(numbers):
            vector[name][i] = number
    return vector


def test_masks_and_packing():
    known = load("mask")
    (key,) = unhex(known, "key")
    for packed, masks in (("packed_plain", []), ("packed_plus", [False]), ("packed_minus", [True])):
        vector = fill(known["blocks"], known["vector"])
        for subtract in masks:
            vector.mask(key, subtract=subtract)
        assert vector.pack().hex() == known[packed]


@pytest.mark.parametrize("known", load("roster"))
def test_roster(known):
    round_id, entries = unhex(known, "round_id", "entries")
    roster = Roster(round_id, known["degree"], known["threshold"], entries)
    assert roster.digest.hex() == known["digest"]
    assert roster._ring == known["ring"]
    for index, neighbours in known["neighbours"].items():
        assert roster.neighbours(int(index)) == neighbours


def test_a_whole_round():
    """Every device makes each of its bytes, one drops before and one after the upload, and the server gets the sum."""
    known = load("round")
    round_id, server_key, entries, included, survivors = unhex(
        known, "round_id", "server_key", "entries", "included", "survivors"
    )
    roster = Roster(round_id, known["degree"], known["threshold"], entries)
    total = MaskedSum(roster, included, [Block(*block) for block in known["blocks"]])
    devices = known["devices"]
    for i, device in enumerate(devices):
        source, peer_id = Replay(device["random"]), bytes.fromhex(device["peer_id"])
        session = DeviceSession(round_id, peer_id, server_key, minimum_cohort=2, random=source)
        assert session.advertise() == roster.entry(i)
        sealed = session.share(roster, bytes.fromhex(known["roster_signature"]))
        assert {str(roster.index_of(s.receiver)): s.sealed.hex() for s in sealed} == device["sealed"]
        assert not source.left
        if not device["upload"]:
            continue
        upload = session.mask(fill(known["blocks"], device["vector"]), inbox(devices, i), included)
        assert upload.hex() == device["upload"]
        total.add(peer_id, upload)
        if device["self_masks"]:
            device["revealed"] = session.unmask(survivors, bytes.fromhex(known["survivors_signature"]))
            assert device["revealed"].self_masks.hex() == device["self_masks"]
            assert device["revealed"].mask_keys.hex() == device["mask_keys"]
    assert total.close(generate_secagg.Ed25519PrivateKey.generate())[0] == survivors
    for device in devices:
        if "revealed" in device:
            total.reveal(device["revealed"])
    assert [numbers.tolist() for numbers in total.finish().values()] == known["sum"]


def inbox(devices, receiver):
    """What the other devices sealed for this one."""
    own = bytes.fromhex(devices[receiver]["peer_id"])
    return [
        SealedShare(bytes.fromhex(sender["peer_id"]), own, bytes.fromhex(sender["sealed"][str(receiver)]))
        for i, sender in enumerate(devices)
        if i != receiver
    ]
