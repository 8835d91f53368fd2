"""lightfr-harness simulate."""

from __future__ import annotations

import resource
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from lightfr_harness.console import Json, Report, progress_bar
from lightfr_harness.errors import errors_as_messages

app = typer.Typer(no_args_is_help=True, help="Fleets too large to run: what they would take.")


@app.command()
def scale(
    devices: Annotated[int, typer.Option(help="Devices of the fleet.")] = 10_000_000,
    days: Annotated[int, typer.Option(min=1, help="Days to simulate; the last one is told.")] = 2,
    coming: Annotated[
        float, typer.Option(help="Share of the devices that come in a day. 0.4: 12 rounds in 30 days.")
    ] = 0.4,
    swing: Annotated[float, typer.Option(help="How far the daily rhythm swings around its mean, 0 to 1.")] = 0.8,
    dropout: Annotated[float, typer.Option(help="Share of a cohort that leaves before one of its steps.")] = 0.1,
    cohorts: Annotated[int, typer.Option(help="Cohorts that a round waits for.")] = 64,
    goal: Annotated[int, typer.Option(help="Devices of a cohort; 1.3 times as many get a place.")] = 512,
    deadline_seconds: Annotated[float, typer.Option(help="Longest time of a phase.")] = 60.0,
    open_rows: Annotated[int, typer.Option(min=1, help="Rows that uploads are of.")] = 2000,
    bits: Annotated[int, typer.Option(min=8, help="Code length.")] = 64,
    constants: Annotated[
        Path | None, typer.Option(help="JSON with what was measured, such as the record of `simulate real`.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    json_file: Json = None,
    report: Report = None,
) -> None:
    """Simulate a day of a large fleet: replicas, database, length of rounds, and whether a herd arises."""
    from lightfr_harness.records import ScaleRecord
    from lightfr_harness.reports import scale as page
    from lightfr_harness.reports.pages import save
    from lightfr_harness.simulation.scale import Scenario, Simulation
    from lightfr_harness.simulation.scale_costs import Constants, answer

    with errors_as_messages():
        scenario = Scenario(
            devices=devices, periods=days, coming=coming, swing=swing, dropout=dropout, cohorts=cohorts, goal=goal,
            minimum=min(256, goal), deadline_seconds=deadline_seconds, seed=seed,
        )  # fmt: skip
        known = (Constants.read(constants) if constants else Constants()).of_rows(open_rows, bits)
        started = time.process_time()
        with progress_bar() as bar:
            task = bar.add_task("simulating", total=1.0, detail="")
            events = Simulation(scenario).run(lambda share: bar.update(task, completed=share))
        record = ScaleRecord(
            scenario=asdict(scenario),
            constants=asdict(known),
            answer=answer(scenario, events, known),
            seconds=time.process_time() - started,
            peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        )
        save(record, json_file, report)
    if json_file != "-":
        table = Table("", "simulated", title=page.verdict(record), caption=page.about(record))
        for name, value in page.answer_rows(record.answer):
            table.add_row(name, value)
        Console().print(table)


@app.command()
def real(
    devices: Annotated[int, typer.Option(help="Devices, each with its own certificate.")] = 2000,
    goal: Annotated[int, typer.Option(help="Devices of a cohort; 1.1 times as many get a place.")] = 280,
    minimum: Annotated[int, typer.Option(help="Devices that a cohort needs.")] = 256,
    deadline_seconds: Annotated[float, typer.Option(help="Longest time of a phase.")] = 30.0,
    dropout: Annotated[float, typer.Option(help="Share of a cohort that leaves before one of its steps.")] = 0.05,
    seconds: Annotated[int, typer.Option(min=60, help="How long devices come and come back.")] = 1500,
    seed: Annotated[int, typer.Option(min=0, help="Seed of who comes and leaves when.")] = 0,
    json_file: Json = None,
    report: Report = None,
) -> None:
    """Run a real coordinator with devices over TLS, measure its constants, and put the simulation beside it.

    It takes as long as --seconds says, and before that a second for each hundred devices to get their certificates.
    """
    from lightfr_harness.reports import scale as page
    from lightfr_harness.reports.pages import save
    from lightfr_harness.simulation.scale import Scenario
    from lightfr_harness.simulation.scale_real import measured

    with errors_as_messages():
        scenario = Scenario(
            devices=devices, period_seconds=60, periods=1, coming=1, swing=0, stays_seconds=30 * 86_400,
            dropout=dropout, publish_seconds=1, cohorts=1, goal=goal, over_selection=1.1, minimum=minimum,
            deadline_seconds=deadline_seconds, seconds=seconds, seed=seed,
        )  # fmt: skip
        record = measured(scenario)
        save(record, json_file, report)
    if json_file != "-":
        table = Table(*page.REAL_HEADS, title=page.REAL_TITLE)
        for cells in page.real_rows(record):
            table.add_row(*cells)
        Console().print(table)
