"""NCF: every gradient against finite differences, and what it learns."""

import numpy as np
import pytest

from lightfr_harness.data import generate
from lightfr_harness.simulation.baselines.ncf import ENTRY, Ncf, NcfOptions, backward, forward, start

from .small import share_of_own_half, slope, two_groups


def test_all_gradients_are_those_of_the_cross_entropy():
    rng = np.random.default_rng(0)
    parameters = {name: values + rng.normal(0, 0.3, values.shape) for name, values in start(4, 5, 3, rng).items()}
    users, items = rng.integers(4, size=12), rng.integers(5, size=12)
    labels = rng.integers(2, size=12).astype(float)

    def loss():
        logits = forward(parameters, users, items)[0]
        return np.mean(np.logaddexp(0, logits) - labels * logits)

    gradients, rows = backward(parameters, users, items, labels)
    assert gradients.keys() == parameters.keys()
    for name, values in parameters.items():
        whole = np.zeros_like(values)
        whole[rows.get(name, ...)] = gradients[name]
        places = [
            np.unravel_index(place, values.shape) for place in rng.choice(values.size, min(values.size, 60), False)
        ]
        for place in places:
            assert whole[place] == pytest.approx(slope(loss, values, place), abs=1e-7), (name, place)


def test_a_pass_has_each_rating_and_four_unrated_items_for_it():
    train = generate("tiny", seed=2)
    method = Ncf(NcfOptions())
    method.begin(train, 0)
    users, items, labels = method._samples()
    pairs = set(zip(train.user_index.tolist(), train.item_index.tolist(), strict=True))
    drawn = list(zip(users.tolist(), items.tolist(), strict=True))
    assert set(drawn[: len(train)]) == pairs
    assert not pairs & set(drawn[len(train) :])
    assert labels.sum() == len(train)
    np.testing.assert_array_equal(np.bincount(users), 5 * np.bincount(train.user_index))


def test_users_learn_the_half_of_their_group():
    train = two_groups()
    method = Ncf(NcfOptions(rate=0.01, batch=128))
    method.fit(train, 1, steps=12)
    assert share_of_own_half(method, train) > 0.95


def test_a_seed_decides_everything():
    train = two_groups()
    users, items = np.array([0, 1], np.uint32), np.array([3, 30], np.uint32)
    found = []
    for seed in (1, 1, 2):
        method = ENTRY.make(ENTRY.authors)
        method.fit(train, seed, steps=1)
        found.append(method.scores(users, items).tolist())
    assert found[0] == found[1] != found[2]


def test_an_unknown_setting_is_refused():
    with pytest.raises(TypeError, match="learning"):
        ENTRY.make({"learning": 1})
