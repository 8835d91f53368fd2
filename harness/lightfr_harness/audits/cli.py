"""lightfr-harness audit ...: try the claims, and leave with exit code 1 when a limit is broken."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from lightfr.errors import InvalidInputError
from lightfr_harness.audits.cost.cli import cost
from lightfr_harness.audits.finding import Finding, broken
from lightfr_harness.audits.privacy.methods import WATCHED
from lightfr_harness.audits.privacy.plan import MODES, ROUNDS_PER_DEVICE, AuditOptions
from lightfr_harness.audits.summary_cli import print_summary
from lightfr_harness.console import (
    MOST_DEVICES,
    MOST_ROUNDS,
    Bits,
    Json,
    Report,
    Seed,
    choice,
    progress_bar,
    terminal,
    whole,
)
from lightfr_harness.data.cli import (
    Format,
    ItemColumn,
    RatingColumn,
    RatingMax,
    RatingMin,
    TimeColumn,
    UserColumn,
    format_of,
    reader_options,
)
from lightfr_harness.errors import errors_as_messages
from lightfr_harness.simulation.cli import Data, Epsilon, Synthetic

if TYPE_CHECKING:
    from lightfr_harness.audits.privacy.method_audit import MethodOptions

app = typer.Typer(no_args_is_help=True, help="Try the claims; exit code 1 when a limit is broken.")
app.command()(cost)


@app.command()
def privacy(
    mode: Annotated[list[str] | None, choice(MODES, "One or more modes. Default: all.")] = None,
    method: Annotated[
        list[str] | None,
        choice(WATCHED, "Instead of our modes, what the server learns of another method: one or more."),
    ] = None,
    beside: Annotated[
        Path | None, typer.Option(help="With --method: a record of our modes, to stand in the same table.")
    ] = None,
    data: Data = None,
    format: Format = None,
    synthetic: Synthetic = "small",
    rounds: Annotated[
        int,
        whole(
            "Rounds of the campaign that is attacked; in clear modes and with --method 10 at most.",
            least=1,
            most=MOST_ROUNDS,
        ),
    ] = 200,
    rounds_per_device: Annotated[
        int,
        whole(
            "Rounds that a device takes part in at most; then the campaign lacks devices and ends.",
            least=1,
            most=MOST_ROUNDS,
        ),
    ] = ROUNDS_PER_DEVICE,
    cohort: Annotated[
        list[int] | None,
        whole("Devices in a round; several are compared. Default: 60 % of the devices.", least=1, most=MOST_DEVICES),
    ] = None,
    minimum_cohort: Annotated[
        int, whole("Smaller cohorts promise nothing; their figures are for information.", least=1, most=MOST_DEVICES)
    ] = 256,
    bits: Bits = 64,
    epsilon: Epsilon = 8.0,
    seed: Seed = 0,
    user: UserColumn = None,
    item: ItemColumn = None,
    rating: RatingColumn = None,
    timestamp: TimeColumn = None,
    rating_min: RatingMin = None,
    rating_max: RatingMax = None,
    json_file: Json = None,
    report: Report = None,
) -> None:
    """Attack what a coordinator captures and what everybody downloads: user codes, ratings, rated items.

    Every figure stands beside what guessing reaches. Modes paper and clear are not private; they are there to compare
    with. Modes secagg and secagg+dp must stay within 2 points of guessing. In the first round of each run the SDK masks
    the uploads; in the other rounds the sum is made without masks.

    With --method the server of another method is the attacker. Options on cohorts, bits and epsilon are ours alone.
    """
    read_by = reader_options(user, item, rating, timestamp, rating_min, rating_max)
    if method:
        from lightfr_harness.audits.privacy.method_audit import MethodOptions

        with errors_as_messages():
            if mode:
                raise InvalidInputError("--method and --mode are two audits: run one, then the other with --beside")
            named = format_of(data, format)
            asked = MethodOptions(tuple(dict.fromkeys(method)), data, named, synthetic, rounds, seed, read_by)
        _methods(asked, beside, json_file, report)
        return
    from lightfr_harness.audits.privacy.run import run
    from lightfr_harness.reports.pages import save

    with errors_as_messages():
        if beside is not None:
            raise InvalidInputError("--beside needs --method: it names a record to stand beside other methods")
        options = AuditOptions(
            modes=tuple(mode or MODES),
            data=data,
            format=format_of(data, format),
            data_options=read_by,
            synthetic=synthetic,
            rounds=rounds,
            rounds_per_device=rounds_per_device,
            cohorts=tuple(cohort or ()),
            minimum_cohort=minimum_cohort,
            bits=bits,
            epsilon=epsilon,
            seed=seed,
        )
        with progress_bar() as bar:
            task = bar.add_task("audit", total=1.0, detail="")
            audited = run(options, lambda what, share: bar.update(task, description=what, completed=share))
        save(audited.record, json_file, report)
    if json_file != "-":
        print_summary(audited.record, [finding.record() for finding in audited.findings], json_file, report)
        terminal().print(_table(audited.findings))
    if broken(audited.findings):
        raise typer.Exit(code=1)


def _methods(options: MethodOptions, beside: Path | None, json_file: str | None, report: Path | None) -> None:
    from lightfr_harness import records
    from lightfr_harness.audits.privacy.method_audit import lightfr_findings, run
    from lightfr_harness.reports.cli import fields_of
    from lightfr_harness.reports.learns import HEADS, TITLE, learned, runs
    from lightfr_harness.reports.pages import page_of, save

    with errors_as_messages():
        ours = records.read(beside) if beside is not None else None
        if ours is not None and not isinstance(ours, records.PrivacyRecord):
            raise InvalidInputError(f"{beside} is a record of kind {ours.kind}; --beside takes one of kind privacy")
        if beside is not None and ours is not None:
            # A table of it alone, so that a field which no table can have is found before the audit, not after it.
            with fields_of(beside):
                page_of(
                    records.MethodsPrivacyRecord(
                        options=ours.options,
                        findings=[],
                        beside=lightfr_findings(ours),
                        beside_options=ours.options,
                        machine=ours.machine,
                        lightfr=ours.lightfr,
                    )
                )
        with progress_bar() as bar:
            task = bar.add_task("audit", total=1.0, detail="")
            record = run(options, ours, lambda what, share: bar.update(task, description=what, completed=share))
        save(record, json_file, report)
    if json_file != "-":
        print_summary(record, record.findings, json_file, report)
        table = Table(*HEADS, "Table 1 says", title=f"{TITLE}, in percent (guessing)", caption=" ".join(runs(record)))
        for name, cells, verdict in learned(record):
            table.add_row(name, *cells, verdict)
        terminal().print(table)


@app.command()
def views(
    one: Annotated[Path, typer.Argument(help="What one device exported with `lightfr views --export FILE`.")],
    other: Annotated[Path, typer.Argument(help="What another device of the same server exported.")],
    trust: Annotated[
        Path | None,
        typer.Option(help="A trust.pem of the server: its keys alone count. Default: whatever key both files name."),
    ] = None,
) -> None:
    """Say whether the server told two devices of a round different things, which both files together then prove.

    Exit code 0: it told them the same in all rounds that they have in common. 1: it lied to one of them. 2: the files
    prove nothing.
    """
    from lightfr.device import Trust
    from lightfr_harness.audits.views import compare_views, read_views

    with errors_as_messages():
        trusted = Trust(trust).manifest_keys.values() if trust else ()
        findings = compare_views(read_views(one), read_views(other), trusted)
    for found in findings:
        typer.echo(f"{found.verdict:7} {found.claim}: {found.measured:.0f} of {found.mode}")
        if found.note:
            typer.echo(f"        {found.note}")
    if broken(findings):
        raise typer.Exit(code=1)


def _table(findings: list[Finding]) -> Table:
    table = Table(title="Privacy: what the attacks reach")
    for name in ("mode", "claim"):
        table.add_column(name)
    for name in ("guessing", "measured", "95 % interval", "limit", "verdict"):
        table.add_column(name, justify="right")
    for found in findings:
        limit = "-" if found.limit is None else f"{'>=' if found.at_least else '<='} {found.limit:.3f}"
        measured = "-" if found.measured is None else f"{found.measured:.3f}"
        interval = " to ".join(f"{end:.3f}" for end in found.interval)
        table.add_row(found.mode, found.claim, f"{found.predicted:.3f}", measured, interval, limit, found.verdict)
    return table
