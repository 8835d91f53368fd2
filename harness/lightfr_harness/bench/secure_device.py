"""What a round of secure aggregation costs one device, seen from outside its process. The others are in another one."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lightfr import Device
from lightfr.cohorts import DEFAULT_MINIMUM_COHORT
from lightfr_harness.devices.proxy import CountingProxy
from lightfr_harness.devices.watching import Progress, watched_session
from lightfr_harness.server.authority import Authority
from lightfr_harness.server.coordinator.child import CoordinatorProcess

GATE = 10
MESSAGES = ("AdvertiseKeys", "ShareKeys", "Upload", "RevealShares")
_DEADLINE_SECONDS = 600


def run(items: int, bits: int, ratings: int, open_rows: int, cohort: int, progress: Progress) -> dict[str, Any]:
    """One round of a real device among `cohort` - 1 others, of a catalogue whose first rows are open.

    0 open rows: nobody knows yet which are, and the round is one that counts who rates what.
    """
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        authority = Authority.init(folder / "authority", ["localhost", "127.0.0.1"])
        progress("server")
        with (
            _server(folder, authority, items, bits, open_rows, cohort) as server,
            _proxy_of(server) as proxy,
            _others(folder, authority, server, [cohort - 1, items, open_rows, bits]),
        ):
            device = _enrolled(folder, authority, server, proxy)
            minimum = min(cohort, DEFAULT_MINIMUM_COHORT)
            seen = watched_session(device, ratings, open_rows or items, minimum, proxy, progress)
        authority.close()
    return {"items": items, "bits": bits, "open_rows": open_rows, "cohort": cohort, **_record(seen)}


def _server(
    folder: Path, authority: Authority, items: int, bits: int, open_rows: int, cohort: int
) -> CoordinatorProcess:
    catalogue = folder / "items.txt"
    counts = [f"\t{GATE if item < open_rows else 0}" if open_rows else "" for item in range(items)]
    catalogue.write_text("".join(f"{item}{count}\n" for item, count in enumerate(counts)))
    how = {"bits": bits, "goal": cohort, "over_selection": 1, "minimum": cohort, "gate": GATE, "integer_ids": True}
    how["deadline_seconds"] = _DEADLINE_SECONDS
    return CoordinatorProcess(folder / "server", authority.folder, catalogue, **how)


def _proxy_of(server: CoordinatorProcess) -> CountingProxy:
    return CountingProxy("127.0.0.1", int(server.addresses["server"].rsplit(":", 1)[1]))


def _enrolled(folder: Path, authority: Authority, server: CoordinatorProcess, proxy: CountingProxy) -> Device:
    invited = authority.invite(f"https://localhost:{proxy.port}", server.addresses["enrollment"], 600)
    invitation = folder / "invitation.json"
    invitation.write_text(json.dumps(invited))
    return Device.enroll(invitation, folder / "device")


@contextmanager
def _others(folder: Path, authority: Authority, server: CoordinatorProcess, numbers: list[int]) -> Iterator[None]:
    arguments = (authority.folder, server.addresses["server"], folder, *numbers)
    command = [sys.executable, "-m", "lightfr_harness.devices.cohort_members", *map(str, arguments)]
    with subprocess.Popen(command) as others:
        yield
    if others.returncode:
        raise RuntimeError(f"the others of the cohort ended with {others.returncode}")


def _record(seen: list[dict[str, Any]]) -> dict[str, Any]:
    """Of the round alone, but for the memory, which is that of the whole session."""
    first = next(number for number, phase in enumerate(seen) if phase["phase"] == "recommend") + 1
    before, last, in_round = seen[first - 1], seen[-1], seen[first:]
    if not last["took_part"]:
        raise RuntimeError("the round went on without the device")
    return {
        "peak_rss_before_bytes": before["peak_rss_bytes"],
        "peak_rss_bytes": last["peak_rss_bytes"],
        "most_threads": max(phase["threads"] for phase in seen),
        "loaded": last["loaded"],
        "cpu_ms": sum(phase["cpu_ns"] for phase in in_round) / 1e6,
        "up_bytes": sum(phase["up_bytes"] for phase in in_round),
        "down_bytes": sum(phase["down_bytes"] for phase in in_round),
        "calls": {name: _calls(in_round, name) for name in ("CheckIn", "GetStep", *MESSAGES)},
        "phases": seen,
    }


def _calls(phases: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """Bytes at the socket of all calls of a method, and the CPU time of the calls and of the work before them."""
    calls = [phase for phase in phases if phase["phase"] == name]
    work = [phase for phase in phases if phase["phase"] in (name, f"before {name}")]
    return {
        "count": len(calls),
        "request_bytes": sum(phase["request_bytes"] for phase in calls),
        "up_bytes": sum(phase["up_bytes"] for phase in calls),
        "down_bytes": sum(phase["down_bytes"] for phase in calls),
        "cpu_ms": sum(phase["cpu_ns"] for phase in work) / 1e6,
    }
