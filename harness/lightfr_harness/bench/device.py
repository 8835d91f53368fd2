"""What one device costs, seen from outside its process: memory, CPU time, threads, and bytes at the TLS socket."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lightfr.v1 import coordinator_pb2
from lightfr_harness.devices.enforcement import Enforcement
from lightfr_harness.devices.measuring import peak_rss_bytes
from lightfr_harness.devices.scenario import CLEAR, Scenario
from lightfr_harness.devices.session import LAST_STAGE, MeasuredDevice, Session
from lightfr_harness.devices.surroundings import surroundings
from lightfr_harness.errors import CannotRunError

# Rows that a late round changes.
CHANGED = 0.01
MESSAGES = (
    "AdvertiseKeys", "ShareKeys", "AcknowledgeShares", "SignIncluded", "Upload", "SignSurvivors", "RevealShares",
)  # fmt: skip

Progress = Callable[[str], None]
Record = dict[str, Any]


def run_all(items: int, bits: int, ratings: int, open_items: int, progress: Progress) -> Record:
    """The cost of the import, then of one device's first session in the clear. With 0 open items all are open."""
    progress("import")
    record: Record = {"items": items, "open_items": open_items or items, "bits": bits, "ratings": ratings}
    record |= import_cost()
    progress("server")
    scenario = Scenario(items, ratings, bits, privacy=CLEAR, open_rows=open_items)
    device = _measured(scenario, ("open", "sync", "round", "next_sync", "recommend"), progress)
    phases, messages = device["phases"], device["message_bytes"]
    codes, catalogue = scenario.codes_bytes, messages["catalogue"][1]
    changed = round(CHANGED * codes * 8 / bits) * bits // 8
    sync = _both_ways(phases["sync"])
    payload = _row_update_bytes(messages["Upload"][0])
    # While there was no new model yet, the device asked in vain.
    next_sync = phases["next_sync"]
    delta = _both_ways(next_sync["stages"][LAST_STAGE] if "stages" in next_sync else next_sync)
    return {
        **record,
        "bare_rss_bytes": _bare_rss(),
        "peak_rss_bytes": max(phase["peak_rss_bytes"] for phase in phases.values()),
        "most_threads": max(phase["threads"] for phase in phases.values()),
        "loaded": device["loaded"],
        "codes_bytes": codes,
        "catalogue_bytes": catalogue,
        "first_sync_bytes": sync,
        "first_sync_over_codes_bytes": sync - catalogue - codes,
        "first_sync_limit_bytes": codes // 100 + 16_384,
        "upload_payload_bytes": payload,
        "upload_overhead_bytes": _both_ways(phases["round"]["stages"]["uploaded"]) - payload,
        "changed_rows_bytes": changed,
        "delta_sync_bytes": delta,
        "delta_ratio": delta / changed,
        "phases": phases,
    }


def run_secure(items: int, bits: int, ratings: int, open_rows: int, cohort: int, progress: Progress) -> Record:
    """One round of a device among `cohort` - 1 others. Figures are of the round, but for the memory of the session.

    0 open rows: nobody knows yet which are open, and the round is one that counts who rates what.
    """
    progress("server")
    scenario = Scenario(items, ratings, bits, cohort=cohort, open_rows=open_rows)
    # It recommends first, so that the codes are in memory when the round begins.
    device = _measured(scenario, ("open", "sync", "recommend", "round"), progress)
    phases, taken_part = device["phases"], device["phases"]["round"]
    peaks = [phase["peak_rss_bytes"] for phase in phases.values()]
    counts, messages = device["message_counts"], device["message_bytes"]
    return {
        "items": items,
        "bits": bits,
        "open_rows": open_rows,
        "cohort": cohort,
        "peak_rss_before_bytes": max(peaks[:-1]),
        "peak_rss_bytes": max(peaks),
        "most_threads": max(phase["threads"] for phase in phases.values()),
        "loaded": device["loaded"],
        "cpu_ms": 1000 * taken_part["cpu_seconds"],
        "up_bytes": taken_part["up_bytes"],
        "down_bytes": taken_part["down_bytes"],
        # Bytes inside the messages, as the coordinator counts them.
        "calls": {
            name: {"count": counts[name], "request_bytes": messages[name][0], "answer_bytes": messages[name][1]}
            for name in ("CheckIn", "GetStep", *MESSAGES)
        },
        # Bytes at the socket, CPU time and memory, from one stage to the next.
        "stages": taken_part["stages"],
        "phases": phases,
    }


def _measured(scenario: Scenario, phases: tuple[str, ...], progress: Progress) -> Record:
    """A device without a profile, from its start to its end."""
    session = Session(phases, recommendations=1)
    with (
        tempfile.TemporaryDirectory() as folder,
        surroundings(scenario, Path(folder), 0, clear_goal=1, changed=CHANGED) as around,
    ):
        device = MeasuredDevice(around, session, Enforcement.choose(), None, 0, 0, progress).run()
    if not device["finished"]:
        raise CannotRunError(f"the device ended early ({device['ended']}): try again on a machine that is less busy")
    return device


def import_cost(turns: int = 15) -> dict[str, float]:
    """CPU milliseconds of `import lightfr` above an empty program, in turns; minimum and median."""
    programs = {"bare": "pass", "lightfr": "import lightfr"}
    spent: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(turns):
        for name, program in programs.items():
            spent[name].append(1000 * _cpu_seconds([sys.executable, "-c", program]))
    return {
        "import_cpu_ms_min": min(spent["lightfr"]) - min(spent["bare"]),
        "import_cpu_ms_median": statistics.median(spent["lightfr"]) - statistics.median(spent["bare"]),
    }


def _cpu_seconds(command: Sequence[str]) -> float:
    """Run a command to its end; the CPU time of its process, as the kernel counted it."""
    child = subprocess.Popen(command)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, command)
    return used.ru_utime + used.ru_stime


def _both_ways(figures: Record) -> int:
    return int(figures["up_bytes"] + figures["down_bytes"])


def _row_update_bytes(request_bytes: int) -> int:
    """The RowUpdate inside an UploadRequest: without ids and digests, and without its own tag and length."""
    around = coordinator_pb2.UploadRequest(round_id=bytes(16), manifest_sha256=bytes(32), upload_id=bytes(16))
    tagged = request_bytes - around.ByteSize() - 1
    # A varint has seven bits a byte.
    return next(tagged - size for size in range(1, 6) if tagged - size < 1 << 7 * size)


def _bare_rss() -> int:
    """What a Python that does nothing takes."""
    command = [sys.executable, "-c", "print(flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        if child.stdout:
            child.stdout.readline()
        peak = peak_rss_bytes(child.pid)
        child.communicate("\n")
    return peak
