"""Real processes that are killed at random moments, and what campaigns with them have in common."""

import argparse
import sys
import time
from pathlib import Path

from tests.warm import CONTEXT


def said_until_killed(work, arguments, delay_s):
    """Have `work(*arguments, say)` done in a process, and kill that so long after its first word; all that it said."""
    ours, theirs = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=_work, args=(work, arguments, theirs), daemon=True)
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


def with_privacy(parser):
    parser.add_argument("--privacy", choices=["clear", "secagg"], default="clear")


def kill_options(description, add_more=lambda parser: None):
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", type=Path, help="what came of it, as JSON")
    add_more(parser)
    return parser.parse_args()


def show(line):
    """Progress on one line of the terminal."""
    print(f"\r{line}", end="", file=sys.stderr, flush=True)
