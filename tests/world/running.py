"""The command: one world or many, progress, and a record."""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.world.faults import PLANTED
from tests.world.identities import Identities
from tests.world.world import Result, World


def main() -> int:
    """Run what the command line asks for; 1 if a world failed."""
    options = _options()
    first, worlds = (options.seed, 1) if options.seed is not None else (options.first, options.worlds)
    # Coroutines of programs that were killed complain when they are finalised.
    sys.unraisablehook = lambda _: None
    totals: Counter[str] = Counter()
    failed: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="lightfr-authority-") as folder:
        identities = Identities(Path(folder) / "authority")
        for seed in range(first, first + worlds):
            result = World(seed, identities, PLANTED.get(options.plant), trace=options.trace).run()
            totals.update(result.counts)
            totals["worlds"] += 1
            totals["rounds"] += result.rounds
            if options.seed is not None or options.digests:
                print(f"seed {seed}: {result.rounds} rounds in {result.seconds:.0f} s, digest {result.digest}")
            if result.failures:
                failed.append(result)
                _tell(result, options.plant)
                if options.until_failure:
                    break
            if totals["worlds"] % 50 == 0:
                _progress(totals, failed)
    _progress(totals, failed)
    if options.record:
        _record(options.record, first, totals, failed)
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.world", description=__doc__)
    parser.add_argument("--seed", type=int, help="run this world alone")
    parser.add_argument("--worlds", type=int, default=100, help="how many to run")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--record", type=Path, help="write totals and failures to this JSON file")
    parser.add_argument("--plant", choices=sorted(PLANTED), help="put this fault into every world")
    parser.add_argument("--until-failure", action="store_true", help="stop at the first world that fails")
    parser.add_argument("--digests", action="store_true", help="print a digest of all that happened in each world")
    parser.add_argument("--trace", action="store_true", help="print all that happens")
    return parser.parse_args()


def _tell(result: Result, plant: str | None) -> None:
    print(f"World {result.seed} failed, digest {result.digest}:")
    for failure in result.failures[:5]:
        print(f"  {failure}")
    planted = f" --plant {plant}" if plant else ""
    print(f"Repeat it with: .venv/bin/python -m tests.world --seed {result.seed}{planted}", flush=True)


def _progress(totals: Counter[str], failed: list[Result]) -> None:
    spent = resource.getrusage(resource.RUSAGE_SELF)
    kills = totals["device_killed"] + totals["coordinator_killed"]
    print(
        f"{totals['worlds']} worlds, {totals['rounds']} rounds ({totals['round_finished']} finished), {kills} kills, "
        f"{totals['cut']} cuts, {len(failed)} failed; {spent.ru_utime + spent.ru_stime:.1f} CPU seconds",
        file=sys.stderr, flush=True,
    )  # fmt: skip


def _record(path: Path, first: int, totals: Counter[str], failed: list[Result]) -> None:
    failures = [{"seed": one.seed, "digest": one.digest, "failures": one.failures} for one in failed]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"first": first, "totals": dict(sorted(totals.items())), "failed": failures}, indent=1))
