"""lightfr-harness simulate."""

from __future__ import annotations

import resource
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from lightfr.cohorts import MAX_DEVICES
from lightfr_harness.console import MOST_ITEMS, Bits, Json, Report, Seed, number, progress_bar, terminal, whole
from lightfr_harness.errors import errors_as_messages

# An entry of two arrays each: 10^8 take some gigabytes.
MOST_SIMULATED = 100_000_000

app = typer.Typer(no_args_is_help=True, help="Fleets too large to run: what they would take.")


Deadline = Annotated[float, number("Longest time of a phase.", least=0.1, most=86_400)]
Dropout = Annotated[float, number("Share of a cohort that leaves before one of its steps.", least=0, most=0.9)]


@app.command()
def scale(
    devices: Annotated[int, whole("Devices of the fleet.", least=1, most=MOST_SIMULATED)] = 10_000_000,
    days: Annotated[int, whole("Days to simulate; the last one is told.", least=1, most=30)] = 2,
    coming: Annotated[
        float, number("Share of the devices that come in a day. 0.4: 12 rounds in 30 days.", least=0.000001, most=1)
    ] = 0.4,
    swing: Annotated[float, number("How far the daily rhythm swings around its mean.", least=0, most=1)] = 0.8,
    dropout: Dropout = 0.1,
    cohorts: Annotated[int, whole("Cohorts that a round waits for.", least=1, most=4096)] = 64,
    goal: Annotated[int, whole("Devices of a cohort; 1.3 times as many get a place.", least=2, most=MAX_DEVICES)] = 512,
    deadline_seconds: Deadline = 60.0,
    open_rows: Annotated[int, whole("Rows that uploads are of.", least=1, most=MOST_ITEMS)] = 2000,
    bits: Bits = 64,
    constants: Annotated[
        Path | None, typer.Option(help="JSON with what was measured, such as the record of `simulate real`.")
    ] = None,
    seed: Seed = 0,
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
        terminal().print(table)


@app.command()
def real(
    devices: Annotated[int, whole("Devices, each with its own certificate.", least=2, most=100_000)] = 2000,
    goal: Annotated[int, whole("Devices of a cohort; 1.1 times as many get a place.", least=2, most=MAX_DEVICES)] = 280,
    minimum: Annotated[int, whole("Devices that a cohort needs.", least=2, most=MAX_DEVICES)] = 256,
    deadline_seconds: Deadline = 30.0,
    dropout: Dropout = 0.05,
    seconds: Annotated[int, whole("How long devices come and come back.", least=60, most=86_400)] = 1500,
    seed: Seed = 0,
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
        terminal().print(table)
