"""The server gets the exact sum of those who uploaded, whoever drops out when; beyond the threshold it gets nothing."""

from array import array
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightfr.secagg import RevealedShares, Vector, gate_blocks, shamir
from lightfr.secagg.views import members
from lightfr_harness.server.rules.plausible import ImplausibleSumError, require_plausible_counts
from lightfr_harness.server.rules.secagg import MaskedSum, MissingSharesError, SecureSumError, settle_included
from lightfr_harness.server.rules.uploads import UploadError
from tests.adversary.cohort import remembered_signatures
from tests.sdk.secagg.cohorts import Cohort

RECORD_BYTES = 4 + 33


def assert_exact(cohort, sums):
    for name, expected in cohort.plain_sum().items():
        assert np.array_equal(sums[name], expected)


def alive(cohort):
    return sorted(members(cohort.survivors, cohort.n))


def uploaded(cohort, absent=()):
    return cohort.share().acknowledge().sign_included().upload(absent).sign_survivors()


def unmasked(cohort, silent=()):
    for i in alive(cohort):
        if i not in silent:
            cohort.total.reveal(i, cohort.reveal_by(i))
    return cohort.total.finish()


def some(source, devices, rate):
    """A random part of the devices, the rate rounded down."""
    return set(source.sample(sorted(devices), int(rate * len(devices))))


@settings(max_examples=40)
@given(
    n=st.integers(2, 12),
    rate=st.sampled_from([0, 0.1, 0.3]),
    phase=st.sampled_from(["share", "acknowledge", "upload", "reveal"]),
    seed=st.integers(0, 2**32),
)
def test_the_sum_is_exact_when_devices_drop_out_at_any_phase(n, rate, phase, seed):
    absent = some(Random(seed), range(n), rate)
    cohort = Cohort(n).share(absent if phase == "share" else ()).acknowledge(absent if phase == "acknowledge" else ())
    cohort.sign_included().upload(absent if phase == "upload" else ()).sign_survivors()
    assert_exact(cohort, unmasked(cohort, absent if phase == "reveal" else ()))


@remembered_signatures()
def test_the_sum_is_exact_in_a_sparse_graph_when_a_tenth_drops_out_twice():
    cohort = uploaded(Cohort(130), absent=some(Random(1), range(130), 0.1))
    assert not cohort.roster.is_complete
    assert_exact(cohort, unmasked(cohort, some(Random(2), alive(cohort), 0.1)))


def test_sums_reach_both_ends_of_their_range():
    cohort = Cohort(4)
    cohort.vector = lambda _: extreme_vector(cohort.blocks)
    sums = unmasked(uploaded(cohort))
    assert set(sums["rows"]) == {4, -4}
    assert set(sums["weight"]) == {256}


def extreme_vector(blocks):
    vector = Vector(blocks)
    for block in blocks:
        limit = 1 if block.name == "rows" else 64
        for j in range(block.count):
            vector[block.name][j] = -limit if j % 2 else limit
    return vector


def test_counts_of_a_gate_may_be_as_many_as_the_cohort():
    cohort = Cohort(3)
    cohort.blocks = gate_blocks(3, 3)
    cohort.vector = lambda i: rated_vector(cohort.blocks, [1, 0, int(i == 1)])
    assert unmasked(uploaded(cohort))["counts"].tolist() == [3, 0, 1]


def rated_vector(blocks, rated):
    vector = Vector(blocks)
    vector["counts"][:] = array("h", rated)
    return vector


def test_one_silent_device_too_many_ends_the_round_and_nothing_is_unmasked():
    cohort = uploaded(Cohort(10))
    masked = cohort.total._sum.pack()
    with pytest.raises(MissingSharesError, match="5 shares of a secret arrived, 6 are needed"):
        unmasked(cohort, silent=range(5))
    assert cohort.total._sum.pack() == masked
    assert not cohort.total.faulty()


def test_masks_come_off_once():
    cohort = uploaded(Cohort(3))
    unmasked(cohort)
    with pytest.raises(SecureSumError, match="shares of a secret arrived"):
        cohort.total.finish()


def test_a_round_without_uploads_or_not_closed_has_no_sum():
    cohort = Cohort(3).share().acknowledge().sign_included()
    cohort.upload(absent=range(3))
    with pytest.raises(SecureSumError, match="no device uploaded"):
        cohort.total.finish()


def test_a_bad_upload_is_refused_and_nothing_of_it_is_counted():
    cohort = Cohort(4).share().acknowledge(absent=[3]).sign_included()
    uploads = [cohort.upload_by(i) for i in range(3)]
    holders = {sender: list(sealed) for sender, sealed in cohort.sealed.items()}
    unopened = {i: members(bitmap, 4) for i, bitmap in cohort.unopened.items()}
    total = MaskedSum(cohort.roster, cohort.blocks, members(cohort.included, 4), holders, unopened)
    total.add(0, uploads[0])
    dirty = uploads[1][:-1] + bytes([uploads[1][-1] | 0x80])
    for index, packed, reason in (
        (0, uploads[0], "already"),
        (3, uploads[1], "not included"),
        (1, uploads[1][1:], "expected"),
        (1, dirty, "behind the last number"),
    ):
        with pytest.raises(UploadError, match=reason):
            total.add(index, packed)
    total.add(1, uploads[1])
    assert total.close() == {0, 1}
    with pytest.raises(UploadError, match="settled"):
        total.add(2, uploads[2])


def test_bad_revealed_shares_are_refused_and_none_is_kept():
    cohort = uploaded(Cohort(5), absent=[4])
    total, (seeds, keys) = cohort.total, cohort.reveal_by(0)
    one = seeds[:RECORD_BYTES]
    for holder, false_seeds, false_keys, reason in (
        (4, seeds, keys, "not a survivor"),
        (0, seeds[:-1], keys, "whole"),
        (0, seeds[:-33] + b"\xff" * 33, keys, "not a number of the field"),
        (0, seeds[RECORD_BYTES:], keys, "for each survivor"),
        (0, one + seeds, keys, "ascending"),
        (0, seeds[RECORD_BYTES:] + one, keys, "ascending"),
        (0, seeds, b"", "for each dropped"),
        (0, seeds, one + keys, "for each dropped"),
    ):
        with pytest.raises(UploadError, match=reason):
            total.reveal(holder, RevealedShares(false_seeds, false_keys))
    total.reveal(0, RevealedShares(seeds, keys))
    with pytest.raises(UploadError, match="already"):
        total.reveal(0, RevealedShares(seeds, keys))
    for i in (1, 2, 3):
        total.reveal(i, cohort.reveal_by(i))
    assert_exact(cohort, total.finish())


def spoilt(records):
    """Each record with another share."""
    changed = bytearray(records)
    for at in range(4, len(records), RECORD_BYTES):
        changed[at] ^= 1
    return bytes(changed)


@pytest.mark.parametrize("field", ["seeds", "mask_keys"])
def test_a_device_that_reveals_false_shares_is_corrected_and_named(field):
    cohort = uploaded(Cohort(9), absent=[8])
    for i in alive(cohort):
        shares = cohort.reveal_by(i)
        cohort.total.reveal(i, shares._replace(**{field: spoilt(getattr(shares, field))}) if i == 2 else shares)
    assert_exact(cohort, cohort.total.finish())
    # A single false share of a mask key does not say which of the two lied.
    assert cohort.total.faulty() == ({2} if field == "seeds" else set())


def reveal_all(cohort, liars, about=None):
    """Let everybody reveal; liars say something else about the seed of one device, or about all."""
    for i in alive(cohort):
        shares = cohort.reveal_by(i)
        seeds = b"".join(
            spoilt(record) if i in liars and (about is None or record[0] == about) else record
            for record in (shares.seeds[at : at + RECORD_BYTES] for at in range(0, len(shares.seeds), RECORD_BYTES))
        )
        cohort.total.reveal(i, shares._replace(seeds=seeds))


def test_some_who_lie_together_about_one_device_do_not_have_it_blamed():
    cohort = uploaded(Cohort(12))
    reveal_all(cohort, liars={5, 9}, about=3)
    assert_exact(cohort, cohort.total.finish())
    assert cohort.total.faulty() == set()


@pytest.mark.parametrize(("n_owners", "guilty"), [(6, set()), (7, {0})])
def test_a_holder_is_blamed_for_more_than_half_of_its_shares(n_owners, guilty):
    """Fewer may come of owners who have dealt it false ones, to have it blamed."""
    cohort = uploaded(Cohort(12))
    for i in alive(cohort):
        shares = cohort.reveal_by(i)
        end = n_owners * RECORD_BYTES
        cohort.total.reveal(
            i, shares._replace(seeds=spoilt(shares.seeds[:end]) + shares.seeds[end:]) if i == 0 else shares
        )
    assert_exact(cohort, cohort.total.finish())
    assert cohort.total.faulty() == guilty


def test_who_lies_about_everybody_does_not_count_where_too_many_shares_of_a_secret_are_false():
    """Three lie. Of most secrets two of them have a share, which can be corrected; of the others all three have."""
    cohort, lost = Cohort(12).share(), {0: (3, 5, 6), 4: (7, 9), 8: (10, 11)}
    for liar, owners in lost.items():
        for owner in owners:
            cohort.sealed[owner][liar] = bytes(len(cohort.sealed[owner][liar]))
    cohort.acknowledge().sign_included().upload().sign_survivors()
    reveal_all(cohort, liars=set(lost))
    assert_exact(cohort, cohort.total.finish())
    assert cohort.total.faulty() == set(lost)


def test_a_false_share_among_just_enough_gives_a_sum_that_is_not_plausible():
    """Nobody can see it in the shares: any six values lie on a polynomial. The mask that comes off is another one."""
    cohort, n_items = Cohort(10), 200
    cohort.blocks = gate_blocks(n_items, 10)
    cohort.vector = lambda i: rated_vector(cohort.blocks, [1] * n_items)
    uploaded(cohort)
    for i in alive(cohort)[:6]:
        shares = cohort.reveal_by(i)
        cohort.total.reveal(i, shares._replace(seeds=spoilt(shares.seeds)) if i == 2 else shares)
    counts = cohort.total.finish()["counts"].astype(np.int64)
    assert cohort.total.faulty() == set()
    with pytest.raises(ImplausibleSumError):
        require_plausible_counts(counts, 10)


def test_a_device_whose_shares_do_not_fit_together_ends_the_round_and_is_named():
    cohort = uploaded(Cohort(9))
    for i in alive(cohort):
        seeds = bytearray(cohort.reveal_by(i).seeds)
        at = next(at for at in range(0, len(seeds), RECORD_BYTES) if seeds[at] == 3)
        seeds[at + 4 : at + 8] = Random(i).randbytes(4)
        cohort.total.reveal(i, RevealedShares(bytes(seeds), b""))
    masked = cohort.total._sum.pack()
    with pytest.raises(SecureSumError, match="ends without a sum"):
        cohort.total.finish()
    assert cohort.total._sum.pack() == masked
    assert cohort.total.faulty() == {3}


def test_a_mask_key_that_is_not_the_advertised_one_ends_the_round_and_names_its_owner():
    """All shares agree with each other, but on another key than the roster has."""
    cohort = uploaded(Cohort(4), absent=[3])
    other = shamir.split(bytes(32), [1, 2, 3], cohort.roster.threshold, Random(1).randbytes)
    for i in alive(cohort):
        shares = cohort.reveal_by(i)
        cohort.total.reveal(i, shares._replace(mask_keys=shares.mask_keys[:4] + other[i]))
    with pytest.raises(SecureSumError, match="not the one advertised"):
        cohort.total.finish()
    assert cohort.total.faulty() == {3}


@pytest.fixture(scope="module")
def ten():
    return Cohort(10).roster


def everybody(n, but=()):
    return {i: [j for j in range(n) if j != i] for i in range(n) if i not in but}


def test_who_shared_and_acknowledged_is_included(ten):
    unopened = {i: frozenset() for i in range(10) if i != 4}
    settled = settle_included(ten, everybody(10, but=[7]), unopened)
    assert (settled.devices, settled.faulty) == (set(range(10)) - {4, 7}, set())


def test_who_sends_garbage_to_many_is_left_out_and_named(ten):
    unopened = {i: frozenset({2} - {i}) for i in range(10)}
    settled = settle_included(ten, everybody(10), unopened)
    assert (settled.devices, settled.faulty) == (set(range(10)) - {2}, {2})


def test_who_complains_about_most_others_is_left_out_named_and_not_believed(ten):
    unopened = {i: frozenset(range(10)) - {i} if i == 5 else frozenset() for i in range(10)}
    settled = settle_included(ten, everybody(10), unopened)
    assert (settled.devices, settled.faulty) == (set(range(10)) - {5}, {5})


def test_a_few_complaints_leave_out_nobody(ten):
    unopened = {i: frozenset({2} - {i}) if i < 2 else frozenset() for i in range(10)}
    assert settle_included(ten, everybody(10), unopened).devices == set(range(10))


def settled(roster, senders, acknowledged, complaints=()):
    """Who goes on and who is at fault, of (holder, owner) complaints."""
    unopened = {i: frozenset(owner for holder, owner in complaints if holder == i) for i in acknowledged}
    return settle_included(roster, {i: [j for j in range(10) if j != i] for i in senders}, unopened)


@pytest.mark.parametrize(
    ("senders", "n_complaints", "is_liar"),
    [
        (range(10), 4, False),  # of 9 senders
        (range(10), 5, True),
        (range(1, 10), 4, False),  # of 8
        (range(1, 10), 5, True),
        ([9], 1, False),  # of one, but not two at least
        ([8, 9], 1, False),
        ([8, 9], 2, True),
        ([7, 8, 9], 2, True),
        ([6, 7, 8, 9], 2, False),
    ],
)
def test_who_complains_about_more_than_half_of_its_senders_and_about_two_at_least_lies(
    ten, senders, n_complaints, is_liar
):
    complaints = [(0, owner) for owner in range(10 - n_complaints, 10)]
    it = settled(ten, senders, range(10), complaints)
    assert it.faulty == ({0} if is_liar else set())
    assert it.devices == set(senders) - it.faulty


@pytest.mark.parametrize(("n_complaints", "is_faulty"), [(1, False), (2, False), (3, True), (4, True)])
def test_more_complaints_than_half_of_the_spare_shares_leave_their_sender_out_as_faulty(ten, n_complaints, is_faulty):
    """Nine holders and the sender have 10 shares, of which 6 are needed."""
    it = settled(ten, range(10), range(10), [(holder, 7) for holder in range(n_complaints)])
    assert (7 in it.faulty, 7 in it.devices) == (is_faulty, not is_faulty)
    assert it.devices >= set(range(10)) - {7}


@pytest.mark.parametrize(("n_complaints", "is_faulty"), [(1, False), (2, True)])
def test_half_of_the_spare_shares_is_rounded_down(n_complaints, is_faulty):
    """Of 8 shares 5 are needed: there are 3 to spare."""
    unopened = {i: frozenset({7} if i < n_complaints else ()) for i in range(8)}
    it = settle_included(Cohort(8).roster, everybody(8), unopened)
    assert (7 in it.faulty, 7 in it.devices) == (is_faulty, not is_faulty)


def test_as_many_shares_as_are_needed_must_have_opened(ten):
    """Each of six that acknowledged has six shares with its own."""
    everybody_of_six = settled(ten, range(10), range(6))
    assert (everybody_of_six.devices, everybody_of_six.faulty) == (set(range(6)), set())
    one_did_not_open = settled(ten, range(10), range(6), [(0, 5)])
    assert (one_did_not_open.devices, one_did_not_open.faulty) == (set(range(5)), set())
    nobody_of_five = settled(ten, range(10), range(5))
    assert (nobody_of_five.devices, nobody_of_five.faulty) == (set(), set())


def test_a_complaint_of_who_got_no_share_does_not_count(ten):
    holders = {i: [j for j in range(10) if j != i] for i in range(10)}
    holders[7] = [1, 2, 3, 4, 5, 6]
    unopened = {i: frozenset({7}) if i in (0, 8, 9) else frozenset() for i in range(10)}
    assert settle_included(ten, holders, unopened).devices == set(range(10))
