"""Where temporary files of tests lie, and which tests come first.

Temporary files lie in memory where there is room: thousands of flushes to a disk would take minutes.

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

ROOT = Path(__file__).parent
# What takes longest, the longest first: no worker should be left alone with one of these when the others are done.
LONGEST = (
    "world/test_worlds.py",
    "harness/devices/test_runs.py",
    "sdk/client/test_secure.py",
    "harness/audits/test_cli.py",
    "adversary/test_liars.py",
    "harness/conformance/test_mutants.py",
    "harness/conformance/test_secure_suite.py",
    "harness/server/coordinator/test_serve.py",
    "harness/audits/cost/test_planted_lies.py",
    "sdk/store/test_faults.py",
    "harness/audits/cost/test_run.py",
    "harness/server/coordinator/test_fuzz.py",
    "harness/conformance/test_clear_suite.py",
    "adversary/test_split_views.py",
    "harness/server/coordinator/test_two_processes.py",
    "test_embedding.py",
)
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


def pytest_collection_modifyitems(items):
    """Hand out the files of LONGEST first; `make test` asks xdist to keep this order."""
    place = {ROOT / name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path, len(LONGEST)))
