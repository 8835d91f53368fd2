"""Text files: opening them, and reading any CSV file with a header line, whose ids may be any text."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

import numpy as np

from ..errors import DataFileError, InvalidOptionError
from ..ratings import Ratings, ratings_from_ids, require_rating_range

ADVICE = "Correct or remove the line and load the file again."


def require_file(path: Path) -> None:
    if path.is_dir():
        raise DataFileError(path, None, "this is a folder", "Name the file with the ratings inside it.")
    if not path.exists():
        raise DataFileError(path, None, "it does not exist", "Check the path, or run: lightfr-harness data list")


def open_text(path: Path) -> TextIO:
    require_file(path)
    # A byte that is not UTF-8 becomes a character no number contains, so that it is reported
    # with its line instead of stopping the decoder somewhere before it.
    return path.open(encoding="utf-8-sig", errors="replace", newline="")


def read_csv(
    path: Path,
    *,
    rating_min: float | None = None,
    rating_max: float | None = None,
    user: str = "user_id",
    item: str = "item_id",
    rating: str = "rating",
    timestamp: str | None = None,
) -> Ratings:
    """Columns by name; the range must be declared, since a CSV file cannot declare it.

    Without a timestamp column the order of the lines is the order of time.
    """
    if rating_min is None or rating_max is None:
        raise InvalidOptionError("The format csv does not know the rating scale. Declare rating_min and rating_max.")
    require_rating_range(rating_min, rating_max)
    columns = [user, item, rating] + ([timestamp] if timestamp else [])
    users, items, values, times = [], [], [], []
    for line, fields in named_rows(path, columns):
        users.append(fields[0])
        items.append(fields[1])
        values.append(parse_rating(path, line, fields[2], rating_min, rating_max))
        if timestamp:
            times.append(int(_parse_number(path, line, fields[3], "timestamp")))
    if not values:
        raise DataFileError(path, None, "there are no ratings in it", "Name another file.")
    order = np.array(times, dtype=np.int64) if timestamp else None
    return ratings_from_ids(users, items, np.array(values), order, (rating_min, rating_max))


def named_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Line number and the wanted fields of every line; user and item come first, never empty."""
    with open_text(path) as handle:
        reader = csv.reader(handle, strict=True)
        try:
            header = [name.strip() for name in next(reader, [])]
            places = _places(path, header, columns)
            for row in reader:
                if row:
                    yield reader.line_num, _pick(path, reader.line_num, row, len(header), places)
        except csv.Error as error:
            raise DataFileError(path, reader.line_num, str(error), ADVICE) from None


def parse_rating(
    path: Path, line: int, text: str, rating_min: float = -math.inf, rating_max: float = math.inf
) -> float:
    value = _parse_number(path, line, text, "rating")
    if not rating_min <= value <= rating_max:
        reason = f"the rating is outside {rating_min:g} to {rating_max:g}"
        raise DataFileError(path, line, reason, "Correct the line or the declared range.")
    return value


def _parse_number(path: Path, line: int, text: str, name: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise DataFileError(path, line, f"the {name} is not a number", ADVICE) from None
    if not math.isfinite(value) or abs(value) >= 2**63:
        raise DataFileError(path, line, f"the {name} is not a finite number", ADVICE)
    return value


def _places(path: Path, header: list[str], columns: Sequence[str]) -> list[int]:
    missing = [name for name in columns if name not in header]
    if missing:
        reason = f"the header has no column {', '.join(missing)}"
        found = f"It has: {', '.join(header) or 'nothing'}. Name the columns to use."
        raise DataFileError(path, 1, reason, found)
    return [header.index(name) for name in columns]


def _pick(path: Path, line: int, row: list[str], width: int, places: list[int]) -> list[str]:
    if len(row) != width:
        reason = f"{len(row)} fields where {width} are expected"
        raise DataFileError(path, line, reason, ADVICE)
    fields = [row[place].strip() for place in places]
    if not (fields[0] and fields[1]):
        raise DataFileError(path, line, "the user or item id is empty", ADVICE)
    return fields
