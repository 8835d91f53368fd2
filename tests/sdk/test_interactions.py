import math

import numpy as np
import pytest

from lightfr import errors
from lightfr.interactions import HIDDEN, LEVELS, MIDDLE, Interactions, RatingScale


def test_half_star_and_whole_star_scales_become_exact_levels():
    assert [RatingScale(1, 5).level(r) for r in (1, 2, 3, 4, 5)] == [0, 630, 1260, 1890, 2520]
    assert [RatingScale(0.5, 5).level(r) * 9 % LEVELS for r in (0.5, 1, 2.5, 5)] == [0, 0, 0, 0]


@pytest.mark.parametrize("rating", [0.99, 5.01, math.nan, math.inf, -math.inf])
def test_a_rating_outside_the_scale_is_refused_without_repeating_it(rating):
    with pytest.raises(errors.RatingError, match="from 1 to 5") as caught:
        RatingScale(1, 5).level(rating)
    assert str(rating) not in str(caught.value)


@pytest.mark.parametrize("bounds", [(5, 1), (1, 1), (math.nan, 5), (0, math.inf)])
def test_an_empty_or_infinite_scale_is_refused(bounds):
    with pytest.raises(errors.InvalidInputError):
        RatingScale(*bounds)


@pytest.mark.parametrize("bounds", [("1", "5"), (1, None), (np.array([1, 2]), 5), (1, 10**400)])
def test_a_scale_that_is_not_made_of_two_numbers_is_refused(bounds):
    with pytest.raises(errors.InvalidInputError):
        RatingScale(*bounds)


def test_rating_again_replaces_the_old_rating_and_makes_it_the_newest():
    rated = Interactions([(7, 10), (3, 20)])
    rated.put(7, 30)
    indices, levels = rated.arrays()
    assert (indices.tolist(), levels.tolist()) == ([3, 7], [20, 30])
    assert len(rated) == 2


def test_unrating_forgets_and_says_whether_there_was_something():
    rated = Interactions([(7, 10)])
    assert rated.remove(7) is True
    assert rated.remove(7) is False
    assert rated.arrays()[0].tolist() == []


def test_levels_and_indices_outside_their_ranges_are_refused():
    with pytest.raises(errors.RatingError):
        Interactions([(1, LEVELS + 1)])
    with pytest.raises(errors.RatingError):
        Interactions([(1, HIDDEN)])
    with pytest.raises(errors.ItemIndexError):
        Interactions([(2**32, 0)])


@pytest.mark.parametrize(
    ("opinions", "taught"),
    [
        ([], []),
        ([(5, LEVELS)], [(5, LEVELS)]),
        ([(5, MIDDLE - 1)], []),
        ([(5, LEVELS), (6, LEVELS)], [(5, LEVELS)]),
        ([(9, 0), (5, LEVELS), (7, MIDDLE - 1), (3, MIDDLE), (8, LEVELS)], [(5, LEVELS), (3, MIDDLE)]),
        # The newest is a dislike: it is the one that is kept back, and no liked one is.
        ([(5, LEVELS), (6, LEVELS), (7, 0)], [(5, LEVELS), (6, LEVELS)]),
        ([(5, 0), (6, LEVELS)], []),
    ],
)
def test_training_uses_no_dislike_and_not_the_newest_opinion_unless_it_is_the_only_one(opinions, taught):
    assert pairs(Interactions(opinions).to_teach()) == taught


def test_what_training_uses_follows_the_newest_opinion():
    rated = Interactions([(1, LEVELS), (2, LEVELS), (3, LEVELS)])
    rated.put(1, MIDDLE)
    assert pairs(rated.to_teach()) == [(2, LEVELS), (3, LEVELS)]
    assert pairs(rated) == [(2, LEVELS), (3, LEVELS), (1, MIDDLE)]


def test_the_newest_opinion_and_all_the_others():
    rated = Interactions([(4, 10), (7, 20), (2, 30)])
    assert rated.newest() == (2, 30)
    assert pairs(rated.without(7)) == [(4, 10), (2, 30)]
    assert pairs(rated.without(99)) == pairs(rated) == [(4, 10), (7, 20), (2, 30)]
    rated.put(4, 0)
    assert rated.newest() == (4, 0)
    assert Interactions().newest() is None


def pairs(rated):
    indices, levels = rated.arrays()
    return list(zip(indices, levels, strict=True))


def test_what_was_rated_shows_in_no_repr():
    assert repr(Interactions([(7, 10)])) == "<Interactions with 1 items>"
