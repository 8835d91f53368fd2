"""Tables of text, whose ids may be any text: CSV with or without a header line, CiaoDVD, and RecBole's .inter files."""

from __future__ import annotations

import csv
import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from ..errors import DataFileError, InvalidOptionError
from ..ratings import Ratings, ratings_from_ids, require_rating_range, whole_times
from .files import first_line, open_text

ADVICE = "Correct or remove the line and load the file again."
INTER_TIME = "timestamp:float"


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
    """Columns by name, or, in a file without a header line, by number from 1; times are numbers or ISO dates.

    The range must be declared, since a CSV file cannot declare it.
    """
    scale = _declared("csv", rating_min, rating_max)
    return _read(Table(path), [user, item, rating], timestamp, scale)


def read_ciaodvd(path: Path) -> Ratings:
    """`movie-ratings.txt`: user, movie, genre, review, rating (1 to 5) and ISO date between commas; no header."""
    return _read(Table(path), ["1", "2", "5"], "6", (1.0, 5.0))


def read_inter(
    path: Path,
    *,
    rating_min: float | None = None,
    rating_max: float | None = None,
    user: str = "user_id:token",
    item: str = "item_id:token",
    rating: str = "rating:float",
    timestamp: str | None = None,
) -> Ratings:
    """Tabs between the fields and a header that names and types them; `timestamp:float` is used where it is there."""
    scale = _declared("inter", rating_min, rating_max)
    if timestamp is None and INTER_TIME in first_line(path).split("\t"):
        timestamp = INTER_TIME
    return _read(Table(path, "\t", has_quotes=False), [user, item, rating], timestamp, scale)


@dataclass(frozen=True)
class Table:
    """A text file and how its lines are cut into fields."""

    path: Path
    separator: str = ","
    has_quotes: bool = True

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
        """Line number and the wanted fields of every line; user and item come first, never empty.

        Columns that are all numbers count from 1, in a file without a header line.
        """
        first = first_line(self.path)
        with open_text(self.path) as handle:
            quotechar = '"' if self.has_quotes else None
            reader = csv.reader(handle, delimiter=self.separator, quotechar=quotechar, strict=True)
            try:
                if all(name.isascii() and name.isdigit() for name in columns):
                    width = len(next(csv.reader([first], delimiter=self.separator), []))
                    places = self._places_by_number(columns, width)
                else:
                    header = [name.strip() for name in next(reader, [])]
                    width, places = len(header), self._places_by_name(columns, header)
                for row in reader:
                    if row:
                        yield reader.line_num, self._pick(reader.line_num, row, width, places)
            except csv.Error as error:
                raise DataFileError(self.path, reader.line_num, str(error), ADVICE) from None

    def _places_by_number(self, columns: Sequence[str], width: int) -> list[int]:
        places = [int(name) - 1 for name in columns]
        if width and not all(0 <= place < width for place in places):
            reason = f"the line has {width} columns; column {', '.join(columns)} are asked for"
            raise DataFileError(self.path, 1, reason, "Number the columns from 1.")
        return places

    def _places_by_name(self, columns: Sequence[str], header: list[str]) -> list[int]:
        missing = [name for name in columns if name not in header]
        if missing:
            reason = f"the header has no column {', '.join(missing)}"
            # Shown only if it is surely a header: the first line of a file without one is somebody's rating.
            is_header = all(name.isprintable() and not any(map(str.isdigit, name)) for name in header)
            found = f"It has: {', '.join(header) or 'nothing'}. " if is_header else ""
            advice = f"{found}Name the columns to use, or number them from 1 if there is no header line."
            raise DataFileError(self.path, 1, reason, advice)
        return [header.index(name) for name in columns]

    def _pick(self, line: int, row: list[str], width: int, places: list[int]) -> list[str]:
        if len(row) != width:
            raise DataFileError(self.path, line, f"{len(row)} fields where {width} are expected", ADVICE)
        fields = [row[place].strip() for place in places]
        if not (fields[0] and fields[1]):
            raise DataFileError(self.path, line, "the user or item id is empty", ADVICE)
        return fields

    def number(self, line: int, text: str, name: str) -> float:
        """A finite number; Python allows 1_000, data files do not."""
        try:
            value = float(text) if "_" not in text else math.nan
        except ValueError:
            raise DataFileError(self.path, line, f"the {name} is not a number", ADVICE) from None
        if not math.isfinite(value) or abs(value) >= 2**63:
            raise DataFileError(self.path, line, f"the {name} is not a finite number", ADVICE)
        return value

    def time(self, line: int, text: str) -> float:
        """A number as it is; an ISO date or time in seconds, as UTC where it names no zone."""
        if "-" not in text[1:]:
            return self.number(line, text, "timestamp")
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise DataFileError(self.path, line, "the timestamp is neither a number nor an ISO date", ADVICE) from None
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()

    def require_text(self, ids: Iterable[str]) -> None:
        """Ids of another encoding could be neither compared nor printed."""
        try:
            "".join(ids).encode()
        except UnicodeEncodeError:
            reason = "an id is not UTF-8 text"
            raise DataFileError(self.path, None, reason, "Save the file as UTF-8 and load it again.") from None


def _read(table: Table, columns: list[str], timestamp: str | None, scale: tuple[float, float]) -> Ratings:
    users: list[str] = []
    items: list[str] = []
    values, times = array("d"), array("d")
    known: dict[str, str] = {}  # One string for each id, not one for each line.
    for line, fields in table.rows([*columns, timestamp] if timestamp else columns):
        users.append(known.setdefault(fields[0], fields[0]))
        items.append(known.setdefault(fields[1], fields[1]))
        values.append(table.number(line, fields[2], "rating"))
        if not scale[0] <= values[-1] <= scale[1]:
            reason = f"the rating is outside {scale[0]:g} to {scale[1]:g}"
            raise DataFileError(table.path, line, reason, "Correct the line or the declared range.")
        if timestamp:
            times.append(table.time(line, fields[3]))
    if not values:
        raise DataFileError(table.path, None, "there are no ratings in it", "Name another file.")
    table.require_text(known)
    return ratings_from_ids(users, items, np.array(values), whole_times(np.array(times)) if timestamp else None, scale)


def _declared(format: str, rating_min: float | None, rating_max: float | None) -> tuple[float, float]:
    if rating_min is None or rating_max is None:
        raise InvalidOptionError(
            f"The format {format} does not know the rating scale. Declare --rating-min and --rating-max."
        )
    require_rating_range(rating_min, rating_max)
    return rating_min, rating_max
