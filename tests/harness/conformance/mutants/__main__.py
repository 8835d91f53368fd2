"""`lightfr-harness` with one fault in it."""

import os

from lightfr_harness.cli import app
from tests.harness.conformance.mutants import VARIABLE, load

load()[os.environ[VARIABLE]].plant()
app()
