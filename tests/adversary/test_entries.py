"""A server puts devices into the roster that are none, or other keys into the entries of real ones."""

from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lightfr.errors import PrivacyError
from lightfr.secagg.roster import RosterEntry, VouchedEntry
from lightfr.secagg.views import entry_message
from tests.adversary.cohort import Devices, Prepared, attack, member_of
from tests.adversary.plans import same_for_all

N = 24
# Whose entry the server makes up or changes; never that of the device that looks at it.
AT = 5


def invented(devices, member):
    """An entry of the server's own, with keys of its own, signed with a member key of its own."""
    seeded, peer_id = devices.seeded, devices.peer_ids[AT]
    entry = RosterEntry(peer_id, seeded.randbytes(32), seeded.randbytes(32), member.key.public)
    message = entry_message(devices.round_id, peer_id, entry.mask_key, entry.share_key)
    return VouchedEntry(entry, member.membership, member.key.sign(message))


def of_another_authority(devices):
    return invented(devices, member_of(Ed25519PrivateKey.generate(), devices.seeded))


def without_membership(devices):
    member = member_of(devices.authority, devices.seeded)
    return invented(devices, member._replace(membership=member.key.public + bytes(72)))


def with_a_membership_that_lasts_longer_than_was_signed(devices):
    member = member_of(devices.authority, devices.seeded, ends=(1).to_bytes(8, "little"))
    longer = member.key.public + b"\xff" * 8 + member.membership[40:]
    return invented(devices, member._replace(membership=longer))


def with_a_membership_that_has_ended(devices):
    return invented(devices, member_of(devices.authority, devices.seeded, ends=bytes(8)))


def under_the_name_of_a_member(devices):
    """The membership is true, and everybody can read it in a roster; the member's private key is not there."""
    genuine, member = devices.vouched[AT], member_of(devices.authority, devices.seeded)
    own = replace(invented(devices, member).entry, member_key=genuine.entry.member_key)
    return VouchedEntry(own, genuine.membership, member.key.sign(b"whatever"))


def with_another_mask_key(devices):
    genuine = devices.vouched[AT]
    return replace(genuine, entry=replace(genuine.entry, mask_key=devices.seeded.randbytes(32)))


def with_another_share_key(devices):
    genuine = devices.vouched[AT]
    return replace(genuine, entry=replace(genuine.entry, share_key=devices.seeded.randbytes(32)))


def of_an_earlier_round(devices):
    """Everything is genuine, but was signed for another round."""
    member = member_of(devices.authority, devices.seeded)
    entry = invented(devices, member).entry
    message = entry_message(bytes(16), entry.peer_id, entry.mask_key, entry.share_key)
    return VouchedEntry(entry, member.membership, member.key.sign(message))


LIES = (
    of_another_authority, without_membership, with_a_membership_that_lasts_longer_than_was_signed,
    with_a_membership_that_has_ended, under_the_name_of_a_member, with_another_mask_key, with_another_share_key,
    of_an_earlier_round,
)  # fmt: skip


def told(lie):
    """The sessions, and the roster in which one entry is a lie."""
    devices = Devices(N)
    vouched = [*devices.vouched[:AT], lie(devices), *devices.vouched[AT + 1 :]]
    return [session for i, session in enumerate(devices.sessions) if i != AT], devices.roster(vouched)


@pytest.mark.parametrize("lie", LIES)
def test_every_device_refuses_the_roster(lie):
    sessions, roster = told(lie)
    for session in sessions:
        with pytest.raises(PrivacyError, match=r"authority|membership|own entry"):
            session.share(*roster)


@pytest.mark.parametrize("lie", LIES)
def test_devices_that_do_not_check_hand_their_shares_to_the_invented_one(lie, monkeypatch):
    monkeypatch.setattr(VouchedEntry, "require_member", lambda *_: None)
    monkeypatch.setattr(VouchedEntry, "require_own_keys", lambda *_: None)
    sessions, roster = told(lie)
    assert all(AT in dict(session.share(*roster)) for session in sessions)


def test_an_entry_that_is_true_is_taken():
    sessions, roster = told(lambda devices: invented(devices, member_of(devices.authority, devices.seeded)))
    assert all(AT in dict(session.share(*roster)) for session in sessions)


def test_the_one_real_device_of_an_invented_cohort_would_be_read():
    """Why invented devices matter: with all others the server's, nothing else helps."""
    cohort, victim = Prepared(N), 7
    everybody = same_for_all(cohort.roster)
    assert attack(cohort, frozenset(range(N)) - {victim}, everybody, everybody).read == {victim}
