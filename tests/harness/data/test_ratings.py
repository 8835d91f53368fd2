"""What a Ratings object promises."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightfr_harness.data.errors import InvalidRatingsError
from lightfr_harness.data.ratings import Ratings, ratings_from_ids, renumber_by_popularity


def make(rows, *, n_users=3, n_items=4, scale=(1.0, 5.0)):
    user, item, rating, timestamp = zip(*rows, strict=True) if rows else ((), (), (), ())
    user_ids = [f"u{number}" for number in range(n_users)]
    item_ids = [f"i{number}" for number in range(n_items)]
    return Ratings(
        np.array(user, np.uint32),
        np.array(item, np.uint32),
        np.array(rating, float),
        np.array(timestamp, np.int64),
        user_ids,
        item_ids,
        *scale,
    )


def test_columns_have_the_promised_types():
    ratings = make([(0, 1, 3, 10)])
    assert ratings.user_index.dtype == ratings.item_index.dtype == np.uint32
    assert ratings.rating.dtype == np.float64
    assert ratings.timestamp.dtype == np.int64
    assert (ratings.n_users, ratings.n_items, len(ratings)) == (3, 4, 1)


@pytest.mark.parametrize("bad", [float("nan"), 0.99, 5.01, float("inf")])
def test_a_rating_outside_the_declared_range_is_refused_with_its_row(bad):
    with pytest.raises(InvalidRatingsError, match=r"Row 1 .* 1 to 5"):
        make([(0, 0, 3, 0), (0, 1, bad, 1)])


def test_the_bottom_of_the_scale_is_a_rating_like_any_other():
    assert len(make([(0, 0, 0, 0)], scale=(0.0, 1.0))) == 1


@pytest.mark.parametrize("scale", [(5.0, 1.0), (1.0, 1.0), (float("nan"), 5.0), (1.0, float("inf"))])
def test_a_range_that_is_no_range_is_refused(scale):
    with pytest.raises(InvalidRatingsError, match="not a range"):
        make([(0, 0, 3, 0)], scale=scale)


@pytest.mark.parametrize(("row", "party"), [((3, 0, 3, 0), "user"), ((0, 4, 3, 0), "item")])
def test_an_index_without_an_id_is_refused(row, party):
    with pytest.raises(InvalidRatingsError, match=f"A {party} index"):
        make([row])


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(InvalidRatingsError, match="equally long"):
        Ratings(np.zeros(2), np.zeros(1), np.ones(1), np.zeros(1), ["u"], ["i"], 1, 5)


def test_the_latest_of_repeated_ratings_stands_and_the_rest_are_counted():
    ratings = make([(0, 0, 1, 50), (0, 0, 2, 90), (0, 1, 3, 1), (0, 0, 4, 70)])
    assert ratings.rating.tolist() == [2, 3]
    assert ratings.n_duplicates == 2


def test_among_repeats_at_the_same_time_the_later_line_stands():
    assert make([(0, 0, 1, 7), (0, 0, 2, 7)]).rating.tolist() == [2]


events = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(1, 5), st.integers(0, 3)),
    max_size=25,
)


@given(events)
def test_duplicates_are_dropped_as_a_dictionary_filled_in_time_order_would(rows):
    by_time = sorted(enumerate(rows), key=lambda entry: (entry[1][3], entry[0]))
    expected = {(user, item): rating for _, (user, item, rating, _) in by_time}
    ratings = make(rows)
    pairs = zip(ratings.user_index.tolist(), ratings.item_index.tolist(), strict=True)
    assert dict(zip(pairs, ratings.rating.tolist(), strict=True)) == expected
    assert ratings.n_duplicates == len(rows) - len(expected) == len(rows) - len(ratings)


@given(events)
def test_renumbering_by_popularity_changes_numbers_but_no_rating(rows):
    before = make(rows)
    after = renumber_by_popularity(before)
    counts = after.item_counts()
    assert (np.diff(counts) <= 0).all()
    assert _by_id(after) == _by_id(before)


def _by_id(ratings):
    return [
        (ratings.user_ids[user], ratings.item_ids[item], rating)
        for user, item, rating in zip(ratings.user_index, ratings.item_index, ratings.rating, strict=True)
    ]


def test_equally_popular_items_go_by_first_appearance_and_unrated_ones_by_id():
    rows = [(0, 4, 3, 0), (0, 2, 3, 1), (0, 1, 3, 2), (1, 1, 3, 3)]
    ratings = renumber_by_popularity(make(rows, n_items=5))
    assert ratings.item_ids == ["i1", "i4", "i2", "i0", "i3"]


def test_ids_are_numbered_alike_whether_they_are_numbers_or_text():
    users, items = [7, 7, 5], [30, 20, 20]
    arguments = (np.array([3.0, 3.0, 3.0]), None, (1.0, 5.0))
    numbers = ratings_from_ids(np.array(users), np.array(items), *arguments)
    texts = ratings_from_ids([str(user) for user in users], [str(item) for item in items], *arguments)
    for ratings in (numbers, texts):
        assert ratings.user_ids == ["7", "5"]
        assert ratings.item_ids == ["20", "30"]
        assert ratings.item_index.tolist() == [1, 0, 0]
        assert ratings.timestamp.tolist() == [0, 1, 2]


def test_the_same_ratings_on_another_scale_or_without_times_are_other_data():
    ratings = make([(0, 1, 3, 10), (1, 2, 5, 11)])
    others = [replace(ratings, rating_max=10.0), replace(ratings, rating_min=0.0), replace(ratings, has_times=False)]
    assert len({each.fingerprint() for each in [ratings, *others]}) == 4
    assert make([(0, 1, 3, 10), (1, 2, 5, 11)]).fingerprint() == ratings.fingerprint()
