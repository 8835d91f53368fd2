"""A secret is found in spite of false shares, as long as they are few enough, and whoever told them is named."""

from random import Random

import pytest

from lightfr.errors import InvalidInputError
from lightfr.secagg.shamir import PRIME, join
from lightfr_harness.server.rules.shares import secret_of


def dealt(coefficients, xs):
    """The shares of a polynomial, lowest power first."""
    values = {x: sum(c * x**power for power, c in enumerate(coefficients)) % PRIME for x in xs}
    return {x: value.to_bytes(33, "little") for x, value in values.items()}


def told(shares, false):
    """The shares with other numbers in the place of the false ones."""
    others = {x: Random(x).randrange(PRIME).to_bytes(33, "little") for x in false}
    return {x: others.get(x, share) for x, share in shares.items()}


def secret(number):
    return number.to_bytes(32, "little")


@pytest.mark.parametrize("threshold", [1, 2, 3, 6])
@pytest.mark.parametrize("spare", [2, 3, 4, 5, 6])
def test_half_of_the_spare_shares_may_be_false_wherever_they_are(threshold, spare):
    source, n = Random(100 * threshold + spare), threshold + spare
    for _ in range(5):
        coefficients = [source.randrange(2**256), *(source.randrange(PRIME) for _ in range(threshold - 1))]
        xs = source.sample(range(1, 200), n)
        for n_false in range(1, spare // 2 + 1):
            false = set(source.sample(xs, n_false))
            shares = told(dealt(coefficients, xs), false)
            assert secret_of(shares, threshold) == (secret(coefficients[0]), false)
            backwards = dict(reversed(shares.items()))
            assert secret_of(backwards, threshold) == (secret(coefficients[0]), false)


@pytest.mark.parametrize("threshold", [1, 2, 5])
@pytest.mark.parametrize("spare", [0, 1, 2, 3, 4])
def test_shares_that_agree_give_their_secret_and_nobody_is_named(threshold, spare):
    coefficients = [2**256 - 1, *range(7, 6 + threshold)]
    shares = dealt(coefficients, range(1, threshold + spare + 1))
    assert secret_of(shares, threshold) == (secret(2**256 - 1), frozenset())


def test_shares_that_agree_are_not_decoded_which_takes_ten_times_as_long(monkeypatch):
    monkeypatch.setattr("lightfr_harness.server.rules.shares._corrected", pytest.fail)
    for threshold, spare in ((1, 0), (1, 4), (6, 0), (6, 1), (6, 2), (6, 3), (6, 20), (39, 42)):
        shares = dealt(range(5, 5 + threshold), range(1, threshold + spare + 1))
        assert secret_of(shares, threshold) == (secret(5), frozenset())


def test_a_false_share_in_the_middle_of_a_usual_cohort_is_found():
    shares = told(dealt(range(5, 44), range(1, 82)), {41})
    assert secret_of(shares, 39) == (secret(5), {41})


def at_zero(xs, x):
    """What the share of x counts in the secret of the shares of xs."""
    top = bottom = 1
    for other in xs:
        if other != x:
            top, bottom = top * other, bottom * (other - x)
    return top * pow(bottom, -1, PRIME) % PRIME


def test_two_who_make_the_first_and_the_last_shares_agree_on_another_secret_are_named():
    """Six shares are enough; the two holders are among the first six and among the last six of ten."""
    shares, first, last = dealt(range(5, 11), range(1, 11)), range(1, 7), range(5, 11)
    # Their errors e and f move the secret of the first and that of the last by 1.
    (a, b), (c, d) = [(at_zero(xs, 5), at_zero(xs, 6)) for xs in (first, last)]
    inverse = pow(a * d - b * c, -1, PRIME)
    for x, error in ((5, (d - b) * inverse), (6, (a - c) * inverse)):
        moved = (int.from_bytes(shares[x], "little") + error) % PRIME
        shares[x] = moved.to_bytes(33, "little")
    for xs in (first, last):
        assert join({x: shares[x] for x in xs}) == secret(6)
    assert secret_of(shares, 6) == (secret(5), {5, 6})


@pytest.mark.parametrize(("n", "threshold", "n_false"), [(4, 3, 1), (5, 3, 2), (6, 3, 2), (7, 3, 3), (9, 4, 3)])
def test_more_false_shares_than_half_of_the_spare_ones_are_not_put_together(n, threshold, n_false):
    shares = told(dealt(range(5, 5 + threshold), range(1, n + 1)), range(1, n_false + 1))
    with pytest.raises(InvalidInputError, match=f"too many of {n} shares are false"):
        secret_of(shares, threshold)


def test_one_false_share_too_many_is_not_put_together_even_where_the_others_lie_on_a_line_that_is_too_simple():
    """All true shares are the same number, so that three of five would do; but only one of the five may be false."""
    shares = told(dealt([9, 0], range(1, 6)), {1, 5})
    with pytest.raises(InvalidInputError, match="too many of 5 shares are false"):
        secret_of(shares, 2)


@pytest.mark.parametrize("number", [0, 1, 2**256 - 1])
def test_the_least_and_the_largest_secrets_are_found(number):
    for coefficients in ([number, 0, 0], [number, 5, 0], [number, 0, 5], [number, 3, 5]):
        shares = told(dealt(coefficients, range(1, 6)), {1})
        assert secret_of(shares, 3) == (secret(number), {1})


@pytest.mark.parametrize("number", [2**256, 2**256 + 296])
def test_numbers_of_the_field_that_are_no_secrets_are_refused(number):
    for false in (set(), {1}):
        with pytest.raises(InvalidInputError):
            secret_of(told(dealt([number, 3, 5], range(1, 6)), false), 3)
