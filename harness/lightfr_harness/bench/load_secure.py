"""What a masked round costs the coordinator: a cohort of cheap devices in processes of their own, some of which leave.

Every device opens a new connection, and everybody is in every round. A round in which devices drop out waits for them
until the deadline of its phase, so its seconds say little; the CPU time of the server says what a device costs it.
With a database the rounds of replicas on it stand between those of one coordinator on SQLite.
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
from lightfr_harness.bench.load_server import LocalPostgres, MeasuredServer, Servers, quantiles
from lightfr_harness.records import LoadRound, SecureLoadRecord
from lightfr_harness.server.authority import Authority
from lightfr_harness.simulation.identities import identity_of

BITS = 64
_COUNT = 1000
_LONGEST_SECONDS = 600.0
_FINISHED, _ABANDONED = (f'lightfr_rounds_total{{state="{state}"}}' for state in ("finished", "abandoned"))


def run(load: SecureLoad) -> SecureLoadRecord:
    """Rounds of all devices. The first of each kind of server warms up and is not counted."""
    with tempfile.TemporaryDirectory() as made, ExitStack() as stack:
        place = _Place(load, Path(made))
        pipes = [stack.enter_context(_worker(orders)) for orders in place.orders()]
        sqlite = Servers("SQLite", [stack.enter_context(place.server("sqlite", authority=place.authority))])
        _round(sqlite, pipes)
        rounds = [] if load.database else [_round(sqlite, pipes) for _ in range(load.rounds)]
        replicas: list[MeasuredServer] = []
        for count in sorted({1, load.replicas}) if load.database else ():
            while len(replicas) < count:
                replicas.append(stack.enter_context(place.replica(len(replicas))))
            name = "PostgreSQL" if count == 1 else f"PostgreSQL x {count}"
            shared = Servers(name, replicas, LocalPostgres(str(load.database)))
            _round(shared, pipes)
            rounds += [_round(servers, pipes) for _ in range(load.rounds) for servers in (sqlite, shared)]
        return SecureLoadRecord(
            cohort=load.cohort,
            open_rows=load.open_rows,
            bits=BITS,
            dropout=load.dropout,
            processes=load.processes,
            rounds=rounds,
        )


class _Place:
    """A folder with what the servers and the devices of a run have in common."""

    def __init__(self, load: SecureLoad, folder: Path) -> None:
        self._load, self._folder = load, folder
        authority = Authority.init(folder / "authority", ["127.0.0.1"])
        self.authority = authority.folder
        # Counts that all rows are opened by, and sums judged.
        lines = (f"item {number}\t{_COUNT}\n" for number in range(load.open_rows))
        (folder / "items.txt").write_text("".join(lines))
        self._identities = [identity_of(authority, folder / f"device-{i}.pem") for i in range(load.cohort)]
        authority.close()

    def orders(self) -> Iterator[Orders]:
        """For each process of devices."""
        load, trust = self._load, self.authority / "trust.pem"
        for turn in range(load.processes):
            yield Orders(trust, self._identities[turn :: load.processes], load.open_rows, BITS, load.dropout)

    def server(self, name: str, authority: Path | None = None, **more: Any) -> MeasuredServer:
        load = self._load
        how: dict[str, Any] = {
            "bits": BITS, "goal": load.cohort, "over_selection": 1.0, "minimum": max(load.cohort // 2, 2),
            "deadline_seconds": load.deadline_seconds, "privacy": "secagg", "evaluate_every": 0, "gate_every": 10**6,
        }  # fmt: skip
        return MeasuredServer(self._folder / name, authority, self._folder / "items.txt", **how | more)

    def replica(self, number: int) -> MeasuredServer:
        shared: dict[str, Any] = {"database": self._load.database, "artifacts": self._folder / "shared"}
        return self.server(f"replica-{number}", credentials=self.authority / "coordinator", **shared)


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


def _round(servers: Servers, pipes: Sequence[Pipe]) -> LoadRound:
    before, finished, begin = servers.measured(), servers.metric(_FINISHED), time.time()
    abandoned = servers.metric(_ABANDONED)
    for pipe in pipes:
        pipe.send(servers.addresses)
    outcomes: list[Outcome] = [pipe.recv() for pipe in pipes]
    # The last device is told that it is done before the codes are published.
    while servers.metric(_FINISHED) == finished:
        if servers.metric(_ABANDONED) > abandoned or time.time() - begin > _LONGEST_SECONDS:
            raise LoadError(
                "the coordinator did not finish a round: too few devices were there in time, or their sum was dropped; "
                "try a longer --deadline-seconds or a smaller --cohort"
            )
        time.sleep(0.05)
    devices = sum(one.uploaded + one.dropped + len(one.errors) for one in outcomes)
    latencies = [latency for one in outcomes for latency in one.latencies]
    spent = servers.measured() - before
    return {
        "server": servers.name,
        "devices": devices,
        "uploaded": sum(one.uploaded for one in outcomes),
        "dropped": sum(one.dropped for one in outcomes),
        "errors": dict(Counter(error for one in outcomes for error in one.errors)),
        "request_bytes": max(one.request_bytes for one in outcomes),
        "seconds": time.time() - begin,
        "latency_ms": {name: 1000 * value for name, value in quantiles(latencies).items()},
        "client_cpu_ms_each": 1000 * sum(one.cpu_seconds for one in outcomes) / devices,
        "server_cpu_ms_each": 1000 * spent.cpu_seconds / devices,
        "database_cpu_ms_each": 1000 * spent.database_cpu_seconds / devices,
        "server_written_bytes_each": spent.written_bytes / devices,
        "server_peak_rss_bytes": servers.peak_rss_bytes(),
        "load_average": os.getloadavg()[0],
    }
