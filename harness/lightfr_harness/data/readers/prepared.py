"""A folder with a split somebody else made: train.csv, val.csv (may be absent) and test.csv.

All have the columns user_id, item_id and ratings. The evaluation files list, for each user in
consecutive lines, one positive first and then its negatives; their ratings column is not used, so that
every positive counts as liked.

Rules for what the files leave open:
- Users and items that only the evaluation files know are legal. They get numbers after the
  trained ones; the items have rows that learn only from what all rows share.
- A negative that the user rated in train.csv is no negative, nor is the positive listed again. Both are left out,
  with one warning for the folder; `Split.test_as_given` has them still, so that both figures can be reported.
- Otherwise candidates are taken as given, repeated negatives included.
- The rating range is what the caller declares. Where nothing is declared it is the smallest and
  largest rating of train.csv, because nothing in the folder declares it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np

from ..errors import DataFileError, DatasetWarning
from ..held_out import Candidates, ItemGroups, groups_from_lists
from ..ratings import Index, Ratings, popularity_order, renumber_items
from ..splits import Split, renumber_candidates
from .text import Table

TRAIN_COLUMNS = ("user_id", "item_id", "ratings")
ADVICE = "List each user's positive and negatives in consecutive lines, the positive first."

Numbers = dict[str, int]


def read_prepared(folder: Path, *, rating_min: float | None = None, rating_max: float | None = None) -> Split:
    if not folder.is_dir():
        reason = "this is not a folder" if folder.exists() else "it does not exist"
        raise DataFileError(folder, None, reason, "Name the folder that holds train.csv and test.csv.")
    users: Numbers = {}
    items: Numbers = {}
    columns = _train_columns(folder / "train.csv", users, items)
    if rating_min is None and rating_max is None and len(set(columns[2])) == 1:
        reason = "all ratings in train.csv are equal, so that they tell no scale"
        raise DataFileError(folder, None, reason, "Declare --rating-min and --rating-max.")
    given = _Evaluation.read(folder / "test.csv", users, items)
    has_validation = (folder / "val.csv").exists()
    given_validation = _Evaluation.read(folder / "val.csv", users, items) if has_validation else None
    Table(folder).require_text((*users, *items))
    train = _train(columns, list(users), list(items), rating_min, rating_max)
    test = given.without_own_items(train)
    validation = given_validation.without_own_items(train) if given_validation else None
    _warn(folder, test, given.candidates)
    order = popularity_order(train)
    return Split(
        renumber_items(train, order),
        renumber_candidates(validation, order) if validation else None,
        renumber_candidates(test, order),
        held_out="as the prepared split has it",
        test_as_given=renumber_candidates(given.candidates, order) if test is not given.candidates else None,
    )


def _train_columns(path: Path, users: Numbers, items: Numbers) -> tuple[list[int], list[int], list[float]]:
    user_index, item_index, ratings = [], [], []
    table = Table(path)
    for line, (user, item, rating) in table.rows(TRAIN_COLUMNS):
        user_index.append(users.setdefault(user, len(users)))
        item_index.append(items.setdefault(item, len(items)))
        ratings.append(table.number(line, rating, "rating"))
    if not ratings:
        raise DataFileError(path, None, "there are no ratings in it", "Name another folder.")
    return user_index, item_index, ratings


def _train(
    columns: tuple[list[int], list[int], list[float]],
    user_ids: list[str],
    item_ids: list[str],
    rating_min: float | None,
    rating_max: float | None,
) -> Ratings:
    users, items, ratings = (np.array(column) for column in columns)
    return Ratings(
        users,
        items,
        ratings,
        np.arange(len(ratings)),
        user_ids,
        item_ids,
        float(ratings.min()) if rating_min is None else rating_min,
        float(ratings.max()) if rating_max is None else rating_max,
        has_times=False,
    )


@dataclass(frozen=True)
class _Evaluation:
    """The candidates of one file as it lists them, and the line where each user begins."""

    path: Path
    candidates: Candidates
    lines: list[int]

    @classmethod
    def read(cls, path: Path, users: Numbers, items: Numbers) -> _Evaluation:
        order: dict[str, int] = {}
        lists: list[Index] = []
        lines: list[int] = []
        for line, user, group in _user_groups(path):
            if user in order:
                raise DataFileError(path, line, "this user was already listed further up", ADVICE)
            order[user] = users.setdefault(user, len(users))
            lists.append(np.array([items.setdefault(item, len(items)) for item in group], np.uint32))
            lines.append(line)
        if not lists:
            raise DataFileError(path, None, "there are no candidates in it", ADVICE)
        return cls(path, Candidates(np.array(list(order.values()), np.uint32), groups_from_lists(lists)), lines)

    def without_own_items(self, train: Ratings) -> Candidates:
        """The candidates without negatives that their user rated in train, or that are the positive again."""
        given = self.candidates
        starts = given.offsets[:-1]
        pairs = given.users_of_rows().astype(np.int64) * train.n_items + given.item_index
        rated = train.user_index.astype(np.int64) * train.n_items + train.item_index
        kept = ~np.isin(pairs, rated) & (given.item_index != np.repeat(given.positives, given.groups.sizes))
        kept[starts] = True
        if kept.all():
            return given
        sizes = np.add.reduceat(kept.astype(np.int64), starts)
        if (sizes < 2).any():
            reason = "all negatives are the positive itself or items that the user rated"
            raise DataFileError(self.path, self.lines[int(np.argmin(sizes))], reason, ADVICE)
        groups = ItemGroups(given.item_index[kept], np.concatenate(([0], np.cumsum(sizes))))
        return Candidates(given.user_index, groups)


def _user_groups(path: Path) -> Iterator[tuple[int, str, list[str]]]:
    """First line, user and items of each run of lines with the same user."""
    rows = Table(path).rows(TRAIN_COLUMNS)
    for user, run in groupby(rows, key=lambda row: row[1][0]):
        lines = list(run)
        if len(lines) < 2:
            raise DataFileError(path, lines[0][0], "a positive without negatives", ADVICE)
        yield lines[0][0], user, [fields[1] for _, fields in lines]


def _warn(folder: Path, test: Candidates, given: Candidates) -> None:
    dropped = len(given.item_index) - len(test.item_index)
    if dropped:
        n_users = int((given.groups.sizes != test.groups.sizes).sum())
        message = (
            f"{dropped:,} test negatives of {n_users:,} users are items that those users rated. They are left out; "
            "`train` reports the figures with them too."
        )
        # Said of the folder rather than of a line of code, so that it is one line.
        warnings.warn_explicit(message, DatasetWarning, str(folder), 0)
