"""Lets devices take part in secure rounds back to back for hours, and looks for anything that grows.

    python -m tests.campaigns.soak --minutes 120 --devices 500 --record build/soak.json

The coordinator is a process of its own. Its devices keep their connections, come back as it tells them to, and a tenth
of them leaves each round before the upload. One of them lies in what it uploads until it is named; then it knocks in
vain. Once a minute the coordinator is looked at from outside. The masks of the devices are those of `bench load`: they
add up, and cost little. Exit code 1: memory, descriptors, files or times grew, or rounds were lost without a lie.
"""

import argparse
import json
import multiprocessing
import random
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from lightfr.v1 import coordinator_pb2 as pb
from lightfr_harness.bench.load_devices import Connection, called
from lightfr_harness.bench.load_masked import CHECK_IN, MaskedDevice, Orders, Outcome, Part, Rosters
from lightfr_harness.bench.load_server import MeasuredServer, quantiles
from lightfr_harness.server.authority import Authority
from lightfr_harness.simulation.identities import identity_of

BITS, OPEN_ROWS, PROCESSES, DROPOUT = 64, 500, 2, 0.1
DEADLINE_SECONDS = 20
# Files of versions and the database's log come and go: so much may be between the first and the last sixth.
GROWTH = {"rss_bytes": 1.1, "descriptors": 1.1, "disk_bytes": 1.2, "p99_ms": 1.5}
# Of the goal. While a liar is looked for, more than half of the devices sit out, and a tenth of the rest leaves.
SMALLEST = 6
# A liar is found by halving those that were in spoilt sums, and named after two more.
MOST_SPOILT = 16


class LyingPart(Part):
    """Says of every item what no device can."""

    def _fill(self, vector):
        super()._fill(vector)
        for at in range(len(vector["rows"])):
            vector["rows"][at] = random.choice((-400, 400))


class KeptDevice(MaskedDevice):
    """One identity that stays, with its connection."""

    def __init__(self, orders, identity, is_liar):
        super().__init__(orders, identity)
        self.kind = LyingPart if is_liar else Part

    def live(self, address, worker):
        """Round after round, until it is told to stop."""
        connection = None
        while not worker.stop.is_set():
            try:
                connection = connection or Connection(address, self._context)
                self.turn(connection, worker)
            except Exception as error:  # Whatever it was, it comes again.
                worker.add(Outcome(errors=[f"{type(error).__name__}: {error}"]))
                if connection is not None:
                    connection.close()
                connection = None
                worker.stop.wait(1)

    def turn(self, connection, worker):
        answer = pb.CheckInResponse.FromString(called(connection, "CheckIn", CHECK_IN))
        place = answer.assignment
        if answer.WhichOneof("answer") != "assignment" or place.round_id == self._last_round:
            window = answer.retry_window
            worker.stop.wait(random.uniform(window.earliest_ms, max(window.latest_ms, 500)) / 1000)
            return
        self._last_round, outcome = place.round_id, Outcome()
        try:
            has_uploaded = self.kind(self._orders, self._member, place, connection, outcome).run(worker.rosters)
            outcome.uploaded, outcome.dropped = int(has_uploaded), int(not has_uploaded)
        finally:
            worker.add(outcome)


class Worker:
    """A process of devices, which tells when it is asked what they did since the last time."""

    def __init__(self, orders, address, has_liar):
        self.stop, self._outcome, self.rosters, self._lock = threading.Event(), Outcome(), Rosters(), threading.Lock()
        self.devices = [KeptDevice(orders, path, has_liar and i == 0) for i, path in enumerate(orders.identities)]
        self.threads = [threading.Thread(target=device.live, args=[address, self]) for device in self.devices]

    def add(self, one):
        """What a device did in a round, or what kept it from one."""
        with self._lock:
            self._outcome.latencies += one.latencies
            self._outcome.errors += one.errors
            self._outcome.uploaded += one.uploaded
            self._outcome.dropped += one.dropped

    def run(self, pipe):
        for thread in self.threads:
            thread.start()
        while pipe.recv() is not None:
            with self._lock:
                told, self._outcome = self._outcome, Outcome()
            self.rosters = Rosters()
            pipe.send(told)
        self.stop.set()


def work(pipe, orders, address, has_liar):
    Worker(orders, address, has_liar).run(pipe)


class Soak:
    def __init__(self, folder, devices, stack, deadline_seconds):
        authority = Authority.init(folder / "authority", ["127.0.0.1"])
        (folder / "items.txt").write_text("".join(f"item {number}\t1000\n" for number in range(OPEN_ROWS)))
        identities = [identity_of(authority, folder / f"device-{i}.pem") for i in range(devices)]
        authority.close()
        goal = devices * 9 // 10
        self.folder = folder / "coordinator"
        self.server = stack.enter_context(
            MeasuredServer(
                self.folder, authority.folder, folder / "items.txt", bits=BITS, goal=goal, over_selection=1.0,
                minimum=max(goal // SMALLEST, 2), deadline_seconds=deadline_seconds, privacy="secagg", evaluate_every=0,
                gate_every=10**6,
            )
        )  # fmt: skip
        self.pipes = []
        for turn in range(PROCESSES):
            orders = Orders(authority.folder / "trust.pem", identities[turn::PROCESSES], OPEN_ROWS, BITS, DROPOUT)
            ours, theirs = multiprocessing.Pipe()
            process = multiprocessing.get_context("spawn").Process(
                target=work, args=[theirs, orders, self.server.address, turn == 0], daemon=True
            )
            process.start()
            stack.callback(process.kill)
            self.pipes.append(ours)

    def look(self, number):
        """What the devices did since the last look, and what the coordinator is like."""
        for pipe in self.pipes:
            pipe.send("look")
        told = [pipe.recv() for pipe in self.pipes]
        latencies = [1000 * latency for one in told for latency in one.latencies]
        counts = quantiles(latencies) if latencies else {"p50": 0.0, "p99": 0.0}
        return {
            "look": number,
            "rss_bytes": self.server.rss_bytes(),
            "descriptors": len(list(Path(f"/proc/{self.server.process.pid}/fd").iterdir())),
            "disk_bytes": sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file()),
            "p50_ms": counts["p50"],
            "p99_ms": counts["p99"],
            "uploads": sum(one.uploaded for one in told),
            "left": sum(one.dropped for one in told),
            "errors": dict(Counter(error for one in told for error in one.errors)),
            "cpu_seconds": self.server.cpu_seconds(),
            "rounds": self.rounds("finished"),
            "abandoned": self.rounds("abandoned"),
            "spoilt": self.server.metric("lightfr_sums_dropped_total"),
        }

    def rounds(self, state):
        return self.server.metric(f'lightfr_rounds_total{{state="{state}"}}')


def verdict(looks):
    """What grew from the second sixth, when all is warm, to the last one, and what was lost; an empty list is good."""
    sixth = max(len(looks) // 6, 1)
    first, last = looks[sixth : 2 * sixth] or looks[:1], looks[-sixth:]
    found = []
    for name, most in GROWTH.items():
        before, after = (statistics.median(look[name] for look in part) for part in (first, last))
        if after > most * before:
            found.append(f"{name} grew from {before:,.0f} to {after:,.0f}")
    end = looks[-1]
    if end["abandoned"] > end["spoilt"]:
        found.append(f"{end['abandoned']} rounds were lost, of which a lie explains {end['spoilt']}")
    if end["spoilt"] > MOST_SPOILT:
        found.append(f"a liar spoilt {end['spoilt']} sums before it was named")
    if not last[-1]["rounds"] > first[0]["rounds"]:
        found.append("no rounds finished any more")
    return found


def run(
    looked, devices, base, progress=print, seconds=60.0, deadline_seconds=DEADLINE_SECONDS, until=lambda look: False
):
    """Look so often, each time after so many seconds, or until a look says that it is enough."""
    looks = []
    with ExitStack() as stack:
        soak = Soak(base, devices, stack, deadline_seconds)
        for number in range(1, looked + 1):
            time.sleep(seconds)
            looks.append(soak.look(number))
            progress(json.dumps(looks[-1]))
            if until(looks[-1]):
                break
        for pipe in soak.pipes:
            pipe.send(None)
    return looks


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=int, default=120)
    parser.add_argument("--devices", type=int, default=500)
    parser.add_argument("--record", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        looks = run(asked.minutes, asked.devices, Path(folder), lambda line: print(line, flush=True))
    found = verdict(looks)
    if asked.record:
        asked.record.parent.mkdir(parents=True, exist_ok=True)
        asked.record.write_text(json.dumps({"looks": looks, "found": found}, indent=1))
    print("\n".join(found) or "nothing grew, nothing was lost")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
