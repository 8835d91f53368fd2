"""The plot of the status page: two shares over the versions, in the page's own colours."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple


class Line(NamedTuple):
    """One of the two."""

    name: str
    # A variable of the page's style.
    colour: str
    # Version, share, and half of its interval, by ascending version.
    points: Sequence[tuple[int, float, float]]


def plot(lines: Sequence[Line], says: str) -> str:
    """Lines with their intervals; the left axis goes from 0 to 1. `says` is for those who do not see it."""
    versions = [version for line in lines for version, _, _ in line.points]
    first, last = min(versions), max(versions)
    grid = "".join(
        f'<line x1="40" x2="590" y1="{_y(value)}" y2="{_y(value)}" stroke="var(--line)"/>'
        f'<text x="34" y="{_y(value) + 4}" text-anchor="end">{value:.2f}</text>'
        for value in (0, 0.25, 0.5, 0.75, 1)
    )
    drawn = "".join(_line(line, first, last) for line in lines)
    axis = f'<text x="40" y="196">version {first}</text><text x="590" y="196" text-anchor="end">version {last}</text>'
    left, right = lines
    key = (
        f'<text x="300" y="196" text-anchor="end" style="fill:var({left.colour})">{escape(left.name)}</text>'
        f'<text x="312" y="196" style="fill:var({right.colour})">{escape(right.name)}</text>'
    )
    return f'<svg viewBox="0 0 600 202" role="img" aria-label="{escape(says)}">{grid}{drawn}{axis}{key}</svg>'


def _line(line: Line, first: int, last: int) -> str:
    colour = f"var({line.colour})"
    places = [
        (40 + 550 * (version - first) / max(last - first, 1), share, half) for version, share, half in line.points
    ]
    joined = " ".join(f"{x:.1f},{_y(share):.1f}" for x, share, _ in places)
    drawn = f'<polyline points="{joined}" fill="none" stroke="{colour}" stroke-width="2"/>'
    for x, share, half in places:
        ends = _y(min(share + half, 1.0)), _y(max(share - half, 0.0))
        if half:
            drawn += f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{ends[0]}" y2="{ends[1]}" stroke="{colour}"/>'
        drawn += f'<circle cx="{x:.1f}" cy="{_y(share):.1f}" r="3" fill="{colour}"/>'
    return drawn


def _y(share: float) -> float:
    return round(176 - 164 * share, 1)
