"""A roster is refused unless it follows the rules, and its graph is symmetric and shuffled by every key."""

import os
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lightfr.errors import BufferSizeError, PrivacyError
from lightfr.secagg import Roster, RosterEntry, VouchedEntry
from lightfr.secagg.roster import least_neighbours, least_threshold
from lightfr.secagg.views import bitmap_of, entry_message, members, quorum
from tests.sdk.secagg.cohorts import NOW, new_member, raw_key

ABOUT = ROUND_ID, MANIFEST, KIND = bytes(range(16)), b"m" * 32, 1
SPARSE = 64, 80, 39


def some_entries(n):
    return [RosterEntry.from_bytes(os.urandom(112)) for _ in range(n)]


@pytest.mark.parametrize(("n", "threshold"), [(2, 2), (3, 2), (65, 33), (129, 65)])
def test_up_to_129_devices_everybody_is_everybodys_neighbour_and_holder(n, threshold):
    roster = Roster.of(*ABOUT, some_entries(n))
    assert (roster.degree, roster.holders, roster.threshold) == (n - 1, n - 1, threshold)
    assert all(roster.neighbours(i) == [j for j in range(n) if j != i] for i in range(n))


@pytest.mark.parametrize("n", [130, 300])
def test_beyond_that_a_device_has_at_most_64_neighbours_and_is_theirs(n):
    roster = Roster.of(*ABOUT, some_entries(n))
    assert (roster.degree, roster.holders, roster.threshold) == SPARSE
    neighbours = [set(roster.neighbours(i)) for i in range(n)]
    assert all(
        near == set(roster.neighbours(i)) and sorted(near) == roster.neighbours(i) for i, near in enumerate(neighbours)
    )
    assert all(32 < len(near) <= 64 and i not in near for i, near in enumerate(neighbours))
    assert all(i in neighbours[j] for i in range(n) for j in neighbours[i])
    assert sum(map(len, neighbours)) / n > 64 * (1 - 64 / n)


def test_another_key_of_any_device_shuffles_the_graph():
    entries = some_entries(200)
    before = Roster.of(*ABOUT, entries)
    for field in ("mask_key", "share_key", "member_key"):
        changed = replace(entries[7], **{field: os.urandom(32)})
        after = Roster.of(*ABOUT, [*entries[:7], changed, *entries[8:]])
        common = set(before.neighbours(0)) & set(after.neighbours(0))
        assert len(common) < 40  # about 15 of 55 by chance


def test_the_digest_covers_round_manifest_kind_numbers_and_entries():
    entries = some_entries(200)
    roster = Roster.of(*ABOUT, entries)
    others = [
        Roster.of(bytes(16), MANIFEST, KIND, entries),
        Roster.of(ROUND_ID, bytes(32), KIND, entries),
        Roster.of(ROUND_ID, MANIFEST, 2, entries),
        Roster(*ABOUT, 66, 80, 39, roster.entries),
        Roster(*ABOUT, 64, 81, 40, roster.entries),
        Roster(*ABOUT, 64, 80, 40, roster.entries),
        Roster.of(*ABOUT, entries[1:]),
    ]
    assert len({r.digest for r in [roster, *others]}) == 8


def test_entries_are_found_by_id():
    entries = some_entries(9)
    roster = Roster.of(*ABOUT, entries)
    assert all(roster.entry(roster.index_of(entry.peer_id)) == entry for entry in entries)
    for absent in (bytes(16), b"\xff" * 16):
        with pytest.raises(PrivacyError, match="missing"):
            roster.index_of(absent)


def test_what_opens_shares_is_id_and_share_key_of_every_device():
    roster = Roster.of(*ABOUT, some_entries(4))
    entries = [roster.entry(i) for i in range(4)]
    assert roster.share_keys() == b"".join(entry.peer_id + entry.share_key for entry in entries)


def bad_rosters():
    good = sorted(entry.to_bytes() for entry in some_entries(200))
    entries, complete = b"".join(good), b"".join(good[:100])
    other_keys = good[0][:16] + os.urandom(96)
    repeated = good[1][:16] + good[0][16:48] + good[1][48:]
    crossed = good[1][:16] + good[0][48:80] + good[1][48:]
    same_member = good[1][:80] + good[0][80:]
    numbers = "its numbers {} neighbours, {} holders, threshold {} do not fit".format
    return {
        "multiple of 112": (*SPARSE, entries[:-1]),
        "it has 1 devices": (0, 0, 1, good[0]),
        "it has 8193 devices": (*SPARSE, bytes(112) * 8193),
        **{numbers(*given): (*given, entries) for given in (
            (62, 80, 39), (65, 80, 39), (100, 80, 39), (64, 79, 39), (64, 200, 98), (64, 80, 38), (64, 80, 81),
            (199, 199, 101),
        )},
        **{numbers(*given): (*given, complete) for given in (
            (98, 99, 51), (99, 98, 51), (99, 99, 50), (99, 99, 52), (64, 80, 39),
        )},
        "not strictly ascending": (*SPARSE, b"".join([good[1], good[0], *good[2:]])),
        "strictly ascending": (*SPARSE, b"".join([good[0], other_keys, *good[2:]])),
        "a key appears twice": (*SPARSE, b"".join([good[0], repeated, *good[2:]])),
        "key appears twice in it": (*SPARSE, b"".join([good[0], crossed, *good[2:]])),
        "appears twice in it": (*SPARSE, b"".join([good[0], same_member, *good[2:]])),
    }  # fmt: skip


@pytest.mark.parametrize("reason", bad_rosters())
def test_a_roster_against_the_rules_is_refused(reason):
    with pytest.raises(PrivacyError, match=reason):
        Roster(*ABOUT, *bad_rosters()[reason])


def test_wrong_lengths_are_refused():
    with pytest.raises(BufferSizeError, match="round_id"):
        Roster.of(bytes(15), MANIFEST, KIND, some_entries(3))
    with pytest.raises(BufferSizeError, match="manifest_sha256"):
        Roster.of(ROUND_ID, bytes(31), KIND, some_entries(3))
    with pytest.raises(BufferSizeError, match="roster entry"):
        RosterEntry.from_bytes(bytes(111))


def test_a_voucher_has_what_the_entry_lacks_of_the_membership():
    (entry,) = some_entries(1)
    vouched = VouchedEntry(entry, entry.member_key + os.urandom(72), os.urandom(64))
    assert len(vouched.voucher()) == 136
    assert VouchedEntry.from_voucher(entry, vouched.voucher()) == vouched


def test_a_membership_of_another_key_does_not_vouch_for_an_entry():
    authority = Ed25519PrivateKey.generate()
    member, (entry,) = new_member(authority), some_entries(1)
    vouched = VouchedEntry(replace(entry, member_key=member.key.public), member.membership, bytes(64))
    vouched.require_member([raw_key(authority)], NOW)
    with pytest.raises(PrivacyError, match="another key"):
        replace(vouched, entry=entry).require_member([raw_key(authority)], NOW)


def test_the_keys_of_an_entry_must_be_signed_for_its_round_unless_the_given_check_says_that_they_are():
    member, (entry,) = new_member(Ed25519PrivateKey.generate()), some_entries(1)
    entry = replace(entry, member_key=member.key.public)
    message = entry_message(ROUND_ID, entry.peer_id, entry.mask_key, entry.share_key)
    vouched = VouchedEntry(entry, member.membership, member.key.sign(message))
    vouched.require_own_keys(ROUND_ID)
    with pytest.raises(PrivacyError, match="of its own entry, does not fit"):
        vouched.require_own_keys(bytes(16))
    vouched.require_own_keys(bytes(16), lambda *_: True)


def test_bitmaps_name_devices_from_the_low_bit_on():
    assert bitmap_of([0, 9], 10) == b"\x01\x02"
    assert members(b"\x01\x02", 10) == {0, 9}
    for bad in (b"\x01", b"\x01\x04", b"\x01\x02\x00"):
        with pytest.raises(PrivacyError, match="not of 10 bits"):
            members(bad, 10)


def test_the_least_numbers_are_those_of_the_document():
    assert [quorum(n) for n in (2, 3, 5, 10, 256, 512)] == [2, 2, 3, 7, 179, 358]
    assert [least_threshold(h) for h in (80, 81, 160, 256)] == [39, 40, 78, 125]
    assert [least_neighbours(d) for d in (63, 64)] == [40, 40]
