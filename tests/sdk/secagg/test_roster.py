"""A roster is refused unless it follows the rules, and its graph is regular, symmetric and shuffled by every key."""

import os

import pytest

from lightfr.errors import BufferSizeError, PrivacyError
from lightfr.secagg import Roster, RosterEntry
from lightfr.secagg.roster import bitmap_of, members

ROUND_ID = bytes(range(16))


def some_entries(n):
    return [RosterEntry.from_bytes(os.urandom(80)) for _ in range(n)]


@pytest.mark.parametrize(
    ("n", "degree", "threshold"), [(2, 1, 2), (3, 2, 2), (65, 64, 33), (66, 64, 33), (300, 64, 33)]
)
def test_each_device_has_as_many_neighbours_as_it_should_and_is_theirs(n, degree, threshold):
    roster = Roster.of(ROUND_ID, some_entries(n))
    assert (roster.degree, roster.threshold) == (degree, threshold)
    neighbours = [set(roster.neighbours(i)) for i in range(n)]
    assert all(len(near) == degree and i not in near for i, near in enumerate(neighbours))
    assert all(i in neighbours[j] for i in range(n) for j in neighbours[i])


def test_another_key_of_any_device_shuffles_the_graph():
    entries = some_entries(200)
    before = Roster.of(ROUND_ID, entries)
    changed = RosterEntry(entries[7].peer_id, entries[7].mask_key, os.urandom(32))
    after = Roster.of(ROUND_ID, [*entries[:7], changed, *entries[8:]])
    common = set(before.neighbours(0)) & set(after.neighbours(0))
    assert len(common) < 50  # about 20 of 64 by chance


def test_the_digest_covers_round_threshold_degree_and_entries():
    entries = some_entries(70)
    roster = Roster.of(ROUND_ID, entries)
    others = [
        Roster.of(bytes(16), entries),
        Roster(ROUND_ID, 64, 34, roster.entries),
        Roster(ROUND_ID, 66, 34, roster.entries),
        Roster.of(ROUND_ID, entries[1:]),
    ]
    assert len({r.digest for r in [roster, *others]}) == 5


def test_entries_are_found_by_id():
    entries = some_entries(9)
    roster = Roster.of(ROUND_ID, entries)
    assert all(roster.entry(roster.index_of(entry.peer_id)) == entry for entry in entries)
    for absent in (bytes(16), b"\xff" * 16):
        with pytest.raises(PrivacyError, match="missing"):
            roster.index_of(absent)


def bad_rosters():
    good = sorted(entry.to_bytes() for entry in some_entries(70))
    other_keys = good[0][:16] + os.urandom(64)
    swapped_key = good[1][:16] + good[0][16:48] + good[1][48:]
    crossed_key = good[1][:16] + good[0][48:80] + good[1][48:]
    return {
        "multiple of 80": (64, 33, b"".join(good)[:-1]),
        "it has 1 devices": (0, 1, good[0]),
        "it has 8193 devices": (64, 33, bytes(80) * 8193),
        "62 neighbours do not fit": (62, 33, b"".join(good)),
        "65 neighbours do not fit": (65, 34, b"".join(good)),
        "70 neighbours do not fit": (70, 37, b"".join(good)),
        "threshold 32 is not 33 to 65": (64, 32, b"".join(good)),
        "threshold 66 is not 33 to 65": (64, 66, b"".join(good)),
        "not strictly ascending": (64, 33, b"".join([good[1], good[0], *good[2:]])),
        "strictly ascending": (64, 33, b"".join([good[0], other_keys, *good[2:]])),
        "a key appears twice": (64, 33, b"".join([good[0], swapped_key, *good[2:]])),
        "appears twice in it": (64, 33, b"".join([good[0], crossed_key, *good[2:]])),
    }


@pytest.mark.parametrize("reason", bad_rosters())
def test_a_roster_against_the_rules_is_refused(reason):
    with pytest.raises(PrivacyError, match=reason):
        Roster(ROUND_ID, *bad_rosters()[reason])


def test_wrong_lengths_are_refused():
    with pytest.raises(BufferSizeError, match="round_id"):
        Roster.of(bytes(15), some_entries(3))
    with pytest.raises(BufferSizeError, match="roster entry"):
        RosterEntry.from_bytes(bytes(79))


def test_bitmaps_name_devices_from_the_low_bit_on():
    assert bitmap_of([0, 9], 10) == b"\x01\x02"
    assert members(b"\x01\x02", 10) == {0, 9}
    for bad in (b"\x01", b"\x01\x04", b"\x01\x02\x00"):
        with pytest.raises(PrivacyError, match="not of 10 bits"):
            members(bad, 10)
