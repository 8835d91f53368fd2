"""HR and NDCG against the definition: every order of the tied items, averaged."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightfr.errors import InvalidInputError
from lightfr_harness.data.evaluation import (
    candidate_figures,
    candidate_means,
    evaluate_candidates,
    group_rows,
    popularity_of_candidates,
    popularity_scores,
)
from lightfr_harness.data.held_out import Candidates, ItemGroups, groups_from_lists
from lightfr_harness.data.ratings import ratings_from_ids
from lightfr_harness.data.splits import leave_last_out


def candidates_of(sizes):
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    return Candidates(np.arange(len(sizes)), ItemGroups(np.arange(offsets[-1]), offsets))


def ranks_of_positive(scores):
    """The rank of item 0 in every order in which equal scores may come out."""
    for order in permutations(range(len(scores))):
        ranked = sorted(order, key=lambda item: -scores[item])  # Stable: ties keep `order`.
        yield ranked.index(0) + 1


groups = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=1, max_size=4)


@settings(max_examples=60)
@given(groups, st.integers(1, 7))
def test_figures_are_the_average_over_every_order_of_tied_items(group_scores, k):
    metrics = evaluate_candidates(
        candidates_of([len(scores) for scores in group_scores]),
        np.concatenate([np.array(scores, float) for scores in group_scores]),
        k=k,
    )
    all_ranks = [np.array(list(ranks_of_positive(scores))) for scores in group_scores]
    gains = [np.where(ranks <= k, 1 / np.log2(ranks + 1), 0) for ranks in all_ranks]
    assert metrics.hr == pytest.approx(np.mean([(ranks <= k).mean() for ranks in all_ranks]))
    assert metrics.ndcg == pytest.approx(np.mean([gain.mean() for gain in gains]))
    assert metrics.hr_optimistic == pytest.approx(np.mean([ranks.min() <= k for ranks in all_ranks]))
    assert metrics.ndcg_optimistic == pytest.approx(np.mean([gain.max() for gain in gains]))
    assert (metrics.n_users, metrics.k) == (len(group_scores), k)


@settings(max_examples=60)
@given(groups, st.integers(1, 7), st.randoms(use_true_random=False))
def test_by_the_devices_rule_the_lower_index_wins_a_tie(group_scores, k, random):
    groups_of_items = [random.sample(range(10), len(scores)) for scores in group_scores]
    metrics = evaluate_candidates(
        Candidates(np.arange(len(group_scores)), groups_from_lists([np.array(each) for each in groups_of_items])),
        np.concatenate([np.array(scores, float) for scores in group_scores]),
        k=k,
    )
    ranks = []
    for items, scores in zip(groups_of_items, group_scores, strict=True):
        ranked = sorted(zip(items, scores, strict=True), key=lambda pair: (-pair[1], pair[0]))
        ranks.append([item for item, _ in ranked].index(items[0]) + 1)
    assert metrics.hr_device == pytest.approx(np.mean([rank <= k for rank in ranks]))
    assert metrics.ndcg_device == pytest.approx(np.mean([(rank <= k) / np.log2(rank + 1) for rank in ranks]))


def test_users_are_grouped_by_their_ratings_in_train_and_empty_groups_are_left_out():
    sizes = [1, 4, 5, 19, 20, 100, 250]
    users = np.repeat([f"u{size}" for size in sizes], sizes).tolist()
    items = [f"i{item}" for size in sizes for item in range(size)]
    train = ratings_from_ids(users, items, np.full(len(users), 1.0), None, (0.0, 1.0))
    found = {name: rows.tolist() for name, rows in group_rows(train, np.array([6, 0, 1, 2, 3, 5])).items()}
    assert found == {
        "1-4": [False, True, True, False, False, False],
        "5-19": [False, False, False, True, True, False],
        "100+": [True, False, False, False, False, True],
    }


def test_when_everything_is_tied_a_hit_is_as_likely_as_the_share_of_the_list():
    metrics = evaluate_candidates(candidates_of([50]), np.zeros(50), k=10)
    assert metrics.hr == pytest.approx(10 / 50)
    assert metrics.hr_optimistic == metrics.ndcg_optimistic == 1.0


def test_a_positive_alone_on_top_is_perfect_and_at_the_bottom_worthless():
    sizes = candidates_of([12])
    assert evaluate_candidates(sizes, -np.arange(12)).ndcg == 1.0
    assert evaluate_candidates(sizes, np.arange(12)).hr == 0.0


def test_small_unsigned_scores_are_compared_by_value():
    metrics = evaluate_candidates(candidates_of([3]), np.array([1, 255, 0], np.uint8), k=1)
    assert metrics.hr == 0.0


@pytest.mark.parametrize("k", [0, -1, 2.5, True, "10"])
def test_a_cutoff_that_is_no_positive_whole_number_is_refused(k):
    with pytest.raises(InvalidInputError, match="K is"):
        evaluate_candidates(candidates_of([2]), np.zeros(2), k=k)


@pytest.mark.parametrize("scores", [np.zeros(3), np.zeros((2, 1))])
def test_scores_that_are_not_aligned_are_refused(scores):
    with pytest.raises(InvalidInputError, match="one score per candidate"):
        evaluate_candidates(candidates_of([2]), scores)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_score_that_is_not_finite_is_refused(bad):
    with pytest.raises(InvalidInputError, match="NaN or infinite"):
        evaluate_candidates(candidates_of([2]), np.array([0, bad]))


def test_no_users_is_an_error_rather_than_not_a_number():
    with pytest.raises(InvalidInputError, match="no user"):
        evaluate_candidates(candidates_of([]), np.empty(0))


def test_popularity_counts_train_ratings_only():
    users, items = list("uuuuvvvv"), list("abczdbcz")
    split = leave_last_out(ratings_from_ids(users, items, np.full(8, 1.0), np.arange(8), (0.0, 1.0)))
    counts = dict(zip(split.train.item_ids, popularity_scores(split.train).tolist(), strict=True))
    assert counts == {"a": 1, "b": 2, "c": 2, "d": 1, "z": 0}


def test_popularity_of_candidates_is_aligned_with_them():
    users, items = list("uuuuvvvv"), list("abczdbcz")
    split = leave_last_out(ratings_from_ids(users, items, np.full(8, 1.0), np.arange(8), (0.0, 1.0)))
    scores = popularity_of_candidates(split.train, split.test)
    assert scores.shape == split.test.item_index.shape
    assert scores[split.test.offsets[:-1]].tolist() == [0, 0]


def test_liked_and_disliked_positives_are_told_apart_over_all_users_and_over_some():
    levels = np.array([2520, 0, 1260, 2520])
    candidates = Candidates(np.arange(4), ItemGroups(np.arange(8), np.arange(0, 9, 2)), levels)
    # The first two users find their positive first, the others second.
    figures = candidate_figures(candidates, np.array([1, 0, 1, 0, 0, 1, 0, 1]), k=1)
    whole = candidate_means(candidates, figures, k=1)
    assert (whole.hr, whole.liked_hr, whole.liked_ndcg, whole.disliked_hr) == (0.5, 0.5, 0.5, 1.0)
    assert (whole.n_users, whole.n_liked, whole.n_disliked) == (4, 2, 1)
    some = candidate_means(candidates, figures, np.array([False, False, True, True]), k=1)
    assert (some.hr, some.liked_hr, some.disliked_hr, some.n_liked, some.n_disliked) == (0, 0, None, 1, 0)


def test_a_held_out_rating_keeps_its_level_when_items_are_numbered_anew():
    rated = [(f"u{user}", f"i{(user * 5 + n) % 17}", 1 + (user + n) % 5, n) for user in range(9) for n in range(6)]
    users, items, stars, times = (list(column) for column in zip(*rated, strict=True))
    split = leave_last_out(ratings_from_ids(users, items, np.array(stars, float), np.array(times), (1.0, 5.0)))
    newest = {user: (item, star) for user, item, star, _ in rated}
    for user, item, level in zip(split.test.user_index, split.test.positives, split.test.levels, strict=True):
        expected = newest[split.train.user_ids[user]]
        assert (split.train.item_ids[item], 1 + level / 630) == expected
