"""Small plots as inline SVG: they take the page's own text colour, and say in words what they show."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from math import log10

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 60, 20, 20, 50


@dataclass(frozen=True)
class Series:
    """Points of one kind; `joined` draws a line through them. Each point has a label for readers and screen readers."""

    name: str
    points: list[tuple[float, float, str]]
    joined: bool = True


def plot(title: str, x_name: str, y_name: str, series: list[Series]) -> str:
    """Shares (0 to 1) against positive numbers on a logarithmic axis."""
    values = [x for one in series for x, _, _ in one.points if x > 0]
    if not values:
        return ""
    low, high = log10(min(values)), log10(max(values))
    low, high = (low - 0.5, high + 0.5) if high - low < 0.1 else (low, high)

    def place(x: float, y: float) -> tuple[float, float]:
        across = (log10(x) - low) / (high - low)
        return LEFT + across * (WIDTH - LEFT - RIGHT), TOP + (1 - y) * (HEIGHT - TOP - BOTTOM)

    body = [_share_axis(place, 10**low, 10**high, y_name), _log_axis(place, low, high, x_name)]
    body += [_series(one, index, place) for index, one in enumerate(series)]
    summary = "; ".join(f"{one.name}: " + ", ".join(label for _, _, label in one.points) for one in series)
    return (
        f'<figure><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}. {escape(summary)}">'
        f"{''.join(body)}</svg><figcaption>{escape(title)}. {_legend(series)}</figcaption></figure>"
    )


def _share_axis(place, first: float, last: float, name: str) -> str:
    lines = []
    for step in range(6):
        (left, height), (right, _) = place(first, step / 5), place(last, step / 5)
        lines.append(f'<line class="grid" x1="{left:.1f}" x2="{right:.1f}" y1="{height:.1f}" y2="{height:.1f}"/>')
        lines.append(f'<text x="{left - 8:.1f}" y="{height + 4:.1f}" text-anchor="end">{step * 20} %</text>')
    middle = (TOP + HEIGHT - BOTTOM) / 2
    lines.append(f'<text transform="translate(14 {middle}) rotate(-90)" text-anchor="middle">{escape(name)}</text>')
    return "".join(lines)


def _log_axis(place, low: float, high: float, name: str) -> str:
    ticks = [m * 10**e for e in range(int(low) - 1, int(high) + 2) for m in (1, 2, 5)]
    inside = [tick for tick in ticks if low - 1e-9 <= log10(tick) <= high + 1e-9]
    texts = [
        f'<text x="{place(tick, 0)[0]:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{tick:,.0f}</text>'
        for tick in inside
    ]
    return "".join(texts) + f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">{escape(name)}</text>'


def _series(one: Series, index: int, place) -> str:
    places = [(*place(x, min(max(y, 0.0), 1.0)), label) for x, y, label in one.points if x > 0]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places)
    line = f'<polyline class="line s{index}" points="{path}"/>' if one.joined and len(places) > 1 else ""
    return line + "".join(_mark(x, y, label, index) for x, y, label in places)


def _mark(x: float, y: float, label: str, index: int) -> str:
    """A shape of its own for each series, so that colour is never the only difference."""
    shapes = (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5"',
        f'<rect x="{x - 4.5:.1f}" y="{y - 4.5:.1f}" width="9" height="9"',
        f'<path d="M{x:.1f} {y - 6:.1f} l6 11 h-12 z"',
        f'<path d="M{x:.1f} {y - 7:.1f} l7 7 -7 7 -7 -7 z"',
    )
    return f'{shapes[index % len(shapes)]} class="mark s{index}"><title>{escape(label)}</title>{_closing(index)}'


def _closing(index: int) -> str:
    return ("</circle>", "</rect>", "</path>", "</path>")[index % 4]


def _legend(series: list[Series]) -> str:
    shapes = "●■▲◆"
    marks = (f'<span class="key s{i}">{shapes[i % 4]}</span> {escape(one.name)}' for i, one in enumerate(series))
    return " &nbsp; ".join(marks)
