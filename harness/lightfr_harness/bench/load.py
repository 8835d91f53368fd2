"""What the coordinator bears: devices that connect anew, check in and upload, on a schedule; then many that stay.

The schedule is an open loop: a unit's time counts from when it was due, so a stall of the server counts for every unit
that waited behind it.
"""

from __future__ import annotations

import os
import queue
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lightfr.v1 import coordinator_pb2 as pb
from lightfr_harness.bench.load_devices import BITS, CHECK_IN, ITEMS, Connection, Fleet, LoadError, called
from lightfr_harness.bench.load_server import MeasuredServer, quantiles
from lightfr_harness.server.authority import Authority

# Twice the goal, so that a device's next turn comes in another round.
IDENTITIES, GOAL = 1000, 500
# Units that can be under way at once; more wait, and their wait counts. Fewer than identities: two units of one device
# at the same moment would both get its place.
THREADS = 64
# How long a device that is told to come back waits here. A real one waits as long as it is told.
RETRY_SECONDS = 0.05


class Bench:
    """A coordinator in a process of its own, and a fleet."""

    def __init__(self, server: MeasuredServer, fleet: Fleet) -> None:
        self.server, self.fleet = server, fleet
        # Units so far: the next one is another device's turn, also in a later run.
        self.units = 0

    def connect(self, number: int) -> Connection:
        return Connection(self.server.address, self.fleet.contexts[number % len(self.fleet.contexts)])


@contextmanager
def started() -> Iterator[Bench]:
    """Everything that a run needs, on the disk of the temporary folder."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        authority = Authority.init(folder / "authority", ["127.0.0.1"])
        (folder / "items.txt").write_text("".join(f"item {number}\n" for number in range(ITEMS)))
        fleet = Fleet(authority, folder, IDENTITIES)
        authority.close()
        how: dict[str, Any] = {"bits": BITS, "goal": GOAL, "privacy": "clear"}
        with MeasuredServer(folder / "data", authority.folder, folder / "items.txt", **how) as server:
            yield Bench(server, fleet)


# New connections on a schedule.


class Units:
    """Runs units when they are due and notes how long each took from then."""

    def __init__(self, bench: Bench, rate: float, seconds: float) -> None:
        self._bench, self._rate, self._count = bench, rate, round(rate * seconds)
        self._due: queue.SimpleQueue[tuple[int, float] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self.latencies: list[float] = []
        self.errors: Counter[str] = Counter()
        # Times that a device was told to come back: the round was being added up.
        self.returns = 0
        self.request_bytes = 0

    def run(self) -> float:
        """Run all; the seconds that it took."""
        threads = [threading.Thread(target=self._work) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        begin = time.perf_counter()
        for number in range(self._count):
            due = begin + number / self._rate
            time.sleep(max(due - time.perf_counter(), 0))
            self._due.put((self._bench.units, due))
            self._bench.units += 1
        for _ in threads:
            self._due.put(None)
        for thread in threads:
            thread.join()
        return time.perf_counter() - begin

    def _work(self) -> None:
        while (unit := self._due.get()) is not None:
            number, due = unit
            try:
                self._unit(number)
                outcome = ""
            except Exception as error:  # Whatever it was, the unit failed and the others go on.
                outcome = f"{type(error).__name__}: {error}"
            with self._lock:
                self.latencies.append(time.perf_counter() - due)
                self.errors.update([outcome] if outcome else [])

    def _unit(self, number: int) -> None:
        """Connect, check in, upload, compare the receipt, close."""
        with self._bench.connect(number) as connection:
            while not self._upload(connection):
                with self._lock:
                    self.returns += 1
                time.sleep(RETRY_SECONDS)

    def _upload(self, connection: Connection) -> bool:
        """False: there was no place, or the round closed meanwhile."""
        answer = pb.CheckInResponse.FromString(called(connection, "CheckIn", CHECK_IN))
        if answer.WhichOneof("answer") != "assignment":
            return False
        request, receipt = self._bench.fleet.upload(answer.assignment)
        self.request_bytes = len(request)
        status, body = connection.call("Upload", request)
        if status == 400 and b"failed_precondition" in body:
            return False
        if (status, body) != (200, receipt):
            raise LoadError(f"an upload was answered with status {status}")
        return True


def run_units(bench: Bench, rate: float, seconds: float) -> dict[str, Any]:
    """New connections at a rate, for some seconds."""
    units = Units(bench, rate, seconds)
    client, server = time.process_time(), bench.server.cpu_seconds()
    took = units.run()
    done = len(units.latencies) - units.errors.total()
    return {
        "asked_per_second": rate,
        "accepted_per_second": done / took,
        "accepted": done,
        "errors": dict(units.errors),
        "told_to_come_back": units.returns,
        "request_bytes": units.request_bytes,
        "seconds": took,
        "latency_ms": {name: 1000 * value for name, value in quantiles(units.latencies).items()},
        "client_cpu_ms_each": 1000 * (time.process_time() - client) / len(units.latencies),
        "server_cpu_ms_each": 1000 * (bench.server.cpu_seconds() - server) / len(units.latencies),
        "server_rss_bytes": bench.server.rss_bytes(),
        "load_average": os.getloadavg()[0],
    }


# Connections that stay.


def run_held(bench: Bench, count: int, seconds: float) -> dict[str, Any]:
    """Hold connections at once; each checks in when it opens and then in turn, as often as fits into the time."""
    before = bench.server.rss_bytes()
    with ThreadPoolExecutor(THREADS) as pool:
        held = list(pool.map(bench.connect, range(count)))
        try:
            begin, turns, served = time.perf_counter(), 0, 0
            while not turns or (served and time.perf_counter() - begin < seconds):
                turns, served = turns + 1, served + sum(pool.map(_is_served, held))
            if not served:
                raise LoadError(f"none of {count} connections that were held open was served: try a smaller --kept")
            open_now, after = bench.server.metric("lightfr_connections"), bench.server.rss_bytes()
        finally:
            for connection in held:
                connection.close()
    return {
        "connections": count,
        "open_at_the_server": open_now,
        "check_ins": served,
        "turns": turns,
        "errors": turns * count - served,
        "server_rss_before_bytes": before,
        "server_rss_bytes": after,
        "kilobytes_each": (after - before) / count / 1000,
    }


def _is_served(connection: Connection) -> bool:
    try:
        return connection.call("CheckIn", CHECK_IN)[0] == 200
    except OSError:
        return False
