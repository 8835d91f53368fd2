"""`lightfr-harness` with one fault in it, and in the authority that it starts beside itself."""

import asyncio
import os

from lightfr_harness.cli import app
from lightfr_harness.server.coordinator import beside
from tests.harness.conformance.mutants import VARIABLE, load

start = asyncio.create_subprocess_exec


def start_mutant(*command: str, **options: object) -> object:
    """Start this program where ours would start `lightfr-harness`."""
    return start(*(__package__ if part == "lightfr_harness" else part for part in command), **options)


load()[os.environ[VARIABLE]].plant()
beside.asyncio.create_subprocess_exec = start_mutant
app()
