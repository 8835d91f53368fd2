"""MovieLens, in the shapes it is handed round in."""

from __future__ import annotations

from pathlib import Path

from ..errors import MalformedDataError
from ..ratings import Ratings
from .numbers import Layout, read_numbers
from .text import open_text

COLUMNS = ("user", "item", "rating", "timestamp")
INTER_NAMES = {
    "user_id:token": "user",
    "item_id:token": "item",
    "rating:float": "rating",
    "timestamp:float": "timestamp",
}
CSV_HEADER = "userId,movieId,rating,timestamp"


def read_ml_100k(path: Path) -> Ratings:
    """`u.data` (tabs, no header) or RecBole's `.inter` (tabs, typed header); 1 to 5 stars."""
    header = _first_line(path)
    if ":" not in header:
        return read_numbers(path, Layout("\t", COLUMNS, 1.0, 5.0))
    columns = tuple(INTER_NAMES.get(name, name) for name in header.split("\t"))
    if sorted(columns) != sorted(COLUMNS):
        raise MalformedDataError(
            path,
            1,
            "the typed header does not name exactly the four columns of ML-100K",
            f"Expected, separated by tabs: {' '.join(INTER_NAMES)}",
        )
    return read_numbers(path, Layout("\t", columns, 1.0, 5.0, header_lines=1))


def read_ml_1m(path: Path) -> Ratings:
    """`ratings.dat`: fields separated by two colons, no header; 1 to 5 stars."""
    return read_numbers(path, Layout("::", COLUMNS, 1.0, 5.0))


def read_ml_csv(path: Path) -> Ratings:
    """`ratings.csv` of the 25M and -latest releases: 0.5 to 5 stars in halves."""
    if _first_line(path) != CSV_HEADER:
        raise MalformedDataError(path, 1, f"the header is not {CSV_HEADER}", "For other columns use the format csv.")
    return read_numbers(path, Layout(",", COLUMNS, 0.5, 5.0, header_lines=1))


def _first_line(path: Path) -> str:
    with open_text(path) as handle:
        return handle.readline().rstrip("\r\n")
