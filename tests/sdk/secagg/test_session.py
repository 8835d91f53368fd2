"""A device takes each step once and in order, and can be put to sleep between two of them."""

import math
import os
from dataclasses import replace

import pytest

from lightfr.errors import (
    BufferSizeError,
    InvalidInputError,
    OutOfRangeError,
    PrivacyError,
)
from lightfr.membership import Member
from lightfr.secagg import DeviceSession, Place, Vector, agreement, shamir
from lightfr.secagg.views import (
    included_message,
    members,
    roster_message,
    survivors_message,
)
from tests.sdk.secagg.cohorts import NOW, STEPS, Cohort, at

N = 5


# ---- the steps ----


def test_each_step_is_done_once_and_in_order():
    cohort = Cohort(N)
    session, bitmap, signature = cohort.sessions[0], cohort.everybody, bytes(64)
    steps = {
        "advertise": session.advertise,
        "share": lambda: cohort.share_by(0),
        "acknowledge": lambda: session.acknowledge([]),
        "sign_included": lambda: session.sign_included(bitmap, signature),
        "mask": lambda: session.mask(None, bitmap, signature),
        "sign_survivors": lambda: session.sign_survivors(bitmap, signature),
        "reveal": lambda: session.reveal(bitmap, signature),
    }
    walk = (cohort.share, cohort.acknowledge, cohort.sign_included, cohort.upload, cohort.sign_survivors, cohort.reveal)
    for expected, go_on in zip([*list(steps)[1:], "done"], [*walk, None], strict=True):
        for name, step in steps.items():
            if name != expected:
                with pytest.raises(PrivacyError, match=f"step '{name}' was asked for where '{expected}' is next"):
                    step()
        if go_on is not None:
            go_on()


def test_a_session_knows_the_size_of_its_cohort_from_the_roster():
    cohort = Cohort(N)
    assert cohort.sessions[0].cohort == 0
    cohort.share()
    assert cohort.sessions[0].cohort == N


def test_a_fresh_session_has_nothing_to_share():
    cohort = Cohort(2)
    with pytest.raises(PrivacyError, match="'advertise' is next"):
        cohort.session(0).share(cohort.roster, cohort.vouchers, cohort.roster_signature)


@pytest.mark.parametrize("absent", [(), (3,)])
def test_the_server_learns_the_sum_of_those_who_uploaded(absent):
    cohort = at("upload").upload(absent).sign_survivors()
    sums = cohort.reveal()
    assert all((sums[name] == expected).all() for name, expected in cohort.plain_sum().items())


def test_keys_are_fresh_in_each_session():
    cohort = Cohort(2)
    entries = [cohort.session(0).advertise().entry for _ in range(2)]
    assert len({key for e in entries for key in (e.mask_key, e.share_key)}) == 4


@pytest.mark.parametrize("step", STEPS)
def test_a_refused_step_changes_nothing_and_can_be_tried_again(step):
    cohort = at(step)
    session, nonsense = cohort.sessions[0], bytes(64)
    tries = {
        "share": lambda: session.share(cohort.roster, cohort.vouchers, nonsense),
        "acknowledge": lambda: session.acknowledge([(0, nonsense)]),
        "sign_included": lambda: session.sign_included(cohort.everybody, nonsense),
        "upload": lambda: session.mask(vector, cohort.everybody, nonsense),
        "sign_survivors": lambda: session.sign_survivors(cohort.everybody, nonsense),
        "reveal": lambda: session.reveal(cohort.everybody, nonsense),
    }
    vector, before = cohort.vector(0), session.to_bytes()
    plain = vector.pack()
    with pytest.raises(PrivacyError):
        tries[step]()
    assert session.to_bytes() == before
    assert vector.pack() == plain
    for name in STEPS[STEPS.index(step) :]:
        getattr(cohort, name)()


@pytest.mark.parametrize("field", ["round_id", "peer_id", "server_key"])
def test_a_session_needs_whole_ids_and_keys(field):
    with pytest.raises(BufferSizeError, match=field):
        Cohort(2).session(0, **{field: bytes(15)})


def test_a_session_needs_a_whole_membership():
    cohort = Cohort(2)
    cohort.members[0] = Member(cohort.members[0].key, bytes(103))
    with pytest.raises(BufferSizeError, match="membership has 103 bytes"):
        cohort.session(0)


@pytest.mark.parametrize("minimum", [1, 8193])
def test_a_minimum_cohort_outside_what_rounds_can_have_is_refused(minimum):
    with pytest.raises(OutOfRangeError):
        Cohort(2, minimum_cohort=minimum)


# ---- stored sessions ----


def test_a_round_goes_on_in_another_process_after_every_step():
    cohort = Cohort(N)
    for step in STEPS:
        cohort.sessions = [DeviceSession.from_bytes(session.to_bytes()) for session in cohort.sessions]
        sums = getattr(cohort, step)()
    assert all((sums[name] == expected).all() for name, expected in cohort.plain_sum().items())


def test_own_secrets_are_forgotten_once_they_are_not_needed():
    cohort = Cohort(N)

    def kept(*secrets):
        stored = cohort.sessions[0].to_bytes().decode()
        return [secret.hex() in stored for secret in secrets]

    state = cohort.sessions[0].state
    share_private, secrets, member = state.share_private, (state.mask_private, state.seed), state.member_private
    cohort.share()
    assert kept(share_private, *secrets) == [True] * 3
    cohort.acknowledge()
    assert kept(share_private, *secrets) == [False, True, True]
    cohort.sign_included().upload().sign_survivors()
    assert kept(*secrets, member) == [False, False, True]
    held = cohort.sessions[0].state.held
    cohort.reveal()
    state = cohort.sessions[0].state
    assert held
    assert state.held == state.own_share == state.member_private == state.holders == state.witnesses == b""


def test_what_the_server_told_is_known_to_the_end():
    cohort = Cohort(N)
    for step in STEPS:
        getattr(cohort, step)()
    state, digest = cohort.sessions[0].state, cohort.roster.digest
    assert (state.roster_digest, state.included, state.survivors) == (digest, cohort.included, cohort.survivors)
    key = cohort.server.public_key()
    key.verify(state.roster_signature, roster_message(digest))
    key.verify(state.included_signature, included_message(digest, state.included))
    key.verify(state.survivors_signature, survivors_message(digest, state.included, state.survivors))


@pytest.mark.parametrize(
    "stored",
    [b"", b"[]", b"{}", b"7", b"\xff", b'{"version": "lightfr session v1"}', b'{"version": "lightfr session v2"}'],
)
def test_bytes_that_are_no_session_are_refused(stored):
    with pytest.raises(InvalidInputError, match=f"^{len(stored)} bytes are not a stored session"):
        DeviceSession.from_bytes(stored)


def test_a_session_of_another_release_is_refused_though_its_values_have_the_same_names():
    stored = Cohort(2).sessions[0].to_bytes()
    with pytest.raises(InvalidInputError):
        DeviceSession.from_bytes(stored.replace(b"lightfr session v2", b"lightfr session v3"))


def test_a_damaged_session_is_refused_without_repeating_it():
    stored = Cohort(2).sessions[0].to_bytes()
    with pytest.raises(InvalidInputError) as caught:
        DeviceSession.from_bytes(stored.replace(b'"round_id": "', b'"round_id": "xyz'))
    assert caught.value.__cause__ is None
    assert "xyz" not in str(caught.value)


def test_a_session_shows_no_secrets():
    session = Cohort(2).sessions[0]
    assert repr(session) == "<DeviceSession before step 'share'>"
    assert repr(session.state) == "<SessionState before step 'share'>"


# ---- shares that are not what they should be ----


def resealed(cohort, sender, receiver, plain):
    """What a sender may seal instead of its shares."""
    one, other = cohort.roster.entry(sender), cohort.roster.entry(receiver)
    shared = agreement.Agreement(cohort.sessions[sender].state.share_private).with_peer(other.share_key)
    key = agreement.share_key(shared, cohort.round_id, cohort.roster.digest, one.peer_id, other.peer_id)
    return agreement.seal(key, os.urandom(12), plain)


def test_a_device_says_whose_shares_do_not_open_and_goes_on():
    cohort = at("acknowledge", 7)
    good = dict(cohort.inbox(0))
    no_number = shamir.PRIME.to_bytes(33, "little")
    spoilt = {
        1: good[1][:-1] + bytes([good[1][-1] ^ 1]),
        2: bytes([good[2][0] ^ 1]) + good[2][1:],
        3: cohort.sealed[3][4],
        4: resealed(cohort, 4, 0, bytes(33) + no_number),
        5: good[5][:-1],
    }
    unopened = cohort.sessions[0].acknowledge(sorted({**good, **spoilt}.items()))
    assert members(unopened, 7) == {1, 2, 3, 4, 5}
    assert owners_held(cohort.sessions[0]) == [6]
    for i in range(1, 7):
        cohort.sessions[i].acknowledge(cohort.inbox(i))
    cohort.included = cohort.everybody
    cohort.sign_included_by(0)
    assert cohort.upload_by(0)


def owners_held(session):
    return [int.from_bytes(session.state.held[at : at + 4], "little") for at in range(0, len(session.state.held), 70)]


@pytest.mark.parametrize("position", [0, 33])
def test_a_share_that_is_no_number_of_the_field_is_not_kept(position):
    cohort = at("acknowledge", 3)
    plain = bytearray(66)
    plain[position : position + 33] = shamir.PRIME.to_bytes(33, "little")
    inbox = [(1, resealed(cohort, 1, 0, bytes(plain))), (2, resealed(cohort, 2, 0, bytes(66)))]
    assert members(cohort.sessions[0].acknowledge(inbox), 3) == {1}
    assert owners_held(cohort.sessions[0]) == [2]


def test_shares_of_another_roster_do_not_open():
    """The same keys, but another roster: the digest is part of the key."""
    cohort = Cohort(N)
    entries, vouched = cohort.entries(), list(cohort.vouched)
    cohort.vouched = vouched[:-1]
    cohort.use_roster(entries[:-1])
    old = dict(cohort.share_by(1))
    cohort.vouched = vouched
    cohort.use_roster(entries)
    cohort.share_by(0)
    assert members(cohort.sessions[0].acknowledge([(1, old[0])]), N) == {1}


def test_a_sender_with_a_share_key_of_low_order_is_complained_about():
    """Its shares were sealed with a secret that everybody knows."""
    cohort = at("acknowledge", 3)
    state = cohort.sessions[0].state
    spoilt = replace(state, senders=state.senders[: 48 + 16] + bytes(32) + state.senders[96:])
    session = DeviceSession.from_bytes(spoilt.to_bytes())
    assert members(session.acknowledge(cohort.inbox(0)), 3) == {1}


@pytest.mark.parametrize("senders", [[1, 1], [2, 1], [0], [1, N]])
def test_an_inbox_that_is_not_by_ascending_index_of_others_is_refused(senders):
    cohort = at("acknowledge")
    with pytest.raises(PrivacyError, match="not by ascending index of other devices"):
        cohort.sessions[0].acknowledge([(sender, bytes(94)) for sender in senders])


def test_an_empty_inbox_is_no_reason_to_leave():
    cohort = at("acknowledge")
    assert cohort.sessions[0].acknowledge([]) == b"\x00"


# ---- what the server sees ----


def test_an_upload_alone_looks_random():
    """The same vector of zeros, masked by two cohorts, has about half its bits different from itself and from zero.

    The masks are really random: six standard deviations, one in 500 million.
    """
    uploads = []
    for _ in range(2):
        cohort = at("upload", 3, code_bits=64)
        masked = cohort.sessions[0].mask(Vector(cohort.blocks), *cohort.included_signed())
        uploads.append(int.from_bytes(masked, "little"))
    n_bits = 8 * Vector(cohort.blocks).packed_bytes
    for bits in (*uploads, uploads[0] ^ uploads[1]):
        assert abs(bits.bit_count() - n_bits / 2) < 6 * math.sqrt(n_bits) / 2


def test_an_entry_is_the_public_half_of_what_the_device_keeps_and_signed_by_it():
    cohort = Cohort(2)
    place = Place(bytes(16), b"p" * 16, bytes(32), 1, bytes(32), [])
    session = DeviceSession(place, cohort.members[0], now_unix_seconds=NOW, random=lambda n: bytes([n]) * n)
    vouched, public = session.advertise(), agreement.public_key(b"\x20" * 32)
    entry, member = vouched.entry, cohort.members[0]
    assert (entry.peer_id, entry.mask_key, entry.share_key) == (b"p" * 16, public, public)
    assert (entry.member_key, vouched.membership) == (member.key.public, member.membership)
    assert vouched.signature == member.key.sign(b"lightfr entry v1\n" + bytes(16) + b"p" * 16 + public + public)
