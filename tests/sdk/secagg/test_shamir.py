"""Any `threshold` shares give the secret back; one fewer fits every secret."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightfr.errors import InvalidInputError
from lightfr.secagg import shamir

SECRETS = st.one_of(st.binary(min_size=32, max_size=32), st.sampled_from([bytes(32), b"\xff" * 32]))


def is_probably_prime(n):
    """Miller-Rabin for 40 bases."""
    twos = ((n - 1) & -(n - 1)).bit_length() - 1
    for base in range(2, 42):
        x = pow(base, (n - 1) >> twos, n)
        if x not in (1, n - 1) and all((x := x * x % n) != n - 1 for _ in range(twos - 1)):
            return False
    return True


def test_the_field_is_of_the_smallest_prime_above_all_secrets():
    assert is_probably_prime(shamir.PRIME)
    assert not any(is_probably_prime(n) for n in range(2**256, shamir.PRIME))


@settings(max_examples=50)
@given(SECRETS, st.integers(1, 12), st.integers(0, 6), st.data())
def test_any_threshold_of_the_shares_gives_the_secret(secret, threshold, more, data):
    holders = data.draw(st.lists(st.integers(1, 8192), min_size=threshold, max_size=threshold + more, unique=True))
    shares = dict(zip(holders, shamir.split(secret, holders, threshold, os.urandom), strict=True))
    chosen = data.draw(st.permutations(holders))[:threshold]
    assert shamir.join({x: shares[x] for x in chosen}) == secret
    assert shamir.join(shares) == secret
    assert all(shamir.is_share(share) for share in shares.values())


@given(SECRETS, SECRETS)
def test_one_share_too_few_fits_any_other_secret(secret, other):
    """For each other secret there is a last share that completes the same shares to it."""
    shares = dict(zip([1, 2], shamir.split(secret, [1, 2], 3, os.urandom), strict=True))
    slope = [int.from_bytes(other, "little"), *(int.from_bytes(shares[x], "little") for x in (1, 2))]
    # The parabola through (0, other), (1, y1), (2, y2), at 3: y0 - 3 y1 + 3 y2.
    third = (slope[0] - 3 * slope[1] + 3 * slope[2]) % shamir.PRIME
    assert shamir.join({**shares, 3: third.to_bytes(33, "little")}) == other


def test_coefficients_are_drawn_again_until_they_are_below_the_prime():
    drawn = [b"\xff" * 33, shamir.PRIME.to_bytes(33, "little"), (5).to_bytes(32, "little") + b"\xfe"]
    shares = shamir.split(bytes(32), [1, 2], 2, lambda n: drawn.pop(0))
    assert [int.from_bytes(share, "little") for share in shares] == [5, 10]
    assert not drawn


def test_shares_that_give_no_secret_are_refused():
    with pytest.raises(InvalidInputError, match="1 shares do not belong"):
        shamir.join({1: (2**256).to_bytes(33, "little")})


def test_a_share_is_a_number_of_the_field():
    assert shamir.is_share((shamir.PRIME - 1).to_bytes(33, "little"))
    assert not shamir.is_share(shamir.PRIME.to_bytes(33, "little"))
    assert not shamir.is_share(bytes(32))
