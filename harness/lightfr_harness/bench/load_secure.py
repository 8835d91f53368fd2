"""What a masked round costs the coordinator: a cohort of cheap devices in processes of their own, some of which leave.

Every device opens a new connection, and everybody is in every round. A round in which devices drop out waits for them
until the deadline of its phase, so its seconds say little; the CPU time of the server says what a device costs it.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any

from lightfr_harness.bench.load_devices import LoadError
from lightfr_harness.bench.load_masked import Orders, Outcome, work
from lightfr_harness.bench.load_options import SecureLoad
from lightfr_harness.bench.load_server import MeasuredServer, quantiles
from lightfr_harness.records import LoadRound, SecureLoadRecord
from lightfr_harness.server.authority import Authority
from lightfr_harness.simulation.identities import identity_of

BITS = 64
_COUNT = 1000
_LONGEST_SECONDS = 600.0
_FINISHED, _ABANDONED = (f'lightfr_rounds_total{{state="{state}"}}' for state in ("finished", "abandoned"))


def run(load: SecureLoad, **serve: Any) -> SecureLoadRecord:
    """Rounds of all devices, the first of which warms up and is not counted. `serve` has more options of `serve`."""
    with _started(load, serve) as (server, pipes):
        _round(server, pipes)
        rounds = [_round(server, pipes) for _ in range(load.rounds)]
        return SecureLoadRecord(
            cohort=load.cohort,
            open_rows=load.open_rows,
            bits=BITS,
            dropout=load.dropout,
            processes=load.processes,
            rounds=rounds,
            server_peak_rss_bytes=server.peak_rss_bytes(),
        )


@contextmanager
def _started(load: SecureLoad, serve: dict[str, Any]) -> Iterator[tuple[MeasuredServer, list[Pipe]]]:
    """A coordinator, and the processes of the devices, each of which waits for its first round."""
    with tempfile.TemporaryDirectory() as made, ExitStack() as stack:
        folder = Path(made)
        authority = Authority.init(folder / "authority", ["127.0.0.1"])
        # Counts that all rows are opened by, and sums judged.
        lines = (f"item {number}\t{_COUNT}\n" for number in range(load.open_rows))
        (folder / "items.txt").write_text("".join(lines))
        identities = [identity_of(authority, folder / f"device-{i}.pem") for i in range(load.cohort)]
        authority.close()
        how: dict[str, Any] = {
            "bits": BITS, "goal": load.cohort, "over_selection": 1.0, "minimum": max(load.cohort // 2, 2),
            "deadline_seconds": load.deadline_seconds, "privacy": "secagg", "evaluate_every": 0, "gate_every": 10**6,
        }  # fmt: skip
        server = stack.enter_context(
            MeasuredServer(folder / "data", authority.folder, folder / "items.txt", **how, **serve)
        )
        pipes = []
        for turn in range(load.processes):
            orders = Orders(
                server.address, authority.folder / "trust.pem", identities[turn :: load.processes],
                load.open_rows, BITS, load.dropout,
            )  # fmt: skip
            pipes.append(stack.enter_context(_worker(orders)))
        yield server, pipes


@contextmanager
def _worker(orders: Orders) -> Iterator[Pipe]:
    """A process of devices, ready for rounds; told to end when this is left."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=[theirs, orders])
    process.start()
    theirs.close()
    try:
        ours.recv()
        yield ours
        ours.send(None)
        process.join()
    finally:
        process.kill()
        process.join()


def _round(server: MeasuredServer, pipes: Sequence[Pipe]) -> LoadRound:
    cpu, written, finished, begin = server.cpu_seconds(), server.written_bytes(), server.metric(_FINISHED), time.time()
    for pipe in pipes:
        pipe.send(True)
    outcomes: list[Outcome] = [pipe.recv() for pipe in pipes]
    # The last device is told that it is done before the codes are published.
    while server.metric(_FINISHED) == finished:
        if server.metric(_ABANDONED) or time.time() - begin > _LONGEST_SECONDS:
            raise LoadError(
                "the coordinator did not finish a round: too few devices were there in time, or their sum was dropped; "
                "try a longer --deadline-seconds or a smaller --cohort"
            )
        time.sleep(0.05)
    devices = sum(one.uploaded + one.dropped + len(one.errors) for one in outcomes)
    latencies = [latency for one in outcomes for latency in one.latencies]
    return {
        "devices": devices,
        "uploaded": sum(one.uploaded for one in outcomes),
        "dropped": sum(one.dropped for one in outcomes),
        "errors": dict(Counter(error for one in outcomes for error in one.errors)),
        "request_bytes": max(one.request_bytes for one in outcomes),
        "seconds": time.time() - begin,
        "latency_ms": {name: 1000 * value for name, value in quantiles(latencies).items()},
        "client_cpu_ms_each": 1000 * sum(one.cpu_seconds for one in outcomes) / devices,
        "server_cpu_ms_each": 1000 * (server.cpu_seconds() - cpu) / devices,
        "server_written_bytes_each": (server.written_bytes() - written) / devices,
        "load_average": os.getloadavg()[0],
    }
