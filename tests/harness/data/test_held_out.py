"""Groups of items that do not fit together are refused when they are made."""

import numpy as np
import pytest

from lightfr_harness.data.errors import InvalidRatingsError
from lightfr_harness.data.held_out import Candidates, HeldOut, ItemGroups


@pytest.mark.parametrize("offsets", [[], [1, 3], [0, 2], [0, 4, 3], [0, 4]])
def test_offsets_must_cover_the_items_in_order(offsets):
    with pytest.raises(InvalidRatingsError, match="Offsets"):
        ItemGroups(np.arange(3), np.array(offsets, np.int64))


@pytest.mark.parametrize("group", [-1, 2])
def test_a_group_that_does_not_exist_is_an_index_error(group):
    with pytest.raises(IndexError):
        ItemGroups(np.arange(3), np.array([0, 1, 3]))[group]


def test_groups_can_be_walked_through():
    assert [group.tolist() for group in ItemGroups(np.arange(3), np.array([0, 1, 3]))] == [
        [0],
        [1, 2],
    ]


def test_a_user_without_a_positive_is_refused():
    with pytest.raises(InvalidRatingsError, match="positive"):
        Candidates(np.array([0, 1]), ItemGroups(np.arange(2), np.array([0, 2, 2])))


def test_a_user_without_held_out_items_is_refused():
    empty = ItemGroups(np.arange(0), np.array([0, 0]))
    with pytest.raises(InvalidRatingsError, match="at least one"):
        HeldOut(np.array([0]), empty, empty)


def test_rows_of_candidates_know_their_users():
    candidates = Candidates(np.array([4, 2]), ItemGroups(np.arange(3), np.array([0, 1, 3])))
    assert candidates.users_of_rows().tolist() == [4, 2, 2]
    assert candidates.positives.tolist() == [0, 1]


def of_levels(levels):
    return Candidates(np.arange(4), ItemGroups(np.arange(4), np.arange(5)), levels)


def test_positives_are_liked_above_the_middle_of_the_scale_and_disliked_below():
    candidates = of_levels(np.array([0, 1259, 1260, 1261]))
    assert candidates.is_disliked.tolist() == [True, True, False, False]
    assert candidates.is_liked.tolist() == [False, False, False, True]


@pytest.mark.parametrize("levels", [None, np.array([1260, 1260, 2520, 1260])])
def test_where_nothing_is_disliked_every_positive_is_liked(levels):
    candidates = of_levels(levels)
    assert not candidates.is_disliked.any()
    assert candidates.is_liked.all()


def test_levels_must_be_as_many_as_users():
    with pytest.raises(InvalidRatingsError, match="one level per user"):
        of_levels(np.zeros(3))
