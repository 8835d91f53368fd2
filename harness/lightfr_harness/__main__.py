"""python -m lightfr_harness."""

from lightfr_harness.cli import app

app()
