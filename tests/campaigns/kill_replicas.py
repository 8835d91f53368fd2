"""Kills replicas of a coordinator, and PostgreSQL below them, at random moments while devices take part; then audits.

The replicas share one PostgreSQL, which has their files too, and stand behind HAProxy. Devices know only HAProxy: each
request may reach another replica. A replica that was killed starts again while the others go on. What is audited is
what kill_coordinator.py audits: no acknowledged upload is lost, none counts twice, no roster and no set of survivors
has two versions, and every published version is what the uploads of its round make, bit for bit.

    python -m tests.campaigns.kill_replicas --kills 200 --postgres-kills 20 --seed 0
"""

import itertools
import socket
import sys
import tempfile
import threading
import time
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from urllib.parse import urlsplit

from lightfr_harness.server.coordinator.rounds import FINISHED
from lightfr_harness.server.coordinator.stored import Stored
from tests.campaigns.kill_coordinator import N_THREADS, START_SECONDS, Campaign
from tests.campaigns.killing import kill_options, show
from tests.campaigns.recording import write_record
from tests.haproxy import Balancer, free_port
from tests.harness.server.coordinator.helpers import feed
from tests.postgres import Postgres
from tests.warm import Program

# Sums of two cohorts are merely added, so that the audit can add up all uploads of a round.
COHORTS, GOAL = 2, 4


class ReplicaCampaign(Campaign):
    """Several replicas that come and go, and devices that do not notice."""

    def __init__(self, base, seed, postgres, replicas=3):
        super().__init__(base, seed, "secagg")
        self.postgres, self.database = postgres, postgres.database()
        self.ports = [free_port() for _ in range(replicas)]
        self.balancer = Balancer(base, self.ports)
        self.address = urlsplit(f"https://127.0.0.1:{self.balancer.port}")
        self.processes = [None] * replicas

    def command(self, number):
        command = ["serve", str(self.base / f"replica-{number}")]
        options = self.options() | {
            "port": self.ports[number], "database": self.database,
            "cohorts": COHORTS, "goal": GOAL, "over-selection": 1, "deadline-seconds": 6,
        }  # fmt: skip
        for name, value in options.items():
            command += [f"--{name}", str(value)]
        return command

    def start(self, number):
        with (self.base / f"replica-{number}.log").open("ab") as log:
            self.processes[number] = Program(self.command(number), log)

    def kill_one(self):
        """A random one, and start it again."""
        self.start_ended()
        number = self.random.randrange(len(self.processes))
        self.processes[number].end()
        self.start(number)
        self.summary.kills += 1
        self._wait_for(number)

    def _wait_for(self, number):
        """A replica is killed when the last one is back, so that somebody serves on a slow machine too."""
        for _ in range(START_SECONDS * 5):
            with socket.socket() as probe:
                if (
                    probe.connect_ex(("127.0.0.1", self.ports[number])) == 0
                    or self.processes[number].poll() is not None
                ):
                    return
            time.sleep(0.2)

    def start_ended(self):
        """As who runs the replicas does: one that starts while PostgreSQL is away says so and ends."""
        for number, process in enumerate(self.processes):
            if process.poll() is not None:
                said = (self.base / f"replica-{number}.log").read_text()[-1500:]
                if "cannot use the database" not in said.splitlines()[-1]:
                    self.summary.torn += 1
                    print(said, file=sys.stderr)
                self.start(number)

    def kill_postgres(self):
        self.postgres.kill()
        self.postgres.start()

    def run(self, kills, postgres_kills, progress):
        for number in range(len(self.processes)):
            self.start(number)
            self._wait_for(number)
        stop, done = threading.Event(), threading.Event()
        threads = [
            threading.Thread(target=self._devices, args=(self.devices[n::N_THREADS], self.address, stop, done))
            for n in range(N_THREADS)
        ]
        self._wait_until_served()
        for thread in threads:
            thread.start()
        try:
            self._kill(kills, postgres_kills, progress)
            time.sleep(3)
            self.start_ended()
            self._wait_until_served()
            time.sleep(40)  # Without kills a round comes to its end.
            stop.set()
            time.sleep(20)
        finally:
            done.set()
            for thread in threads:
                thread.join()
        self.close()

    def _kill(self, kills, postgres_kills, progress):
        every = kills // postgres_kills if postgres_kills else kills + 1
        for kill in range(1, kills + 1):
            time.sleep(self.random.uniform(0.0, 3.0))
            self.kill_one()
            if kill % every == 0:
                self.kill_postgres()
            if kill % 10 == 0:
                self._note_version_if_served()
            progress(f"{kill} of {kills} kills, {sum(len(d.acknowledged) for d in self.devices)} acknowledged")

    def _wait_until_served(self):
        for _ in range(START_SECONDS * 5):
            if self._note_version_if_served():
                return
            time.sleep(0.2)
        raise RuntimeError((self.base / "replica-0.log").read_text()[-2000:])

    def _note_version_if_served(self):
        try:
            self._note_version(self.address)
        except Exception:
            return False
        return True

    def close(self):
        for process in filter(None, self.processes):
            process.terminate()
        for process in filter(None, self.processes):
            process.wait()
        self.balancer.close()

    @contextmanager
    def _session(self):
        import psycopg

        from lightfr_harness.server.coordinator.postgres import Session

        with psycopg.connect(self.database) as connection:
            yield Session(connection)

    def _rounds(self):
        """As the audit takes them: the cohorts that have ended, one round at a time."""
        with self._session() as session:
            return session.execute(
                "SELECT number, round_id, state, upload_count, next_model_version FROM rounds"
                " WHERE ended_at IS NOT NULL ORDER BY number, cohort"
            ).fetchall()

    def audit_rounds(self, server, uploads):
        rounds = defaultdict(list)
        for number, *cohort in self._rounds():
            rounds[number].append(cohort)
        for cohorts in rounds.values():
            counted = []
            for round_id, state, count, _ in cohorts:
                known = uploads[round_id]
                self.summary.lost += max(len(known) - count, 0)
                self.summary.double_counted += max(count - len(known), 0)
                if state == FINISHED:
                    counted += known
            if counted:
                feed(server, counted)
                self.summary.rounds += 1
                self.require_published(server, max(version for *_, version in cohorts))

    @property
    def states(self):
        """A folder with the newest one, as a new replica would get it."""
        folder = self.base / "states"
        folder.mkdir(exist_ok=True)
        with self._session() as session:
            stored = Stored(session)
            version, name = max(stored.states().items())
            pieces = itertools.takewhile(bool, (stored.piece(name, number) for number in itertools.count()))
            (folder / f"{version}.npz").write_bytes(b"".join(pieces))
        return folder


def run(kills, postgres_kills, seed, base, replicas=3, progress=print):
    """Kill that often; the Summary."""
    postgres = Postgres().start()
    try:
        campaign = ReplicaCampaign(base, seed, postgres, replicas)
        try:
            campaign.run(kills, postgres_kills, progress)
        finally:
            campaign.close()
        campaign.audit()
        return campaign.summary
    finally:
        postgres.close()


def main():
    def more(parser):
        parser.add_argument("--postgres-kills", type=int, default=20)
        parser.add_argument("--replicas", type=int, default=3)

    options = kill_options(__doc__, more)
    with tempfile.TemporaryDirectory() as folder:
        summary = run(options.kills, options.postgres_kills, options.seed, Path(folder), options.replicas, show)
    print(f"\n{summary}")
    write_record(options, asdict(summary))
    sys.exit(0 if summary.is_good() else 1)


if __name__ == "__main__":
    main()
