"""The embedded data: reproducible, long-tailed, and with something to learn."""

import tracemalloc

import numpy as np
import pytest

from lightfr_harness.data import synthetic
from lightfr_harness.data.errors import InvalidOptionError
from lightfr_harness.data.evaluation import evaluate_candidates, popularity_of_candidates
from lightfr_harness.data.splits import leave_last_out
from lightfr_harness.data.synthetic import SIZES, SyntheticSize, generate, parse_size


def columns(ratings):
    return [
        ratings.user_index.tolist(),
        ratings.item_index.tolist(),
        ratings.rating.tolist(),
        ratings.timestamp.tolist(),
        ratings.item_ids,
    ]


def item_weights(train, regularisation=400.0):
    """EASE, a linear item-to-item model with a closed form: the simple filter to compare with."""
    observed = np.zeros((train.n_users, train.n_items))
    observed[train.user_index, train.item_index] = 1
    gram = observed.T @ observed + regularisation * np.eye(train.n_items)
    inverse = np.linalg.inv(gram)
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0)
    return weights


def history(train, *, newest_weight=0.0):
    """What each user rated; `newest_weight` is added to the newest and halves every 5 ratings."""
    order = train.chronological_order()
    sizes = np.bincount(train.user_index, minlength=train.n_users)
    age = np.repeat(np.cumsum(sizes), sizes) - 1 - np.arange(len(order))
    weighted = np.zeros((train.n_users, train.n_items))
    users, items = train.user_index[order], train.item_index[order]
    weighted[users, items] = 1 + newest_weight * 2.0 ** (-age / 5)
    return weighted


def ease_metrics(split, **weighting):
    scores = history(split.train, **weighting) @ item_weights(split.train)
    return evaluate_candidates(split.test, scores[split.test.users_of_rows(), split.test.item_index])


@pytest.fixture(scope="module", params=[0, 1])
def default_split(request):
    return leave_last_out(generate(seed=request.param))


def test_a_simple_collaborative_filter_clearly_beats_popularity(default_split):
    popularity = popularity_of_candidates(default_split.train, default_split.test)
    baseline = evaluate_candidates(default_split.test, popularity)
    learned = ease_metrics(default_split)
    assert learned.hr > baseline.hr + 0.10
    assert learned.ndcg > baseline.ndcg + 0.10
    assert 0.4 < baseline.hr < 0.75  # Popularity says something, as it does in real data.


def test_the_newest_ratings_tell_a_little_more(default_split):
    plain, recent = ease_metrics(default_split), ease_metrics(default_split, newest_weight=5.0)
    assert recent.ndcg > plain.ndcg + 0.005


def test_the_small_size_can_be_learned_too():
    gaps = []
    for seed in range(3):
        split = leave_last_out(generate("small", seed=seed))
        popularity = popularity_of_candidates(split.train, split.test)
        gaps.append(ease_metrics(split).hr - evaluate_candidates(split.test, popularity).hr)
    assert np.mean(gaps) > 0.05


def test_the_default_has_the_counts_of_ml_100k_and_whole_stars():
    ratings = generate()
    assert (ratings.n_users, ratings.n_items, len(ratings)) == (943, 1682, 100_000)
    assert ratings.n_duplicates == 0
    assert set(ratings.rating.tolist()) == {1, 2, 3, 4, 5}
    assert np.bincount(ratings.user_index).min() >= 5


def test_popularity_has_a_long_tail():
    counts = np.sort(generate().item_counts())[::-1]
    assert counts[:168].sum() > 0.3 * counts.sum()
    assert counts[841:].sum() < 0.25 * counts.sum()


@pytest.fixture(scope="module")
def planted():
    """The hidden truth of a small world, with one event for each of many users."""
    generator = np.random.default_rng(0)
    world = synthetic._World.make(SIZES["small"], generator)
    tastes = synthetic._Tastes.make(world, 4000, generator)
    user, when = np.arange(4000), generator.random(4000)
    item = synthetic._choose(world, tastes, user, when, generator)
    return generator, world, tastes, synthetic._Events(user, item, when)


def appeal(world, taste, item):
    return np.sum(taste * world.vectors[item], axis=1)


def test_users_take_items_that_suit_their_taste_of_the_moment(planted):
    _, world, tastes, events = planted
    now = appeal(world, tastes.at(events.user, events.when), events.item)
    of_somebody_else = appeal(world, tastes.at(events.user, events.when)[::-1], events.item)
    assert now.mean() > of_somebody_else.mean() + 0.3


def test_stars_follow_taste_and_quality_through_noise(planted):
    generator, world, tastes, events = planted
    stars = synthetic._stars(world, tastes, events, generator)
    now = appeal(world, tastes.at(events.user, events.when), events.item)
    assert 0.2 < np.corrcoef(stars, now)[0, 1] < 0.9
    assert 0.2 < np.corrcoef(stars, world.quality[events.item])[0, 1] < 0.9


def test_the_same_seed_gives_the_same_ratings_and_another_seed_others():
    assert columns(generate("tiny", seed=5)) == columns(generate("tiny", seed=5))
    assert columns(generate("tiny", seed=5)) != columns(generate("tiny", seed=6))


def test_many_blocks_of_users_give_the_promised_counts(monkeypatch):
    monkeypatch.setattr(synthetic, "EVENTS_PER_BLOCK", 300)
    ratings = generate("tiny")
    assert (ratings.n_users, len(ratings)) == (64, SIZES["tiny"].n_ratings)
    assert len(np.unique(ratings.user_index)) == 64


def test_even_users_who_rate_half_of_the_catalogue_get_different_items():
    ratings = generate(SyntheticSize(4, 20, 40))
    assert (np.bincount(ratings.user_index) == 10).all()
    assert ratings.n_duplicates == 0


def test_memory_follows_the_ratings_and_not_users_times_items():
    tracemalloc.start()
    generate("20000x100000x100000")
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 20_000 * 100_000 / 16  # A sixteenth of even one byte per cell.


def test_the_sizes_of_the_sparse_data_sets_can_be_made():
    for name, counts in {"filmtrust": (1_508, 2_071, 35_497), "ciao": (7_375, 105_096, 282_619)}.items():
        ratings = generate(name)
        assert (ratings.n_users, ratings.n_items, len(ratings)) == counts
        assert ratings.has_times


def test_sizes_go_by_name_or_by_three_numbers():
    assert parse_size("tiny").n_users == 64
    assert parse_size("10x40x100") == SyntheticSize(10, 40, 100)
    assert (SIZES["large"].n_users, SIZES["large"].n_items) == (100_000, 1_000_000)


@pytest.mark.parametrize("text", ["", "huge", "10x20", "10x20x-5", "ax20x50", "1x2x3x4", "²x20x50"])
def test_a_size_that_cannot_be_understood_is_refused_with_the_names(text):
    with pytest.raises(InvalidOptionError, match="tiny, small, filmtrust, ml-100k"):
        generate(text)


@pytest.mark.parametrize("text", ["10x40x49", "10x40x201", "0x40x0"])
def test_counts_that_do_not_fit_together_are_refused_with_the_limits(text):
    with pytest.raises(InvalidOptionError, match="do not fit"):
        generate(text)
