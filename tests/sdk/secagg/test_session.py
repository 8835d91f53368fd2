"""A device takes each step once and in order, and refuses whatever would cost its user's privacy."""

import os
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lightfr.errors import (
    BufferSizeError,
    CohortTooSmallError,
    InvalidInputError,
    OutOfRangeError,
    PeerKeyError,
    PrivacyError,
)
from lightfr.secagg import DeviceSession, Roster, RosterEntry, SealedShare, Vector, agreement, shamir
from lightfr.secagg.roster import bitmap_of, survivors_message
from lightfr_harness.server.rules.secagg import sign_roster
from tests.cohort import Cohort, raw_key

N = 5
RECORD_BYTES = 16 + 33


def owners(records):
    return [records[at : at + 16] for at in range(0, len(records), RECORD_BYTES)]


# ---- the steps ----


def test_each_step_is_done_once_and_in_order():
    cohort = Cohort(N)
    session = cohort.sessions[0]
    steps = {
        "advertise": session.advertise,
        "share": lambda: session.share(cohort.roster, cohort.signature),
        "mask": lambda: cohort.mask(0),
        "unmask": lambda: session.unmask(cohort.survivors, cohort.survivors_signature),
    }

    def only(expected):
        for name, step in steps.items():
            if name != expected:
                with pytest.raises(PrivacyError, match=f"step '{name}' was asked for where '{expected}' is next"):
                    step()

    cohort.messages, cohort.included = [], b"\x1f"
    cohort.survivors, cohort.survivors_signature = b"\x1f", bytes(64)
    only("share")
    cohort.share()
    only("mask")
    cohort.upload()
    only("unmask")
    cohort.unmask()
    only("done")


def test_a_fresh_session_has_nothing_to_share():
    session = DeviceSession(bytes(16), bytes(16), bytes(32))
    with pytest.raises(PrivacyError, match="'advertise' is next"):
        session.share(Cohort(2).roster, bytes(64))


def test_keys_are_fresh_in_each_session():
    entries = [DeviceSession(bytes(16), bytes(16), bytes(32)).advertise() for _ in range(2)]
    assert len({key for e in entries for key in (e.mask_key, e.share_key)}) == 4


def test_a_refused_step_changes_nothing_and_can_be_tried_again():
    cohort = Cohort(N)
    session = cohort.sessions[0]
    before = session.to_bytes()
    with pytest.raises(PrivacyError):
        session.share(cohort.roster, bytes(64))
    assert session.to_bytes() == before
    cohort.share()
    vector, before = cohort.vector(0), session.to_bytes()
    plain = vector.pack()
    with pytest.raises(PrivacyError):
        session.mask(vector, cohort.inbox(0)[1:], cohort.included)
    assert session.to_bytes() == before
    assert vector.pack() == plain
    cohort.upload()
    cohort.unmask()


@pytest.mark.parametrize(
    "arguments", [(bytes(15), bytes(16), bytes(32)), (bytes(16), bytes(17), bytes(32)), (bytes(16), bytes(16), b"")]
)
def test_a_session_needs_whole_ids_and_keys(arguments):
    with pytest.raises(BufferSizeError):
        DeviceSession(*arguments)


@pytest.mark.parametrize("minimum", [1, 8193])
def test_a_minimum_cohort_outside_what_rounds_can_have_is_refused(minimum):
    with pytest.raises(OutOfRangeError):
        DeviceSession(bytes(16), bytes(16), bytes(32), minimum_cohort=minimum)


# ---- stored sessions ----


def test_a_round_goes_on_in_another_process_after_every_step():
    cohort = Cohort(N)
    for step in (cohort.share, cohort.upload, lambda: None):
        cohort.sessions = [DeviceSession.from_bytes(session.to_bytes()) for session in cohort.sessions]
        step()
    sums = cohort.unmask()
    assert all((sums[name] == expected).all() for name, expected in cohort.plain_sum().items())


def test_own_secrets_are_forgotten_once_they_are_not_needed():
    cohort = Cohort(N)
    state = cohort.sessions[0]._state
    secrets = [state.mask_private.hex(), state.share_private.hex(), state.seed.hex()]
    cohort.share()
    assert all(secret in cohort.sessions[0].to_bytes().decode() for secret in secrets)
    cohort.upload()
    assert not any(secret in cohort.sessions[0].to_bytes().decode() for secret in secrets)
    held = cohort.sessions[0]._state.held
    cohort.unmask()
    state = cohort.sessions[0]._state
    assert held
    assert state.held == state.own_share == b""


@pytest.mark.parametrize(
    "stored",
    [b"", b"[]", b"{}", b"7", b"\xff", b'{"version": "lightfr session v0"}', b'{"version": "lightfr session v1"}'],
)
def test_bytes_that_are_no_session_are_refused(stored):
    with pytest.raises(InvalidInputError, match=f"^{len(stored)} bytes are not a stored session"):
        DeviceSession.from_bytes(stored)


def test_a_damaged_session_is_refused_without_repeating_it():
    stored = Cohort(2).sessions[0].to_bytes()
    with pytest.raises(InvalidInputError) as caught:
        DeviceSession.from_bytes(stored.replace(b'"round_id": "', b'"round_id": "xyz'))
    assert caught.value.__cause__ is None
    assert "xyz" not in str(caught.value)


def test_a_session_shows_no_secrets():
    session = Cohort(2).sessions[0]
    assert repr(session) == "<DeviceSession before step 'share'>"
    assert repr(session._state) == "<SessionState before step 'share'>"


# ---- lies about the roster ----


def test_a_cohort_below_the_devices_own_minimum_is_refused():
    cohort = Cohort(N, minimum_cohort=N + 1)
    with pytest.raises(CohortTooSmallError) as caught:
        cohort.share()
    assert (caught.value.actual, caught.value.minimum) == (N, N + 1)


def test_the_minimum_cohort_is_256_unless_the_caller_says_otherwise():
    cohort = Cohort(N)
    session = DeviceSession(cohort.round_id, os.urandom(16), raw_key(cohort.server))
    session.advertise()
    with pytest.raises(CohortTooSmallError, match="at least 256"):
        session.share(cohort.roster, cohort.signature)


def share_with(cohort, roster, *, signed=True):
    return cohort.sessions[0].share(roster, sign_roster(cohort.server, roster) if signed else bytes(64))


def entries_of(cohort):
    return [cohort.roster.entry(i) for i in range(cohort.roster.size)]


def test_a_roster_of_another_round_is_refused():
    cohort = Cohort(N)
    with pytest.raises(PrivacyError, match="another round"):
        share_with(cohort, Roster.of(bytes(16), entries_of(cohort)))


def test_a_roster_without_the_device_is_refused():
    cohort = Cohort(N)
    with pytest.raises(PrivacyError, match="missing"):
        share_with(cohort, Roster.of(cohort.round_id, entries_of(cohort)[1:]))


@pytest.mark.parametrize("field", ["mask_key", "share_key"])
def test_a_roster_with_other_keys_for_the_device_is_refused(field):
    cohort = Cohort(N)
    own, *others = entries_of(cohort)
    with pytest.raises(PrivacyError, match="other keys for this device"):
        share_with(cohort, Roster.of(cohort.round_id, [replace(own, **{field: os.urandom(32)}), *others]))


def test_a_roster_that_the_server_did_not_sign_is_refused():
    cohort = Cohort(N)
    digest = cohort.roster.digest
    stranger = Ed25519PrivateKey.generate()
    for signature in (
        b"",
        bytes(64),
        sign_roster(stranger, cohort.roster),
        cohort.server.sign(digest),
        cohort.server.sign(b"lightfr survivors v1\n" + digest),
        sign_roster(cohort.server, Roster.of(cohort.round_id, entries_of(cohort)[:-1])),
    ):
        with pytest.raises(PrivacyError, match="signature of the roster does not fit"):
            cohort.sessions[0].share(cohort.roster, signature)


# The point 0, and another of order 8 (RFC 7748 leaves it to the caller to refuse the secret that comes of them).
LOW_ORDER = [
    bytes(32),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
]


@pytest.mark.parametrize("point", LOW_ORDER)
@pytest.mark.parametrize("field", ["share_key", "mask_key"])
def test_a_peer_with_a_key_of_low_order_is_refused(field, point):
    cohort = Cohort(2)
    own, peer = entries_of(cohort)
    roster = Roster.of(cohort.round_id, [own, replace(peer, **{field: point})])
    cohort.roster, cohort.signature = roster, sign_roster(cohort.server, roster)
    if field == "share_key":
        with pytest.raises(PeerKeyError):
            cohort.sessions[0].share(roster, cohort.signature)
        return
    cohort.sessions[0].share(roster, cohort.signature)
    state = cohort.sessions[1]._state
    shared = agreement.Agreement(state.share_private).with_peer(own.share_key)
    key = agreement.share_key(shared, cohort.round_id, roster.digest, peer.peer_id, own.peer_id)
    cohort.messages = [message_to(own, peer, key, bytes(66))]
    cohort.included = b"\x03"
    vector = cohort.vector(0)
    plain = vector.pack()
    with pytest.raises(PeerKeyError):
        cohort.sessions[0].mask(vector, cohort.inbox(0), cohort.included)
    assert vector.pack() == plain


def message_to(receiver, sender, key, plain):
    return SealedShare(sender.peer_id, receiver.peer_id, agreement.seal(key, os.urandom(12), plain))


# ---- lies about who is included, and shares that are not what they should be ----


def test_an_included_set_without_the_device_or_of_another_size_is_refused():
    cohort = Cohort(N).share()
    for included, reason in ((b"\x1e", "lacks this device"), *((bad, "5 bits") for bad in (b"", b"\x3f", b"\x1f\x00"))):
        with pytest.raises(PrivacyError, match=reason):
            cohort.sessions[0].mask(cohort.vector(0), cohort.inbox(0), included)


def test_too_few_included_devices_are_refused():
    cohort = Cohort(N, minimum_cohort=4).share(absent=[3, 4])
    with pytest.raises(CohortTooSmallError, match="the included set has 3 devices"):
        cohort.mask(0)
    cohort = Cohort(N).share(absent=[2, 3, 4])
    with pytest.raises(CohortTooSmallError, match="its neighbours, has 2 devices, this one asks for at least 3"):
        cohort.mask(0)


def test_an_inbox_that_is_not_one_share_from_each_included_neighbour_is_refused():
    cohort = Cohort(N).share()
    inbox = cohort.inbox(0)
    for bad in ([], inbox[1:], [*inbox, inbox[0]], [*inbox[1:], inbox[1]], [*inbox[1:], replace(inbox[0], sender=b"")]):
        with pytest.raises(PrivacyError, match="not one from each of 4"):
            cohort.sessions[0].mask(cohort.vector(0), bad, cohort.included)
    with pytest.raises(PrivacyError, match="not one from each of 3"):
        cohort.sessions[0].mask(cohort.vector(0), inbox, b"\x0f")


def test_shares_that_do_not_open_are_refused():
    cohort = Cohort(N).share()
    first, *rest = cohort.inbox(0)
    for_another = next(m for m in cohort.messages if m.sender == first.sender and m.receiver != first.receiver)
    for sealed, reason in (
        (first.sealed[:-1], "93 bytes, expected 94"),
        (first.sealed[:-1] + bytes([first.sealed[-1] ^ 1]), "does not open"),
        (bytes([first.sealed[0] ^ 1]) + first.sealed[1:], "does not open"),
        (for_another.sealed, "does not open"),
        (rest[0].sealed, "does not open"),
    ):
        with pytest.raises(PrivacyError, match=reason):
            cohort.sessions[0].mask(cohort.vector(0), [replace(first, sealed=sealed), *rest], cohort.included)


def test_shares_of_another_round_do_not_open():
    """The same keys, but another roster: the digest is part of the key."""
    cohort = Cohort(N)
    smaller = Roster.of(cohort.round_id, entries_of(cohort)[:-1])
    old = cohort.sessions[1].share(smaller, sign_roster(cohort.server, smaller))
    cohort.sessions[0].share(cohort.roster, cohort.signature)
    others = [m for i in (2, 3, 4) for m in cohort.sessions[i].share(cohort.roster, cohort.signature)]
    inbox = [m for m in [*old, *others] if m.receiver == cohort.ids[0]]
    with pytest.raises(PrivacyError, match="does not open"):
        cohort.sessions[0].mask(cohort.vector(0), inbox, b"\x1f")


@pytest.mark.parametrize("position", [0, 33])
def test_a_share_that_is_no_number_of_the_field_is_refused(position):
    cohort = Cohort(2).share()
    own, peer = entries_of(cohort)
    shared = agreement.Agreement(cohort.sessions[1]._state.share_private).with_peer(own.share_key)
    key = agreement.share_key(shared, cohort.round_id, cohort.roster.digest, peer.peer_id, own.peer_id)
    plain = bytearray(66)
    plain[position : position + 33] = shamir.PRIME.to_bytes(33, "little")
    with pytest.raises(PrivacyError, match="not a number of the field"):
        cohort.sessions[0].mask(cohort.vector(0), [message_to(own, peer, key, bytes(plain))], cohort.included)


# ---- lies about the survivors ----


def test_one_share_is_revealed_for_each_included_neighbour_and_never_both():
    cohort = Cohort(7).share(absent=[6]).upload(absent=[2])
    revealed = cohort.sessions[0].unmask(cohort.survivors, cohort.survivors_signature)
    assert owners(revealed.self_masks) == [cohort.ids[i] for i in (0, 1, 3, 4, 5)]
    assert owners(revealed.mask_keys) == [cohort.ids[2]]


def test_shares_are_those_of_the_secrets_they_are_called_after():
    cohort = Cohort(4)
    seeds = [s._state.seed for s in cohort.sessions]
    keys = [s._state.mask_private for s in cohort.sessions]
    cohort.share().upload(absent=[3])
    revealed = [cohort.sessions[i].unmask(cohort.survivors, cohort.survivors_signature) for i in range(3)]
    assert shamir.join({i + 1: r.self_masks[16:RECORD_BYTES] for i, r in enumerate(revealed)}) == seeds[0]
    assert shamir.join({i + 1: r.mask_keys[16:] for i, r in enumerate(revealed)}) == keys[3]


def test_survivors_that_the_server_did_not_sign_are_refused():
    cohort = Cohort(N).share().upload()
    session, digest = cohort.sessions[0], cohort.roster.digest
    for signature in (
        bytes(64),
        cohort.sign_survivors(b"\x0f"),
        Ed25519PrivateKey.generate().sign(survivors_message(digest, cohort.included, cohort.survivors)),
        cohort.server.sign(survivors_message(digest, b"\x0f", cohort.survivors)),
        cohort.server.sign(survivors_message(bytes(32), cohort.included, cohort.survivors)),
        cohort.signature,
    ):
        with pytest.raises(PrivacyError, match="signature of the survivor set does not fit"):
            session.unmask(cohort.survivors, signature)
    session.unmask(cohort.survivors, cohort.survivors_signature)


def test_survivors_who_were_not_included_or_without_the_device_are_refused():
    cohort = Cohort(N).share(absent=[4]).upload()
    for survivors, reason in ((b"\x1f", "not among the included"), (b"\x0e", "lacks this device"), (b"", "5 bits")):
        with pytest.raises(PrivacyError, match=reason):
            cohort.sessions[0].unmask(survivors, cohort.sign_survivors(survivors))


def test_too_few_survivors_are_refused():
    cohort = Cohort(N, minimum_cohort=N).share().upload(absent=[4])
    with pytest.raises(CohortTooSmallError, match="the survivor set has 4 devices"):
        cohort.sessions[0].unmask(cohort.survivors, cohort.survivors_signature)
    cohort = Cohort(N).share().upload(absent=[2, 3, 4])
    with pytest.raises(CohortTooSmallError, match="its neighbours, has 2 devices"):
        cohort.sessions[0].unmask(cohort.survivors, cohort.survivors_signature)


def test_a_second_answer_about_other_survivors_is_refused():
    cohort = Cohort(N).share().upload()
    cohort.sessions[0].unmask(cohort.survivors, cohort.survivors_signature)
    other = bitmap_of([0, 1, 2, 3], N)
    with pytest.raises(PrivacyError, match="step 'unmask' was asked for where 'done' is next"):
        cohort.sessions[0].unmask(other, cohort.sign_survivors(other))


# ---- what the server sees ----


def test_an_upload_alone_looks_random():
    """The same vector of zeros, masked by two cohorts, has about half its bits different from itself and from zero."""
    uploads = []
    for _ in range(2):
        cohort = Cohort(3, code_bits=64)
        cohort.vector = lambda _: Vector(cohort.blocks)  # noqa: B023
        cohort.share()
        uploads.append(int.from_bytes(cohort.mask(0), "little"))
    n_bits = 8 * Vector(cohort.blocks).packed_bytes
    for bits in (*uploads, uploads[0] ^ uploads[1]):
        assert 0.45 < bits.bit_count() / n_bits < 0.55


def test_an_entry_is_the_public_half_of_what_the_device_keeps():
    session = DeviceSession(bytes(16), b"p" * 16, bytes(32), random=lambda n: bytes([n]) * n)
    public = agreement.public_key(b"\x20" * 32)
    assert session.advertise() == RosterEntry(b"p" * 16, public, public)
