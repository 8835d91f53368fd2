"""Enrolled devices work with the server, and renew their certificates as often as the authority lets them."""

import pytest

from lightfr.membership import MEMBER_KEY_BYTES, Member, MemberKey
from lightfr.secagg import DeviceSession, Place, Roster
from lightfr.secagg.views import roster_message
from lightfr_harness.server.authority import EarlyRenewalError
from tests.adversary.cohort import MINIMUM, TRAINING, Devices
from tests.certificates import member_key, signing_request

# The first membership of a device, and that of its renewal. Both are good until they end, a year later.
MOST = 2
COLLUDERS = MINIMUM // MOST


def memberships(authority):
    """All that one device can get at once."""
    request, keys = signing_request(), [MemberKey.new() for _ in range(MOST)]
    device_id, first = authority.issue(request, keys[0].public)
    issued = [first, *(authority.renew(device_id, request, key.public) for key in keys[1:])]
    with pytest.raises(EarlyRenewalError):
        authority.renew(device_id, request, member_key())
    return [Member(key, one.membership) for key, one in zip(keys, issued, strict=True)]


def test_one_enrolled_device_stands_for_two_in_a_cohort_and_for_no_more(authority):
    """A fifth of a cohort of 256 takes 26 such devices: whoever counts colluders counts memberships."""
    members = [member for _ in range(COLLUDERS) for member in memberships(authority)]
    assert len({member.membership[:MEMBER_KEY_BYTES] for member in members}) == MOST * COLLUDERS
    _, honest = authority.issue(signing_request(), (own := MemberKey.new()).public)
    devices, trusted = Devices(len(members) + 1), authority_key(authority)
    sessions = []
    for peer_id, member in zip(devices.peer_ids, [Member(own, honest.membership), *members], strict=True):
        place = Place(devices.round_id, peer_id, bytes(32), TRAINING, devices.server_key, [trusted])
        sessions.append(DeviceSession(place, member, now_unix_seconds=0.0, minimum_cohort=MINIMUM))
    vouched = [session.advertise() for session in sessions]
    roster = Roster.of(devices.round_id, bytes(32), TRAINING, [one.entry for one in vouched])
    signature = devices.server.sign(roster_message(roster.digest))
    assert len(sessions[0].share(roster, b"".join(one.voucher() for one in vouched), signature)) == MOST * COLLUDERS


def authority_key(authority):
    return authority._membership_key.public_key().public_bytes_raw()
