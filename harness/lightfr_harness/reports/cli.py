"""lightfr-harness compare and report: what got worse between two records, and any record as a page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from lightfr_harness.console import output_folder, terminal
from lightfr_harness.errors import errors_as_messages

if TYPE_CHECKING:
    from lightfr_harness.compare import Change


def compare(
    before: Annotated[Path, typer.Argument(help="A record that --json wrote.")],
    after: Annotated[Path, typer.Argument(help="A later record of the same kind.")],
    report: Annotated[Path | None, output_folder("Folder for an HTML page of both records.")] = None,
) -> None:
    """Show what got worse between two records of one kind. Exit code 1 if something did, beyond noise.

    Noise is 1 % of counted bytes, 2 % of accuracy, 5 % of memory, twice a latency, half a ratio of times, and 10 % of
    the rest; or intervals that overlap. Records of different kinds are an error: exit code 2.
    """
    from lightfr_harness import compare as comparing
    from lightfr_harness import records
    from lightfr_harness.console import write_text
    from lightfr_harness.reports import comparison

    with errors_as_messages():
        one, other = (records.read(path) for path in (before, after))
        with fields_of(before, after):
            changes = comparing.compare(one, other)
            worse = comparing.worse(changes)
            rows = [_cells(change) for change in changes if change.what != comparing.SAME]
            if report is not None:
                write_text(report / "comparison.html", comparison.page(one, other, changes))
            table = Table("claim", "of what", "before", "after", "", title="What changed")
            for cells in rows or [["nothing, beyond noise", "", "", "", comparing.SAME]]:
                table.add_row(*cells)
            terminal().print(table)
    if worse:
        raise typer.Exit(code=1)


def report(
    record: Annotated[list[Path], typer.Argument(help="Records that --json wrote, of any kind.")],
    folder: Annotated[
        Path | None, output_folder("Folder for the pages. Default: beside each record.", "--report")
    ] = None,
) -> None:
    """Draw each record as one HTML page that needs nothing else, and print the path of the page."""
    from lightfr_harness import records
    from lightfr_harness.console import write_text
    from lightfr_harness.reports.pages import page_of

    # No page takes the place of a record, or of a page that was drawn just before.
    taken = set(record)
    with errors_as_messages():
        for path in dict.fromkeys(record):
            page = (folder or path.parent) / f"{path.stem}.html"
            if page in taken:
                raise records.RecordError(f"the page of {path} would be written over {page}: name another --report")
            taken.add(page)
            read = records.read(path)
            with fields_of(path):
                write_text(page, page_of(read))
            typer.echo(page)


def _cells(change: Change) -> list[str]:
    """A change as the terminal shows it."""
    from lightfr_harness.reports.figures import figure

    sides = [figure(side["measured"] if side else None, change.unit) for side in (change.before, change.after)]
    return [str(change.claim), str(change.mode), *sides, change.what]


@contextmanager
def fields_of(*paths: Path) -> Iterator[None]:
    """Say so when a field of these records holds something else than docs/records.md says."""
    from jinja2 import TemplateError

    from lightfr_harness.records import RecordError

    try:
        yield
    # The template says of a cell that is no text that something is undefined.
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, TemplateError) as error:
        names = " or ".join(dict.fromkeys(map(str, paths)))
        reason = f"{names} has a field that does not hold what its kind of record holds ({type(error).__name__})"
        raise RecordError(f"{reason}. Write the record again") from error
