"""The devices of a simulated cohort compute nothing twice, and nothing that they would not compute alone."""

import os

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lightfr.errors import PeerKeyError
from lightfr.secagg.agreement import Agreement, public_key
from lightfr_harness.simulation.secure import SharedWork


def test_both_sides_of_an_agreement_have_what_they_would_have_alone_and_the_second_one_leaves_nothing_behind():
    work, one, other = SharedWork(), os.urandom(32), os.urandom(32)
    expected = Agreement(one).with_peer(public_key(other))
    assert work.agreement(one).with_peer(public_key(other)) == expected
    assert work.agreement(other).with_peer(public_key(one)) == expected
    assert not work._in_common


def test_agreements_of_other_pairs_are_other_secrets():
    work, keys = SharedWork(), [os.urandom(32) for _ in range(3)]
    shared = {work.agreement(keys[i]).with_peer(public_key(keys[j])) for i, j in ((0, 1), (0, 2), (1, 2))}
    assert len(shared) == 3


def test_a_point_of_low_order_is_refused_each_time():
    agreement = SharedWork().agreement(os.urandom(32))
    for _ in range(2):
        with pytest.raises(PeerKeyError):
            agreement.with_peer(bytes(32))


def test_a_signature_is_judged_by_key_signature_and_message_together():
    work, key = SharedWork(), Ed25519PrivateKey.generate()
    public, signature = key.public_key().public_bytes_raw(), key.sign(b"a message")
    for _ in range(2):
        assert work.is_signed(public, signature, b"a message")
        assert not work.is_signed(public, signature, b"another")
        assert not work.is_signed(public, bytes(64), b"a message")
