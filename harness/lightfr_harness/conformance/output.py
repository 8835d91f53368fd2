"""Results for people and for programs."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from lightfr_harness.conformance.registry import Case
from lightfr_harness.conformance.runner import Outcome, Result
from lightfr_harness.console import write_text
from lightfr_harness.errors import CannotRunError

JSON_VERSION = 1


_STYLES = {Outcome.PASSED: "green", Outcome.FAILED: "red", Outcome.KNOWN: "yellow", Outcome.FIXED: "magenta"}


def collect(console: Console, results: Iterable[Result], total: int) -> list[Result]:
    """Take the results as they come, with a bar."""
    columns = (TextColumn("{task.description:<34}"), BarColumn(24), MofNCompleteColumn(), TimeElapsedColumn())
    collected: list[Result] = []
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("begin", total=total)
        for result in results:
            collected.append(result)
            progress.update(task, advance=1, description=result.case.id[:34])
    return collected


def show(console: Console, results: Sequence[Result]) -> None:
    """A table by group, then each finding, then the verdict."""
    console.print(_table(results))
    for result in results:
        if result.outcome is not Outcome.PASSED:
            _show_finding(console, result)
    console.print(_verdict(results))


def _table(results: Sequence[Result]) -> Table:
    table = Table(title="Conformance, by group", title_justify="left", min_width=60)
    table.add_column("group")
    for outcome in Outcome:
        table.add_column(outcome.value, justify="right")
    table.add_column("seconds", justify="right")
    for group, members in _by_group(results).items():
        counts = Counter(member.outcome for member in members)
        cells = [f"[{_STYLES[outcome]}]{counts[outcome]}[/]" if counts[outcome] else "" for outcome in Outcome]
        table.add_row(group, *cells, f"{sum(member.seconds for member in members):.1f}")
    return table


def _by_group(results: Sequence[Result]) -> dict[str, list[Result]]:
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.case.group, []).append(result)
    return groups


def _show_finding(console: Console, result: Result) -> None:
    style = _STYLES[result.outcome]
    console.print(f"\n[{style} bold]{result.outcome.value}[/]  [bold]{escape(result.case.id)}[/]")
    lines = [escape(result.case.why)]
    if result.outcome is Outcome.FIXED:
        lines.append("It passes: remove it from the known-failing list.")
    else:
        lines += [f"[bold]expected[/]  {escape(result.expected)}", f"[bold]got[/]       {escape(result.got)}"]
    lines.append(f"[dim]see {escape(result.case.place)}[/]")
    console.print(Padding("\n".join(lines), (0, 0, 0, 4)))


def _verdict(results: Sequence[Result]) -> str:
    good = sum(result.is_good for result in results)
    known = sum(result.outcome is Outcome.KNOWN for result in results)
    note = f", {known} of them known to fail" if known else ""
    if good == len(results):
        return f"\n[green bold]All {len(results)} cases are as they should be{note}.[/]"
    return f"\n[red bold]{len(results) - good} of {len(results)} cases are not as they should be.[/]"


def show_list(console: Console, cases: Sequence[Case]) -> None:
    """Ids, kits and why."""
    table = Table(box=None, pad_edge=False)
    for name in ("case", "kits", "why it matters"):
        table.add_column(name, overflow="fold")
    for one in cases:
        table.add_row(escape(one.id), " ".join(one.kits), escape(one.why))
    console.print(table)


def write_json(where: str, results: Sequence[Result], server: str, kit: str) -> None:
    """Write the report to a file, or, where the name is "-", print it."""
    text = as_json(results, server, kit)
    if where == "-":
        sys.stdout.write(text)
        return
    try:
        write_text(Path(where), text)
    except OSError as error:
        raise CannotRunError(f"cannot write {where} ({error.strerror}): name another --json FILE") from error


def as_json(results: Sequence[Result], server: str, kit: str) -> str:
    """The report of docs/conformance.md."""
    counts = Counter(result.outcome for result in results)
    report: dict[str, Any] = {
        "version": JSON_VERSION,
        "server": server,
        "kit": kit,
        "is_good": all(result.is_good for result in results),
        "counts": {outcome.value: counts[outcome] for outcome in Outcome},
        "seconds": round(sum(result.seconds for result in results), 3),
        "cases": [_as_dict(result) for result in results],
    }
    return json.dumps(report, indent=1) + "\n"


def _as_dict(result: Result) -> dict[str, Any]:
    made = {
        "id": result.case.id,
        "outcome": result.outcome.value,
        "why": result.case.why,
        "place": result.case.place,
        "seconds": round(result.seconds, 3),
    }
    if result.expected:
        made |= {"expected": result.expected, "got": result.got, "traceback": result.traceback}
    return made
