"""A device refuses a roster that is not its round's, or in which somebody is not vouched for."""

import os
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lightfr.errors import (
    CohortTooSmallError,
    PeerKeyError,
    PrivacyError,
)
from lightfr.secagg import DeviceSession, Place
from lightfr.secagg.views import (
    WITNESSES,
    roster_message,
)
from tests.sdk.secagg.cohorts import ENDS, NOW, Cohort, new_member, raw_key

N = 5


# ---- lies about the roster ----


def test_a_cohort_below_the_devices_own_minimum_is_refused():
    cohort = Cohort(N, minimum_cohort=N + 1)
    with pytest.raises(CohortTooSmallError) as caught:
        cohort.share()
    assert (caught.value.actual, caught.value.minimum) == (N, N + 1)


def test_the_minimum_cohort_is_256_unless_the_caller_says_otherwise():
    cohort = Cohort(2)
    place = Place(bytes(16), bytes(16), bytes(32), 1, bytes(32), [])
    assert DeviceSession(place, cohort.members[0], now_unix_seconds=NOW).state.minimum_cohort == 256


@pytest.mark.parametrize("about", [{"round_id": bytes(16)}, {"manifest_sha256": bytes(32)}, {"kind": 2}])
def test_a_roster_of_another_round_model_or_kind_is_refused(about):
    cohort = Cohort(N)
    cohort.use_roster(cohort.entries(), **about)
    with pytest.raises(PrivacyError, match="another round"):
        cohort.share_by(0)


def test_a_roster_without_the_device_is_refused():
    cohort = Cohort(N)
    cohort.use_roster(cohort.entries()[1:])
    with pytest.raises(PrivacyError, match="missing"):
        cohort.share_by(0)


@pytest.mark.parametrize("field", ["mask_key", "share_key", "member_key"])
def test_a_roster_with_other_keys_for_the_device_is_refused(field):
    cohort = Cohort(N)
    own, *others = cohort.entries()
    cohort.use_roster([replace(own, **{field: os.urandom(32)}), *others])
    with pytest.raises(PrivacyError, match="other keys for this device"):
        cohort.share_by(0)


def test_a_roster_that_the_server_did_not_sign_is_refused():
    cohort = Cohort(N)
    digest, message = cohort.roster.digest, roster_message(cohort.roster.digest)
    for signature in (
        b"",
        bytes(64),
        Ed25519PrivateKey.generate().sign(message),
        cohort.server.sign(digest),
        cohort.server.sign(b"lightfr survivors v1\n" + digest),
        cohort.server.sign(roster_message(bytes(32))),
    ):
        with pytest.raises(PrivacyError, match="the server, of the roster, does not fit"):
            cohort.sessions[0].share(cohort.roster, cohort.vouchers, signature)


# ---- devices that nobody vouches for ----


def with_fault(cohort, i, fault):
    """The vouchers of a roster, with one thing wrong in that of a device."""
    return cohort.vouchers[: 136 * i] + faulty_voucher(cohort, i, fault) + cohort.vouchers[136 * (i + 1) :]


def faulty_voucher(cohort, i, fault):
    good = cohort.vouched[i]
    if fault == "signature of another":
        return replace(good, signature=cohort.vouched[i - 1].signature).voucher()
    if fault == "end":
        ends = (ENDS + 1).to_bytes(8, "little")
        return ends + good.voucher()[8:]
    stranger = new_member(Ed25519PrivateKey.generate() if fault == "foreign" else cohort.authority)
    return stranger.membership[32:] + good.signature


@pytest.mark.parametrize("fault", ["signature of another", "end", "foreign", "of another key"])
def test_in_a_small_cohort_everybody_must_be_vouched_for(fault):
    cohort = Cohort(N)
    for i in range(1, N):
        vouchers = with_fault(cohort, i, fault)
        with pytest.raises(PrivacyError, match=r"was not signed by the authority|of its own entry, does not fit"):
            cohort.sessions[0].share(cohort.roster, vouchers, cohort.roster_signature)


def test_a_membership_that_has_ended_or_is_of_another_authority_is_refused():
    for authority, ends, reason in (
        (None, int(NOW), "has ended"),
        (Ed25519PrivateKey.generate(), ENDS, "not signed by the authority"),
    ):
        cohort = Cohort(N)
        cohort.replace_member(3, new_member(authority or cohort.authority, ends))
        with pytest.raises(PrivacyError, match=reason):
            cohort.share_by(0)


def test_a_membership_by_any_of_the_authoritys_keys_will_do():
    cohort, another = Cohort(N), Ed25519PrivateKey.generate()
    cohort.replace_member(3, new_member(another))
    keys = [raw_key(cohort.authority), raw_key(another)]
    cohort.sessions[0] = cohort.session(0, membership_keys=keys)
    cohort.vouched[0] = cohort.sessions[0].advertise()
    cohort.use_roster(cohort.entries())
    assert len(cohort.share_by(0)) == N - 1


@pytest.mark.parametrize("size", [0, 136 * N - 1, 136 * (N + 1)])
def test_vouchers_of_another_size_are_refused(size):
    cohort = Cohort(N)
    with pytest.raises(PrivacyError, match=f"^{size} bytes do not vouch for 5 devices"):
        cohort.sessions[0].share(cohort.roster, bytes(size), cohort.roster_signature)


def test_a_device_chooses_its_holders_and_witnesses_itself(sparse):
    holders, witnesses, neighbours = sparse.chosen()
    assert (len(holders), len(witnesses)) == (80, WITNESSES)
    assert 0 not in holders | witnesses | neighbours
    assert neighbours == set(sparse.cohort.roster.neighbours(0))
    assert [index for index, _ in sparse.sealed] == sorted(holders)
    others, other_witnesses, same_neighbours = sparse.share_anew()
    assert same_neighbours == neighbours
    assert others != holders
    assert other_witnesses != witnesses


@pytest.mark.parametrize("role", ["neighbour", "holder", "witness"])
def test_a_neighbour_holder_or_witness_that_nobody_vouches_for_is_refused(sparse, role):
    holders, witnesses, neighbours = sparse.chosen()
    alone = {
        "neighbour": neighbours - holders - witnesses,
        "holder": holders - neighbours - witnesses,
        "witness": witnesses - holders - neighbours,
    }[role]
    with pytest.raises(PrivacyError, match="not signed by the authority"):
        sparse.share_again(with_fault(sparse.cohort, min(alone), "foreign"))


@pytest.mark.parametrize("role", ["neighbour", "holder"])
def test_keys_that_a_neighbour_or_holder_did_not_sign_are_refused(sparse, role):
    holders, _, neighbours = sparse.chosen()
    alone = min(neighbours - holders if role == "neighbour" else holders - neighbours)
    with pytest.raises(PrivacyError, match="of its own entry, does not fit"):
        sparse.share_again(with_fault(sparse.cohort, alone, "signature of another"))


def test_keys_that_a_witness_did_not_sign_are_of_no_interest(sparse):
    """A witness only signs sets; this device uses no other key of it."""
    holders, witnesses, neighbours = sparse.chosen()
    witness = min(witnesses - holders - neighbours)
    assert sparse.share_again(with_fault(sparse.cohort, witness, "signature of another")) == sparse.sealed


# The point 0, and another of order 8 (RFC 7748 leaves it to the caller to refuse the secret that comes of them).
LOW_ORDER = [
    bytes(32),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
]


@pytest.mark.parametrize("point", LOW_ORDER)
@pytest.mark.parametrize("field", ["share_key", "mask_key"])
def test_a_peer_with_a_key_of_low_order_is_refused(field, point):
    cohort = Cohort(3)
    cohort.replace_key(2, field, point)
    if field == "share_key":
        with pytest.raises(PeerKeyError):
            cohort.share_by(0)
        return
    cohort.sealed = {i: dict(cohort.share_by(i)) for i in (0, 1)}
    for i in (0, 1):
        cohort.sessions[i].acknowledge(cohort.inbox(i))
    cohort.included = cohort.everybody
    cohort.sign_included_by(0)
    vector = cohort.vector(0)
    plain = vector.pack()
    with pytest.raises(PeerKeyError):
        cohort.sessions[0].mask(vector, *cohort.included_signed())
    assert vector.pack() == plain
