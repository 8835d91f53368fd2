"""Spoiled messages against every decoder and validator, on both sides: `python -m tests.campaigns.fuzz_messages`.

Each must be refused with the side's own type of error, or taken because it is still valid. Anything else is a finding,
printed with the bytes that lead to it. Exit code 1 when there is one, or when memory grows.

A run goes on behind the messages that the record counts, so that several runs add up. Delete the record to begin anew.
"""

import argparse
import asyncio
import json
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from lightfr.errors import InvalidInputError
from tests.campaigns.device_targets import device_targets
from tests.campaigns.mutations import Mutator
from tests.campaigns.server_targets import server_targets

# A process takes so many messages of a kind at a time, and tells what came of them.
PIECE = 500_000
# What a piece may add to the memory of the process once it is warm. Receipts of 16 rounds are among it.
GROWTH_LIMIT_BYTES = 64 * 2**20
# Messages before the memory is first looked at: caches, code and one of every kind of object.
WARM_MESSAGES = 20_000
LONGEST_ERROR = 500
SHOWN_FINDINGS = 20


@dataclass
class Report:
    """What came of some messages of one target."""

    name: str
    outcomes: Counter = field(default_factory=Counter)
    findings: list = field(default_factory=list)
    # Of a processor.
    seconds: float = 0.0
    start_bytes: int = 0
    peak_bytes: int = 0

    def close(self, seconds):
        """Note what it took; memory that grew is a finding."""
        self.seconds = seconds
        if self.peak_bytes - self.start_bytes > GROWTH_LIMIT_BYTES:
            self.findings.append(f"memory grew from {self.start_bytes} to {self.peak_bytes} bytes")


def resident_bytes(pid="self"):
    """Memory that a process holds now."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


async def campaign(target, numbers, seed):
    """Try the messages of a range of numbers on one target."""
    report, started = Report(target.name), time.process_time()
    folder = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - durable writes would wait for a disk
    with tempfile.TemporaryDirectory(dir=folder) as made:
        async with target.opened(made):
            mutator = Mutator(target.limit_bytes)
            for first in range(0, len(numbers), target.slots):
                await _batch(target, mutator, report, seed, numbers[first : first + target.slots])
                _sample_memory(report, first)
    report.close(time.process_time() - started)
    return report


async def _batch(target, mutator, report, seed, numbers):
    valid = await target.valid()
    spoiled = [
        mutator.mutate(seed << 32 | number, valid[slot], target.kind, valid[number % len(valid)])
        for slot, number in enumerate(numbers)
    ]
    tried = [_outcome(target, slot, message) for slot, message in enumerate(spoiled)]
    # A server's waits for the disk are shared; a device has none, and tasks would take longer than most messages.
    outcomes = await asyncio.gather(*tried) if target.waits else [await one for one in tried]
    for number, message, (outcome, is_allowed) in zip(numbers, spoiled, outcomes, strict=True):
        report.outcomes[outcome] += 1
        if not is_allowed:
            report.findings.append(f"{outcome}, seed {seed}, number {number}: {message[:2000].hex()}")


async def _outcome(target, slot, message):
    """What came of a message, and whether that may be."""
    try:
        return await target.judge(slot, message), True
    except target.allowed as error:
        text = str(error)
        name = getattr(error, "name", None) or type(error).__name__
        # What a peer sends is never the fault of the app that called.
        is_allowed = not isinstance(error, InvalidInputError) and len(text) <= LONGEST_ERROR and text.isprintable()
        return name, is_allowed
    except Exception as error:
        return f"UNTYPED {type(error).__name__}", False


def _sample_memory(report, number):
    if report.start_bytes and number % 4096:
        return
    size = resident_bytes()
    if not report.start_bytes or number < WARM_MESSAGES:
        report.start_bytes = size
    report.peak_bytes = max(report.peak_bytes, size)


class Record:
    """What came of all messages so far, by kind; written whenever more is known."""

    def __init__(self, path, seed):
        self._path, self._seed = path, seed
        kept = json.loads(path.read_text()) if path and path.exists() else {"seed": seed, "kinds": {}}
        if kept["seed"] != seed:
            raise SystemExit(f"{path} is of --seed {kept['seed']}: go on with that one, or name another --record")
        self.kinds = kept["kinds"]

    def messages(self, name):
        return self.kinds.get(name, {}).get("messages", 0)

    def add(self, report):
        known = self.kinds.get(report.name, {"messages": 0, "cpu_seconds": 0.0, "outcomes": {}, "findings": []})
        self.kinds[report.name] = {
            "messages": known["messages"] + sum(report.outcomes.values()),
            "cpu_seconds": round(known["cpu_seconds"] + report.seconds, 1),
            "outcomes": dict((Counter(known["outcomes"]) + report.outcomes).most_common()),
            "findings": known["findings"] + report.findings,
        }
        if self._path:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(json.dumps({"seed": self._seed, "kinds": self.kinds}, indent=1) + "\n")


def _targets():
    return {target.name: target for target in server_targets() + device_targets()}


def _piece(asked):
    name, numbers, seed = asked
    return asyncio.run(campaign(_targets()[name], numbers, seed))


def _pieces(names, record, messages, seed):
    """What is left to do, of all kinds in turn, so that a run that is stopped has tried each about as often."""
    left = {name: range(record.messages(name), messages) for name in names}
    while any(left.values()):
        for name in names:
            if left[name]:
                yield name, left[name][:PIECE], seed
                left[name] = left[name][PIECE:]


def main(arguments=None):
    """Run the campaign; the exit code."""
    names = sorted(_targets())
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--messages", type=int, default=1_000_000, help="messages of each kind, with those of the record"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--record", type=Path, help="what came of it, as JSON; a run goes on with what is there")
    parser.add_argument("--kind", choices=names, action="append", help="only these")
    options = parser.parse_args(arguments)
    record = Record(options.record, options.seed)
    pieces = _pieces(options.kind or names, record, options.messages, options.seed)
    # A new process for each piece, so that what one leaves behind is not taken for growth of the next.
    with multiprocessing.get_context("spawn").Pool(options.processes, maxtasksperchild=1) as pool:
        for report in pool.imap(_piece, pieces):
            record.add(report)
            outcomes = ", ".join(f"{name} {count}" for name, count in report.outcomes.most_common())
            print(
                f"{report.name}: {record.messages(report.name)} messages, {report.seconds:.0f} CPU s: {outcomes}",
                flush=True,
            )
            for finding in report.findings[:SHOWN_FINDINGS]:
                print(f"  FINDING {finding}", flush=True)
    return 1 if any(kind["findings"] for kind in record.kinds.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
