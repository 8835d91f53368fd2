"""What an audit says first: on one screen, how many limits hold, which are broken, and where the rest can be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from lightfr_harness.records import Record

# More would not fit on one screen; the page has them all.
MOST_LINES = 10


def print_summary(
    record: Record, findings: Sequence[Mapping[str, Any]], json_file: str | None, report: Path | None
) -> None:
    """Print the verdicts of an audit, and the paths of its page and its record."""
    console = Console(highlight=False, soft_wrap=True, markup=False)
    for line in _verdicts(findings):
        console.print(line)
    if report is not None:
        console.print(f"Page: {report / f'{record.kind}.html'}   record: {report / f'{record.kind}.json'}")
    if json_file is not None:
        console.print(f"Record: {json_file}")
    if report is None and json_file is None:
        console.print("Nothing was kept: --report FOLDER writes a page and a record.")


def _verdicts(findings: Sequence[Mapping[str, Any]]) -> list[str]:
    from lightfr_harness.reports.figures import figure, limit_of

    by_verdict = {name: [f for f in findings if f["verdict"] == name] for name in ("holds", "broken")}
    held, broken = by_verdict["holds"], by_verdict["broken"]
    said = f"{len(held)} of our {len(held) + len(broken)} limits hold" if held or broken else "No limit was tried"
    lines = [f"{said}, {len(broken)} are broken:" if broken else f"{said}."]
    lines += [
        f"  {f['claim']}, {f['mode']}: {figure(f['measured'], f['unit'])}, {limit_of(f)}" for f in broken[:MOST_LINES]
    ]
    if len(broken) > MOST_LINES:
        lines.append(f"  and {len(broken) - MOST_LINES} more")
    confirmed, refuted = (sum(f["verdict"] == name for f in findings) for name in ("confirmed", "refuted"))
    if confirmed or refuted:
        lines.append(f"Of the paper's claims, {confirmed} are confirmed and {refuted} refuted.")
    return lines
