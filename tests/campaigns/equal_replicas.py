"""Holds replicas on PostgreSQL to one coordinator on SQLite: the same devices, the same versions, bit for bit.

Devices come one after the other, so that both give them the same cohorts; each sends what its number draws, and the
same tenth of them leaves before the upload. They know only HAProxy, and open a new connection now and then: each call
may reach another replica. With kills, replicas and PostgreSQL go down at random moments, and devices try again.

    python -m tests.campaigns.equal_replicas --devices 1200 --cohorts 4 --replicas 2 --kills 0
"""

import argparse
import random
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from lightfr._wire import tls
from lightfr.device import Identity, Trust
from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import manifest_pb2
from lightfr_harness.bench.load_devices import Connection, LoadError
from lightfr_harness.bench.load_masked import CHECK_IN, Orders, Outcome, Part, Rosters
from lightfr_harness.server.authority import Authority
from lightfr_harness.server.coordinator.child import CoordinatorProcess
from lightfr_harness.simulation.identities import identity_of
from tests.haproxy import Balancer, free_port
from tests.postgres import Postgres

BITS, ROWS, COUNT = 64, 200, 1000
DROPOUT = 0.1
PATIENCE_SECONDS = 300
SQLITE_DEADLINE_SECONDS = 30
NEW_CONNECTION = 0.25
GET_MANIFEST = pb.GetManifestRequest(
    capabilities=pb.CheckInRequest.FromString(CHECK_IN).capabilities
).SerializeToString()


class Line:
    """A device's way to the service: a connection that is opened anew now and then, and after each failure."""

    def __init__(self, address, context, seed):
        self._address, self._context, self._random = address, context, random.Random(seed)
        self._connection, self.retries = None, 0

    def call(self, method, body):
        ends, pause = time.monotonic() + PATIENCE_SECONDS, 0.5
        while True:
            try:
                status, answer = self._try(method, body)
            except OSError as error:
                self.close()
                status, answer = 503, str(error).encode()
            if status == 200:
                return answer
            # A refusal is an answer; a server that is away, or that has lost its database, is not.
            if status < 500 or time.monotonic() > ends:
                raise LoadError(f"{method} was answered with status {status}: {answer[:300]!r}")
            self.retries += 1
            # As devices do: whoever is back must not drown in handshakes.
            time.sleep(self._random.uniform(0, pause))
            pause = min(2 * pause, 8.0)

    def _try(self, method, body):
        if self._random.random() < NEW_CONNECTION:
            self.close()
        if self._connection is None:
            self._connection = Connection(self._address, self._context)
        return self._connection.call(method, body)

    def close(self):
        if self._connection is not None:
            self._connection.close()
        self._connection = None


class NumberedPart(Part):
    """Sends what its number draws, and knows by their places who leaves."""

    def __init__(self, orders, member, place, line, outcome, number, leaving):
        super().__init__(orders, member, place, line, outcome)
        self._number, self._leaving = number, leaving

    def _drops(self, peer_id):
        return peer_id in self._leaving

    def _call(self, method, request):
        return self._connection.call(method, request)

    def _fill(self, vector):
        rng = np.random.default_rng(self._number)
        drawn = rng.random(ROWS * BITS)
        np.asarray(vector["rows"])[:] = (drawn < 0.1).astype(int) - (drawn > 0.9).astype(int)
        np.asarray(vector["user_sum"])[:] = 50 * rng.choice([-1, 1], BITS)
        vector["weight"][0] = 50


class Device:
    """One identity."""

    def __init__(self, trust, identity):
        self._context = tls.context(trust, identity)
        self._member = Identity(identity, Trust(trust)).member()

    def check_in(self, address, number, version):
        """Take a place in the round on this version."""
        self.line = Line(address, self._context, number)
        ends = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < ends:
            answer = pb.CheckInResponse.FromString(self.line.call("CheckIn", CHECK_IN))
            if answer.WhichOneof("answer") == "assignment" and answer.assignment.model_version == version:
                self.place = answer.assignment
                return
            time.sleep(0.2)
        raise LoadError(f"device {number} got no place in the round on version {version}")

    def take_part(self, orders, number, leaving, rosters, outcome):
        try:
            part = NumberedPart(orders, self._member, self.place, self.line, outcome, number, leaving)
            part.run(rosters)
        except Exception as error:  # Whatever it was, the others go on.
            outcome.errors.append(f"{type(error).__name__}: {error}")
        finally:
            self.line.close()


class Fleet:
    """Devices that walk through rounds together."""

    def __init__(self, folder, count):
        authority = Authority.init(folder / "authority", ["127.0.0.1"])
        self.authority = authority.folder
        trust = self.authority / "trust.pem"
        self._devices = [Device(trust, identity_of(authority, folder / "device.pem")) for _ in range(count)]
        authority.close()
        self._trust = trust

    def manifest(self, address):
        line = Line(address, self._devices[0]._context, 0)
        signed = pb.GetManifestResponse.FromString(line.call("GetManifest", GET_MANIFEST)).signed_manifest
        line.close()
        return manifest_pb2.Manifest.FromString(signed.manifest)

    def train(self, address, turn):
        """One round; (the digest of the codes that it made, cohorts as numbers of devices, retries, seconds)."""
        begin, version = time.monotonic(), self.manifest(address).model_version
        orders = Orders(self._trust, (), ROWS, BITS, DROPOUT)
        numbers = {device: turn * len(self._devices) + i for i, device in enumerate(self._devices)}
        cohorts = {}
        for device, number in numbers.items():
            device.check_in(address, number, version)
            cohorts.setdefault(device.place.round_id, []).append(number)
        gone = random.Random(turn).sample(self._devices, round(DROPOUT * len(self._devices)))
        leaving, rosters, outcome = {device.place.peer_id for device in gone}, Rosters(), Outcome()
        threads = [
            threading.Thread(target=device.take_part, args=(orders, number, leaving, rosters, outcome), daemon=True)
            for device, number in numbers.items()
        ]
        for thread in threads:
            thread.start()
        ends = time.monotonic() + 2 * PATIENCE_SECONDS
        for thread in threads:
            thread.join(max(0.0, ends - time.monotonic()))
        if any(thread.is_alive() for thread in threads):
            raise LoadError("devices did not come to the end of their round")
        if outcome.errors:
            raise LoadError(f"{len(outcome.errors)} devices failed: {outcome.errors[:3]}")
        codes = self._codes_after(address, version)
        retries = sum(device.line.retries for device in self._devices)
        return codes, sorted(cohorts.values()), retries, time.monotonic() - begin

    def _codes_after(self, address, version):
        ends = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < ends:
            found = self.manifest(address)
            if found.model_version > version:
                return found.codes.sha256.hex()
            time.sleep(0.2)
        raise LoadError(f"no version came after {version}")


class Service:
    """Replicas behind HAProxy that come and go."""

    def __init__(self, folder, fleet, plan, postgres, replicas):
        self._postgres, ports = postgres, [free_port() for _ in range(replicas)]
        shared = {
            "database": postgres.database(), "credentials": fleet.authority / "coordinator", "operations_port": 0,
        }  # fmt: skip
        self.replicas = [
            CoordinatorProcess(
                folder / f"replica-{i}", None, folder.parent / "items.tsv", **plan, **shared, port=port,
            )
            for i, port in enumerate(ports)
        ]  # fmt: skip
        for one in self.replicas:
            one.start()
        self._balancer = Balancer(folder, ports)
        self.address = ("127.0.0.1", self._balancer.port)

    def kill(self, rng):
        """A random replica, which starts again while the others go on."""
        one = rng.choice(self.replicas)
        one.stop(9)
        one.start()

    def kill_postgres(self):
        self._postgres.kill()
        self._postgres.start()

    def close(self):
        self._balancer.close()
        for one in self.replicas:
            if one.process.poll() is None:
                one.stop()


class Killer(threading.Thread):
    """Kills while rounds run, until it has done so often enough or is stopped."""

    def __init__(self, service, kills, postgres_kills, pause):
        super().__init__(daemon=True)
        self._service, self._kills, self._random, self._pause = service, kills, random.Random(kills), pause
        self._every = kills // postgres_kills if postgres_kills else kills + 1
        self.done, self.stop, self.failure = 0, threading.Event(), None

    def run(self):
        try:
            while self.done < self._kills and not self.stop.wait(self._random.uniform(0, self._pause)):
                self._service.kill(self._random)
                self.done += 1
                if self.done % self._every == 0:
                    self._service.kill_postgres()
        except Exception as error:
            print(f"nothing more is killed: {error}", flush=True)
            self.failure = error


def plan_of(devices, cohorts, deadline):
    return {
        "bits": BITS, "goal": devices // cohorts, "over_selection": 1.0, "minimum": devices // cohorts // 2,
        "deadline_seconds": deadline, "privacy": "secagg", "evaluate_every": 0, "gate_every": 10**6, "cohorts": cohorts,
    }  # fmt: skip


def say(name, turn, found):
    codes, cohorts, retries, seconds = found
    sizes = [len(one) for one in cohorts]
    print(
        f"{name}: round {turn + 1}: codes {codes[:16]}, cohorts {sizes}, {retries} retries, {seconds:.0f} s", flush=True
    )


def with_sqlite(folder, fleet, plan, rounds):
    folder.mkdir()
    how = {"credentials": fleet.authority / "coordinator"}
    with CoordinatorProcess(folder / "one", None, folder.parent / "items.tsv", **plan, **how) as server:
        parts = urlsplit(server.addresses["server"])
        found = []
        for turn in range(rounds):
            found.append(fleet.train((parts.hostname, parts.port), turn))
            say("SQLite", turn, found[-1])
        return found


def with_replicas(folder, fleet, plan, replicas, expected, kills=0, postgres_kills=0, pause=3.0):
    """Run what SQLite did; how many rounds differ, and the kills."""
    folder.mkdir()
    postgres = Postgres().start()
    with ExitStack() as stack:
        stack.callback(postgres.close)
        service = Service(folder, fleet, plan, postgres, replicas)
        stack.callback(service.close)
        killer = Killer(service, kills, postgres_kills, pause)
        killer.start()
        differ = 0
        for turn, (codes, cohorts, *_) in enumerate(expected):
            found = fleet.train(service.address, turn)
            say(f"{replicas} replicas, {killer.done} kills", turn, found)
            differ += found[0] != codes or found[1] != cohorts
        killer.stop.set()
        killer.join(60)
        if killer.failure:
            raise killer.failure
        return differ, killer.done


def run(folder, devices, cohorts, rounds, deadline, replicas, kills=0, postgres_kills=0, pause=3.0):
    """How many rounds of replicas differ from those of SQLite, and how often something was killed."""
    plan = plan_of(devices, cohorts, deadline)
    (folder / "items.tsv").write_text("".join(f"item {n}\t{COUNT}\n" for n in range(ROWS)))
    fleet = Fleet(folder, devices)
    # Nobody is killed there, and a phase that waits for those who left need not wait as long.
    alone = plan | {"deadline_seconds": min(deadline, SQLITE_DEADLINE_SECONDS)}
    expected = with_sqlite(folder / "sqlite", fleet, alone, rounds)
    return with_replicas(folder / "replicas", fleet, plan, replicas, expected, kills, postgres_kills, pause)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, default=1200)
    parser.add_argument("--cohorts", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--deadline", type=float, default=60, help="Seconds that a phase waits for those who left.")
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--postgres-kills", type=int, default=0)
    parser.add_argument("--pause", type=float, default=3.0, help="The most seconds between two kills.")
    asked = vars(parser.parse_args())
    with tempfile.TemporaryDirectory() as made:
        differ, kills = run(Path(made), **asked)
    print(f"{differ} of {asked['rounds']} rounds differ from SQLite's; {kills} kills")
    sys.exit(0 if differ == 0 and kills == asked["kills"] else 1)


if __name__ == "__main__":
    main()
