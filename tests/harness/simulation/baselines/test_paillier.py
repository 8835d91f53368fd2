"""Paillier against known answers and its own laws."""

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

BITS = random.Random(7).getrandbits
KEY = generate(256, BITS)
PUBLIC = KEY.public


def fixed(r):
    """A source of randomness that always gives this r."""
    return lambda _limit: r - 1


def test_a_textbook_key_encrypts_as_on_paper():
    """p = 7, q = 11: (1 + 42 * 77) * 23^77 modulo 5929 is 4624, and 23 is drawn anew when it divides n."""
    key = PrivateKey(7, 11)
    ciphertext = (1 + 21 * 77) * pow(23, 77, 5929) % 5929
    assert key.public.encrypt(21, fixed(23)) == ciphertext
    assert key.decrypt(ciphertext) == 21
    draws = iter([6, 21, 22])
    assert key.public.encrypt(21, lambda _limit: next(draws)) == ciphertext


def test_every_number_of_a_small_key_comes_back():
    key = PrivateKey(11, 13)
    for number in range(-47, 48):
        for r in (1, 2, 5, 140):
            assert key.decrypt(key.public.encrypt(number, fixed(r))) == number
