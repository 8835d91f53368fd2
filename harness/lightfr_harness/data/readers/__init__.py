"""One entry point for every format: a table from format name to reader."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

from ..errors import DataFileError, InvalidOptionError
from ..ratings import Ratings
from ..splits import Split
from .files import DAMAGED, damaged_zip
from .mat import read_ciao, read_douban
from .numbers import read_filmtrust, read_ml_1m, read_ml_100k, read_ml_csv
from .prepared import read_prepared
from .recognise import advice_for, guess_format
from .text import read_ciaodvd, read_csv, read_inter

__all__ = ["READERS", "guess_format", "load"]

READERS: dict[str, Callable[..., Ratings | Split]] = {
    "ml-100k": read_ml_100k,
    "ml-1m": read_ml_1m,
    "ml-csv": read_ml_csv,
    "filmtrust": read_filmtrust,
    "douban": read_douban,
    "ciao": read_ciao,
    "ciaodvd": read_ciaodvd,
    "inter": read_inter,
    "csv": read_csv,
    "prepared": read_prepared,
}


def load(path: str | Path, format: str, **options: str | float | None) -> Ratings | Split:
    """Read a file, perhaps inside a zip file (for `prepared`, a folder, which is already split).

    Options exist for `csv` and `inter` (user, item, rating, timestamp, rating_min, rating_max) and `prepared`
    (rating_min, rating_max); the other formats declare everything themselves.
    """
    if format not in READERS:
        raise InvalidOptionError(f"Unknown data format {format!r}. Choose one of: {', '.join(READERS)}.")
    reader = READERS[format]
    parameters = inspect.signature(reader).parameters.values()
    known = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    unknown = [name for name in options if name not in known]
    if unknown:
        raise InvalidOptionError(
            f"The format {format} has no option {_flags(unknown)}. Its options: {_flags(known) or 'none'}."
        )
    try:
        return reader(Path(path), **options)
    except DataFileError as error:
        advice = advice_for(error.path, format)
        if advice is None:
            raise
        raise DataFileError(error.path, error.line, error.reason, advice) from error
    except DAMAGED as error:
        raise damaged_zip(Path(path)) from error


def _flags(names: list[str]) -> str:
    """The names as a command line has them."""
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)
