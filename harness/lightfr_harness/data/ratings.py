"""Ratings in memory: one row per observed (user, item) pair, in file order.

"Observed" means that a row exists. It is never inferred from a value, so a rating equal to the
bottom of the scale counts like any other.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lightfr.interactions import LEVELS

from .errors import InvalidRatingsError

Index = NDArray[np.uint32]
Ids = NDArray[np.int64] | Sequence[str]


@dataclass(frozen=True, eq=False)
class Ratings:
    """Validated ratings; making one either gives sound data or raises InvalidRatingsError.

    When a user rated an item more than once, the latest rating by (timestamp, file order) stands
    and `n_duplicates` says how many older ones were dropped.
    """

    user_index: Index
    item_index: Index
    rating: NDArray[np.float64]
    timestamp: NDArray[np.int64]
    """Any unit, as long as it grows with time; the row number where `has_times` is false."""
    user_ids: list[str]
    item_ids: list[str]
    rating_min: float
    rating_max: float
    n_duplicates: int = 0
    n_zeros: int = 0
    """Zeros that the source has in the place of missing ratings; they are not among these."""
    has_times: bool = True

    def __post_init__(self) -> None:
        self._store(user_index=np.asarray(self.user_index, np.uint32))
        self._store(item_index=np.asarray(self.item_index, np.uint32))
        self._store(rating=np.asarray(self.rating, np.float64))
        self._store(timestamp=np.asarray(self.timestamp, np.int64))
        columns = (self.user_index, self.item_index, self.rating, self.timestamp)
        if {column.shape for column in columns} != {(len(self.rating),)}:
            raise InvalidRatingsError("The columns user, item, rating and timestamp must be flat and equally long.")
        _require_known_rows(self.user_index, self.n_users, "user")
        _require_known_rows(self.item_index, self.n_items, "item")
        require_rating_range(self.rating_min, self.rating_max)
        _require_in_range(self)
        self._drop_older_duplicates()

    def __len__(self) -> int:
        return len(self.rating)

    @property
    def n_users(self) -> int:
        return len(self.user_ids)

    @property
    def n_items(self) -> int:
        return len(self.item_ids)

    def subset(self, rows: NDArray[np.bool_]) -> Ratings:
        """The rows where the mask is true; users, items and their numbers stay as they are."""
        return replace(
            self,
            user_index=self.user_index[rows],
            item_index=self.item_index[rows],
            rating=self.rating[rows],
            timestamp=self.timestamp[rows],
        )

    def item_counts(self) -> NDArray[np.int64]:
        return np.bincount(self.item_index, minlength=self.n_items).astype(np.int64)

    def levels(self) -> NDArray[np.int64]:
        """The ratings as devices keep them: 0 to LEVELS."""
        share = (self.rating - self.rating_min) / (self.rating_max - self.rating_min)
        return np.rint(share * LEVELS).astype(np.int64)

    def chronological_order(self) -> NDArray[np.int64]:
        """Rows grouped by user, oldest first; equal times keep file order (lexsort is stable)."""
        return np.lexsort((self.timestamp, self.user_index)).astype(np.int64)

    def fingerprint(self) -> str:
        """Tells data sets apart in what is kept of finished runs. Another file of the same shape is other data.

        So is the same file on another scale, where other ratings are likes.
        """
        checksum = zlib.crc32(np.array([self.rating_min, self.rating_max, self.has_times], np.float64).tobytes())
        for column in (self.user_index, self.item_index, self.rating, self.timestamp):
            checksum = zlib.crc32(column.tobytes(), checksum)
        return f"{self.n_users}x{self.n_items}x{len(self)}-{checksum:08x}"

    def _store(self, **fields: object) -> None:
        # The one place that writes to a frozen object, and only while it is being made.
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def _drop_older_duplicates(self) -> None:
        kept = _latest_of_each_pair(self)
        if kept is None:
            return
        dropped = len(kept) - int(np.count_nonzero(kept))
        self._store(user_index=self.user_index[kept], item_index=self.item_index[kept])
        self._store(rating=self.rating[kept], timestamp=self.timestamp[kept])
        self._store(n_duplicates=self.n_duplicates + dropped)


def ratings_from_ids(
    users: Ids,
    items: Ids,
    rating: NDArray[np.float64],
    timestamp: NDArray[np.int64] | None,
    rating_range: tuple[float, float],
    n_zeros: int = 0,
) -> Ratings:
    """Number users by first appearance and items by popularity. Times that are all equal are no times."""
    user_index, user_ids = number_by_first_appearance(users)
    item_index, item_ids = number_by_first_appearance(items)
    has_times = timestamp is not None and (len(timestamp) < 2 or bool((timestamp != timestamp[0]).any()))
    times = timestamp if timestamp is not None and has_times else np.arange(len(rating), dtype=np.int64)
    ratings = Ratings(
        user_index,
        item_index,
        rating,
        times,
        user_ids,
        item_ids,
        *rating_range,
        n_zeros=n_zeros,
        has_times=has_times,
    )
    return renumber_by_popularity(ratings)


def whole_times(times: NDArray[np.float64]) -> NDArray[np.int64]:
    """Times as whole numbers: millionths where any of them has a fraction and all of them fit, or as they are."""
    has_fractions = bool((times != np.floor(times)).any())
    unit = 1e6 if has_fractions and abs(times).max() * 1e6 < 2**63 else 1.0
    return np.floor(times * unit).astype(np.int64)


def number_by_first_appearance(ids: Ids) -> tuple[Index, list[str]]:
    """An index per row and the id, as text, of each index."""
    if not isinstance(ids, np.ndarray):
        seen: dict[str, int] = {}
        index = [seen.setdefault(text, len(seen)) for text in ids]
        return np.array(index, dtype=np.uint32), list(seen)
    values, first_row, inverse = np.unique(ids, return_index=True, return_inverse=True)
    order = np.argsort(first_row)
    return inverted(order)[inverse].astype(np.uint32), [str(value) for value in values[order]]


def popularity_order(ratings: Ratings) -> NDArray[np.int64]:
    """Item indices, most rated first.

    Equal counts go by first appearance in these ratings. Items that nobody rated here come last,
    by the text of their id: their present number may come from ratings that are held out, and
    must not shine through.
    """
    first_row = np.full(ratings.n_items, len(ratings), dtype=np.int64)
    # Written backwards, so that the earliest row is the one that stays.
    first_row[ratings.item_index[::-1]] = np.arange(len(ratings))[::-1]
    counts = ratings.item_counts()
    order = np.lexsort((first_row, -counts)).astype(np.int64)
    n_rated = int(np.count_nonzero(counts))
    order[n_rated:] = sorted(order[n_rated:], key=ratings.item_ids.__getitem__)
    return order


def renumber_by_popularity(ratings: Ratings) -> Ratings:
    """Ranking ties go to the lower item index, so the lower index must be the popular item."""
    return renumber_items(ratings, popularity_order(ratings))


def renumber_items(ratings: Ratings, order: NDArray[np.int64]) -> Ratings:
    """The item that was `order[j]` becomes item j."""
    item_ids = [ratings.item_ids[item] for item in order]
    return replace(ratings, item_index=inverted(order)[ratings.item_index].astype(np.uint32), item_ids=item_ids)


def inverted(order: NDArray[np.int64]) -> NDArray[np.int64]:
    """The permutation that undoes `order`."""
    position = np.empty_like(order)
    position[order] = np.arange(len(order))
    return position


def require_rating_range(rating_min: float, rating_max: float) -> None:
    if not (np.isfinite(rating_min) and np.isfinite(rating_max) and rating_min < rating_max):
        raise InvalidRatingsError(
            f"The rating range {rating_min} to {rating_max} is not a range. "
            "Declare two finite numbers, the smaller first."
        )


def _require_known_rows(index: Index, count: int, party: str) -> None:
    if len(index) and int(index.max()) >= count:
        raise InvalidRatingsError(
            f"A {party} index reaches {int(index.max())}, but only {count} {party} ids are given. "
            f"Give one id for every {party}."
        )


def _require_in_range(ratings: Ratings) -> None:
    inside = (ratings.rating >= ratings.rating_min) & (ratings.rating <= ratings.rating_max)
    if not inside.all():  # NaN is never inside.
        raise InvalidRatingsError(
            f"Row {int(np.argmin(inside))} (counted from 0) has a rating that is NaN or outside "
            f"the declared range {ratings.rating_min:g} to {ratings.rating_max:g}. "
            "Correct the rating or declare the range of this data set."
        )


def _latest_of_each_pair(ratings: Ratings) -> NDArray[np.bool_] | None:
    pair = ratings.user_index.astype(np.uint64) * np.uint64(ratings.n_items) + ratings.item_index
    in_order = np.sort(pair)
    if not (in_order[1:] == in_order[:-1]).any():
        return None  # The usual case, found without the slower sort by time below.
    order = np.lexsort((ratings.timestamp, pair))
    is_last = np.append(pair[order][1:] != pair[order][:-1], True)
    kept = np.zeros(len(pair), dtype=np.bool_)
    kept[order[is_last]] = True
    return kept
