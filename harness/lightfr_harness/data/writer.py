"""Ratings out, as a RecBole .inter file."""

from __future__ import annotations

from pathlib import Path

from .errors import InvalidRatingsError
from .ratings import Ratings

HEADER = "user_id:token\titem_id:token\trating:float\ttimestamp:float\n"


def write_inter(ratings: Ratings, path: Path) -> None:
    """Write ratings that have times; an existing file is replaced."""
    if any(character in text for text in (*ratings.user_ids, *ratings.item_ids) for character in "\t\r\n"):
        raise InvalidRatingsError("An id holds a tab or a line end, which an .inter file cannot hold. Rename the ids.")
    columns = (ratings.user_index, ratings.item_index, ratings.rating, ratings.timestamp)
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(HEADER)
        for user, item, rating, time in zip(*(column.tolist() for column in columns), strict=True):
            file.write(f"{ratings.user_ids[user]}\t{ratings.item_ids[item]}\t{rating}\t{time}\n")
