"""What is held out, and that nothing of it can be seen in train."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightfr_harness.data import splits
from lightfr_harness.data.errors import InvalidOptionError
from lightfr_harness.data.ratings import ratings_from_ids
from lightfr_harness.data.splits import by_time_80_10_10, first_ratings, leave_last_out, sampled_80_10_10
from lightfr_harness.data.synthetic import generate


def histories(**items_by_user):
    """Ratings in which each user rated the items of a word, in its order."""
    pairs = [(user, item) for user, items in items_by_user.items() for item in items]
    users, items = zip(*pairs, strict=True)
    return ratings_from_ids(users, items, np.full(len(pairs), 3.0), np.arange(len(pairs)), (1.0, 5.0))


def without_times(n_users=400, n_ratings=5, times=None):
    """Every user rated the same items, in the same lines."""
    users = [f"u{user}" for user in range(n_users) for _ in range(n_ratings)] + ["other"]
    items = [f"i{item}" for _ in range(n_users) for item in range(n_ratings)] + ["z"]
    return ratings_from_ids(users, items, np.full(len(users), 3.0), times, (1.0, 5.0))


def ids(ratings, item_index):
    return "".join(ratings.item_ids[item] for item in item_index)


def train_of(split, user):
    train = split.train
    return ids(train, train.item_index[train.user_index == train.user_ids.index(user)])


def test_the_last_rating_is_tested_and_the_one_before_it_may_be_validated():
    ratings = histories(ann="abcd", bob="efg")
    split = leave_last_out(ratings, validation_in_train=False)
    assert ids(split.train, split.test.positives) == "dg"
    assert ids(split.train, split.validation.positives) == "cf"
    assert (train_of(split, "ann"), train_of(split, "bob")) == ("ab", "e")


def test_by_default_all_but_the_test_positive_is_trained_on_and_nothing_is_validated():
    split = leave_last_out(histories(ann="abcd", bob="efg"))
    assert split.validation is None
    assert train_of(split, "ann") == "abc"


def test_the_order_is_by_time_and_then_by_line():
    time = np.array([9, 5, 9, 1], np.int64)
    ratings = ratings_from_ids(list("uuuu"), list("abcd"), np.full(4, 3.0), time, (1.0, 5.0))
    extended = ratings_from_ids(list("uuuuv"), list("abcde"), np.full(5, 3.0), np.append(time, 0), (1.0, 5.0))
    assert len(leave_last_out(ratings).test) == 0  # Nothing unrated is left to rank against.
    split = leave_last_out(extended, validation_in_train=False)
    assert ids(split.train, split.test.positives) == "c"
    assert ids(split.train, split.validation.positives) == "a"


def test_users_with_fewer_than_three_ratings_stay_in_train_whole():
    split = leave_last_out(histories(ann="ab", bob="cdef"))
    assert [split.train.user_ids[user] for user in split.test.user_index] == ["bob"]
    assert train_of(split, "ann") == "ab"


@pytest.mark.parametrize("validation_in_train", [True, False])
def test_negatives_are_different_items_the_user_never_rated_in_any_part(validation_in_train):
    ratings = generate("tiny", seed=1)
    split = leave_last_out(ratings, validation_in_train=validation_in_train)
    rated = {(u, ratings.item_ids[i]) for u, i in zip(ratings.user_index, ratings.item_index, strict=True)}
    for user, (start, stop) in zip(split.test.user_index, pairwise(split.test.offsets), strict=True):
        negatives = [split.train.item_ids[i] for i in split.test.item_index[start + 1 : stop]]
        assert len(set(negatives)) == 49
        assert not any((user, item) in rated for item in negatives)


def test_test_candidates_are_the_same_whether_or_not_validation_is_trained_on():
    ratings = generate("tiny")
    final = leave_last_out(ratings)
    choosing = leave_last_out(ratings, validation_in_train=False)
    first = [final.train.item_ids[item] for item in final.test.item_index]
    assert first == [choosing.train.item_ids[item] for item in choosing.test.item_index]


def test_negatives_depend_on_their_own_seed_only():
    ratings = generate("tiny")
    first, again = leave_last_out(ratings), leave_last_out(ratings)
    other = leave_last_out(ratings, seed=1)
    assert first.test.item_index.tolist() == again.test.item_index.tolist()
    assert first.test.item_index.tolist() != other.test.item_index.tolist()


def test_validation_negatives_are_repeatable_and_not_the_test_ones():
    ratings = generate("tiny")
    first, again = (leave_last_out(ratings, validation_in_train=False) for _ in range(2))
    assert first.validation.item_index.tolist() == again.validation.item_index.tolist()
    assert first.validation.groups[0][1:].tolist() != first.test.groups[0][1:].tolist()


def test_every_unrated_item_is_equally_likely_to_be_a_negative():
    ratings = histories(ann="abcd", bob="efghij")
    drawn = "".join(
        ids(split.train, split.test.groups[0][1:])
        for split in (leave_last_out(ratings, n_negatives=2, seed=seed) for seed in range(600))
    )
    assert set(drawn) == set("efghij")
    assert all(abs(drawn.count(item) - 200) < 60 for item in "efghij")  # Five deviations.


def test_a_user_with_few_unrated_items_gets_them_all_as_negatives():
    split = leave_last_out(histories(ann="abcd", bob="xyz"))
    assert split.test.groups.sizes.tolist() == [4, 5]


def test_less_than_one_negative_is_refused():
    with pytest.raises(InvalidOptionError, match="n_negatives"):
        leave_last_out(histories(ann="abc"), n_negatives=0)


def test_items_are_numbered_by_train_popularity_without_peeking_at_held_out_ratings():
    # z is the most rated item, but only as everybody's last one; y is rated by two in train.
    ratings = histories(ann="aybz", bob="cydz", cat="efgz")
    assert ratings.item_ids[0] == "z"
    split = leave_last_out(ratings)
    assert split.train.item_ids[0] == "y"
    assert split.train.item_ids[-1] == "z"
    assert ids(split.train, split.test.positives) == "zzz"


def test_the_order_of_items_unknown_to_train_says_nothing_about_held_out_ratings():
    # In all data q is more popular than p; train has seen neither.
    split = leave_last_out(histories(ann="abq", bob="abq", cat="abp"))
    assert split.train.item_ids[-2:] == ["p", "q"]


@pytest.mark.parametrize("times", [None, np.full(2001, 7)])
def test_without_times_any_rating_may_be_the_one_held_out_and_never_the_last_line_of_all(times):
    split = leave_last_out(without_times(times=times))
    counts = np.bincount(split.test.positives, minlength=6)
    drawn = {split.train.item_ids[item]: count for item, count in enumerate(counts.tolist()) if count}
    assert sorted(drawn) == ["i0", "i1", "i2", "i3", "i4"]
    assert all(abs(count - 80) < 40 for count in drawn.values())  # Five deviations.


def test_what_is_held_out_without_times_depends_on_the_seed_of_the_split_alone():
    ratings = without_times(n_users=50)
    first, again, other = (leave_last_out(ratings, seed=seed) for seed in (1, 1, 2))
    positives = [[split.train.item_ids[item] for item in split.test.positives] for split in (first, again, other)]
    assert positives[0] == positives[1] != positives[2]
    held_out = [[by_time_80_10_10(ratings, seed=seed).test.held_out.item_index.tolist()] for seed in (1, 1, 2)]
    assert held_out[0] == held_out[1] != held_out[2]


def test_a_split_says_in_words_how_it_held_out():
    assert leave_last_out(without_times(), seed=5).held_out == "random, since there are no times; seed 5"
    assert by_time_80_10_10(without_times(), seed=5).held_out == "random, since there are no times; seed 5"
    timed = histories(ann="abcd", bob="efg")
    assert leave_last_out(timed).held_out == "the newest rating of each user by time"
    assert by_time_80_10_10(timed).held_out == "the newest ratings of each user by time"


def test_a_split_says_for_how_many_users_the_later_line_decided():
    time = np.array([1, 2, 2, 1, 2, 3])
    ratings = ratings_from_ids(list("uuuvvv"), list("abcdef"), np.full(6, 3.0), time, (1.0, 5.0))
    assert leave_last_out(ratings).held_out.endswith("; for 1 of 2 users the later line, among equal times")


def test_the_first_ratings_of_each_user_are_the_oldest_ones():
    time = np.array([9, 5, 7, 1, 4])
    ratings = ratings_from_ids(list("uuuvw"), list("abcad"), np.array([1.0, 2, 3, 4, 5]), time, (1.0, 5.0))
    cut = first_ratings(ratings, 2)
    assert [cut.item_ids[item] for item in cut.item_index] == ["b", "c", "a", "d"]
    assert cut.rating.tolist() == [2, 3, 4, 5]
    assert cut.timestamp.tolist() == [5, 7, 1, 4]
    assert cut.user_ids == ["u", "v", "w"]


def test_a_cut_leaves_no_item_that_nobody_rated_any_more():
    assert sorted(first_ratings(histories(ann="abc", bob="bcd"), 1).item_ids) == ["a", "b"]


def test_there_are_no_first_ratings_without_times_and_less_than_one_is_refused():
    with pytest.raises(InvalidOptionError, match="no times"):
        first_ratings(without_times(), 2)
    with pytest.raises(InvalidOptionError, match="first is 0"):
        first_ratings(histories(ann="abc"), 0)


def test_what_reading_left_out_is_still_known_after_the_split():
    time = np.arange(6)
    ratings = ratings_from_ids(list("uuuuvv"), list("aabcde"), np.full(6, 3.0), time, (1.0, 5.0), n_zeros=4)
    assert (leave_last_out(ratings).train.n_duplicates, leave_last_out(ratings).train.n_zeros) == (1, 4)


@given(st.lists(st.integers(0, 25), min_size=1, max_size=6))
def test_80_10_10_cuts_each_history_in_order_and_loses_nothing(sizes):
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    words = {f"u{user}": alphabet[: size + 1] for user, size in enumerate(sizes)}
    split = by_time_80_10_10(histories(**words))
    parts = {user: [train_of(split, user), "", ""] for user in words}
    for place, part in ((1, split.validation), (2, split.test)):
        for group, user in enumerate(part.user_index):
            parts[split.train.user_ids[user]][place] = ids(split.train, part.held_out[group])
    for user, (train, validation, test) in parts.items():
        assert train + validation + test == words[user]
        assert len(train) == -(-8 * len(words[user]) // 10)
        assert len(test) - len(validation) in (0, 1)


def test_80_10_10_counts_what_came_before_the_part_as_seen():
    split = by_time_80_10_10(histories(ann="abcdefghij"))
    assert ids(split.train, split.validation.held_out[0]) == "i"
    assert ids(split.train, split.validation.seen[0]) == "abcdefgh"
    assert ids(split.train, split.test.held_out[0]) == "j"
    assert ids(split.train, split.test.seen[0]) == "abcdefghi"


def test_80_10_10_sorts_out_users_whose_lines_are_mixed():
    pairs = [(user, item) for item in "abcde" for user in ("ann", "bob")]
    users, items = zip(*pairs, strict=True)
    split = by_time_80_10_10(ratings_from_ids(users, items, np.ones(10), np.arange(10), (0.0, 1.0)))
    assert [ids(split.train, group) for group in split.test.seen] == ["abcd", "abcd"]
    assert [ids(split.train, group) for group in split.test.held_out] == ["e", "e"]


def test_80_10_10_trains_only_on_users_with_fewer_than_five_ratings():
    split = by_time_80_10_10(histories(ann="abcd", bob="abcde"))
    assert [split.train.user_ids[user] for user in split.test.user_index] == ["bob"]
    assert len(split.validation) == 0


@pytest.mark.parametrize("validation_in_train", [True, False])
def test_each_held_out_tenth_is_ranked_among_negatives_of_its_own(validation_in_train):
    ratings = generate("tiny")
    split = sampled_80_10_10(ratings, n_negatives=20, validation_in_train=validation_in_train)
    parts = by_time_80_10_10(ratings)
    rated = set(zip(ratings.user_index.tolist(), by_id(ratings, ratings.item_index), strict=True))
    wanted = held_out_pairs(parts.test, parts.train)
    got = zip(split.test.user_index.tolist(), by_id(split.train, split.test.positives), strict=True)
    assert sorted(got) == sorted(wanted)
    assert len(split.test) > len(set(split.test.user_index.tolist()))
    negatives = [group[1:] for group in split.test.groups]
    for user, items in zip(split.test.user_index.tolist(), negatives, strict=True):
        assert len(set(items.tolist())) == 20
        assert not {(user, item) for item in by_id(split.train, items)} & rated
    n_validation = len(held_out_pairs(parts.validation, parts.train))
    assert len(split.train) == len(parts.train) + (n_validation if validation_in_train else 0)
    if validation_in_train:
        assert split.validation is None
    else:
        assert len(split.validation) == n_validation
        assert (split.train.item_index == parts.train.item_index).all()


def test_the_test_candidates_are_the_same_whether_validation_is_drawn_or_not():
    ratings = generate("tiny")
    one, other = (sampled_80_10_10(ratings, validation_in_train=each) for each in (True, False))
    assert by_id(one.train, one.test.item_index) == by_id(other.train, other.test.item_index)


def by_id(ratings, items):
    return [ratings.item_ids[item] for item in items]


def held_out_pairs(held_out, train):
    return [
        (user, item)
        for place, user in enumerate(held_out.user_index.tolist())
        for item in by_id(train, held_out.held_out[place])
    ]


def test_of_too_many_users_some_are_judged_and_the_others_trained_on_whole(monkeypatch):
    ratings = generate("tiny", seed=1)
    every = leave_last_out(ratings)
    monkeypatch.setattr(splits, "MOST_JUDGED", 10)
    some = leave_last_out(ratings)
    assert len(some.test) == 10
    assert len(some.train) == len(ratings) - 10
    assert set(some.test.user_index) <= set(every.test.user_index)
    assert some.held_out == f"the newest rating of each user by time, for 10 of {len(every.test)} users"
