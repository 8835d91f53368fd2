"""What items are called: made-up titles for generated items, or those of a file."""

from __future__ import annotations

import csv
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from itertools import product
from pathlib import Path

import numpy as np

from .errors import DataFileError
from .readers.files import open_bytes
from .synthetic import item_clusters, item_id, parse_size

LONGEST_TITLE = 200
SHOWN_GENRES = 3
ADVICE = "Give one item on each line: its id, its title and perhaps its genres, with tabs between them."
# The flags at the end of a line of MovieLens-100K's u.item, in their order; the first means that nobody knows.
U_ITEM_GENRES = (
    "",
    *("Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama", "Fantasy"),
    *("Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western"),
)


@dataclass(frozen=True)
class Title:
    """What people read instead of an item id."""

    name: str
    genres: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(self.genres)})" if self.genres else self.name


Titles = dict[str, Title]


def made_up_titles(size: str, seed: int) -> Titles:
    """A title for each item of a generated set. A genre is a cluster of taste, so likes of one tell of others."""
    genres = tomllib.loads((files(__package__) / "genres.toml").read_text(encoding="utf-8"))
    names, generator = list(genres), np.random.default_rng([seed, 3])
    pairs = {name: list(product(words["beginnings"], words["ends"])) for name, words in genres.items()}
    orders = {name: generator.permutation(len(pairs[name])) for name in names}
    titles: Titles = {}
    taken: Counter[str] = Counter()
    for number, cluster in enumerate(item_clusters(parse_size(size)).tolist()):
        genre = names[cluster % len(names)]
        sequel, place = divmod(taken[genre], len(pairs[genre]))
        taken[genre] += 1
        name = " ".join(pairs[genre][orders[genre][place]])
        titles[item_id(number)] = Title(f"{name} {sequel + 1}" if sequel else name, (genre,))
    return titles


def read_titles(path: Path) -> Titles:
    """Titles by item id: lines of id, title and perhaps genres with tabs between them, or a file of MovieLens.

    Those are u.item, movies.dat, movies.csv, and RecBole's .item files. What a line has beyond that is left out.
    """
    with open_bytes(path) as file:
        content = file.read()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")  # As the older MovieLens files are.
    titles: Titles = {}
    for line, (item, name, genres) in _rows(path, text):
        if not item or not name.strip():
            raise DataFileError(path, line, "the item id or the title is empty", ADVICE)
        kept = [genre.strip() for genre in genres if genre.strip() and genre != "(no genres listed)"]
        titles[item] = Title(name.strip()[:LONGEST_TITLE], tuple(kept[:SHOWN_GENRES]))
    if not titles:
        raise DataFileError(path, None, "there are no titles in it", ADVICE)
    return titles


def _rows(path: Path, text: str) -> Iterator[tuple[int, tuple[str, str, list[str]]]]:
    """Line number, and id, title and genres, by what the first line looks like."""
    lines = [(number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    first = lines[0][1] if lines else ""
    if first.startswith("movieId,title,genres"):
        separated = ((number, next(csv.reader([line]))) for number, line in lines[1:])
        between = "|"
    elif ":token" in first:
        separated = ((number, _recbole_fields(first, line)) for number, line in lines[1:])
        between = " "
    elif "\t" not in first and "::" in first:
        separated = ((number, line.split("::")) for number, line in lines)
        between = "|"
    elif "\t" not in first and first.count("|") == 4 + len(U_ITEM_GENRES):
        separated = ((number, _u_item_fields(line)) for number, line in lines)
        between = "|"
    else:
        separated = ((number, line.split("\t")) for number, line in lines)
        between = "|" if "|" in text else ","
    for number, fields in separated:
        if len(fields) < 2:
            raise DataFileError(path, number, "the line has no title", ADVICE)
        item, name, *rest = fields
        yield number, (item.strip(), name, rest[0].split(between) if rest else [])


def _u_item_fields(line: str) -> list[str]:
    """Id, title, two dates, an address, and a flag for each genre."""
    item, name, *_, flags = line.split("|", 5) if line.count("|") >= 5 else [line, ""]
    named = [genre for genre, flag in zip(U_ITEM_GENRES, flags.split("|"), strict=False) if flag == "1"]
    return [item, name, "|".join(named)]


def _recbole_fields(header: str, line: str) -> list[str]:
    """The item, and the columns whose names speak of a title and of genres or a class."""
    fields = {name.partition(":")[0]: field for name, field in zip(header.split("\t"), line.split("\t"), strict=False)}
    title = next((field for name, field in fields.items() if "title" in name or "name" in name), "")
    genres = next((field for name, field in fields.items() if name in ("class", "genre", "genres", "categories")), "")
    return [fields.get("item_id", ""), title, genres]
