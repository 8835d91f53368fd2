"""Small plots as inline SVG: they take the page's own text colour, and say in words what they show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT = 640, 320
# Of figures that fit a phone as they are.
NARROW = 350
LEFT, RIGHT, TOP, BOTTOM = 80, 40, 20, 50
# Marks and colours that tell series apart; the seventh series looks like the first.
KINDS = 6
# On a line of hundreds of points, so that it is known by more than its colour.
MARKS = 5


@dataclass(frozen=True)
class Series:
    """Points of one kind; `joined` draws a line through them. Each point has a label for readers and screen readers."""

    name: str
    points: list[tuple[float, float, str]]
    joined: bool = True
    # For hundreds of points: read aloud instead of their labels, and few of them are marked.
    summary: str = ""

    def in_words(self) -> str:
        """What a screen reader says of it."""
        return f"{self.name}: " + (self.summary or ", ".join(label for _, _, label in self.points))


@dataclass(frozen=True)
class Limit:
    """A horizontal line: a limit that values must stay below, or only a reference to compare them with."""

    value: float
    label: str
    is_reference: bool = False


@dataclass(frozen=True)
class Axis:
    """From values to a share of the drawing's width or height."""

    name: str
    low: float
    high: float
    is_log: bool
    text: Callable[[float], str] = lambda value: f"{value:,.10g}"
    # Where the values are few, their own places, in the stead of round numbers.
    marks: tuple[float, ...] = ()
    # Ticks between whole numbers would mean nothing.
    whole: bool = False

    def at(self, value: float) -> float:
        if not self.is_log:
            return (value - self.low) / (self.high - self.low)
        return (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))

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
        low, high = log10(self.low), log10(self.high)
        factors = (1,) if high - low >= 3 else (1, 2, 5) if high - low >= 1 else (1, 1.5, 2, 3, 4, 5, 7)
        ticks = [factor * 10.0**e for e in range(floor(low) - 1, ceil(high) + 1) for factor in factors]
        return [tick for tick in ticks if low - 1e-9 <= log10(tick) <= high + 1e-9]


def share_axis(name: str) -> Axis:
    """From 0 to 100 %."""
    return Axis(name, 0.0, 1.0, False, lambda share: f"{100 * share:.0f} %")


def log_axis(
    name: str, values: list[float], text: Callable[[float], str] | None = None, marks: Sequence[float] = ()
) -> Axis:
    """Around the positive ones of these values; `marks` are where the ticks stand, if not at round numbers."""
    positive = [value for value in values if value > 0] or [1.0]
    low, high = min(positive), max(positive)
    if high < 1.3 * low:
        low, high = low / 3, high * 3
    return Axis(name, low, high, True, text or (lambda value: f"{value:,.10g}"), tuple(marks))


def linear_axis(
    name: str,
    values: Sequence[float],
    text: Callable[[float], str] | None = None,
    marks: Sequence[float] = (),
    *,
    whole: bool = False,
) -> Axis:
    """From zero to the largest of these values; `whole` has ticks at whole numbers alone."""
    text = text or (lambda value: f"{value:,.10g}")
    return Axis(name, 0.0, max([*values, 1e-9]), False, text, tuple(marks), whole)


def plot(title: str, x_name: str, y_name: str, series: list[Series]) -> str:
    """Shares (0 to 1) against positive numbers on a logarithmic axis."""
    values = [x for one in series for x, _, _ in one.points if x > 0]
    return draw(title, log_axis(x_name, values), share_axis(y_name), series) if values else ""


def draw(title: str, across: Axis, up: Axis, series: list[Series], limit: Limit | None = None) -> str:
    """A figure with its axes, a line for a limit, a legend, and all of it in words."""
    body = [_left_axis(up), _bottom_axis(across)]
    body += [_series(one, index % KINDS, across, up) for index, one in enumerate(series)]
    words = [one.in_words() for one in series]
    if limit is not None:
        body.append(_limit(limit, up))
        words.append(limit.label)
    return _figure(title, HEIGHT, "; ".join(words), "".join(body), _legend(series))


def _place(axis: Axis, value: float, start: float, end: float) -> float:
    """Between two ends of the drawing; what lies outside the axis is drawn at its end."""
    value = max(value, axis.low) if axis.is_log else value
    return start + min(max(axis.at(value), 0.0), 1.0) * (end - start)


def _x(axis: Axis, value: float) -> float:
    return _place(axis, value, LEFT, WIDTH - RIGHT)


def _y(axis: Axis, value: float) -> float:
    return _place(axis, value, HEIGHT - BOTTOM, TOP)


def _left_axis(axis: Axis) -> str:
    lines = []
    for tick in axis.ticks():
        y = _y(axis, tick)
        lines.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        lines.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{escape(axis.text(tick))}</text>')
    middle = (TOP + HEIGHT - BOTTOM) / 2
    name = escape(axis.name)
    lines.append(f'<text transform="translate(14 {middle}) rotate(-90)" text-anchor="middle">{name}</text>')
    return "".join(lines)


def _bottom_axis(axis: Axis) -> str:
    y = HEIGHT - BOTTOM + 18
    texts = [
        f'<text x="{_x(axis, tick):.1f}" y="{y}" text-anchor="middle">{escape(axis.text(tick))}</text>'
        for tick in axis.ticks()
    ]
    return "".join(texts) + f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">{escape(axis.name)}</text>'


def _limit(limit: Limit, up: Axis) -> str:
    y, right, kind = _y(up, limit.value), WIDTH - RIGHT, "reference" if limit.is_reference else "limit"
    return (
        f'<line class="{kind}" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text class="{kind}-text" x="{right - 4}" y="{y - 5:.1f}" text-anchor="end">{escape(limit.label)}</text>'
    )


def _series(one: Series, index: int, across: Axis, up: Axis) -> str:
    places = [(_x(across, x), _y(up, y), label) for x, y, label in one.points if x > 0 or not across.is_log]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places)
    line = f'<polyline class="line s{index}" points="{path}"/>' if one.joined and len(places) > 1 else ""
    few = places[:: max(1, len(places) // MARKS)] if one.summary else places
    return line + "".join(_mark(x, y, label or one.summary, index) for x, y, label in few)


def _mark(x: float, y: float, label: str, index: int) -> str:
    """A shape of its own for each series, so that colour is never the only difference."""
    shapes = (
        f'circle cx="{x:.1f}" cy="{y:.1f}" r="5"',
        f'rect x="{x - 4.5:.1f}" y="{y - 4.5:.1f}" width="9" height="9"',
        f'path d="M{x:.1f} {y - 6:.1f} l6 11 h-12 z"',
        f'path d="M{x:.1f} {y - 7:.1f} l7 7 -7 7 -7 -7 z"',
        f'path d="M{x:.1f} {y + 6:.1f} l6 -11 h-12 z"',
        f'path d="M{x - 6:.1f} {y - 2:.1f} h4 v-4 h4 v4 h4 v4 h-4 v4 h-4 v-4 h-4 z"',
    )
    shape = shapes[index]
    return f'<{shape} class="mark s{index}"><title>{escape(label)}</title></{shape.split(" ", 1)[0]}>'


def _legend(series: list[Series]) -> str:
    """Each mark stays on a line with its name."""
    shapes = "●■▲◆▼✚"
    marks = (
        f'<span class="entry"><span class="key s{i % KINDS}">{shapes[i % KINDS]}</span> {escape(one.name)}</span>'
        for i, one in enumerate(series)
    )
    return " ".join(marks)


def bars(
    title: str, rows: list[tuple[str, float, str]], kind: int = 0, reference: tuple[float, str] | None = None
) -> str:
    """Horizontal bars of named values, each with its value as text, and perhaps a value to compare them with."""
    most = max([value for _, value, _ in rows] + ([reference[0]] if reference else []), default=0) or 1
    # A character is about 6.6 wide; long names take what they need.
    height, right = 26, 110
    left = max(150.0, 16 + 6.6 * max((len(name) for name, _, _ in rows), default=0))
    scale = (WIDTH - left - right) / most
    # Bars, then the line over them, then the text over both.
    drawn, written = [], []
    for place, (name, value, text) in enumerate(rows):
        y, width = place * height, max(1.0, value * scale)
        drawn.append(f'<rect class="s{kind}" x="{left:.1f}" y="{y + 5}" width="{width:.1f}" height="16"/>')
        written.append(f'<text x="{left - 8:.1f}" y="{y + 17}" text-anchor="end">{escape(name)}</text>')
        written.append(f'<text class="value" x="{left + width + 6:.1f}" y="{y + 17}">{escape(text)}</text>')
    words, bottom = "; ".join(f"{name}: {text}" for name, _, text in rows), height * len(rows)
    if reference is not None:
        x = left + reference[0] * scale
        drawn.append(f'<line class="reference" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{bottom + 4}"/>')
        at = f'x="{x:.1f}" y="{bottom + 18}" text-anchor="middle"'
        written.append(f'<text class="reference-text" {at}>{escape(reference[1])}</text>')
        words, bottom = f"{words}; {reference[1]}", bottom + height
    return _figure(title, bottom, words, "".join(drawn + written), "")


@dataclass(frozen=True)
class Bar:
    """A named value, and perhaps another figure that is marked on the same line."""

    name: str
    value: float
    text: str
    mark: float | None = None


def log_bars(title: str, rows: Sequence[Bar], axis: Callable[[float], str], names: tuple[str, str]) -> str:
    """Bars on a logarithmic axis, narrow enough for a phone; `names` say what bars and marks are."""
    values = [value for each in rows for value in (each.value, each.mark) if value]
    low, high = 10.0 ** floor(log10(0.99 * min(values))), 10.0 ** ceil(log10(max(values)))
    scale, height = (NARROW - 12) / (log10(high) - log10(low)), 40
    bottom, body = height * len(rows) + 6, []
    for power in _decades(low, high):
        x = 6 + (power - log10(low)) * scale
        body.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{bottom}"/>')
        anchor = "start" if power == round(log10(low)) else "middle"
        body.append(f'<text x="{x:.1f}" y="{bottom + 14}" text-anchor="{anchor}">{escape(axis(10.0**power))}</text>')
    for place, each in enumerate(rows):
        y, width = place * height, max(1.0, (log10(each.value) - log10(low)) * scale)
        body.append(f'<text class="value" x="6" y="{y + 15}">{escape(each.name)}</text>')
        text = f'x="{NARROW - 6}" y="{y + 15}" text-anchor="end"'
        body.append(f'<text class="value" {text}>{escape(each.text)}</text>')
        body.append(f'<rect class="s0" x="6" y="{y + 20}" width="{width:.1f}" height="12"/>')
        if each.mark:
            x = 6 + (log10(each.mark) - log10(low)) * scale
            body.append(_mark(x, y + 26, f"{each.name}, {names[1]}: {axis(each.mark)}", 3))
    words = "; ".join(f"{each.name}: {each.text}" for each in rows)
    marks = f'<span class="entry"><span class="key s3">◆</span> {escape(names[1])}</span>'
    legend = f'<span class="entry"><span class="key s0">■</span> {escape(names[0])}</span> {marks}'
    return _figure(title, bottom + 20, words, "".join(body), legend, NARROW)


def _decades(low: float, high: float) -> range:
    """Powers of ten for ticks: four at most, so that their texts have room."""
    first, last = round(log10(low)), round(log10(high))
    return range(first, last, max(1, ceil((last - first) / 4)))


def dots(title: str, rows: list[tuple[str, list[tuple[int, float]]]], names: Sequence[str]) -> str:
    """Shares as marks on one line for each name; a mark is (which of `names` it belongs to, its value)."""
    height = 24
    left = max(150.0, 16 + 6.6 * max((len(name) for name, _ in rows), default=0))
    bottom = height * len(rows)
    scale = WIDTH - left - RIGHT
    body = []
    for tick in share_axis("").ticks():
        x = left + tick * scale
        body.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{bottom}"/>')
        body.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{100 * tick:.0f} %</text>')
    words = []
    for place, (name, marks) in enumerate(rows):
        y = height * (place + 0.5)
        body.append(f'<text x="{left - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">{escape(name)}</text>')
        said = [f"{names[which]} {value:.3f}" for which, value in marks]
        body += [
            _mark(left + value * scale, y, f"{name}, {text}", which)
            for (which, value), text in zip(marks, said, strict=True)
        ]
        words.append(f"{name}: {', '.join(said) or 'no figure'}")
    legend = _legend([Series(name, []) for name in names])
    return _figure(title, bottom + height, "; ".join(words), "".join(body), legend)


def _figure(title: str, height: int, words: str, body: str, legend: str, width: int = WIDTH) -> str:
    label = escape(f"{title}. {words}")
    return (
        f'<figure class="scroll" tabindex="0"><svg viewBox="0 0 {width} {height}" role="img" aria-label="{label}">'
        f"{body}</svg><figcaption>{escape(title)}. {legend}</figcaption></figure>"
    )
