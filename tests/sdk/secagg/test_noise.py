"""Noise is what it should be: exactly for given random bytes, and in distribution."""

import math
from array import array
from fractions import Fraction

import numpy as np
import pytest

from lightfr.errors import OutOfRangeError, PrivacyError
from lightfr.secagg import noise
from lightfr.secagg.noise import (
    COUNT_VARIANCE,
    EVALUATION_VARIANCE,
    add_noise,
    add_ternary_noise,
    require_enough,
    row_variance,
    ternary_room,
    ternary_threshold,
    user_sum_thousandths,
    weight_thousandths,
)
from lightfr.v1.model_pb2 import Noise
from lightfr_harness.simulation.fleet import stream


def drawn(n, thousandths, random_bytes):
    numbers = array("i", bytes(4 * n))
    add_noise(numbers, thousandths, random_bytes)
    return np.array(numbers)


def probabilities(sigma, most):
    weights = np.exp(-(np.arange(-most, most + 1) ** 2) / (2 * sigma**2))
    return weights / weights.sum()


@pytest.mark.parametrize("thousandths", [500, 1000, 3217, 40_000])
def test_frequencies_are_those_of_the_discrete_gaussian(thousandths):
    """Chi-squared over the middle of the distribution, with the bytes of a fixed stream: no chance is involved."""
    n, sigma = 100_000, thousandths / 1000
    most = math.ceil(12 * sigma)
    values = drawn(n, thousandths, stream("frequencies", thousandths))
    found = np.bincount(values + most, minlength=2 * most + 1)
    expected = n * probabilities(sigma, most)
    common = expected > 20
    squared = ((found - expected) ** 2 / expected)[common].sum()
    freedom = np.count_nonzero(common) - 1
    assert abs(squared - freedom) < 4 * math.sqrt(2 * freedom) + 4
    assert abs(values.mean()) < 4 * sigma / math.sqrt(n)


def test_the_table_is_exact_to_its_last_bit():
    """Against rational arithmetic: e^-x by its series, far beyond the digits that count."""

    def exponential(x):
        term = total = Fraction(1)
        for k in range(1, 500):
            term = term * x / k
            total += term
        return 1 / total

    weights = [exponential(Fraction(k * k * 500_000, 700**2)) for k in range(9 + 1)]
    both = [*weights[:0:-1], *weights]
    cumulative = [sum(both[: i + 1]) for i in range(len(both))]
    assert noise._table(700) == [int(value * 2**128 / cumulative[-1]) for value in cumulative[:-1]]


def test_random_bytes_become_numbers_as_the_document_says():
    """Known answers for a standard deviation of 2: 16 bytes, little-endian, for each number."""
    ends = {0: -24, 1: -24, 2**127: 0, 2**127 - 1: 0, 2**128 - 1: 24, 2**126: -1, 3 * 2**126: 1, 10**38: -1, 2**120: -5}
    random = b"".join(draw.to_bytes(16, "little") for draw in ends)
    assert drawn(len(ends), 2000, lambda n: random[:n]).tolist() == list(ends.values())


def test_random_bits_that_equal_an_entry_of_the_table_count_it():
    entry = noise._table(2000)[20]  # of x = -24 + 20
    random = b"".join(draw.to_bytes(16, "little") for draw in (entry - 1, entry))
    assert drawn(2, 2000, lambda n: random[:n]).tolist() == [-4, -3]


def test_a_number_is_as_likely_as_its_negative():
    table = noise._table(5000)
    assert all(abs(low + high - 2**128) <= 1 for low, high in zip(table, table[::-1], strict=True))


def test_noise_is_added_to_what_is_there_over_pieces_of_any_length():
    random = stream("pieces")(16 * 10_000)
    position = 0

    def take(n):
        nonlocal position
        position += n
        return random[position - n : position]

    numbers = array("h", [7]) * 10_000
    add_noise(numbers, 1500, take)
    assert position == 16 * 10_000
    assert np.array(numbers).mean() == pytest.approx(7, abs=0.1)
    assert len(set(numbers[9_000:])) > 5


@pytest.mark.parametrize("thousandths", [0, 499, 1_000_001])
def test_deviations_outside_their_range_are_refused(thousandths):
    with pytest.raises(OutOfRangeError, match=r"^noise in thousandths is .* 500 to 1000000"):
        drawn(1, thousandths, bytes)


def test_the_largest_deviation_reaches_12_of_itself():
    assert drawn(1, 1_000_000, lambda n: b"\xff" * n).tolist() == [12_000]


@pytest.mark.parametrize("devices", [12, 16, 64, 256, 512, 2000, 8192])
def test_ternary_noise_of_a_cohort_has_the_variance_8_however_large_it_is(devices):
    variance = devices * 2 * ternary_threshold(devices, COUNT_VARIANCE) / 65536
    assert 7.7 < variance <= 8
    assert 0.8 * variance > 6.2  # of all but a fifth, who may collude


@pytest.mark.parametrize(("code_bits", "variance"), [(8, 12), (64, 12), (96, 12), (128, 16), (256, 32), (1024, 128)])
def test_the_noise_of_a_row_grows_with_its_length_beyond_96_bits(code_bits, variance):
    assert row_variance(code_bits) == variance
    assert 256 * 2 * ternary_threshold(256, row_variance(code_bits)) == 65536 * variance


def test_the_room_of_ternary_noise_is_the_root_of_128_variances():
    assert [ternary_room(8192, variance) for variance in (8, 9, 12, 21, 128)] == [32, 33, 39, 51, 128]
    assert ternary_room(20, EVALUATION_VARIANCE) == 20


def test_an_evaluation_has_the_variance_128():
    assert 8192 * 2 * ternary_threshold(8192, EVALUATION_VARIANCE) == 65536 * 128


def test_a_few_devices_add_as_much_ternary_noise_as_there_is():
    assert {ternary_threshold(devices, COUNT_VARIANCE) for devices in (1, 2, 12)} == {65536 // 3}
    assert ternary_threshold(13, COUNT_VARIANCE) == 8 * 32768 // 13


@pytest.mark.parametrize("n", [0, 1, 32768, 32769])
def test_every_number_gets_ternary_noise_the_first_and_the_last_too(n):
    numbers, drawn = memoryview(array("H", [7] * n)), []
    add_ternary_noise(numbers, 64, COUNT_VARIANCE, lambda n_bytes: drawn.append(n_bytes) or bytes(n_bytes))
    assert numbers.tolist() == [8] * n  # of zeros comes +1
    assert sum(drawn) == 2 * n


def test_the_ternary_noise_of_a_device_has_the_thresholds_frequencies():
    numbers = memoryview(array("h", [5]) * 200_000)
    add_ternary_noise(numbers, 64, COUNT_VARIANCE, stream("ternary"))
    found = np.bincount(np.array(numbers) - 4, minlength=3) / len(numbers)
    chance = 262_144 / 64 / 65536
    assert found == pytest.approx([chance, 1 - 2 * chance, chance], rel=0.03)


@pytest.mark.parametrize("variance", [8, 9, 32, 128])
@pytest.mark.parametrize("devices", [2, 15, 33, 64, 512, 8192])
def test_the_sum_of_ternary_noise_leaves_its_room_with_a_chance_below_2_to_the_51(devices, variance):
    chance, room = ternary_threshold(devices, variance) / 65536, ternary_room(devices, variance)
    one, total = np.array([chance, 1 - 2 * chance, chance]), np.ones(1)
    for bit in bin(devices)[2:]:
        total = np.convolve(total, total)
        total = np.convolve(total, one) if bit == "1" else total
    beyond = total[: max(0, devices - room)].sum() * 2
    assert beyond < 2**-51


def test_the_deviations_of_a_device_in_mode_secagg_are_rounded_down():
    """4 sqrt(n) and sqrt(n), in thousandths, for numbers of devices where a millionth more would be seen."""
    assert (user_sum_thousandths(956), weight_thousandths(39)) == (123_676, 6_244)


@pytest.mark.parametrize(("short", "is_enough"), [(None, True), ("rows", False), ("sums", False), ("counts", False)])
def test_noise_is_enough_from_exactly_that_of_mode_secagg_on(short, is_enough):
    """1,000 devices, 8 bits: the variances are 12 * 8 * 8, 455 and 8 of which a thousandth is for each."""
    least = {"rows": 877, "sums": 675, "counts": 90}
    if short:
        least[short] -= 1
    asked = Noise(**{f"{name}_thousandths": thousandths for name, thousandths in least.items()})
    if is_enough:
        require_enough(asked, 8, 1000)
        require_enough(Noise(rows_thousandths=9800, sums_thousandths=9000, counts_thousandths=1000), 8, 8)
    else:
        with pytest.raises(PrivacyError, match="1000 devices"):
            require_enough(asked, 8, 1000)
