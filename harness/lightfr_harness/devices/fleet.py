"""The devices beside a measured one, in a process of their own. Identities, keys and masks are real; ratings are none.

`python -m lightfr_harness.devices.fleet AUTHORITY SERVER FOLDER DEVICES BITS MINIMUM_COHORT`. For each line on standard
input all of them take part in one round. It prints the name of each stage once all have come so far, and "done" when
the round has brought a new model.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from lightfr import UserCode
from lightfr.interactions import Interactions
from lightfr_harness.server.authority import Authority
from lightfr_harness.simulation.fleet import SimulatedDevice
from lightfr_harness.simulation.remote import RemoteFleet

DONE = "done"
# How long the coordinator may take to publish what a round brought. A round that failed brings nothing.
_PUBLISHING_SECONDS = 60.0
_POLL_SECONDS = 0.05


def main(authority_folder: str, server: str, folder: str, count: str, bits: str, minimum_cohort: str) -> None:
    """Take part as often as asked."""
    # The measured device shares the machine with all of these, and goes first.
    os.nice(10)
    authority = Authority.open(Path(authority_folder))
    devices = [SimulatedDevice(Interactions([]), UserCode.random(int(bits))) for _ in range(int(count))]
    fleet = RemoteFleet(devices, authority, server, Path(folder), minimum_cohort=int(minimum_cohort))
    authority.close()
    for _ in sys.stdin:
        version = fleet.sync().manifest.model_version
        took_part = fleet.take_part(range(len(devices)), progress=_say)
        ends = time.monotonic() + _PUBLISHING_SECONDS
        while took_part and fleet.sync().manifest.model_version == version and time.monotonic() < ends:
            time.sleep(_POLL_SECONDS)
        _say(DONE)
    fleet.close()


def _say(what: str) -> None:
    print(what, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
