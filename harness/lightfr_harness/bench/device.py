"""What one device costs, seen from outside its process: memory, CPU time, threads, and bytes at the TLS socket."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lightfr import enroll
from lightfr_harness.authority import Authority
from lightfr_harness.coordinator.child import CoordinatorProcess
from lightfr_harness.measure import CountingProxy, cpu_seconds, device_session
from lightfr_harness.measure.late_round import CHANGED

Progress = Callable[[str], None]


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
        folder / "server", authority.folder, catalogue, module="lightfr_harness.measure.late_round", **how
    )
    with server, _proxy_of(server.addresses["server"]) as proxy:
        invitation = folder / "invitation.json"
        invited = authority.invite(f"https://localhost:{proxy.port}", server.addresses["enrollment"], 600)
        invitation.write_text(json.dumps(invited))
        device = enroll(invitation, folder / "device")
        arguments = [str(folder / "device"), device.server, str(device.identity), str(device.trust), str(ratings)]
        phases = _phases(arguments, proxy, progress)
    authority.close()
    return _record(items, bits, phases)


def _proxy_of(server: str) -> CountingProxy:
    return CountingProxy("127.0.0.1", int(server.rsplit(":", 1)[1]))


def _phases(arguments: list[str], proxy: CountingProxy, progress: Progress) -> dict[str, dict[str, Any]]:
    """Run the device and look at it after each phase."""
    command = [sys.executable, device_session.__file__, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        seen = _watched(child, proxy, progress)
    if child.returncode:
        raise RuntimeError(f"the device ended with {child.returncode}")
    return seen


def _watched(child: subprocess.Popen[str], proxy: CountingProxy, progress: Progress) -> dict[str, dict[str, Any]]:
    if child.stdin is None or child.stdout is None:
        raise TypeError("the child has no pipes")
    seen: dict[str, dict[str, Any]] = {}
    before = proxy.counts()
    for line in child.stdout:
        facts = json.loads(line)
        time.sleep(0.05)  # what was sent last may still be on its way through the proxy
        now = proxy.counts()
        looked = {"up_bytes": now[0] - before[0], "down_bytes": now[1] - before[1], **look(child.pid)}
        progress(facts["phase"])
        seen[facts.pop("phase")] = {**looked, **facts}
        before = proxy.counts()
        child.stdin.write("\n")
        child.stdin.flush()
    return seen


def look(pid: int) -> dict[str, int]:
    """Peak memory and threads of a process now. VmHWM, since ru_maxrss counts the parent's memory before exec too."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {"peak_rss_bytes": 1024 * int(status["VmHWM"].split()[0]), "threads": int(status["Threads"])}


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
