"""Charts as data: where marks, lines and bars stand, in percent of the drawing, and all of it in words.

The template draws them. Percent let a chart fill whatever width there is while its text keeps its size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, floor, log10

# Marks and colours that tell series apart; the seventh series looks like the first.
KINDS = 6
# On a line of hundreds of points, so that it is known by more than its colour.
MARKS = 5
# The width of a character of an axis's text on a phone, in percent of a plot's.
CHARACTER = 2.5
# The height of a line of text, in percent of a plot's.
TAG_HEIGHT = 5.5
_FACTORS = ((1, 1.5, 2, 3, 4, 5, 7), (1, 2, 5), (1,))


@dataclass(frozen=True)
class Series:
    """Points of one kind; `joined` draws a line through them. Each point has a label for readers and screen readers."""

    name: str
    points: Sequence[tuple[float, float, str]]
    joined: bool = True
    # For hundreds of points: read aloud instead of their labels, and few of them are marked.
    summary: str = ""
    # Stands beside each point.
    tag: str = ""
    # Half of each point's interval.
    within: Sequence[float] = ()

    def in_words(self) -> str:
        """What a screen reader says of it."""
        return f"{self.name}: " + (self.summary or ", ".join(label for _, _, label in self.points))


@dataclass(frozen=True)
class Limit:
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

    def ticks(self) -> list[float]:
        if self.marks:
            return list(self.marks)
        if not self.is_log:
            # The next of 1, 2, 5 times a power of ten.
            least = (self.high - self.low) / 5
            power = 10.0 ** floor(log10(least))
            step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))
            step = max(1.0, step) if self.whole else step
            return [n * step for n in range(ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9) + 1)]
        powers = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
        ticks: list[float] = []
        for factors in _FACTORS:
            every = [factor * 10.0**power for power in powers for factor in factors]
            ticks = [tick for tick in every if self.low * (1 - 1e-9) <= tick <= self.high * (1 + 1e-9)]
            # Two ticks at least, or the axis says nothing of its scale.
            if self._have_room(ticks) or len(ticks) < 3:
                return ticks
        return next(few for n in range(2, len(ticks) + 1) if self._have_room(few := ticks[::n]) or len(few) < 3)

    def _have_room(self, ticks: Sequence[float]) -> bool:
        """Whether the texts of these ticks stand apart on a phone."""
        room = CHARACTER * (1 + max((len(self.text(tick)) for tick in ticks), default=0))
        return all(self.percent(b) - self.percent(a) >= room for a, b in pairwise(ticks))


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
class Tick:
    at: float
    text: str


@dataclass(frozen=True)
class Key:
    """An entry of the legend: a series by its number, or the kind of a line across."""

    kind: int | str
    text: str


@dataclass(frozen=True)
class Mark:
    x: float
    y: float
    kind: int
    label: str
    tag: str = ""
    tag_y: float = 0.0
    spread: tuple[float, float] | None = None


@dataclass(frozen=True)
class Polyline:
    kind: int
    points: str


@dataclass(frozen=True)
class Across:
    kind: str
    at: float


@dataclass(frozen=True)
class Plot:
    """Points and lines between two axes."""

    title: str
    words: str
    legend: Sequence[Key]
    across_name: str
    across: Sequence[Tick]
    up_name: str
    up: Sequence[Tick]
    lines: Sequence[Polyline]
    marks: Sequence[Mark]
    limit: Across | None = None

    @property
    def left(self) -> int:
        """Room for the texts of the left axis, in pixels."""
        return 12 + 7 * max((len(tick.text) for tick in self.up), default=0)


def draw(title: str, across: Axis, up: Axis, series: Sequence[Series], limit: Limit | None = None) -> Plot:
    """A plot with its axes, a line for a limit, a legend, and all of it in words."""
    words, legend = [one.in_words() for one in series], [Key(n % KINDS, one.name) for n, one in enumerate(series)]
    lines, marks, line = [], [], None
    for n, one in enumerate(series):
        places = _places(one, n % KINDS, across, up)
        if one.joined and len(places) > 1:
            lines.append(Polyline(n % KINDS, " ".join(f"{place.x},{place.y}" for place in places)))
        marks += places[:: max(1, len(places) // MARKS)] if one.summary else places
    if limit is not None:
        kind = "reference" if limit.is_reference else "limit"
        line = Across(kind, round(100 - up.percent(limit.value), 2))
        words.append(limit.label)
        legend.append(Key(kind, limit.label))
    return Plot(
        title,
        "; ".join(words),
        legend,
        across.name,
        [Tick(across.percent(tick), across.text(tick)) for tick in across.ticks()],
        up.name,
        [Tick(round(100 - up.percent(tick), 2), up.text(tick)) for tick in up.ticks()],
        lines,
        _apart(marks),
        line,
    )


def _places(one: Series, kind: int, across: Axis, up: Axis) -> list[Mark]:
    marks = []
    for n, (x, y, label) in enumerate(one.points):
        if x > 0 or not across.is_log:
            half = one.within[n] if one.within else 0.0
            ends = (round(100 - up.percent(y + half), 2), round(100 - up.percent(y - half), 2)) if half else None
            height = round(100 - up.percent(y), 2)
            marks.append(Mark(across.percent(x), height, kind, label or one.summary, one.tag, height, ends))
    return marks


def _apart(marks: Sequence[Mark]) -> list[Mark]:
    """Tags stand a line apart, from the lowest point up, so that none covers another."""
    tagged = sorted((mark for mark in marks if mark.tag), key=lambda mark: -mark.y)
    placed: list[Mark] = []
    for mark in tagged:
        room = placed[-1].tag_y - TAG_HEIGHT if placed else 100.0
        placed.append(replace(mark, tag_y=round(min(mark.y, room), 2)))
    return [mark for mark in marks if not mark.tag] + placed


def plot(title: str, x_name: str, y_name: str, series: Sequence[Series]) -> Plot | None:
    """Shares (0 to 1) against positive numbers on a logarithmic axis."""
    values = [x for one in series for x, _, _ in one.points if x > 0]
    return draw(title, log_axis(x_name, values), share_axis(y_name), series) if values else None


@dataclass(frozen=True)
class Bar:
    """A named value, and perhaps other figures that are marked on the same line, each by the number of its kind."""

    name: str
    value: float | None
    text: str
    marks: Sequence[tuple[int, float]] = ()


@dataclass(frozen=True)
class DrawnBar:
    name: str
    text: str
    width: float | None
    marks: Sequence[Mark]


@dataclass(frozen=True)
class Bars:
    """Horizontal bars of named values."""

    title: str
    words: str
    legend: Sequence[Key]
    rows: Sequence[DrawnBar]
    kind: int = 0
    ticks: Sequence[Tick] = ()
    # A line through all bars.
    reference: float | None = None


def bars(
    title: str, rows: Sequence[tuple[str, float, str]], kind: int = 0, reference: tuple[float, str] | None = None
) -> Bars:
    """Bars of named values, each with its value as text, and perhaps a value to compare them with."""
    axis = linear_axis("", [value for _, value, _ in rows] + ([reference[0]] if reference else []))
    drawn = [DrawnBar(name, text, max(0.3, axis.percent(value)), ()) for name, value, text in rows]
    words = [f"{name}: {text}" for name, _, text in rows]
    if reference is None:
        return Bars(title, "; ".join(words), (), drawn, kind)
    legend, at = [Key("reference", reference[1])], axis.percent(reference[0])
    return Bars(title, "; ".join([*words, reference[1]]), legend, drawn, kind, reference=at)


def log_bars(title: str, rows: Sequence[Bar], text: Callable[[float], str], names: tuple[str, str]) -> Bars:
    """Bars with marks on a logarithmic axis; `names` say what bars and marks are."""
    values = [value for each in rows for value in (each.value, *(value for _, value in each.marks)) if value]
    low, high = 10.0 ** floor(log10(0.99 * min(values))), 10.0 ** ceil(log10(max(values)))
    axis = Axis("", low, high, True, text)
    # Four texts at most: those of bytes are long.
    ticks = axis.ticks()[:: ceil(len(axis.ticks()) / 4)]
    legend = [Key(0, names[0]), Key(3, names[1])]
    words = "; ".join(f"{each.name}: {each.text}" for each in rows)
    return _with_marks(title, words, legend, rows, axis, ticks, lambda kind, value: f"{names[1]}: {text(value)}")


def dots(title: str, rows: Sequence[tuple[str, Sequence[tuple[int, float]]]], names: Sequence[str]) -> Bars:
    """Shares as marks on one line for each name; a mark is (which of `names` it belongs to, its value)."""
    said = [", ".join(f"{names[which]} {value:.3f}" for which, value in marks) or "no figure" for _, marks in rows]
    words = "; ".join(f"{name}: {text}" for (name, _), text in zip(rows, said, strict=True))
    legend, axis = [Key(n, name) for n, name in enumerate(names)], share_axis("")
    plain = [Bar(name, None, "", marks) for name, marks in rows]
    return _with_marks(title, words, legend, plain, axis, axis.ticks(), lambda kind, x: f"{names[kind]} {x:.3f}")


def _with_marks(
    title: str,
    words: str,
    legend: Sequence[Key],
    rows: Sequence[Bar],
    axis: Axis,
    ticks: Sequence[float],
    say: Callable[[int, float], str],
) -> Bars:
    drawn = [
        DrawnBar(
            each.name,
            each.text,
            None if each.value is None else max(0.3, axis.percent(each.value)),
            [Mark(axis.percent(x), 50, kind, f"{each.name}, {say(kind, x)}") for kind, x in each.marks],
        )
        for each in rows
    ]
    return Bars(title, words, legend, drawn, ticks=[Tick(axis.percent(tick), axis.text(tick)) for tick in ticks])
