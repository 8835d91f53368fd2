"""What one device costs, seen from outside its process: memory, CPU time, threads, and bytes at the TLS socket."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from lightfr import Device
from lightfr.cohorts import DEFAULT_MINIMUM_COHORT
from lightfr_harness.devices.late_round import CHANGED
from lightfr_harness.devices.processes import cpu_seconds
from lightfr_harness.devices.proxy import CountingProxy
from lightfr_harness.devices.watching import Progress, look, watched_session
from lightfr_harness.server.authority import Authority
from lightfr_harness.server.coordinator.child import CoordinatorProcess


def run_all(items: int, bits: int, ratings: int, progress: Progress) -> dict[str, Any]:
    """The cost of the import, then of one device's first session."""
    progress("import")
    record: dict[str, Any] = {"items": items, "bits": bits, "ratings": ratings, **import_cost()}
    with tempfile.TemporaryDirectory() as folder:
        return {**record, **_session(Path(folder), items, bits, ratings, progress)}


def import_cost(turns: int = 15) -> dict[str, float]:
    """CPU milliseconds of `import lightfr` above an empty program, in turns; minimum and median."""
    programs = {"bare": "pass", "lightfr": "import lightfr"}
    spent: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(turns):
        for name, program in programs.items():
            spent[name].append(1000 * cpu_seconds([sys.executable, "-c", program]))
    return {
        "import_cpu_ms_min": min(spent["lightfr"]) - min(spent["bare"]),
        "import_cpu_ms_median": statistics.median(spent["lightfr"]) - statistics.median(spent["bare"]),
    }


def _session(folder: Path, items: int, bits: int, ratings: int, progress: Progress) -> dict[str, Any]:
    authority = Authority.init(folder / "authority", ["localhost", "127.0.0.1"])
    catalogue = folder / "items.txt"
    catalogue.write_text("".join(f"{item}\n" for item in range(items)))
    progress("server")
    how = {"bits": bits, "goal": 1, "integer_ids": True, "gate": 0, "privacy": "clear"}
    server = CoordinatorProcess(
        folder / "server", authority.folder, catalogue, module="lightfr_harness.devices.late_round", **how
    )
    with server, CountingProxy("127.0.0.1", int(server.addresses["server"].rsplit(":", 1)[1])) as proxy:
        invitation = folder / "invitation.json"
        invited = authority.invite(f"https://localhost:{proxy.port}", server.addresses["enrollment"], 600)
        invitation.write_text(json.dumps(invited))
        device = Device.enroll(invitation, folder / "device")
        seen = watched_session(device, ratings, items, DEFAULT_MINIMUM_COHORT, proxy, progress)
    authority.close()
    return _record(items, bits, {phase["phase"]: phase for phase in seen})


def _record(items: int, bits: int, phases: dict[str, dict[str, Any]]) -> dict[str, Any]:
    codes, changed = items * bits // 8, round(CHANGED * items) * bits // 8
    sync, upload, delta = (sum(_both(phases[name])) for name in ("sync", "upload", "delta sync"))
    catalogue = phases["sync"]["catalogue_bytes"]
    return {
        "bare_rss_bytes": _bare_rss(),
        "peak_rss_bytes": phases["recommend"]["peak_rss_bytes"],
        "most_threads": max(phase["threads"] for phase in phases.values()),
        "loaded": phases["recommend"]["loaded"],
        "codes_bytes": codes,
        "catalogue_bytes": catalogue,
        "first_sync_bytes": sync,
        "first_sync_over_codes_bytes": sync - catalogue - codes,
        "first_sync_limit_bytes": codes // 100 + 16_384,
        "upload_payload_bytes": phases["train"]["payload_bytes"],
        "upload_overhead_bytes": upload - phases["train"]["payload_bytes"],
        "changed_rows_bytes": changed,
        "delta_sync_bytes": delta,
        "delta_ratio": delta / changed,
        "phases": phases,
    }


def _both(phase: dict[str, Any]) -> tuple[int, int]:
    return phase["up_bytes"], phase["down_bytes"]


def _bare_rss() -> int:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, text=True)
    time.sleep(0.3)
    peak = look(child.pid)["peak_rss_bytes"]
    child.communicate("\n")
    return peak
