"""Negatives are fair, and what happens where they are not."""

import numpy as np
import pytest

from lightfr_harness.data import generate, leave_last_out
from lightfr_harness.data.evaluation import evaluate_candidates
from lightfr_harness.simulation.baselines.lightfr_baselines_pb2 import ItemRows
from lightfr_harness.simulation.baselines.negatives import draw_unrated, positions_by_user, rated_by_user
from lightfr_harness.simulation.baselines.pfedrec import PfedrecDevice, PfedrecOptions
from lightfr_harness.simulation.baselines.tables import from_rows

RATED = np.array([0, 3, 4, 9], np.uint32)


@pytest.mark.parametrize("distinct", [False, True])
def test_every_unrated_item_is_drawn_and_no_rated_one(distinct):
    draws = np.random.default_rng(0)
    drawn = np.concatenate([draw_unrated(RATED, 10, 5, draws, distinct=distinct) for _ in range(200)])
    counts = np.bincount(drawn, minlength=10)
    assert not counts[RATED].any()
    assert counts[[1, 2, 5, 6, 7, 8]] == pytest.approx(np.full(6, 1000 / 6), rel=0.25)


def test_distinct_items_come_once_and_as_many_as_there_are():
    assert sorted(draw_unrated(RATED, 10, 99, np.random.default_rng(1), distinct=True)) == [1, 2, 5, 6, 7, 8]


@pytest.mark.parametrize("distinct", [False, True])
def test_whoever_rated_everything_has_no_negatives(distinct):
    assert not len(draw_unrated(np.arange(5, dtype=np.uint32), 5, 3, np.random.default_rng(2), distinct=distinct))


def test_users_without_ratings_have_an_empty_list():
    train = generate("tiny", seed=1)
    kept = train.subset(train.user_index != 3)
    rated = rated_by_user(kept)
    assert len(rated) == 64
    assert not len(rated[3])
    assert rated[4].tolist() == sorted(train.item_index[train.user_index == 4].tolist())


def test_positions_name_each_place_of_a_user():
    found = {user: places.tolist() for user, places in positions_by_user(np.array([7, 2, 7, 7], np.uint32))}
    assert found == {2: [1], 7: [0, 2, 3]}


@pytest.mark.parametrize(("spared", "hit_rate"), [(False, (0.1, 0.3)), (True, (0.9, 1.0))])
def test_a_sampler_that_spares_the_test_item_gives_it_away_without_any_federation(spared, hit_rate):
    """Each device trains a table of its own and nobody tells anybody anything: an honest score is that of chance, .2.

    Published figures of PFedRec, FedRAP and FedCA come from samplers of the second kind.
    """
    split = leave_last_out(generate("tiny", seed=3))
    rated, test = rated_by_user(split.train), split.test
    draws, options, scores = np.random.default_rng(4), PfedrecOptions(item_rate=30), []
    for place, user in enumerate(test.user_index):
        table = draws.normal(size=(split.train.n_items, options.factors))
        hidden = np.append(rated[user], test.positives[place]) if spared else rated[user]
        device = _LocalDevice(rated[user], np.sort(hidden), options, draws)
        for _ in range(10):
            items, moves = from_rows(ItemRows.FromString(device.answer(table)))
            table[items] += moves
        scores.append(device.scores(table, test.groups[place]))
    assert hit_rate[0] <= evaluate_candidates(test, np.concatenate(scores)).hr <= hit_rate[1]


class _LocalDevice(PfedrecDevice):
    """Draws negatives outside of `hidden` and not of what it rated."""

    def __init__(self, rated, hidden, options, draws):
        super().__init__(rated, options, draws)
        self._hidden = hidden

    def _samples(self, n_items):
        unrated = draw_unrated(self._hidden, n_items, n_items, self._draws, distinct=True)
        labels = np.repeat([1.0, 0.0], [len(self._rated), len(unrated)])
        return np.append(self._rated, unrated).astype(np.uint32), labels
