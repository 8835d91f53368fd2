"""FilmTrust, as LibRec hands it round."""

from __future__ import annotations

from pathlib import Path

from ..ratings import Ratings
from .numbers import Layout, read_numbers


def read_filmtrust(path: Path) -> Ratings:
    """`ratings.txt`: user, item, rating (0.5 to 4) between blanks; no times, so file order."""
    return read_numbers(path, Layout(None, ("user", "item", "rating"), 0.5, 4.0))
