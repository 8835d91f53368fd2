"""One enrolled device works with the server, and renews its certificate as often as the authority lets it."""

import pytest

from lightfr.membership import MEMBER_KEY_BYTES, Member, MemberKey
from lightfr.secagg import DeviceSession, Place, Roster
from lightfr.secagg.views import roster_message
from lightfr_harness.server.authority import RenewalError
from tests.adversary.cohort import MINIMUM, TRAINING, Devices
from tests.certificates import member_key, signing_request

# Its first membership, and those of 32 renewals. All are good until they end, a year later.
MOST = 33


def memberships(authority):
    """All that one device can get at once."""
    request, keys = signing_request(), [MemberKey.new() for _ in range(MOST)]
    device_id, first = authority.issue(request, keys[0].public)
    issued = [first, *(authority.renew(device_id, request, key.public) for key in keys[1:])]
    with pytest.raises(RenewalError):
        authority.renew(device_id, request, member_key())
    return [Member(key, one.membership) for key, one in zip(keys, issued, strict=True)]


def test_one_enrolled_device_stands_for_33_in_a_cohort_and_for_no_more(authority):
    """A fifth of a cohort of 256 takes two such devices: whoever counts colluders counts memberships."""
    members = memberships(authority)
    assert len({member.membership[:MEMBER_KEY_BYTES] for member in members}) == MOST
    _, honest = authority.issue(signing_request(), (own := MemberKey.new()).public)
    devices, trusted = Devices(MOST + 1), authority_key(authority)
    sessions = []
    for peer_id, member in zip(devices.peer_ids, [Member(own, honest.membership), *members], strict=True):
        place = Place(devices.round_id, peer_id, bytes(32), TRAINING, devices.server_key, [trusted])
        sessions.append(DeviceSession(place, member, now_unix_seconds=0.0, minimum_cohort=MINIMUM))
    vouched = [session.advertise() for session in sessions]
    roster = Roster.of(devices.round_id, bytes(32), TRAINING, [one.entry for one in vouched])
    signature = devices.server.sign(roster_message(roster.digest))
    assert len(sessions[0].share(roster, b"".join(one.voucher() for one in vouched), signature)) == MOST


def authority_key(authority):
    return authority._membership_key.public_key().public_bytes_raw()
