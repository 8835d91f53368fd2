"""The server gets the exact sum of those who uploaded, whoever drops out when; beyond the threshold it gets nothing."""

from array import array
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightfr.errors import CohortTooSmallError
from lightfr.secagg import Vector, gate_blocks, shamir
from lightfr_harness.server.rules.secagg import MaskedSum, SecureSumError
from lightfr_harness.server.rules.uploads import UploadError
from tests.cohort import Cohort

RECORD_BYTES = 16 + 33


def assert_exact(cohort, sums):
    for name, expected in cohort.plain_sum().items():
        assert np.array_equal(sums[name], expected)


def some(source, members, rate):
    """A random part of the members, the rate rounded down."""
    return set(source.sample(sorted(members), int(rate * len(members))))


@settings(max_examples=60)
@given(
    n=st.integers(2, 12),
    rate=st.sampled_from([0, 0.1, 0.3]),
    phase=st.sampled_from(["share", "upload", "unmask"]),
    seed=st.integers(0, 2**32),
)
def test_the_sum_is_exact_when_devices_drop_out_at_any_phase(n, rate, phase, seed):
    absent = some(Random(seed), range(n), rate)
    cohort = Cohort(n).share(absent if phase == "share" else ())
    cohort.upload(absent if phase == "upload" else ())
    assert_exact(cohort, cohort.unmask(absent if phase == "unmask" else ()))


@pytest.mark.parametrize("n", [10, 12, 70])
def test_the_sum_is_exact_when_a_tenth_drops_out_at_every_phase(n):
    source, everyone = Random(n), set(range(n))
    not_sharing = some(source, everyone, 0.1)
    not_uploading = some(source, everyone - not_sharing, 0.1)
    silent = some(source, everyone - not_sharing - not_uploading, 0.1)
    cohort = Cohort(n).share(not_sharing).upload(not_uploading)
    assert cohort.roster.degree == min(n - 1, 64)
    assert_exact(cohort, cohort.unmask(silent))


def test_the_sum_is_exact_in_a_regular_graph_when_three_tenths_drop_out():
    cohort = Cohort(72).share().upload(some(Random(1), range(72), 0.3))
    assert cohort.roster.degree == 64
    assert_exact(cohort, cohort.unmask())


def test_sums_reach_both_ends_of_their_range():
    cohort = Cohort(4)
    cohort.vector = lambda _: extreme_vector(cohort.blocks)
    sums = cohort.share().upload().unmask()
    assert set(sums["rows"]) == {4, -4}
    assert set(sums["weight"]) == {256}


def extreme_vector(blocks):
    vector = Vector(blocks)
    for block in blocks:
        limit = 1 if block.name == "rows" else 64
        for j in range(block.count):
            vector[block.name][j] = -limit if j % 2 else limit
    return vector


def test_counts_of_a_gate_are_unsigned_and_may_be_as_many_as_the_cohort():
    cohort = Cohort(3)
    cohort.blocks = gate_blocks(3, 3)
    cohort.vector = lambda i: rated_vector(cohort.blocks, [1, 0, int(i == 1)])
    assert cohort.share().upload().unmask()["counts"].tolist() == [3, 0, 1]


def rated_vector(blocks, rated):
    vector = Vector(blocks)
    vector["counts"][:] = array("h", rated)
    return vector


def test_one_silent_device_too_many_ends_the_round_and_nothing_is_unmasked():
    cohort = Cohort(10).share().upload()
    masked = cohort.total._sum.pack()
    with pytest.raises(SecureSumError, match="5 shares of a secret arrived, 6 are needed"):
        cohort.unmask(absent=range(5))
    assert cohort.total._sum.pack() == masked


def test_devices_refuse_to_reveal_anything_when_too_many_are_gone_before_the_upload():
    cohort = Cohort(10).share().upload(absent=range(5))
    for i in cohort.alive():
        with pytest.raises(CohortTooSmallError):
            cohort.sessions[i].unmask(cohort.survivors, cohort.survivors_signature)
    with pytest.raises(SecureSumError, match="shares of a secret arrived"):
        cohort.total.finish()


def test_a_dropped_device_whose_key_lacks_shares_ends_the_round():
    """Seeds have one holder more than keys, the device itself: here that one decides."""
    cohort = Cohort(5).share().upload(absent=[0])
    silent = cohort.alive()[:2]
    with pytest.raises(SecureSumError, match="shares of a secret arrived"):
        cohort.unmask(absent=silent)


def test_masks_come_off_once():
    cohort = Cohort(3).share().upload()
    cohort.unmask()
    with pytest.raises(SecureSumError, match="shares of a secret arrived"):
        cohort.total.finish()


def test_a_round_without_uploads_or_not_closed_has_no_sum():
    cohort = Cohort(3).share()
    with pytest.raises(SecureSumError, match="not closed"):
        cohort.total.finish()
    cohort.upload(absent=range(3))
    with pytest.raises(SecureSumError, match="no device uploaded"):
        cohort.total.finish()


def test_a_bad_upload_is_refused_and_nothing_of_it_is_counted():
    cohort = Cohort(4).share(absent=[3])
    uploads = [cohort.mask(i) for i in range(3)]
    total, ids = cohort.total, cohort.ids
    total.add(ids[0], uploads[0])
    dirty = uploads[1][:-1] + bytes([uploads[1][-1] | 0x80])
    for peer_id, packed, reason in (
        (ids[0], uploads[0], "already"),
        (ids[3], uploads[1], "delivered no shares"),
        (bytes(16), uploads[1], "not in the roster"),
        (ids[1], uploads[1][1:], "expected"),
        (ids[1], dirty, "behind the last number"),
    ):
        with pytest.raises(UploadError, match=reason):
            total.add(peer_id, packed)
    total.add(ids[1], uploads[1])
    total.add(ids[2], uploads[2])
    cohort.survivors, cohort.survivors_signature = total.close(cohort.server)
    with pytest.raises(UploadError, match="settled"):
        total.add(ids[2], uploads[2])
    assert_exact(cohort, cohort.unmask())


def test_bad_revealed_shares_are_refused_and_none_is_kept():
    cohort = Cohort(5).share().upload(absent=[4])
    total = cohort.total
    good = cohort.sessions[0].unmask(cohort.survivors, cohort.survivors_signature)
    one = good.self_masks[:RECORD_BYTES]
    for shares, reason in (
        (replace(good, sender=bytes(16)), "not in the roster"),
        (replace(good, sender=cohort.ids[4]), "not a survivor"),
        (replace(good, self_masks=good.self_masks[:-1]), "not a number of the field"),
        (
            replace(good, self_masks=one[:16] + b"\xff" * 33 + good.self_masks[RECORD_BYTES:]),
            "not a number of the field",
        ),
        (replace(good, self_masks=good.self_masks[RECORD_BYTES:]), "self-mask share for each survivor"),
        (replace(good, self_masks=one + good.self_masks), "ascending id"),
        (replace(good, self_masks=good.self_masks[RECORD_BYTES:] + one), "ascending id"),
        (replace(good, mask_keys=b""), "mask-key share for each dropped"),
        (replace(good, mask_keys=one + good.mask_keys), "mask-key share for each dropped"),
    ):
        with pytest.raises(UploadError, match=reason):
            total.reveal(shares)
    total.reveal(good)
    with pytest.raises(UploadError, match="already"):
        total.reveal(good)
    for i in (1, 2, 3):
        total.reveal(cohort.sessions[i].unmask(cohort.survivors, cohort.survivors_signature))
    assert_exact(cohort, total.finish())


def spoiled(records, at=RECORD_BYTES - 33):
    """The same records with another first share."""
    return records[:at] + bytes([records[at] ^ 1]) + records[at + 1 :]


@pytest.mark.parametrize("field", ["self_masks", "mask_keys"])
def test_a_false_share_ends_the_round_and_nothing_is_unmasked(field):
    cohort = Cohort(6).share().upload(absent=[5])
    for i in cohort.alive():
        shares = cohort.sessions[i].unmask(cohort.survivors, cohort.survivors_signature)
        if i == 0:
            shares = replace(shares, **{field: spoiled(getattr(shares, field))})
        cohort.total.reveal(shares)
    masked = cohort.total._sum.pack()
    with pytest.raises(SecureSumError, match="ends without a sum"):
        cohort.total.finish()
    assert cohort.total._sum.pack() == masked


def test_a_mask_key_that_is_not_the_advertised_one_ends_the_round():
    """All shares agree with each other, but on another key than the roster has."""
    cohort = Cohort(4).share().upload(absent=[3])
    other = shamir.split(bytes(32), [1, 2, 3], cohort.roster.threshold, Random(1).randbytes)
    for i in cohort.alive():
        shares = cohort.sessions[i].unmask(cohort.survivors, cohort.survivors_signature)
        cohort.total.reveal(replace(shares, mask_keys=shares.mask_keys[:16] + other[i]))
    with pytest.raises(SecureSumError, match="not the one advertised"):
        cohort.total.finish()


def test_a_device_that_dropped_without_any_neighbour_left_needs_no_shares():
    """Its masks are in no upload. In a regular graph it may lie beyond all survivors' neighbourhoods."""
    cohort = Cohort(200)
    near = set(cohort.roster.neighbours(0)) | {0}
    far = next(i for i in range(200) if near.isdisjoint(cohort.roster.neighbours(i)) and i not in near)
    everyone = b"\xff" * 25
    total = MaskedSum(cohort.roster, everyone, cohort.blocks)
    total._survivors = frozenset(near)
    assert far not in set(total._dropped())
