"""The lightfr-harness command: one sub-command per room."""

from __future__ import annotations

import typer

from lightfr_harness.bench.cli import app as bench_app
from lightfr_harness.datasets.cli import app as data_app
from lightfr_harness.runs import cli as runs_cli

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Train, simulate, audit and benchmark recommendation with binary codes.",
)
app.command()(runs_cli.train)
app.command()(runs_cli.sweep)
app.add_typer(data_app, name="data")
app.add_typer(bench_app, name="bench")
