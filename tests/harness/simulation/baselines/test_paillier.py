"""Paillier against known answers, and against its own laws."""

import hashlib
import random

import pytest

from lightfr.errors import OutOfRangeError
from lightfr_harness.simulation.baselines.paillier import (
    NotACiphertextError,
    NumberTooLargeError,
    PrivateKey,
    generate,
    is_prime,
)

KEY = generate(256, random.Random(7).getrandbits)
PUBLIC = KEY.public
# Made once by `generate` from seeded numbers.
KEY_1024 = PrivateKey(
    0xD61F7E744C463AFB8FD035B356627387838AED3398BC7FA9CCB43D580941E6DEBCE6F38A4E9FE8349CA145970F260A37AE50A5927F3491B9A2E8DE7C600A0DC1,
    0xE342363E3159AF2E1EB15213C158717445194D15F6D06024AE7D4AEE92783BE86945382C89D2D4B932411D061A34ED07BC7063ACCAB5684DB9427EDCC520E979,
)


def always(r):
    """A source of randomness that gives this r each time."""
    return lambda _limit: r - 1


def test_a_textbook_key_encrypts_as_by_hand():
    """p = 7, q = 11: 21 with r = 23 is (1 + 21 * 77) * 23^77 modulo 5929 = 2223."""
    key = PrivateKey(7, 11)
    assert key.public.encrypt(21, always(23)) == 2223
    assert key.decrypt(2223) == 21


def test_an_r_that_shares_a_prime_with_the_key_is_drawn_again():
    draws = iter([7 - 1, 22 - 1, 23 - 1])
    assert PrivateKey(7, 11).public.encrypt(21, lambda _limit: next(draws)) == 2223


def test_a_key_of_1024_bits_encrypts_as_another_implementation_does():
    """The digest is that of what phe 1.5.0 gives for the same key, number and r."""
    ciphertext = KEY_1024.public.encrypt(-31415926, always(int.from_bytes(b"lightfr" * 18, "big")))
    message = ciphertext.to_bytes(KEY_1024.public.ciphertext_bytes, "big")
    assert len(message) == 256
    assert hashlib.sha256(message).hexdigest() == "170c941981313be754e36c8ace3ae7e4ecba4c57e360c6eaea06ed3aca17089f"
    assert KEY_1024.decrypt(ciphertext) == -31415926


def test_every_number_that_a_small_key_holds_comes_back():
    key = PrivateKey(11, 13)
    for number in range(-47, 48):
        for r in (1, 2, 5, 140):
            assert key.decrypt(key.public.encrypt(number, always(r))) == number


@pytest.mark.parametrize(("left", "right"), [(3, 4), (-3, 4), (-30, -40), (0, 0), (2**60, -(2**61))])
def test_products_of_ciphertexts_are_sums(left, right):
    ciphertext = PUBLIC.encrypt(left)
    assert KEY.decrypt(PUBLIC.add(ciphertext, PUBLIC.encrypt(right))) == left + right


def test_a_number_encrypted_twice_looks_different():
    assert PUBLIC.encrypt(5) != PUBLIC.encrypt(5)


def test_numbers_beyond_a_third_of_the_key_are_refused_and_not_named():
    for number in (PUBLIC.largest, -PUBLIC.largest):
        assert KEY.decrypt(PUBLIC.encrypt(number)) == number
        with pytest.raises(NumberTooLargeError, match="256 bits") as refused:
            PUBLIC.encrypt(number * 2)
        assert str(number * 2) not in str(refused.value)


def test_a_sum_that_wraps_around_is_refused():
    large = PUBLIC.encrypt(PUBLIC.largest)
    with pytest.raises(NumberTooLargeError):
        KEY.decrypt(PUBLIC.add(large, PUBLIC.encrypt(1)))


@pytest.mark.parametrize("number", [0, -1, PUBLIC.square, KEY.p, 5 * KEY.q])
def test_what_no_encryption_gives_is_refused(number):
    with pytest.raises(NotACiphertextError):
        KEY.decrypt(number)


def test_a_key_has_the_length_asked_for_and_does_not_print_its_primes():
    for bits in (16, 64, 130):
        key = generate(bits, random.Random(bits).getrandbits)
        assert key.public.n.bit_length() == bits
        assert key.p != key.q
        assert str(key.p) not in repr(key)
    for bits in (14, 33):
        with pytest.raises(OutOfRangeError):
            generate(bits)


def test_primes_are_told_from_composites():
    draw = random.Random(3).getrandbits
    by_division = {n for n in range(5, 3000, 2) if all(n % d for d in range(3, n, 2))}
    assert {n for n in range(5, 3000, 2) if is_prime(n, draw)} == by_division
    assert is_prime(2**127 - 1, draw)
    assert not is_prime((2**61 - 1) * (2**89 - 1), draw)
