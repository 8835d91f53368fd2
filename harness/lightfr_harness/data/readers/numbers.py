"""Tables of plain numbers: MovieLens in its several shapes, FilmTrust, and Douban as text.

They are parsed in large pieces: 25 million lines take about a minute.

When a piece does not parse, the same parser finds the first bad line by bisection, so the fast
path and the error message cannot disagree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataFileError
from ..ratings import Ratings, ratings_from_ids, whole_times
from .files import first_line, open_text

LINES_AT_ONCE = 500_000
LARGEST_WHOLE_NUMBER = 2.0**53  # Beyond it, float64 no longer tells neighbours apart.
ADVICE = "Correct or remove the line, or name the format the file really has."

COLUMNS = ("user", "item", "rating", "timestamp")
INTER_NAMES = {
    "user_id:token": "user",
    "item_id:token": "item",
    "rating:float": "rating",
    "timestamp:float": "timestamp",
}
CSV_HEADER = "userId,movieId,rating,timestamp"

Table = NDArray[np.float64]


@dataclass(frozen=True)
class Layout:
    """What a format declares about its lines; `columns` holds user, item, rating and more."""

    separator: str | None
    """None stands for any run of blanks."""
    columns: tuple[str, ...]
    rating_min: float
    rating_max: float
    header_lines: int = 0


def read_ml_100k(path: Path) -> Ratings:
    """`u.data` (tabs, no header) or RecBole's `.inter` (tabs, typed header); 1 to 5 stars."""
    header = first_line(path)
    if ":" not in header:
        return read_numbers(path, Layout("\t", COLUMNS, 1.0, 5.0))
    columns = tuple(INTER_NAMES.get(name, name) for name in header.split("\t"))
    if sorted(columns) != sorted(COLUMNS):
        raise DataFileError(
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
    if first_line(path) != CSV_HEADER:
        raise DataFileError(path, 1, f"the header is not {CSV_HEADER}", "For other columns use the format csv.")
    return read_numbers(path, Layout(",", COLUMNS, 0.5, 5.0, header_lines=1))


def read_filmtrust(path: Path) -> Ratings:
    """`ratings.txt`: user, item, rating (0.5 to 4) between blanks; no times."""
    return read_numbers(path, Layout(None, ("user", "item", "rating"), 0.5, 4.0))


def read_douban_text(path: Path) -> Ratings:
    """User, item, rating (1 to 5) and perhaps the time, between blanks or commas."""
    first = first_line(path)
    separator = "," if "," in first else None
    columns = COLUMNS if len(first.split(separator)) == len(COLUMNS) else COLUMNS[:3]
    return read_numbers(path, Layout(separator, columns, 1.0, 5.0))


def read_numbers(path: Path, layout: Layout) -> Ratings:
    users, items, rating, *rest = _joined(path, layout)
    timestamp = whole_times(rest[0]) if rest else None
    scale = (layout.rating_min, layout.rating_max)
    return ratings_from_ids(users, items, rating, timestamp, scale)


def _joined(path: Path, layout: Layout) -> list[NDArray[Any]]:
    """The columns of the whole file; the pieces are gone again when this returns."""
    pieces = list(_pieces(path, layout))
    if not pieces:
        raise DataFileError(path, None, "there are no ratings in it", ADVICE)
    return [np.concatenate(column) for column in zip(*pieces, strict=True)]


def _pieces(path: Path, layout: Layout) -> Iterator[tuple[NDArray[Any], ...]]:
    first_line(path)  # Refuses a file without line ends before it is read as one line.
    with open_text(path) as handle:
        number = 1 + sum(1 for _ in islice(handle, layout.header_lines))
        while lines := list(islice(handle, LINES_AT_ONCE)):
            if not "".join(lines).isspace():
                yield _columns(_parse_or_explain(path, lines, number, layout), layout)
            number += len(lines)


def _parse_or_explain(path: Path, lines: list[str], number: int, layout: Layout) -> Table:
    try:
        return _parse(lines, layout)
    except ValueError:
        bad = _first_bad(lines, layout)
        raise DataFileError(path, number + bad, _reason(lines[bad], layout), ADVICE) from None


def _parse(lines: list[str], layout: Layout) -> Table:
    """Numbers that satisfy the layout, or ValueError."""
    separator = layout.separator
    if separator is not None and len(separator) > 1:
        # NumPy splits at single characters only; a tab in such a file is an error of its own.
        lines = [line.replace("\t", "?").replace(separator, "\t") for line in lines]
        separator = "\t"
    table = np.loadtxt(lines, delimiter=separator, comments=None, ndmin=2)
    if table.shape[1] != len(layout.columns) or any(fault.any() for fault in _faults(table, layout).values()):
        raise ValueError
    return table


def _faults(table: Table, layout: Layout) -> dict[str, NDArray[np.bool_]]:
    """For each thing that can be wrong with a parsed row, the rows where it is."""
    column = dict(zip(layout.columns, table.T, strict=True))
    rating = column["rating"]
    inside = (rating >= layout.rating_min) & (rating <= layout.rating_max)
    faults = {
        "the user id is not a whole number from 0 to 2^53": ~is_id(column["user"]),
        "the item id is not a whole number from 0 to 2^53": ~is_id(column["item"]),
        f"the rating is NaN or outside {layout.rating_min:g} to {layout.rating_max:g}": ~inside,
    }
    if "timestamp" in column:
        faults["the timestamp is not finite"] = ~(abs(column["timestamp"]) < LARGEST_WHOLE_NUMBER)
    return faults


def is_id(column: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whole and not negative."""
    whole: NDArray[np.bool_] = column == np.floor(column)
    return whole & (column >= 0) & (column < LARGEST_WHOLE_NUMBER)


def _columns(table: Table, layout: Layout) -> tuple[NDArray[Any], ...]:
    column = dict(zip(layout.columns, table.T, strict=True))
    ids = (column["user"].astype(np.int64), column["item"].astype(np.int64))
    if "timestamp" not in column:
        return (*ids, column["rating"].copy())
    return (*ids, column["rating"].copy(), column["timestamp"].copy())


def _first_bad(lines: list[str], layout: Layout) -> int:
    """The lines before `low` parse; the lines before `high` do not."""
    low, high = 0, len(lines)
    while high - low > 1:
        middle = (low + high) // 2
        if _parses(lines[low:middle], layout):
            low = middle
        else:
            high = middle
    return low


def _parses(lines: list[str], layout: Layout) -> bool:
    if "".join(lines).isspace():
        return True
    try:
        _parse(lines, layout)
    except ValueError:
        return False
    return True


def _reason(line: str, layout: Layout) -> str:
    fields = line.rstrip("\r\n").split(layout.separator)
    if len(fields) != len(layout.columns):
        return f"{len(fields)} fields where {len(layout.columns)} are expected"
    for name, field in zip(layout.columns, fields, strict=True):
        if not _is_number(field):
            return f"the {name} is not a number"
    faults = _faults(np.array([fields], dtype=np.float64), layout)
    return next((text for text, rows in faults.items() if rows.any()), "the line is not readable")


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return "_" not in field  # Python allows 1_000; data files do not.
