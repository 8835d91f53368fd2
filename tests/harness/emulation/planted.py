"""A device with a fault in one phase: run by a test in place of the stock one. Its first argument is as there."""

import json
import sys

from lightfr_harness.emulation import device

MIB = 2**20
kept = []


def hoard(phase: str, latencies_ms: list[float] | None = None) -> None:
    """Keep 12 MiB for good, just before the phase `round` is over."""
    if phase == "round":
        kept.append(bytearray(b"x") * (12 * MIB))
    done(phase, latencies_ms)


if __name__ == "__main__":
    done = device.done
    device.done = hoard
    device.main(json.loads(sys.argv[1]))
