"""What the demo works on: a generated catalogue with made-up titles, or somebody's own file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from lightfr_harness.data import Ratings, Split, generate, leave_last_out, load
from lightfr_harness.data.errors import InvalidOptionError
from lightfr_harness.data.readers.files import first_line
from lightfr_harness.data.readers.recognise import guess_format
from lightfr_harness.data.titles import Title, Titles, made_up_titles, read_titles

# Names that columns of CSV files often have, in lower case. Without a header line the columns come in this order.
CSV_COLUMNS = {
    "user": ("user_id", "userid", "user"),
    "item": ("item_id", "itemid", "item", "movieid", "movie_id", "product_id", "book_id"),
    "rating": ("rating", "ratings", "stars", "score"),
    "timestamp": ("timestamp", "time", "date"),
}
ANY_RATING = 2.0**53


@dataclass(frozen=True)
class Material:
    """Ratings with each user's newest held out, what the items are called, and where it all comes from, in words."""

    split: Split
    titles: Titles
    source: str

    def title(self, item_id: str) -> Title:
        """The item's title; its id where nobody gave one."""
        return self.titles.get(item_id, Title(item_id))


def generated(size: str, seed: int) -> Material:
    """A catalogue that is made here."""
    split = leave_last_out(generate(size, seed=seed))
    return Material(split, made_up_titles(size, seed), "a made-up catalogue")


def own(data: Path, titles: Path | None) -> Material:
    """Somebody's ratings, in a format that is guessed from the file."""
    guess, looks = guess_format(data, "convert the file to CSV, with a line of names at its head")
    ratings = _read_undeclared(data, guess) if guess in ("csv", "inter") else load(data, guess)
    if not isinstance(ratings, Ratings):
        raise InvalidOptionError(f"{data} is split already: name a file of ratings for --data.")
    scale = f"{ratings.rating_min:g} to {ratings.rating_max:g}"
    source = f"{data}, which looks like {looks} and is read as {guess}, with ratings from {scale}"
    return Material(leave_last_out(ratings), read_titles(titles) if titles else {}, source)


def _read_undeclared(data: Path, format: str) -> Ratings:
    """A file that does not declare its scale: the lowest and the highest rating in it are taken for the scale."""
    columns = _csv_columns(first_line(data)) if format == "csv" else {}
    ratings = load(data, format, rating_min=-ANY_RATING, rating_max=ANY_RATING, **columns)
    if not isinstance(ratings, Ratings):
        raise TypeError("these formats hold no splits")
    lowest, highest = float(ratings.rating.min()), float(ratings.rating.max())
    # Where all are equal they are events, such as plays, and all of them are likes.
    return replace(ratings, rating_min=lowest if lowest < highest else highest - 1, rating_max=highest)


def _csv_columns(header: str) -> dict[str, str]:
    names = [name.strip().strip('"') for name in header.split(",")]
    columns = {wanted: name for wanted, known in CSV_COLUMNS.items() for name in names[::-1] if name.lower() in known}
    if columns or not any(map(str.isdigit, header)):
        return columns
    return dict(zip(CSV_COLUMNS, map(str, range(1, 1 + len(names))), strict=False))
