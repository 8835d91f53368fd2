"""Spoiled messages against every decoder and validator, on both sides: `python -m tests.campaigns.fuzz_messages`.

Each must be refused with the side's own type of error, or taken because it is still valid. Anything else is a finding,
printed with the bytes that lead to it. Exit code 1 when there is one, or when memory grows.
"""

import argparse
import asyncio
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

# What a million messages may add to the memory of the process once it is warm. Receipts of 16 rounds are among it.
GROWTH_LIMIT_BYTES = 64 * 2**20
# Messages before the memory is first looked at: caches, code and one of every kind of object.
WARM_MESSAGES = 20_000
LONGEST_ERROR = 500
SHOWN_FINDINGS = 20


@dataclass
class Report:
    """What came of the messages of one target."""

    name: str
    outcomes: Counter = field(default_factory=Counter)
    findings: list = field(default_factory=list)
    seconds: float = 0.0
    start_bytes: int = 0
    peak_bytes: int = 0

    @property
    def is_good(self):
        return not self.findings and self.peak_bytes - self.start_bytes <= GROWTH_LIMIT_BYTES

    def __str__(self):
        outcomes = ", ".join(f"{name} {count}" for name, count in self.outcomes.most_common())
        memory = f"{self.start_bytes / 2**20:.0f} to {self.peak_bytes / 2**20:.0f} MB"
        lines = [f"{self.name}: {sum(self.outcomes.values())} messages, {self.seconds:.0f} s, {memory}: {outcomes}"]
        return "\n".join(lines + [f"  FINDING {finding}" for finding in self.findings[:SHOWN_FINDINGS]])


def resident_bytes(pid="self"):
    """Memory that a process holds now."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


async def campaign(target, messages, seed):
    """Try a number of messages on one target."""
    report, started = Report(target.name), time.perf_counter()
    folder = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - durable writes would wait for a disk
    with tempfile.TemporaryDirectory(dir=folder) as made:
        async with target.opened(made):
            mutator = Mutator(target.limit_bytes)
            for first in range(0, messages, target.slots):
                await _batch(target, mutator, report, seed, range(first, min(first + target.slots, messages)))
                _sample_memory(report, first)
    report.seconds = time.perf_counter() - started
    return report


async def _batch(target, mutator, report, seed, numbers):
    valid = await target.valid()
    spoiled = [
        mutator.mutate(seed << 32 | number, valid[slot], target.kind, valid[number % len(valid)])
        for slot, number in enumerate(numbers)
    ]
    outcomes = await asyncio.gather(*(_outcome(target, slot, message) for slot, message in enumerate(spoiled)))
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


def main(arguments=None):
    """Run the campaign; the exit code."""
    targets = {target.name: target for target in server_targets() + device_targets()}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000, help="messages for each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rpc", choices=sorted(targets), action="append", help="only these")
    options = parser.parse_args(arguments)
    is_good = True
    for name in options.rpc or targets:
        report = asyncio.run(campaign(targets[name], options.messages, options.seed))
        print(report, flush=True)
        is_good &= report.is_good
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
