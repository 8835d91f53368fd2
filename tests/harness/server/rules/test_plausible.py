"""What a cohort cannot have said is not learnt from; what it can have said is."""

from math import isqrt

import numpy as np
import pytest

from lightfr.v1 import model_pb2
from lightfr_harness.server.rules import CatalogueRule
from lightfr_harness.server.rules.plausible import (
    Counts,
    ImplausibleSumError,
    cut,
    implausible_rows,
    require_plausible_clipped,
    require_plausible_counts,
    require_plausible_energy,
    require_plausible_users,
    shortened,
)
from tests.harness.server.rules import plain_bounds as plain

N, ITEMS, BITS = 256, 300, 64
# Of a fleet of 1,000: the most popular item is rated by half of it, the last by ten.
COUNTS = np.linspace(500, 10, ITEMS).astype(np.int64)


def honest(seed, n=N, counts=COUNTS, fleet=1000):
    """Sums as training has them: whoever rates an item says the same about a fifth of it, and noise."""
    rng = np.random.default_rng(seed)
    raters = rng.binomial(n, counts / fleet)[:, None]
    direction = np.random.default_rng(1).choice([-1, 1], (len(counts), BITS))
    said = rng.binomial(raters, 0.3, (len(counts), BITS))
    noise = np.clip(np.rint(rng.normal(0, 10**0.5, said.shape)), -n, n).astype(int)
    rows = 2 * rng.binomial(said, 0.5 + 0.2 * direction) - said + noise
    user_sum = rng.integers(-50 * n, 50 * n, BITS)
    return {"rows": rows.ravel(), "user_sum": user_sum, "weight": np.array([50 * n])}


def server(gate=10, counts=COUNTS, devices=1000):
    made = CatalogueRule(
        counts, BITS, upload_kind=model_pb2.UPLOAD_KIND_TERNARY, gate=gate, max_rows=64, seed=1,
        privacy_mode=model_pb2.PRIVACY_MODE_SECAGG,
    )  # fmt: skip
    made.counting_devices = np.array([0, devices])
    return made


def train(rule, rounds, push=None, first=0):
    """Rounds of the fleet, with a push of one row in each of them; how many rows were implausible."""
    n_implausible = 0
    for seed in range(first, first + rounds):
        sums = honest(seed)
        if push is not None:
            row, amplitude = push
            sums["rows"].reshape(-1, BITS)[row] += amplitude * np.random.default_rng(9).choice([-1, 1], BITS)
        n_implausible += rule.add_cohort(sums, N)
        rule.finish_round()
    return n_implausible


@pytest.mark.parametrize("devices", [1000, 0])
@pytest.mark.parametrize("n", [2, 24, 256, 2000])
def test_honest_sums_are_plausible_whether_or_not_it_is_known_how_many_counted(n, devices):
    for seed in range(20):
        sums = honest(seed, n)
        assert not implausible_rows(sums["rows"].reshape(-1, BITS), Counts(COUNTS, devices), n).any()
        require_plausible_users(sums["user_sum"], int(sums["weight"][0]), n)


@pytest.mark.parametrize("code_bits", [128, 256, 1024])
def test_the_noise_of_longer_codes_is_plausible_and_much_more_is_not(code_bits):
    counts, rng = Counts(COUNTS[-100:], 1000), np.random.default_rng(code_bits)
    noise = np.rint(rng.normal(0, (code_bits / 8) ** 0.5, (100, code_bits))).astype(np.int64)
    assert not implausible_rows(noise, counts, N).any()
    require_plausible_energy(noise, counts, N)
    with pytest.raises(ImplausibleSumError, match="rows together say more"):
        require_plausible_energy(2 * noise, counts, N)


def test_honest_rounds_are_learnt_from_but_for_the_tails_of_noise():
    rule, plain = server(), server(gate=0)
    assert train(rule, 30) == 0
    train(plain, 30)
    assert (rule.signs() != plain.signs()).mean() < 0.001


def test_numbers_far_above_what_is_usual_for_a_row_are_cut():
    """Two rows of counts 90 and 10, of 100: 90 and 10 of 100 devices upload them, and one more."""
    rows = np.array([[80, 50, 20, -3], [60, -50, -21, 3]])
    result = cut(rows, Counts(np.array([90, 10]), 100), 100)
    # 91 // 2 + 3 * 11 and 11 // 2 + 3 * 5.
    assert result.tolist() == [[78, 50, 20, -3], [20, -20, -20, 3]]


def test_one_row_that_says_more_than_its_devices_can_stays_as_it_is():
    rule, plain = server(), server()
    train(rule, 3)
    train(plain, 3)
    before = rule.codes.copy()
    assert train(rule, 1, push=(290, 200), first=3) == 1
    assert train(plain, 1, first=3) == 0
    others = np.arange(ITEMS + 1) != 290
    assert np.array_equal(rule.codes[290], before[290])
    assert np.array_equal(rule.codes[others], plain.codes[others])


def test_a_popular_item_may_be_told_more_about_than_a_rare_one():
    rows = np.zeros((ITEMS, BITS), np.int64)
    rows[[0, 290], 5] = 120
    assert np.flatnonzero(implausible_rows(rows, Counts(COUNTS, 1000), N)).tolist() == [290]


def test_many_implausible_rows_spoil_the_sum_and_nothing_is_counted():
    rule = server()
    before = {name: value.copy() for name, value in rule.state().items()}
    sums = honest(0)
    sums["rows"] = np.random.default_rng(0).integers(-288, 288, ITEMS * BITS)
    with pytest.raises(ImplausibleSumError, match="rows say more"):
        rule.add_cohort(sums, N)
    rule.finish_round()
    assert np.array_equal(rule.state()["own_codes"], before["own_codes"])


@pytest.mark.parametrize(("half", "much"), [(slice(0, ITEMS // 2), 30), (slice(ITEMS // 2, ITEMS), 12)])
def test_a_little_too_much_in_half_of_the_rows_spoils_the_sum(half, much):
    rule = server()
    train(rule, 3)
    sums = honest(3)
    added = np.random.default_rng(0).choice([-much, much], (ITEMS // 2, BITS))
    sums["rows"].reshape(-1, BITS)[half] += added
    with pytest.raises(ImplausibleSumError, match="rows together say more"):
        rule.add_cohort(sums, N)


@pytest.mark.parametrize(
    ("user", "weight", "match"),
    [(0, 25 * N, "weight"), (0, 71 * N, "weight"), (0, -1, "weight"), (75 * N, 50 * N, "user sum")],
)
def test_weights_and_user_sums_that_so_many_devices_cannot_have_spoil_the_sum(user, weight, match):
    with pytest.raises(ImplausibleSumError, match=match):
        require_plausible_users(np.array([0, -user]), weight, N)


def test_counts_below_zero_or_above_the_devices_spoil_a_refresh():
    require_plausible_counts(np.array([-32, 256 + 32]), 256)
    for counts in ([-33], [256 + 33]):
        with pytest.raises(ImplausibleSumError, match="count"):
            require_plausible_counts(np.array(counts), 256)
    rule = server(counts=np.zeros(3, np.int64))
    with pytest.raises(ImplausibleSumError):
        rule.set_gate(np.array([10, 400, 10]), seed=1, devices=N)
    assert not rule.awaits_refresh


def test_a_row_that_is_pushed_round_after_round_gets_no_further_than_others_of_its_count():
    """Far below what is implausible in one round. Without a limit the pushed pattern would be the row's code."""
    pattern = np.random.default_rng(9).choice([-1, 1], BITS)
    free, held = server(gate=0), server()
    for rule in (free, held):
        assert train(rule, 20) == 0
        assert train(rule, 20, push=(200, 40), first=20) == 0
    lengths = (held.trails.astype(np.int64) ** 2).sum(axis=1)
    assert lengths[200] < 5 * np.median(lengths[195:205])
    assert (free.signs()[200] == pattern).mean() > 0.9
    assert (free.trails[200].astype(np.int64) ** 2).sum() > 4 * lengths[200]


def test_a_row_that_is_too_long_is_shortened_and_keeps_its_direction():
    trails = np.zeros((101, BITS), np.int64)
    rows = np.full((101, BITS), 4, np.int64)
    rows[50] = 800
    result = shortened(rows, trails, Counts(np.full(101, 20), 100), N)
    assert np.array_equal(np.delete(result, 50, 0), np.delete(rows, 50, 0))
    assert 0 <= result[50, 0] < 800


def test_without_counts_no_row_may_say_more_than_all_devices():
    rule = server(gate=0, counts=np.zeros(ITEMS, np.int64), devices=0)
    assert train(rule, 1, push=(290, 250)) == 0
    assert train(rule, 1, push=(290, 320), first=1) == 1


NOISE = model_pb2.Noise(rows_thousandths=34_000, sums_thousandths=4_300, counts_thousandths=500)


def clipped(seed, n=N):
    """Sums of mode SECAGG_DP as training has them: devices agree in a quarter of what they say, and noise."""
    rng = np.random.default_rng(seed)
    signal = rng.normal(0, 1, (ITEMS, BITS))
    signal *= 8 * BITS * n / 4 / np.linalg.norm(signal)
    rows = np.rint(signal + rng.normal(0, 34 * n**0.5, signal.shape)).astype(np.int64)
    return {"rows": rows.ravel(), "user_sum": np.rint(rng.normal(0, 4.3 * n**0.5, BITS)).astype(np.int64)}


def noisy_server():
    return CatalogueRule(
        np.zeros(ITEMS, np.int64), BITS, upload_kind=model_pb2.UPLOAD_KIND_EXACT, gate=0, max_rows=0, seed=1,
        privacy_mode=model_pb2.PRIVACY_MODE_SECAGG_DP, noise=NOISE,
    )  # fmt: skip


@pytest.mark.parametrize("n", [2, 24, 256, 2000])
def test_honest_clipped_sums_are_plausible(n):
    rule = noisy_server()
    for seed in range(10):
        assert rule.add_cohort(clipped(seed, n), n) == 0
        rule.finish_round()


@pytest.mark.parametrize("bits", [14, 16, 17])
def test_garbage_of_one_device_spoils_a_clipped_sum(bits):
    """At 256 devices the numbers of rows have 17 bits."""
    sums, rng = clipped(0), np.random.default_rng(1)
    sums["rows"] += rng.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), ITEMS * BITS)
    with pytest.raises(ImplausibleSumError, match="row"):
        noisy_server().add_cohort(sums, N)


# At 256 devices: 256 (38 + 64) and eight deviations of 16 * 34; the same of 16 * 4.3 on top of the devices.
@pytest.mark.parametrize(
    ("block", "most", "match"), [("rows", 256 * 102 + 4353, "a row"), ("user_sum", 256 + 551, "user sum")]
)
def test_one_number_beyond_what_devices_and_noise_reach_spoils_a_clipped_sum(block, most, match):
    for sign in (-1, 1):
        sums = clipped(0)
        sums[block][3] = sign * most
        noisy_server().add_cohort(sums, N)
        sums[block][3] = sign * (most + 1)
        with pytest.raises(ImplausibleSumError, match=match):
            noisy_server().add_cohort(sums, N)


def test_noisy_counts_below_zero_or_above_the_devices_spoil_a_refresh():
    require_plausible_counts(np.array([-65, 256 + 65]), 256, NOISE)
    for counts in ([-66], [256 + 66]):
        with pytest.raises(ImplausibleSumError, match="count"):
            require_plausible_counts(np.array(counts), 256, NOISE)


# What is plausible at the most, and one more than that: docs/protocol.md.

FLEETS = [
    (COUNTS, 1000, N),
    (COUNTS, 0, N),
    (np.array([1, 1, 2, 3]), 3, 2),
    (np.array([40, 12, 7, 1]), 40, 24),
    (np.array([900, 880, 30, 29, 2]), 1001, 500),
    (np.array([0, 100, 3000]), 90_000, 3000),
    (np.array([1]), 0, 40),
]


def squares(energy, shape):
    """Rows with exactly so much in them, about the same in most numbers; the last number is 0."""
    rows = np.zeros(shape, np.int64)
    most = max(rows.size - 10, 0)
    rows.flat[:most] = isqrt(energy // (most + 1))
    for place in range(most, rows.size):
        rows.flat[place] = isqrt(energy - int((rows**2).sum()))
    assert rows.flat[-1] == 0
    return rows


@pytest.mark.parametrize("bits", [8, 64, 104, 192, 256])
@pytest.mark.parametrize(("counts", "devices", "n"), FLEETS)
def test_a_row_may_say_as_much_as_the_devices_that_can_have_rated_it_and_no_more(counts, devices, n, bits):
    for row, most in enumerate(plain.row_bounds(counts.tolist(), devices, n, bits)):
        rows = np.zeros((len(counts), bits), np.int64)
        rows[row, row % bits] = -most if row % 2 else most
        assert not implausible_rows(rows, Counts(counts, devices), n).any()
        rows[row, row % bits] += -1 if row % 2 else 1
        assert np.flatnonzero(implausible_rows(rows, Counts(counts, devices), n)).tolist() == [row]


@pytest.mark.parametrize(
    ("n_rows", "n_bad", "is_spoilt"), [(2, 2, False), (299, 3, True), (300, 3, False), (3, 3, True)]
)
def test_three_implausible_rows_that_are_more_than_one_in_a_hundred_spoil_the_sum(n_rows, n_bad, is_spoilt):
    rows, counts = np.zeros((n_rows, BITS), np.int64), Counts(np.full(n_rows, 100), 1000)
    rows[:n_bad] = 10_000
    if is_spoilt:
        with pytest.raises(ImplausibleSumError, match=f"{n_bad} of {n_rows} rows say more than their devices can"):
            implausible_rows(rows, counts, N)
    else:
        assert implausible_rows(rows, counts, N).sum() == n_bad


@pytest.mark.parametrize("bits", [8, 104])
@pytest.mark.parametrize(
    ("counts", "devices"), [([70, 900, 35, 20, 880], 1001), ([9, 5, 9, 5, 2, 1], 0), ([500, 2], 501)]
)
def test_each_half_of_the_rows_may_have_as_much_in_it_as_is_usual_and_no_more(counts, devices, bits):
    order = sorted(range(len(counts)), key=counts.__getitem__)
    for half in (order[: len(order) // 2], order[len(order) // 2 :]):
        for n in (64, 1000):
            rows = np.zeros((len(counts), bits), np.int64)
            rows[half] = squares(plain.half_energy(half, counts, devices, n, bits), (len(half), bits))
            require_plausible_energy(rows, Counts(np.array(counts), devices), n)
            rows[half[-1], -1] = 1
            with pytest.raises(ImplausibleSumError, match="rows together say more"):
                require_plausible_energy(rows, Counts(np.array(counts), devices), n)


def test_cohorts_below_64_devices_are_not_judged_by_what_is_usual():
    rows, counts = np.full((20, BITS), 1000), Counts(np.full(20, 10), 100)
    require_plausible_energy(rows, counts, 63)
    with pytest.raises(ImplausibleSumError):
        require_plausible_energy(rows, counts, 64)


@pytest.mark.parametrize("n", [1, N])
def test_weights_and_user_sums_may_be_as_large_as_devices_and_noise_make_them(n):
    for weight in (26 * n, 70 * n):
        most = weight + 24 * n
        require_plausible_users(np.array([most, -most]), weight, n)
        for user_sum in ([0, most + 1], [-most - 1, 0]):
            with pytest.raises(ImplausibleSumError, match="user sum is larger than its weight"):
                require_plausible_users(np.array(user_sum), weight, n)
    for weight in (26 * n - 1, 70 * n + 1):
        with pytest.raises(ImplausibleSumError, match="weight is not what so many devices have"):
            require_plausible_users(np.zeros(BITS, np.int64), weight, n)


def test_a_refresh_of_a_catalogue_without_items_is_plausible():
    require_plausible_counts(np.zeros(0, np.int64), N)


@pytest.mark.parametrize(("counts", "devices", "n"), FLEETS)
def test_numbers_are_cut_at_what_is_usual_for_the_counts_of_their_rows(counts, devices, n):
    rows = np.random.default_rng(n).integers(-n - 40, n + 40, (len(counts), 16))
    assert cut(rows, Counts(counts, devices), n).tolist() == plain.cut(rows.tolist(), counts.tolist(), devices, n)


@pytest.mark.parametrize("n", [2, 127, 128, 1000])
@pytest.mark.parametrize("n_rows", [1, 2, 5, 40])
def test_trails_are_shortened_by_the_most_eighths_that_keep_them_as_short_as_others(n_rows, n):
    rng = np.random.default_rng(n_rows * n)
    for _ in range(20):
        counts = rng.integers(1, 500, n_rows)
        loud = 1 + 60 * (rng.random((n_rows, 1)) < 0.3)
        rows, trails = (rng.integers(-reach, reach, (n_rows, 16)) * loud for reach in (12, 12_000))
        result = shortened(rows, trails, Counts(counts, 500), n)
        assert result.tolist() == plain.shortened(rows.tolist(), trails.tolist(), counts.tolist(), n)


def test_a_trail_that_is_exactly_as_long_as_it_may_be_is_not_shortened():
    """Among rows of nothing 16 numbers of 128 devices may have 16 * 256 in them, which are 16 times 16 squared."""
    rows = np.zeros((9, 16), np.int64)
    rows[0], rows[1] = 16, 32
    rows[2, 0] = isqrt(17 * 256 - 1)
    rows[3, :2] = 64, 16
    result = shortened(rows, np.zeros((9, 16), np.int64), Counts(np.full(9, 9), 100), 128)
    # Four eighths of 32 are as long; 17 * 256 = 64^2 + 16^2 are too long, and seven eighths of them are not.
    assert result[:3].tolist() == [[16] * 16, [16] * 16, rows[2].tolist()]
    assert result[3, :3].tolist() == [56, 14, 0]


def test_a_trail_may_be_three_times_as_long_as_the_middle_one_and_what_is_free():
    """The middle one has 16 numbers of 256, 4096 together; 16 are free."""
    for length, is_shorter in ((16 + 3 * 4096, False), (17 + 3 * 4096, True)):
        rows = np.zeros((3, 16), np.int64)
        rows[1], rows[2] = 256, squares(256 * length, 16)
        result = shortened(rows, np.zeros((3, 16), np.int64), Counts(np.ones(3, np.int64), 100), 128)
        assert result.tolist() == [*rows[:2].tolist(), ((7 * rows[2] + 4) // 8 if is_shorter else rows[2]).tolist()]


def test_no_rows_are_not_shortened():
    nothing = np.zeros((0, 16), np.int64)
    assert shortened(nothing, nothing, Counts(np.zeros(0, np.int64), 100), N).shape == (0, 16)


@pytest.mark.parametrize("shape", [(2, 8), (7, 104)])
@pytest.mark.parametrize("n", [1, 63, 64, 500])
def test_clipped_rows_together_may_say_as_much_as_devices_that_agree_in_half_and_noise(shape, n):
    most, user_sum = plain.clipped_energy(n, shape[1], shape[0] * shape[1], 34_000), np.zeros(shape[1], np.int64)
    rows = squares(most, shape)
    require_plausible_clipped(rows, user_sum, NOISE, n)
    rows[-1, -1] = 1
    with pytest.raises(ImplausibleSumError, match="rows together say more"):
        require_plausible_clipped(rows, user_sum, NOISE, n)


def test_clipped_sums_of_no_rows_are_judged_by_their_users():
    require_plausible_clipped(np.zeros((0, BITS), np.int64), np.zeros(BITS, np.int64), NOISE, N)
