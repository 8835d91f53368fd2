"""A server forges a part of the signatures that it claims: how often a device notices."""

import random
from math import comb

import pytest

from lightfr.errors import PrivacyError
from lightfr.membership import MemberKey
from lightfr.secagg.views import WITNESSES, bitmap_of, quorum, require_quorum
from lightfr.training.updates import sample
from tests.adversary.cohort import remembered_signatures

N, DEVICES = 512, 400
MESSAGE = b"a set"


def share_that_notices(n_false, seed):
    """Of so many devices, each with witnesses of its own, the share that refuses a quorum with so many false ones."""
    seeded = random.Random(seed)
    keys = [MemberKey.from_private(seeded.randbytes(32)) for _ in range(N)]
    claimed = sorted(seeded.sample(range(N), quorum(N)))
    false = set(seeded.sample(claimed, n_false))
    signatures = b"".join(bytes(64) if i in false else keys[i].sign(MESSAGE) for i in claimed)
    noticed = 0
    for _ in range(DEVICES):
        witnesses = {i: keys[i].public for i in sample(list(range(1, N)), WITNESSES, seeded.randbytes)}
        try:
            require_quorum("it", N, frozenset(range(N)), bitmap_of(claimed, N), signatures, MESSAGE, witnesses)
        except PrivacyError:
            noticed += 1
    return noticed / DEVICES


# The last is what two different sets need, if a fifth of the devices sign both: 0.8^96 is 5e-10.
@pytest.mark.parametrize("n_false", [1, 5, 20, N // 5])
@remembered_signatures()
def test_devices_notice_forged_signatures_as_often_as_the_theorem_says(n_false):
    expected = 1 - comb(N - 1 - n_false, WITNESSES) / comb(N - 1, WITNESSES)
    deviation = (expected * (1 - expected) / DEVICES) ** 0.5
    assert share_that_notices(n_false, seed=n_false) == pytest.approx(expected, abs=4 * deviation)


def test_a_device_without_witnesses_notices_nothing():
    signatures, everybody = bytes(64 * quorum(N)), frozenset(range(N))
    require_quorum("it", N, everybody, bitmap_of(range(quorum(N)), N), signatures, MESSAGE, {})
