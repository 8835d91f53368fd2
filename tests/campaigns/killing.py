"""Real processes that are killed at random moments. They fork from a server that has imported what they need."""

import argparse
import multiprocessing
import sys
import time

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([
    "lightfr.client", "lightfr.kept_rounds", "lightfr.store", "lightfr_harness.server.authority",
    "lightfr_harness.server.coordinator.child", "tests.sdk.store.sessions",
])  # fmt: skip


def said_until_killed(work, arguments, delay_s):
    """Have `work(*arguments, say)` done in a process, and kill that so long after its first word; all that it said."""
    ours, theirs = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_work, args=(work, arguments, theirs), daemon=True)
    process.start()
    theirs.close()
    said = []
    try:
        said.append(ours.recv())
        time.sleep(delay_s)
        process.kill()
        while True:
            said.append(ours.recv())
    except EOFError:
        process.join()
    if process.exitcode != -9:
        raise AssertionError(f"the process ended by itself, with {process.exitcode}")
    return said


def _work(work, arguments, pipe):
    work(*arguments, pipe.send)


def kill_options(description, *, has_privacy=False):
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    if has_privacy:
        parser.add_argument("--privacy", choices=["clear", "secagg"], default="clear")
    return parser.parse_args()


def show(line):
    """Progress on one line of the terminal."""
    print(f"\r{line}", end="", file=sys.stderr, flush=True)
