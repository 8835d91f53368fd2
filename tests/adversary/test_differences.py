"""A server counts twice, over 257 and 256 devices, and subtracts: what is left of the one who was left out."""

import numpy as np

from lightfr.interactions import Interactions
from lightfr.secagg import gate_vector
from tests.helpers import make_model, random_signs

N_ITEMS, N_RATED = 1682, 40


def counts(ratings, seed):
    """What a gate refresh says of a cohort."""
    rng, model = np.random.default_rng(seed), make_model(random_signs(N_ITEMS, 64, 0))
    total = np.zeros(N_ITEMS, int)
    for rated in ratings:
        vector = gate_vector(model, Interactions((int(i), 5) for i in rated), len(ratings), rng.bytes)
        total += np.asarray(vector["counts"])
    return total


def items_found(trials):
    """How many of the 40 items of the device that was left out are among the 40 likeliest."""
    hits = []
    for trial in range(trials):
        rng = np.random.default_rng(trial)
        ratings = [np.sort(rng.choice(N_ITEMS, N_RATED, replace=False)) for _ in range(257)]
        difference = counts(ratings, trial) - counts(ratings[:-1], 100 + trial)
        likeliest = np.argsort(-(difference + rng.random(N_ITEMS)))[:N_RATED]
        hits.append(len(np.intersect1d(likeliest, ratings[-1])))
    return np.mean(hits)


def test_the_difference_of_two_counts_says_little_of_the_device_that_was_left_out():
    """Guessing finds 40 * 40 / 1682, about 1. No device counts more than once a day: a second try takes a day."""
    assert items_found(12) < 2.5


def test_without_noise_the_difference_is_the_list_of_items(monkeypatch):
    monkeypatch.setattr("lightfr.secagg.contribution.add_ternary_noise", lambda *_: None)
    assert items_found(2) == N_RATED
