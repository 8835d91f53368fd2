"""Which ratings are trained on, and which are kept back to be found again.

Every split numbers the items by the popularity of its *train* part. The number decides ranking
ties, so numbering by all ratings would let the held-out ones whisper.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .errors import InvalidOptionError
from .held_out import Candidates, HeldOut, ItemGroups, groups_from_lists
from .ratings import Index, Ratings, inverted, popularity_order, ratings_from_ids, renumber_items

NEGATIVES_SEED = 20230401
"""Fixed, and no relation of any training seed: all seeds are judged on the same ratings and negatives."""

FEWEST_RATINGS = 3
"""One to train on, one to validate, one to test; users below it are trained on, not judged."""

MOST_JUDGED = 50_000
"""Of more users some are drawn: a share of them is then known to .005, and to judge a million takes an hour."""


@dataclass(frozen=True, eq=False)
class Split:
    """Train ratings and one positive among candidates for each evaluated user."""

    train: Ratings
    validation: Candidates | None
    test: Candidates
    held_out: str
    """How the held-out ratings were chosen, in words."""
    test_as_given: Candidates | None = None
    """The candidates of a prepared split whose negatives hold items that the users rated; None if there were none."""

    @property
    def n_negatives_dropped(self) -> int:
        return len(self.test_as_given.item_index) - len(self.test.item_index) if self.test_as_given else 0


@dataclass(frozen=True, eq=False)
class CatalogueSplit:
    """Train ratings and sets of held-out items, to be found in the whole catalogue."""

    train: Ratings
    validation: HeldOut
    test: HeldOut
    held_out: str


def leave_last_out(
    ratings: Ratings,
    *,
    n_negatives: int = 49,
    seed: int = NEGATIVES_SEED,
    validation_in_train: bool = True,
) -> Split:
    """Hold out each user's last rating (test) and perhaps the one before it (validation).

    Without times "last" is last in a random order that `seed` decides: the order of a file says nothing about time.
    Final figures train on all but the test positive, as a deployed device would: that is the
    default, and `validation` is then None, because judging on it would judge on training data.
    To choose a model, pass `validation_in_train=False`. The test candidates are the same in both
    cases. Negatives are drawn from the items the user never rated, in any part; a user with fewer
    such items than `n_negatives` gets them all, and a user with none is not evaluated. Of more than
    MOST_JUDGED users so many are drawn; the others are trained on with all their ratings.
    """
    if n_negatives < 1:
        raise InvalidOptionError(f"n_negatives is {n_negatives}; at least 1 is needed to rank.")
    history = _Histories(ratings, seed)
    users = np.flatnonzero((history.sizes >= FEWEST_RATINGS) & (history.sizes < ratings.n_items))
    drawn = ""
    if len(users) > MOST_JUDGED:
        drawn = f", for {MOST_JUDGED:,} of {len(users):,} users"
        users = np.sort(np.random.default_rng([seed, 3]).choice(users, MOST_JUDGED, replace=False))
    test_rows, validation_rows = history.rows_from_end(users, 1), history.rows_from_end(users, 2)
    in_train = np.ones(len(ratings), dtype=np.bool_)
    in_train[test_rows] = False
    in_train[validation_rows] = validation_in_train
    train, order = _numbered_train(ratings, in_train)
    draw = _NegativeDraw(ratings, history, users, n_negatives)
    # A stream each, so that the test negatives do not depend on whether validation is drawn.
    test = draw.candidates(test_rows, np.random.default_rng([seed, 0]))
    tied = int((ratings.timestamp[test_rows] == ratings.timestamp[validation_rows]).sum())
    by_line = f"; for {tied:,} of {len(users):,} users the later line, among equal times" if tied else ""
    held_out = _in_words(ratings, f"the newest rating of each user by time{drawn}{by_line}", seed)
    if validation_in_train:
        return Split(train, None, renumber_candidates(test, order), held_out)
    validation = draw.candidates(validation_rows, np.random.default_rng([seed, 1]))
    return Split(train, renumber_candidates(validation, order), renumber_candidates(test, order), held_out)


def by_time_80_10_10(ratings: Ratings, *, seed: int = NEGATIVES_SEED) -> CatalogueSplit:
    """Each user's oldest 80 % train, then 10 % validation, then 10 % test, over the catalogue.

    Without times the order is random, as `seed` decides.

    Train is rounded up, and of an odd remainder test gets the larger half, so users with fewer
    than five ratings are only trained on. What a user rated before the part in question counts as
    seen: train for validation, train and validation for test.
    """
    history = _Histories(ratings, seed)
    in_validation, in_test = _parts_80_10_10(ratings, history)
    in_train = ~(in_validation | in_test)
    train, order = _numbered_train(ratings, in_train)
    renumbered = renumber_items(ratings, order)
    return CatalogueSplit(
        train,
        _held_out(renumbered, in_validation, in_train),
        _held_out(renumbered, in_test, ~in_test),
        _in_words(ratings, "the newest ratings of each user by time", seed),
    )


def sampled_80_10_10(
    ratings: Ratings,
    *,
    n_negatives: int = 49,
    seed: int = NEGATIVES_SEED,
    validation_in_train: bool = True,
) -> Split:
    """The parts of `by_time_80_10_10`, with `n_negatives` drawn anew for each held-out rating.

    A user has as many groups of candidates as held-out ratings, so means are over ratings, not over users. The rest is
    as in `leave_last_out`: what final figures train on, and where the negatives come from.
    """
    if n_negatives < 1:
        raise InvalidOptionError(f"n_negatives is {n_negatives}; at least 1 is needed to rank.")
    history = _Histories(ratings, seed)
    in_validation, in_test = _parts_80_10_10(ratings, history)
    can_rank = (history.sizes < ratings.n_items)[ratings.user_index]
    train, order = _numbered_train(ratings, ~in_test if validation_in_train else ~(in_test | in_validation))

    def candidates(rows: NDArray[np.bool_], stream: int) -> Candidates:
        positives = np.flatnonzero(rows & can_rank)
        draw = _NegativeDraw(ratings, history, ratings.user_index[positives].astype(np.int64), n_negatives)
        return renumber_candidates(draw.candidates(positives, np.random.default_rng([seed, stream])), order)

    validation = None if validation_in_train else candidates(in_validation, 1)
    held_out = _in_words(ratings, "the newest tenth of each user's ratings by time", seed)
    return Split(train, validation, candidates(in_test, 0), held_out)


def _parts_80_10_10(ratings: Ratings, history: _Histories) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which rows are in validation, and which in test."""
    train_sizes = (history.sizes * 8 + 9) // 10
    validation_sizes = (history.sizes - train_sizes) // 2
    age_rank = history.age_rank()
    train_end = train_sizes[ratings.user_index]
    in_test = age_rank >= train_end + validation_sizes[ratings.user_index]
    return (age_rank >= train_end) & ~in_test, in_test


def first_ratings(ratings: Ratings, count: int) -> Ratings:
    """Each user's `count` oldest ratings, for real users with sparse rows; items that nobody rated then are gone."""
    if count < 1:
        raise InvalidOptionError(f"first is {count}; keep at least 1 rating of each user.")
    if not ratings.has_times:
        raise InvalidOptionError("These ratings have no times, so no rating of a user is the first. Use other data.")
    history = _Histories(ratings)
    rows = history.rows[history.age_rank()[history.rows] < count]
    users, items = ratings.user_index[rows].tolist(), ratings.item_index[rows].tolist()
    scale = (ratings.rating_min, ratings.rating_max)
    return ratings_from_ids(
        [ratings.user_ids[user] for user in users],
        [ratings.item_ids[item] for item in items],
        ratings.rating[rows],
        ratings.timestamp[rows],
        scale,
    )


def _in_words(ratings: Ratings, newest: str, seed: int) -> str:
    return newest if ratings.has_times else f"random, since there are no times; seed {seed}"


class _Histories:
    """Each user's rows, oldest first, or, without times, in a random order."""

    def __init__(self, ratings: Ratings, seed: int = NEGATIVES_SEED) -> None:
        self.rows = ratings.chronological_order()
        if not ratings.has_times:
            shuffled = np.random.default_rng([seed, 2]).random(len(ratings))
            self.rows = np.lexsort((shuffled, ratings.user_index)).astype(np.int64)
        self.sizes = np.bincount(ratings.user_index, minlength=ratings.n_users).astype(np.int64)
        self.ends = np.cumsum(self.sizes)

    def rows_from_end(self, users: NDArray[np.int64], steps: int) -> NDArray[np.int64]:
        return self.rows[self.ends[users] - steps]

    def of(self, user: int) -> NDArray[np.int64]:
        return self.rows[self.ends[user] - self.sizes[user] : self.ends[user]]

    def age_rank(self) -> NDArray[np.int64]:
        """For every row its place in its user's history, 0 for the oldest."""
        starts = np.repeat(self.ends - self.sizes, self.sizes)
        place = np.empty(len(self.rows), dtype=np.int64)
        place[self.rows] = np.arange(len(self.rows)) - starts
        return place


@dataclass(frozen=True)
class _NegativeDraw:
    ratings: Ratings
    history: _Histories
    users: NDArray[np.int64]
    n_negatives: int

    def candidates(self, positive_rows: NDArray[np.int64], generator: np.random.Generator) -> Candidates:
        positives = self.ratings.item_index[positive_rows]
        lists = [
            np.append(positive, self._negatives(int(user), generator)).astype(np.uint32)
            for user, positive in zip(self.users, positives, strict=True)
        ]
        levels = self.ratings.levels()[positive_rows]
        return Candidates(self.users.astype(np.uint32), groups_from_lists(lists), levels)

    def _negatives(self, user: int, generator: np.random.Generator) -> NDArray[np.int64]:
        rated = np.sort(self.ratings.item_index[self.history.of(user)]).astype(np.int64)
        n_unrated = self.ratings.n_items - len(rated)
        count = min(self.n_negatives, n_unrated)
        places = generator.choice(n_unrated, size=count, replace=False)
        # The items at these places in the list of unrated items, without writing that list out.
        unrated_before = rated - np.arange(len(rated))
        return places + np.searchsorted(unrated_before, places, side="right")


def _numbered_train(ratings: Ratings, rows: NDArray[np.bool_]) -> tuple[Ratings, NDArray[np.int64]]:
    train = ratings.subset(rows)
    order = popularity_order(train)
    return renumber_items(train, order), order


def renumber_candidates(candidates: Candidates, order: NDArray[np.int64]) -> Candidates:
    """Follow `renumber_items`: the item that was `order[j]` becomes item j."""
    items: Index = inverted(order)[candidates.item_index].astype(np.uint32)
    return replace(candidates, groups=ItemGroups(items, candidates.offsets))


def _held_out(ratings: Ratings, rows: NDArray[np.bool_], seen: NDArray[np.bool_]) -> HeldOut:
    users = np.unique(ratings.user_index[rows])
    held_out = _group_by_user(ratings, users, rows)
    return HeldOut(users, held_out, _group_by_user(ratings, users, seen))


def _group_by_user(ratings: Ratings, users: Index, rows: NDArray[np.bool_]) -> ItemGroups:
    wanted = np.zeros(ratings.n_users, dtype=np.bool_)
    wanted[users] = True
    chosen = np.flatnonzero(rows & wanted[ratings.user_index])
    grouped = chosen[np.argsort(ratings.user_index[chosen], kind="stable")]
    sizes = np.bincount(ratings.user_index[chosen], minlength=ratings.n_users)[users]
    return ItemGroups(ratings.item_index[grouped], np.concatenate(([0], np.cumsum(sizes))))
