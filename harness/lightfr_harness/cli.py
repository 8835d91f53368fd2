"""The lightfr-harness command: one sub-command per room."""

from __future__ import annotations

import typer

from lightfr_harness.bench.cli import app as bench_app

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Train, simulate, audit and benchmark recommendation with binary codes.",
)
app.add_typer(bench_app, name="bench")
