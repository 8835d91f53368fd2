"""The command: one world or many, in one process or several, with progress and a record that later runs go on with."""

from __future__ import annotations

import argparse
import gc
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.world.faults import PLANTED
from tests.world.identities import Identities
from tests.world.world import World

# Progress is told, and the record written, whenever so many more are done.
_PROGRESS_WORLDS = 50
# What one world tells the parent must go through a pipe in one piece: a few failures of so many characters.
_FAILURES, _FAILURE_CHARACTERS = 5, 300
# Where worlds lie: in memory if the system has such a folder.
_MEMORY = Path("/dev/shm")  # noqa: S108 # a folder of our own is made there


def main() -> int:
    """Run what the command line asks for; 1 if a world failed."""
    options = _options()
    # Children that are stopped leave theirs in it.
    with tempfile.TemporaryDirectory(prefix="lightfr-worlds-", dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
        tempfile.tempdir = folder
        return _run_all(options, Tally(options))


def _run_all(options: argparse.Namespace, tally: Tally) -> int:
    seeds = range(tally.next_seed, tally.next_seed + tally.wanted)
    read, write = os.pipe()
    children = [_start(seeds[place :: options.processes], options, read, write) for place in range(options.processes)]
    os.close(write)
    try:
        with open(read) as told:
            for result in _in_order(told, seeds):
                tally.add(result)
                if result["failures"] and options.until_failure:
                    break
    except KeyboardInterrupt:
        print(f"Stopped before seed {tally.next_seed}.", file=sys.stderr)
    finally:
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        tally.tell()
    return 1 if tally.failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.world", description=__doc__)
    parser.add_argument("--seed", type=int, help="run this world alone")
    parser.add_argument("--worlds", type=int, default=100, help="how many to run")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=1, help="how many run at a time")
    parser.add_argument("--record", type=Path, help="totals and failures as JSON; a run goes on with what is there")
    parser.add_argument("--plant", choices=sorted(PLANTED), help="put this fault into every world")
    parser.add_argument("--until-failure", action="store_true", help="stop at the first world that fails")
    parser.add_argument("--digests", action="store_true", help="print a digest of all that happened in each world")
    parser.add_argument("--trace", action="store_true", help="print all that happens")
    return parser.parse_args()


def _start(seeds: range, options: argparse.Namespace, read: int, write: int) -> int:
    """Run worlds in a process of their own, which tells each result as a line."""
    child = os.fork()
    if child:
        return child
    os.close(read)
    code = 1
    with suppress(KeyboardInterrupt, BrokenPipeError):
        _run(seeds, options, write)
        code = 0
    sys.stdout.flush()
    os._exit(code)


def _run(seeds: range, options: argparse.Namespace, write: int) -> None:
    # Coroutines of programs that were killed complain when they are finalised.
    sys.unraisablehook = lambda _: None
    identities = Identities(Path(tempfile.mkdtemp()) / "authority")
    gc.freeze()
    for seed in seeds:
        began = time.process_time()
        result = World(seed, identities, PLANTED.get(options.plant), trace=options.trace).run()
        failures = [failure[:_FAILURE_CHARACTERS] for failure in result.failures[:_FAILURES]]
        counts = {**result.counts, "worlds": 1, "rounds": result.rounds}
        counts["cpu_milliseconds"] = round(1000 * (time.process_time() - began))
        told = {"seed": seed, "digest": result.digest, "seconds": result.seconds, "failures": failures}
        os.write(write, json.dumps({**told, "counts": counts}).encode() + b"\n")


def _in_order(told: Any, seeds: range) -> Iterator[dict[str, Any]]:
    """Results by seed, so that a run that is stopped has done all worlds up to one and none behind it."""
    early: dict[int, dict[str, Any]] = {}
    awaited = iter(seeds)
    seed = next(awaited, None)
    for line in told:
        result = json.loads(line)
        early[result["seed"]] = result
        while seed in early:
            yield early.pop(seed)
            seed = next(awaited, None)
    if seed is not None:
        raise SystemExit(f"the process that ran world {seed} ended before it")


class Tally:
    """What all worlds came to, with those of the record."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self.next_seed, self.wanted = options.first, options.worlds
        self.totals: Counter[str] = Counter()
        self.failed: list[dict[str, Any]] = []
        if options.seed is not None:
            self.next_seed, self.wanted = options.seed, 1
        elif options.record and options.record.exists():
            known = json.loads(options.record.read_text())
            self.next_seed, self.failed = known["next"], known["failed"]
            self.totals.update(known["totals"])

    def add(self, result: dict[str, Any]) -> None:
        self.next_seed = result["seed"] + 1
        self.totals.update(result["counts"])
        if self._options.seed is not None or self._options.digests:
            rounds = result["counts"]["rounds"]
            print(f"seed {result['seed']}: {rounds} rounds in {result['seconds']:.0f} s, digest {result['digest']}")
        if result["failures"]:
            self.failed.append({name: result[name] for name in ("seed", "digest", "failures")})
            self._tell_failure(result)
        if self.totals["worlds"] % _PROGRESS_WORLDS == 0:
            self.tell()

    def _tell_failure(self, result: dict[str, Any]) -> None:
        print(f"World {result['seed']} failed, digest {result['digest']}:")
        for failure in result["failures"]:
            print(f"  {failure}")
        planted = f" --plant {self._options.plant}" if self._options.plant else ""
        print(f"Repeat it with: .venv/bin/python -m tests.world --seed {result['seed']}{planted}", flush=True)

    def tell(self) -> None:
        totals = self.totals
        kills = totals["device_killed"] + totals["coordinator_killed"]
        print(
            f"{totals['worlds']} worlds, {totals['rounds']} rounds ({totals['round_finished']} finished), {kills} "
            f"kills, {totals['cut']} cuts, {len(self.failed)} failed; {totals['cpu_milliseconds'] / 1000:.0f} CPU s",
            file=sys.stderr, flush=True,
        )  # fmt: skip
        if self._options.record:
            record = {"next": self.next_seed, "totals": dict(sorted(totals.items())), "failed": self.failed}
            self._options.record.parent.mkdir(parents=True, exist_ok=True)
            beside = self._options.record.with_suffix(".new")
            beside.write_text(json.dumps(record, indent=1))
            beside.replace(self._options.record)
