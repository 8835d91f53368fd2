"""Opening text files, with errors that say what to do."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

from ..errors import MalformedDataError, MissingFileError


def require_file(path: Path) -> None:
    if path.is_dir():
        raise MalformedDataError(path, None, "this is a folder", "Name the file with the ratings inside it.")
    if not path.exists():
        raise MissingFileError(path, "Check the path, or run: lightfr-harness data list")


def open_text(path: Path) -> TextIO:
    require_file(path)
    # A byte that is not UTF-8 becomes a character no number contains, so that it is reported
    # with its line instead of stopping the decoder somewhere before it.
    return path.open(encoding="utf-8-sig", errors="replace", newline="")
