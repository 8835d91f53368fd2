"""lightfr-harness compare A.json B.json: what got worse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from lightfr.errors import InvalidInputError
from lightfr_harness.audits.output import write_text
from lightfr_harness.errors import errors_as_messages


def compare(
    before: Annotated[Path, typer.Argument(help="Record of an audit.")],
    after: Annotated[Path, typer.Argument(help="Record of a later one.")],
    report: Annotated[Path | None, typer.Option(help="Folder for an HTML page of both runs.")] = None,
) -> None:
    """Show what got worse between two records of `audit`. Exit code 1 if something did, beyond noise.

    Noise: 1 % of counted bytes, 5 % of memory, twice a latency, half a ratio of times, 10 % of the rest; or intervals
    that overlap.
    """
    from lightfr_harness.audits import compare as comparing
    from lightfr_harness.reports import comparison as pages

    with errors_as_messages():
        records = [read_record(path) for path in (before, after)]
    changes = comparing.compare(*records)
    if report is not None:
        write_text(report / "comparison.html", pages.page(*records, changes))
    Console().print(_table(changes))
    if comparing.worse(changes):
        raise typer.Exit(code=1)


def read_record(path: Path) -> dict[str, Any]:
    """A record with findings, or an error that says what is wrong with the file."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"'{path}' cannot be read as the record of an audit: {error}") from error
    if not isinstance(record, dict) or not isinstance(record.get("findings"), list):
        raise InvalidInputError(f"'{path}' is not the record of an audit: it has no findings")
    return record


def _table(changes: list[Any]) -> Table:
    from lightfr_harness.reports.figures import figure

    table = Table("claim", "of what", "before", "after", "", title="What changed")
    for change in changes:
        if change.what == "same":
            continue
        values = (figure(side and side["measured"], change.unit) for side in (change.before, change.after))
        table.add_row(change.claim, change.mode, *values, change.what)
    if not table.rows:
        table.add_row("nothing, beyond noise", "", "", "", "same")
    return table
