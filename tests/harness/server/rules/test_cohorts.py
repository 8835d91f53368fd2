"""Several cohorts move the codes together, and none of them further than the others allow."""

import numpy as np
import pytest

from lightfr_harness.server.rules.cohorts import CohortSum, Combined, combined
from lightfr_harness.server.rules.plausible import ImplausibleSumError
from tests.harness.server.rules.test_plausible import BITS, ITEMS, N, clipped, honest, noisy_server, server

GARBAGE = np.random.default_rng(0).integers(-288, 288, ITEMS * BITS)


def cohort(seed, n=N, **changes):
    return CohortSum({**honest(seed, n), **changes}, n)


def with_row(one, row, number):
    one.sums["rows"].reshape(-1, BITS)[row] = number
    return one


def after(rule):
    rule.finish_round()
    return {name: value.tobytes() for name, value in rule.state().items()}


def test_one_cohort_is_what_add_cohort_makes_of_it():
    for make, sums in ((server, honest), (lambda: server(gate=0), honest), (noisy_server, clipped)):
        alone, as_cohorts = make(), make()
        for seed in range(3):
            alone.add_cohort(sums(seed), N)
            assert as_cohorts.add_cohorts([CohortSum(sums(seed), N)]) == Combined(0, (0,))
            assert after(alone) == after(as_cohorts)


def test_cohorts_that_agree_are_added_up_exactly_whatever_their_sizes():
    rng, sizes = np.random.default_rng(0), [256, 300, 1024, 511]
    said = rng.integers(-3, 4, 1000)
    assert np.array_equal(combined([said * n for n in sizes], sizes), said * sum(sizes))


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([5, 3], 8),
        ([5, -3], 2),
        ([5, 3, 0], 6),
        ([-5, -3, 0], -6),
        ([5, -3, 0], 0),
        ([1, 2, 9], 5),
        ([1, 2, -9], 2),
        ([-1, -2, 9], -2),
        ([-1, -2, -9], -5),
        ([0, 0, 9, 0], 0),
    ],
)
def test_no_cohort_goes_further_to_either_side_than_another_one(said, expected):
    sums = [np.array([one]) for one in said]
    assert combined(sums, [N] * len(said)).tolist() == [expected]
    assert combined(sums[::-1], [N] * len(said)).tolist() == [expected]


def test_cohorts_are_compared_by_what_a_device_says():
    """10 of 1,000 devices are less than 4 of 250, which count as 2.5, and more than 2 of 250."""
    assert combined([np.array([10]), np.array([4]), np.array([0])], [1000, 250, 500]).tolist() == [13]
    assert combined([np.array([10]), np.array([2]), np.array([0])], [1000, 250, 500]).tolist() == [10]


def test_many_numbers_are_combined_as_few_are(monkeypatch):
    rng = np.random.default_rng(0)
    sums = [rng.integers(-9, 10, 1000) for _ in range(4)]
    whole = combined(sums, [N] * 4)
    monkeypatch.setattr("lightfr_harness.server.rules.cohorts._NUMBERS_AT_A_TIME", 7)
    assert np.array_equal(combined(sums, [N] * 4), whole)


def test_an_implausible_cohort_is_left_out_alone():
    rule, others = server(), server()
    done = rule.add_cohorts([cohort(0), cohort(1, rows=GARBAGE), cohort(2)])
    assert done == Combined(0, (0, None, 0))
    assert done.left_out == (1,)
    others.add_cohorts([cohort(0), cohort(2)])
    assert after(rule) == after(others)


def test_when_all_cohorts_are_implausible_nothing_is_counted():
    rule, idle = server(), server()
    with pytest.raises(ImplausibleSumError, match="rows say more"):
        rule.add_cohorts([cohort(0, rows=GARBAGE), cohort(1, rows=GARBAGE)])
    assert after(rule) == after(idle)


def test_an_implausible_row_says_nothing_and_is_held_only_if_no_cohort_says_anything_plausible():
    loud, silent = server(), server()
    assert loud.add_cohorts([with_row(cohort(0), 290, 200), cohort(1), cohort(2)]) == Combined(0, (1, 0, 0))
    silent.add_cohorts([with_row(cohort(0), 290, 0), cohort(1), cohort(2)])
    assert after(loud) == after(silent)
    held = server()
    before = held.codes[290].copy()
    assert held.add_cohorts([with_row(cohort(seed), 290, 200) for seed in range(3)]) == Combined(1, (1, 1, 1))
    held.finish_round()
    assert np.array_equal(held.codes[290], before)
    assert not held.memory[290].any()


@pytest.mark.parametrize("make", [server, lambda: server(gate=0)])
def test_one_liar_makes_no_row_longer_than_honest_cohorts_do(make):
    """As loud as is believed, in every round; without a gate that is as much as all devices of the cohort can say."""
    pattern, pushed, honestly = np.random.default_rng(9).choice([-1, 1], BITS), make(), make()
    loudest = 200 if pushed.gate <= 1 else 20
    for seed in range(0, 60, 4):
        cohorts = [cohort(seed + i) for i in range(4)]
        honestly.add_cohorts(cohorts)
        honestly.finish_round()
        assert pushed.add_cohorts([with_row(cohort(seed), 250, loudest * pattern), *cohorts[1:]]).held == 0
        pushed.finish_round()
    lengths = [np.abs(rule.trails[250]).sum() for rule in (honestly, pushed)]
    assert lengths[1] < 1.6 * lengths[0]


def test_one_cohort_does_not_move_the_mean_user_of_the_others():
    rule, said = server(), np.where(np.arange(BITS) % 2, 20, -20) * N
    cohorts = [cohort(seed, user_sum=said) for seed in range(3)]
    rule.add_cohorts([cohort(3, user_sum=np.full(BITS, 70 * N)), *cohorts])
    rule.finish_round()
    # Where the others say less than nothing, its own share is lost.
    expected = np.where(said > 0, 256 * 20 * 4, -256 * 20 * 3) / (50 * 4)
    assert np.abs(rule.mean_user - expected).max() <= 1


def test_clipped_sums_are_combined_too():
    rule, plain = noisy_server(), noisy_server()
    sums = [clipped(seed) for seed in range(4)]
    rule.add_cohorts([CohortSum(one, N) for one in sums])
    plain.add_sums(
        combined([one["rows"] for one in sums], [N] * 4), 20 * combined([one["user_sum"] for one in sums], [N] * 4),
        np.array([20 * 4 * N]),
    )  # fmt: skip
    assert after(rule) == after(plain)


def as_documented(sums, sizes):
    """docs/protocol.md, "Rounds of many cohorts", in Python's integers."""
    means = [(2**20 * one + n // 2) // n for one, n in zip(sums, sizes, strict=True)]
    total = 0
    for place, (mean, n) in enumerate(zip(means, sizes, strict=True)):
        others = means[:place] + means[place + 1 :]
        total += n * max(min(0, *others), min(mean, max(0, *others)))
    return (total + 2**19) // 2**20


@pytest.mark.parametrize("n_cohorts", [3, 4, 7])
@pytest.mark.parametrize("largest", [5, 300, 2**19])
def test_three_cohorts_and_more_become_the_number_of_the_document(n_cohorts, largest):
    """As far as half a million devices each, where the rounding of an average shows in the sum."""
    rng = np.random.default_rng(n_cohorts)
    for _ in range(20):
        sizes = rng.integers(1, largest + 1, n_cohorts).tolist()
        sums = rng.integers(-20, 21, (n_cohorts, 25))
        expected = [as_documented(said, sizes) for said in sums.T.tolist()]
        assert combined(list(sums), sizes).tolist() == expected
