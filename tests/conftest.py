"""Temporary files of tests lie in memory where there is room: thousands of flushes to a disk would take minutes.

What the tests show does not depend on it: a killed process leaves the same files behind, and a flush that is missing is
found by the simulated loss of power in tests/sdk/store, not by a real disk.
"""

import os
import shutil
from pathlib import Path

from hypothesis import settings

# No test is judged by the clock: machines are shared.
settings.register_profile("lightfr", deadline=None)
settings.load_profile("lightfr")

MEMORY = Path("/dev/shm")  # noqa: S108 # a folder of our own is made below
ROOM_BYTES = 2**30


def pytest_configure(config):
    is_worker = hasattr(config, "workerinput")
    has_room = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM_BYTES
    if config.option.basetemp is None and has_room and not is_worker:
        config.option.basetemp = MEMORY / f"lightfr-tests-{os.getuid()}-{os.getpid()}"


def pytest_unconfigure(config):
    base = config.option.basetemp
    if base is not None and Path(base).parent == MEMORY and not hasattr(config, "workerinput"):
        shutil.rmtree(base, ignore_errors=True)
