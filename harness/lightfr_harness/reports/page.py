"""What pages are made of: parts as data. The template templates/page.html makes HTML of them, and escapes all text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING, TypeAlias

from lightfr_harness.reports.svg import Bars, Plot

if TYPE_CHECKING:
    from jinja2 import Environment


@dataclass(frozen=True)
class Verdict:
    """What a page says first: one sentence in bold, perhaps `holds` or `broken`, more about it, and a list."""

    said: str
    kind: str = ""
    rest: str = ""
    lines: Sequence[str] = ()


@dataclass(frozen=True)
class Text:
    """A paragraph; `lead` is bold, and `kind` names its style."""

    text: str
    lead: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Lines:
    """A list; a folded one is opened by who wants to read notes."""

    items: Sequence[str | Text]
    folded: bool = False


@dataclass(frozen=True)
class Meter:
    """A cell of a table with a share of something drawn under its text; `kind` as of a verdict."""

    share: float
    text: str
    kind: str = ""

    @property
    def width(self) -> float:
        return round(100 * min(self.share, 1.0), 2)


@dataclass(frozen=True)
class Row:
    """A row under its name; a verdict is coloured as well as said."""

    name: str
    cells: Sequence[str | Meter]
    verdict: str = ""


@dataclass(frozen=True)
class Table:
    """The first of `heads` stands above the names. Where the page is narrow, the rows of a wide table become cards."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Row]

    @property
    def columns_of_words(self) -> set[int]:
        """Columns without a number, counted as heads are. They begin below each other, where numbers end."""
        columns = zip_longest(*(row.cells for row in self.rows), fillvalue="")
        return {number for number, cells in enumerate(columns, start=1) if _are_words(cells)}


@dataclass(frozen=True)
class Facts:
    """Named values, each in a box."""

    facts: Mapping[str, str]


@dataclass(frozen=True)
class Progress:
    """How many of those expected there are."""

    what: str
    actual: int
    expected: int


@dataclass(frozen=True)
class Panels:
    """Charts side by side, as many as there is room for."""

    charts: Sequence[Plot | Bars]


@dataclass(frozen=True)
class Section:
    """Parts under a title. Sections of a page are in its list of contents, sections of sections are not."""

    title: str
    parts: Sequence[Part]

    @property
    def anchor(self) -> str:
        return re.sub(r"\W+", "-", self.title.lower())


Part: TypeAlias = "Text | Lines | Table | Facts | Progress | Panels | Plot | Bars | Section"


def _are_words(cells: Sequence[str | Meter]) -> bool:
    said = [cell for cell in cells if cell not in ("", "-")]
    return bool(said) and all(isinstance(cell, str) and cell[0].isalpha() for cell in said)


def table(caption: str, heads: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> Table:
    """A table of names and cells, without verdicts."""
    return Table(caption, heads, [Row(name, cells) for name, cells in rows])


def notes(lines: Sequence[str]) -> list[Lines]:
    """Folded away, if there are any."""
    return [Lines(lines, folded=True)] if lines else []


def document(title: str, verdict: Verdict, parts: Sequence[Part | None], *, aside: str = "", footer: str = "") -> str:
    """One self-contained HTML page; a page of many sections has a list of them. Parts that are None are left out."""
    there = [part for part in parts if part is not None]
    contents = [] if footer else [part for part in there if isinstance(part, Section)]
    page = {"title": title, "verdict": verdict, "parts": there, "contents": contents, "aside": aside, "footer": footer}
    return _templates().get_template("page.html").render(page) + "\n"


@cache
def _templates() -> Environment:
    # Imported for the first page: a coordinator that is asked for none starts without it.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("lightfr_harness.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["kind"] = lambda part: type(part).__name__
    return templates
