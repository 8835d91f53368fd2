"""Temporary files of tests lie in memory where there is room: thousands of flushes to a disk would take minutes.

What the tests show does not depend on it: a killed process leaves the same files behind, and a flush that is missing is
found by the simulated loss of power in tests/sdk/store, not by a real disk.
"""

import os
import shutil
from pathlib import Path

MEMORY = Path("/dev/shm")  # noqa: S108 # a folder of our own is made below
ROOM_BYTES = 2**30


def pytest_configure(config):
    if config.option.basetemp is None and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM_BYTES:
        config.option.basetemp = MEMORY / f"lightfr-tests-{os.getuid()}-{os.getpid()}"


def pytest_unconfigure(config):
    if config.option.basetemp is not None and Path(config.option.basetemp).parent == MEMORY:
        shutil.rmtree(config.option.basetemp, ignore_errors=True)
