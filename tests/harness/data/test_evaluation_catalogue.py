"""Recall and NDCG over the catalogue against every order of the tied items."""

import tracemalloc
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightfr.errors import InvalidInputError
from lightfr_harness.data import evaluation
from lightfr_harness.data.evaluation import evaluate_catalogue
from lightfr_harness.data.held_out import HeldOut, groups_from_lists


def held_out_of(*pairs):
    """One user per pair of (held-out items, seen items)."""
    wanted, seen = zip(*pairs, strict=True)
    as_groups = [groups_from_lists([np.array(items, np.uint32) for items in lists]) for lists in (wanted, seen)]
    return HeldOut(np.arange(len(pairs)), *as_groups)


def by_enumeration(scores, wanted, seen, k):
    """Recall and NDCG for every order in which equal scores may come out."""
    unseen = [item for item in range(len(scores)) if item not in seen]
    ideal = sum(1 / np.log2(rank + 1) for rank in range(1, min(k, len(wanted)) + 1))
    for order in permutations(unseen):
        top = sorted(order, key=lambda item: -scores[item])[:k]  # Stable: ties keep `order`.
        hits = [rank for rank, item in enumerate(top, start=1) if item in wanted]
        yield len(hits) / len(wanted), sum(1 / np.log2(rank + 1) for rank in hits) / ideal


@st.composite
def users(draw):
    n_items = draw(st.integers(2, 6))
    scores = draw(st.lists(st.integers(0, 2), min_size=n_items, max_size=n_items))
    role = draw(st.lists(st.sampled_from("wsu"), min_size=n_items, max_size=n_items))
    role[draw(st.integers(0, n_items - 1))] = "w"
    pick = [[item for item in range(n_items) if role[item] == letter] for letter in "ws"]
    return scores, *pick


@settings(max_examples=80)
@given(users(), st.integers(1, 7))
def test_figures_are_the_average_over_every_order_of_tied_items(user, k):
    scores, wanted, seen = user
    metrics = evaluate_catalogue(
        held_out_of((wanted, seen)),
        lambda block: np.tile(np.array(scores, float), (len(block), 1)),
        n_items=len(scores),
        k=k,
    )
    outcomes = np.array(list(by_enumeration(scores, wanted, seen, k)))
    assert [metrics.recall, metrics.ndcg] == pytest.approx(outcomes.mean(axis=0))
    assert metrics.recall_optimistic == pytest.approx(outcomes[:, 0].max())
    assert metrics.ndcg_optimistic == pytest.approx(outcomes[:, 1].max())


@settings(max_examples=80)
@given(users(), st.integers(1, 7))
def test_by_the_devices_rule_the_lower_index_wins_a_tie(user, k):
    scores, wanted, seen = user
    metrics = evaluate_catalogue(
        held_out_of((wanted, seen)), lambda block: np.array([scores], float), n_items=len(scores), k=k
    )
    # The first order of all is by index, and sorting by score keeps it among equals.
    recall, ndcg = next(by_enumeration(scores, wanted, seen, k))
    assert [metrics.recall_device, metrics.ndcg_device] == pytest.approx([recall, ndcg])


def test_figures_agree_with_shuffling_a_catalogue_of_code_scores():
    generator = np.random.default_rng(3)
    scores = generator.integers(0, 9, size=300).astype(float)
    wanted, seen = list(range(0, 60, 3)), list(range(100, 150))
    metrics = evaluate_catalogue(held_out_of((wanted, seen)), lambda block: scores[None].copy(), n_items=300, k=50)
    unseen = np.setdiff1d(np.arange(300), seen)
    recalls = []
    for _ in range(4000):
        order = generator.permutation(unseen)
        top = order[np.argsort(-scores[order], kind="stable")][:50]
        recalls.append(np.isin(top, wanted).sum() / len(wanted))
    deviation = np.std(recalls) / np.sqrt(len(recalls))
    assert deviation > 0
    assert abs(metrics.recall - np.mean(recalls)) < 5 * deviation


def test_the_scorer_is_asked_in_blocks_and_users_keep_their_own_rows(monkeypatch):
    monkeypatch.setattr(evaluation, "SCORES_AT_ONCE", 8)
    asked = []

    def favour_own_number(block):
        asked.append(block.tolist())
        return np.eye(4)[block]

    held_out = held_out_of(*(([user], []) for user in range(4)))
    assert evaluate_catalogue(held_out, favour_own_number, n_items=4, k=1).recall == 1.0
    assert asked == [[0, 1], [2, 3]]


def test_the_callers_scores_are_left_as_they_were():
    scores = np.ones((1, 4))
    evaluate_catalogue(held_out_of(([0], [1])), lambda block: scores, n_items=4)
    assert (scores == 1).all()


def test_a_catalogue_of_a_hundred_thousand_items_fits_in_bounded_memory():
    def score(block):
        return np.add.outer(block, np.arange(100_000)) % 65.0

    held_out = held_out_of(*(([user, user + 7], [3]) for user in range(10, 110)))
    tracemalloc.start()
    evaluate_catalogue(held_out, score, n_items=100_000)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 150e6


def test_scores_of_the_wrong_shape_are_refused():
    with pytest.raises(InvalidInputError, match="one row per user"):
        evaluate_catalogue(held_out_of(([0], [])), lambda block: np.zeros((1, 3)), n_items=4)


def test_scores_that_are_not_finite_are_refused():
    with pytest.raises(InvalidInputError, match="NaN or infinite"):
        evaluate_catalogue(held_out_of(([0], [])), lambda block: np.full((1, 4), np.nan), n_items=4)


def test_a_cutoff_below_one_and_no_users_are_refused():
    with pytest.raises(InvalidInputError, match="K is"):
        evaluate_catalogue(held_out_of(([0], [])), lambda block: np.zeros((1, 4)), n_items=4, k=0)
    nobody = HeldOut(np.empty(0), groups_from_lists([]), groups_from_lists([]))
    with pytest.raises(InvalidInputError, match="no user"):
        evaluate_catalogue(nobody, lambda block: np.zeros((0, 4)), n_items=4)
