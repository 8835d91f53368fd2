"""lightfr-harness audit cost ...: does it fit the device, and is the paper right?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lightfr.cohorts import DEFAULT_MINIMUM_COHORT, MAX_DEVICES, MIN_DEVICES
from lightfr_harness.audits.cost.formulas import CODE_BITS, DATASETS
from lightfr_harness.audits.summary_cli import print_summary
from lightfr_harness.console import MOST_ITEMS, Bits, Json, Report, Seed, choice, progress_bar, whole
from lightfr_harness.errors import errors_as_messages
from lightfr_harness.server.rules import PRIVACY_MODES

DEFAULT_ITEMS, DEFAULT_RATINGS, DEFAULT_PROFILE, DEFAULT_OPEN_ROWS = 10_000, 64, "mid-phone", 2_000
INTERRUPTED_EXIT = 130
WIDTHS = {"predicted": 10, "measured": 10, "ratio": 8, "limit": 12, "verdict": 10}
COLOURS = {"broken": "bold red", "refuted": "yellow", "holds": "green", "confirmed": "green"}


def cost(
    profile: Annotated[
        list[str] | None,
        typer.Option(
            help=f"A device profile by name, or a TOML file; several are compared. Default: {DEFAULT_PROFILE}."
        ),
    ] = None,
    items: Annotated[
        int | None, whole(f"Items of the catalogue. Default: {DEFAULT_ITEMS:,}.", least=1, most=MOST_ITEMS)
    ] = None,
    ratings: Annotated[
        int | None, whole(f"Ratings of a user. Default: {DEFAULT_RATINGS}.", least=1, most=MOST_ITEMS)
    ] = None,
    bits: Bits = CODE_BITS,
    dataset: Annotated[str, choice(DATASETS, "Items and ratings of this data set; no data is needed.")] = "",
    privacy: Annotated[str, choice(PRIVACY_MODES, "Mode of the round; clear is NOT PRIVATE.")] = "secagg",
    cohort: Annotated[
        int,
        whole(
            "Devices in a secure round; all but the audited one are a fleet beside it.",
            least=MIN_DEVICES,
            most=MAX_DEVICES,
        ),
    ] = DEFAULT_MINIMUM_COHORT,
    open_rows: Annotated[
        int,
        whole("Items that learn in a secure round, or all items if they are fewer.", least=1, most=MOST_ITEMS),
    ] = DEFAULT_OPEN_ROWS,
    seed: Seed = 0,
    json_file: Json = None,
    report: Report = None,
) -> None:
    """Run emulated devices, and try the paper's claims about bytes and time. Exit code 1 when our limits are broken.

    Verdicts: our limits hold or are broken; the paper's claims are confirmed or refuted, which is no failure of ours.
    Ctrl-C leaves a partial record; the same command with the same --report goes on from there.
    """
    from lightfr_harness.audits.cost.run import CostOptions, run
    from lightfr_harness.devices import Plan, Scenario, load_profile
    from lightfr_harness.records import CostRecord, from_dict
    from lightfr_harness.reports.pages import save

    with errors_as_messages():
        usual = DATASETS.get(dataset, (DEFAULT_ITEMS, DEFAULT_RATINGS))
        shape = usual[0] if items is None else items, usual[1] if ratings is None else ratings
        profiles = tuple(load_profile(name) for name in profile or [DEFAULT_PROFILE])
        options = CostOptions(Scenario(*shape, bits, dataset, privacy, cohort, open_rows), profiles, Plan(seed=seed))
        with progress_bar() as bar:
            task = bar.add_task("audit", total=1.0, detail="")
            record = run(options, lambda what, at: bar.update(task, description=what, completed=at), _earlier(report))
        kept = from_dict(CostRecord, record)
        save(kept, json_file, report)
    if json_file != "-":
        print_summary(kept, record["findings"], json_file, report)
        print_findings(record["findings"])
    if record["interrupted"]:
        typer.echo("Interrupted: the record is partial. The same command with --report goes on from there.", err=True)
        raise typer.Exit(code=INTERRUPTED_EXIT)
    if any(finding["verdict"] == "broken" for finding in record["findings"]):
        raise typer.Exit(code=1)


def _earlier(report: Path | None) -> dict[str, Any] | None:
    """The record of an interrupted audit in the same folder, if there is one."""
    from lightfr_harness.records import RecordError, read, to_dict

    try:
        return to_dict(read(report / "cost.json")) if report else None
    except RecordError:
        return None


def print_findings(findings: Sequence[Mapping[str, Any]]) -> None:
    """A heading for each claim, which may be wider than a column, and its figures below in columns that line up."""
    console = Console()
    for claim in dict.fromkeys(finding["claim"] for finding in findings):
        console.print(f"\n[bold]{escape(claim)}[/]")
        console.print(_columns([finding for finding in findings if finding["claim"] == claim]))


def _columns(findings: Sequence[Mapping[str, Any]]) -> Table:
    from lightfr_harness.reports.figures import figure, limit_of, ratio_of

    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("", width=24)
    for name, width in WIDTHS.items():
        table.add_column(name, width=width, justify="right")
    for found in findings:
        verdict, unit = found["verdict"], found["unit"]
        table.add_row(
            escape(found["mode"]),
            figure(found["predicted"], unit),
            figure(found["measured"], unit),
            ratio_of(found),
            limit_of(found).replace("at most", "<=").replace("at least", ">=").replace("none", ""),
            f"[{COLOURS[verdict]}]{verdict}[/]" if verdict in COLOURS else "",
        )
    return table
