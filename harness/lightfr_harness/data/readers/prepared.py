"""A folder with a split somebody else made: train.csv, val.csv (may be absent) and test.csv.

All have the columns user_id, item_id and ratings. The evaluation files list, for each user in
consecutive lines, one positive first and then its negatives; their ratings column is not used.

Rules for what the files leave open:
- Users and items that only the evaluation files know are legal. They get numbers after the
  trained ones; the items have rows that learn only from what all rows share.
- Candidates are taken as given, repeated negatives included. Only a negative that is the
  positive again is left out, with a warning, since it could never be told from the positive.
- The rating range is what the caller declares. Where nothing is declared it is the smallest and
  largest rating of train.csv, because nothing in the folder declares it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import DataFileError, DatasetWarning
from ..held_out import Candidates, groups_from_lists
from ..ratings import Index, Ratings, popularity_order, renumber_items
from ..splits import Split, renumber_candidates
from .text import named_rows, parse_rating

TRAIN_COLUMNS = ("user_id", "item_id", "ratings")
ADVICE = "List each user's positive and negatives in consecutive lines, the positive first."

Numbers = dict[str, int]


def read_prepared(folder: Path, *, rating_min: float | None = None, rating_max: float | None = None) -> Split:
    if not folder.is_dir():
        raise DataFileError(folder, None, "it does not exist", "Name the folder that holds train.csv and test.csv.")
    users: Numbers = {}
    items: Numbers = {}
    columns = _train_columns(folder / "train.csv", users, items)
    test = _candidates(folder / "test.csv", users, items)
    has_validation = (folder / "val.csv").exists()
    validation = _candidates(folder / "val.csv", users, items) if has_validation else None
    train = _train(columns, list(users), list(items), rating_min, rating_max)
    order = popularity_order(train)
    return Split(
        renumber_items(train, order),
        renumber_candidates(validation, order) if validation else None,
        renumber_candidates(test, order),
    )


def _train_columns(path: Path, users: Numbers, items: Numbers) -> tuple[list[int], list[int], list[float]]:
    user_index, item_index, ratings = [], [], []
    for line, (user, item, rating) in named_rows(path, TRAIN_COLUMNS):
        user_index.append(users.setdefault(user, len(users)))
        item_index.append(items.setdefault(item, len(items)))
        ratings.append(parse_rating(path, line, rating))
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
    )


def _candidates(path: Path, users: Numbers, items: Numbers) -> Candidates:
    order: list[int] = []
    lists: list[Index] = []
    evaluated: set[str] = set()
    for line, user, group in _user_groups(path):
        if user in evaluated:
            reason = "this user was already listed further up"
            raise DataFileError(path, line, reason, ADVICE)
        evaluated.add(user)
        order.append(users.setdefault(user, len(users)))
        index = [items.setdefault(item, len(items)) for item in group]
        lists.append(_without_positive_among_negatives(path, line, np.array(index, np.uint32)))
    if not lists:
        raise DataFileError(path, None, "there are no candidates in it", ADVICE)
    return Candidates(np.array(order, dtype=np.uint32), groups_from_lists(lists))


def _user_groups(path: Path) -> Iterator[tuple[int, str, list[str]]]:
    """First line, user and items of each run of lines with the same user."""
    rows = named_rows(path, TRAIN_COLUMNS)
    for user, run in groupby(rows, key=lambda row: row[1][0]):
        lines = list(run)
        if len(lines) < 2:
            raise DataFileError(path, lines[0][0], "a positive without negatives", ADVICE)
        yield lines[0][0], user, [fields[1] for _, fields in lines]


def _without_positive_among_negatives(path: Path, line: int, group: Index) -> Index:
    kept: NDArray[np.bool_] = group != group[0]
    kept[0] = True
    if kept.all():
        return group
    if np.count_nonzero(kept) < 2:
        raise DataFileError(path, line, "all negatives are the positive itself", ADVICE)
    message = f"{path}, line {line}: the positive is also listed as a negative; left out there."
    warnings.warn(message, DatasetWarning, stacklevel=2)
    left: Index = group[kept]
    return left
