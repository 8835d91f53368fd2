"""What the commands share: the options --json and --report, and a progress bar."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

Json = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE", help="Write the record to FILE; - prints the record and nothing else."),
]
Report = Annotated[Path | None, typer.Option(help="Folder for the HTML page and the record.")]


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
    """Write a file, and make the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
