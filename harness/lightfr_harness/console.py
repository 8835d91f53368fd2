"""What the commands share: options that are checked while the line is read, before any work, and a progress bar.

A value that cannot be right ends the command with exit code 2 and a sentence that names the option. Ranges and names
stand in `--help`.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterable
from errno import EBUSY
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

# More would take days or more memory than a machine of one person has: 10^8 codes of 64 bits are 800 MB.
MOST_ITEMS = 100_000_000
MOST_DEVICES = 1_000_000
MOST_ROUNDS = 100_000


def whole(help: str, *flags: str, least: int, most: int) -> Any:
    """An option that takes a whole number."""
    return typer.Option(*flags, min=least, max=most, help=help)


def number(help: str, *flags: str, least: float, most: float) -> Any:
    """An option that takes a number; nan is none."""
    return typer.Option(*flags, min=least, max=most, help=help, callback=_finite)


def choice(names: Iterable[str], help: str, *flags: str) -> Any:
    """An option that takes one of these names, or several of them where it may be given more than once."""
    known = tuple(names)

    def check(value: Any) -> Any:
        for name in value if isinstance(value, list) else [value]:
            # What was not given is empty or None.
            if name and name not in known:
                raise typer.BadParameter(f"unknown name {name!r}, choose from: {', '.join(known)}")
        return value

    return typer.Option(*flags, metavar="|".join(known), help=help, callback=check)


def output_folder(help: str, *flags: str) -> Any:
    """An option that names a folder to write to."""
    return typer.Option(*flags, help=help, callback=_writer(is_folder=True))


def output_file(help: str, *flags: str) -> Any:
    """An option that names a file to write; - stands for standard output where a command allows that."""
    return typer.Option(*flags, metavar="FILE", help=help, callback=_writer(is_folder=False))


def _finite(value: float | None) -> float | None:
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a finite number")
    return value


def _whole_bytes(value: int) -> int:
    if value % 8:
        raise typer.BadParameter(f"{value} bits are not whole bytes: give a multiple of 8")
    return value


def _writer(*, is_folder: bool) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if value is not None and str(value) != "-":
            try:
                _require_writable(Path(value), is_folder=is_folder)
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or error
                raise typer.BadParameter(f"cannot use {value} ({reason}): name another path") from error
        return value

    return check


def _require_writable(path: Path, *, is_folder: bool) -> None:
    """Raise OSError unless the path can be written. Nothing is left behind, and an old file stays as it is."""
    if path.exists() and path.is_dir() != is_folder:
        raise OSError(f"a {'file' if is_folder else 'folder'} is there")
    if path.exists() and not os.access(path, os.W_OK):
        raise OSError("it is not writable")
    if is_folder or not path.exists():
        there = next(each for each in (path, *path.parents) if each.exists())
        with tempfile.TemporaryFile(dir=there):
            pass


Json = Annotated[str | None, output_file("Write the record to FILE; - prints the record and nothing else.", "--json")]
Report = Annotated[Path | None, output_folder("Folder for the HTML page and the record.")]
Bits = Annotated[int, typer.Option(min=8, max=1024, callback=_whole_bytes, help="Code length, in steps of 8.")]
Seed = Annotated[int, whole("Seed of everything random in the run.", least=0, most=2**32 - 1)]
Port = Annotated[int, whole("Port for devices; 0 picks a free one.", least=0, most=65535)]


def terminal() -> Console:
    """Standard output for text with names, ids and paths in it: brackets in them are no markup."""
    return Console(markup=False)


def progress_bar() -> Progress:
    """A bar on standard error, shown only on a terminal. `detail` says more about what is being done."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[detail]}"),
    )
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def write_text(path: Path, text: str) -> None:
    """Write a file, and make the folders above it. What stood there is replaced by the whole file, or stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    target = Path(os.path.realpath(path))
    # A pipe or a device is no file to put another in the place of; a file may lie where no other can be made.
    if path.exists() and not (path.is_file() and os.access(target.parent, os.W_OK)):
        path.write_text(text, encoding="utf-8")
        return
    beside = target.with_name(f".lightfr-{os.getpid()}.part")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(target)
    except OSError as error:
        # A file that is mounted by itself, as containers do, is written to where it stands.
        if error.errno != EBUSY:
            raise
        target.write_text(text, encoding="utf-8")
    finally:
        beside.unlink(missing_ok=True)
