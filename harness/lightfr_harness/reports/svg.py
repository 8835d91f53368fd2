"""Charts as data: axes, series and bars. The template draws them in percent of the drawing.

So a chart fills whatever width there is while its text keeps its size, and says in words what it shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, floor, log10
from typing import NamedTuple

# Marks and colours that tell series apart; the seventh series looks like the first.
KINDS = 6
# On a line of hundreds of points, so that it is known by more than its colour.
MARKS = 5
# On a phone, in percent of a plot: the width of a character of an axis's text, and the height of a line of text.
CHARACTER, LINE = 2.5, 5.5
_FACTORS = ((1, 1.5, 2, 3, 4, 5, 7), (1, 2, 5), (1,))


@dataclass(frozen=True)
class Series:
    """Points of one kind, joined by a line. Each point has a label for readers and screen readers."""

    name: str
    points: Sequence[tuple[float, float, str]]
    # For hundreds of points: read aloud instead of their labels, and few of them are marked.
    summary: str = ""
    # Stands beside each point.
    tag: str = ""
    # Half of each point's interval.
    within: Sequence[float] = ()


class Limit(NamedTuple):
    """A horizontal line: a limit that values must stay below, or only a reference to compare them with."""

    value: float
    label: str
    is_reference: bool = False


def short(value: float) -> str:
    """A number on an axis."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= max(size, 1e4):
            return f"{value / size:,.10g}{letter}"
    return f"{value:,.10g}"


@dataclass(frozen=True)
class Axis:
    """From values to a share of the drawing's width or height."""

    name: str
    low: float
    high: float
    is_log: bool
    text: Callable[[float], str] = short
    # Where the values are few, their own places, in the stead of round numbers.
    marks: Sequence[float] = ()
    # Ticks between whole numbers would mean nothing.
    whole: bool = False

    def percent(self, value: float) -> float:
        """What lies outside the axis is drawn at its end."""
        value = min(max(value, self.low), self.high)
        if self.is_log:
            share = (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))
        else:
            share = (value - self.low) / (self.high - self.low)
        return round(100 * share, 2)

    def ticks(self) -> Sequence[float]:
        if self.marks:
            return self.marks
        return self._log_ticks() if self.is_log else self._linear_ticks()

    def _linear_ticks(self) -> list[float]:
        """At multiples of 1, 2 or 5 times a power of ten."""
        least = (self.high - self.low) / 5
        power = 10.0 ** floor(log10(least))
        step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))
        step = max(1.0, step) if self.whole else step
        return [n * step for n in range(ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9) + 1)]

    def _log_ticks(self) -> list[float]:
        """As many as have room; two at least where there are two, or the axis says nothing of its scale."""
        powers = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
        for factors in _FACTORS:
            every = [factor * 10.0**power for power in powers for factor in factors]
            ticks = [tick for tick in every if self.low * (1 - 1e-9) <= tick <= self.high * (1 + 1e-9)]
            if self._have_room(ticks):
                return ticks
        return next(few for n in range(2, len(ticks) + 1) if self._have_room(few := ticks[::n]))

    def _have_room(self, ticks: Sequence[float]) -> bool:
        """Whether the texts of these ticks stand apart on a phone."""
        room = CHARACTER * (1 + max((len(self.text(tick)) for tick in ticks), default=0))
        return len(ticks) < 3 or all(self.percent(b) - self.percent(a) >= room for a, b in pairwise(ticks))


def share_axis(name: str) -> Axis:
    """From 0 to 100 %."""
    return Axis(name, 0.0, 1.0, False, lambda share: f"{100 * share:.0f} %")


def log_axis(
    name: str, values: Sequence[float], text: Callable[[float], str] = short, marks: Sequence[float] = ()
) -> Axis:
    """Around the positive ones of these values; `marks` are where the ticks stand, if not at round numbers."""
    positive = [value for value in values if value > 0] or [1.0]
    low, high = min(positive), max(positive)
    if high < 1.3 * low:
        low, high = low / 3, high * 3
    return Axis(name, low, high, True, text, marks)


def linear_axis(
    name: str,
    values: Sequence[float],
    text: Callable[[float], str] = short,
    marks: Sequence[float] = (),
    *,
    whole: bool = False,
    start: float = 0.0,
) -> Axis:
    """From `start` to the largest of these values; `whole` has ticks at whole numbers alone."""
    return Axis(name, start, max([*values, start + (1 if whole else 1e-9)]), False, text, marks, whole)


@dataclass(frozen=True)
class Mark:
    """Where a point stands, in percent from the left and from the top."""

    x: float
    y: float
    kind: int
    label: str
    tag: str = ""
    tag_y: float = 0.0
    spread: tuple[float, float] | None = None


@dataclass(frozen=True)
class Plot:
    """Points and lines between two axes, and perhaps a line across."""

    title: str
    across: Axis
    up: Axis
    series: Sequence[Series]
    limit: Limit | None = None

    def words(self) -> str:
        """What a screen reader says of it."""
        said = [f"{s.name}: {s.summary or ', '.join(label for _, _, label in s.points)}" for s in self.series]
        return "; ".join([*said, self.limit.label] if self.limit else said)

    def left(self) -> int:
        """Room for the texts of the left axis, in pixels."""
        return 12 + 7 * max((len(self.up.text(tick)) for tick in self.up.ticks()), default=0)

    def top(self, value: float) -> float:
        return round(100 - self.up.percent(value), 2)

    def line(self, n: int) -> list[Mark]:
        """The points of a series."""
        one, marks = self.series[n], []
        for place, (x, y, label) in enumerate(one.points):
            if x > 0 or not self.across.is_log:
                half = one.within[place] if one.within else 0.0
                ends = (self.top(y + half), self.top(y - half)) if half else None
                at = self.across.percent(x), self.top(y)
                marks.append(Mark(*at, n % KINDS, label or one.summary, one.tag, spread=ends))
        return marks

    def marks(self) -> list[Mark]:
        """Those that are drawn."""
        marks: list[Mark] = []
        for n, one in enumerate(self.series):
            points = self.line(n)
            marks += points[:: max(1, len(points) // MARKS)] if one.summary else points
        return _with_tags_apart(marks)


def _with_tags_apart(marks: Sequence[Mark]) -> list[Mark]:
    """Tags stand a line apart, so that none covers another: each as near to its mark as there is room, if there is."""
    placed: list[Mark] = []
    taken: list[float] = []
    for mark in sorted(marks, key=lambda mark: min(mark.y, 100 - mark.y)):
        tag_y = mark.y
        if mark.tag:
            beside = [other + way * LINE for other in taken for way in (1, -1)]
            free = [y for y in (mark.y, *beside) if 0 <= y <= 100 and all(abs(y - o) >= LINE - 1e-6 for o in taken)]
            _, tag_y = min(((abs(y - mark.y), y) for y in free), default=(0.0, mark.y))
            taken.append(tag_y)
        placed.append(replace(mark, tag_y=round(tag_y, 2)))
    return placed


class Bar(NamedTuple):
    """A named value, and perhaps other figures that are marked on the same line, each by the number of its kind."""

    name: str
    value: float | None
    text: str
    marks: Sequence[tuple[int, float]] = ()


@dataclass(frozen=True)
class Bars:
    """Horizontal bars of named values; `names` say what marks are, by their kind; `reference` is a line through all."""

    title: str
    rows: Sequence[Bar]
    axis: Axis
    kind: int = 0
    names: Sequence[tuple[int, str]] = ()
    reference: tuple[float, str] | None = None
    ticks: Sequence[float] = ()

    def words(self) -> str:
        """What a screen reader says of it."""
        said = [f"{bar.name}: {bar.text or self.said(bar)}" for bar in self.rows]
        return "; ".join([*said, self.reference[1]] if self.reference else said)

    def said(self, bar: Bar) -> str:
        names, text = dict(self.names), self.axis.text if self.axis.is_log else "{:.3f}".format
        return ", ".join(f"{names[kind]} {text(value)}" for kind, value in bar.marks) or "no figure"


def bars(
    title: str, rows: Sequence[tuple[str, float, str]], kind: int = 0, reference: tuple[float, str] | None = None
) -> Bars:
    """Bars of named values, each with its value as text, and perhaps a value to compare them with."""
    axis = linear_axis("", [value for _, value, _ in rows] + ([reference[0]] if reference else []))
    return Bars(title, [Bar(*each) for each in rows], axis, kind, reference=reference)


def log_bars(title: str, rows: Sequence[Bar], text: Callable[[float], str], names: tuple[str, str]) -> Bars:
    """Bars with marks of kind 3 on a logarithmic axis; `names` say what bars and marks are."""
    values = [value for each in rows for value in (each.value, *(value for _, value in each.marks)) if value]
    axis = Axis("", 10.0 ** floor(log10(0.99 * min(values))), 10.0 ** ceil(log10(max(values))), True, text)
    # Four texts at most: those of bytes are long.
    ticks = axis.ticks()[:: ceil(len(axis.ticks()) / 4)]
    return Bars(title, rows, axis, names=[(0, names[0]), (3, names[1])], ticks=ticks)


def dots(title: str, rows: Sequence[tuple[str, Sequence[tuple[int, float]]]], names: Sequence[str]) -> Bars:
    """Shares as marks on one line for each name; a mark is (which of `names` it belongs to, its value)."""
    axis, marked = share_axis(""), [Bar(name, None, "", marks) for name, marks in rows]
    return Bars(title, marked, axis, names=list(enumerate(names)), ticks=axis.ticks())
