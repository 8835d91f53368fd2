"""Kills a real coordinator with SIGKILL at random moments while devices upload, restarts it, and audits the outcome.

Every device keeps what it sent and what was acknowledged. After a kill it asks whether an unanswered upload is in,
sends the same bytes again, and holds the server to its word. In the end the model is computed anew from exactly the
uploads that are in, and compared bit for bit with every version that the coordinator published.

    python -m tests.campaigns.kill_coordinator --kills 200 --seed 0 [--privacy secagg]
"""

import hashlib
import http.client
import json
import random
import sqlite3
import sys
import tempfile
import threading
import time
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from lightfr.device import Identity, Trust
from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import error_pb2, manifest_pb2
from lightfr_harness.server.authority import Authority, Credentials
from lightfr_harness.server.coordinator.options import ItemList, Settings, make_rule
from lightfr_harness.server.coordinator.rounds import FINISHED
from tests.campaigns.killing import kill_options, show, with_privacy
from tests.campaigns.recording import write_record
from tests.certificates import client_context, client_pem
from tests.harness.server.coordinator.helpers import BITS, CAPABILITIES, CHECK_IN, feed, upload_request
from tests.harness.server.coordinator.live import COORDINATOR, PROTO, reason_of
from tests.warm import Program

N_DEVICES, N_THREADS, N_ITEMS = 12, 3, 200
START_SECONDS = 60
# Pending uploads settle, and the last round closes by its deadline.
SETTLING_SECONDS = 3
DROPPED = {
    error_pb2.ERROR_REASON_ROUND_CLOSED,
    error_pb2.ERROR_REASON_ROUND_UNKNOWN,
    error_pb2.ERROR_REASON_NOT_ASSIGNED,
}


@dataclass
class Summary:
    kills: int = 0
    acknowledged: int = 0
    lost: int = 0
    double_counted: int = 0
    torn: int = 0
    rounds: int = 0

    def is_good(self):
        return self.lost == self.double_counted == self.torn == 0 and self.acknowledged > 0

    def __str__(self):
        return (
            f"{self.kills} kills, {self.rounds} finished rounds, {self.acknowledged} acknowledged uploads:"
            f" {self.lost} lost, {self.double_counted} counted twice, {self.torn} torn states"
        )


@dataclass
class Device:
    """One identity, and what it knows for sure about its uploads."""

    name: str
    context: object
    seed: int
    pending: bytes = b""
    uploads: dict = field(default_factory=dict)
    acknowledged: set = field(default_factory=set)
    contradictions: int = 0

    def step(self, address, stop):
        """One turn: settle what is unanswered, then take part if there is a place."""
        connection = http.client.HTTPSConnection(
            address.hostname, address.port, context=self.context, timeout=START_SECONDS
        )
        try:
            if self.pending:
                self._settle(connection)
            elif not stop.is_set():
                self._take_part(connection)
        except (OSError, http.client.HTTPException):
            pass  # Killed under our hands: the upload stays pending.
        finally:
            connection.close()

    def _take_part(self, connection):
        status, body = post(connection, "CheckIn", CHECK_IN)
        answer = pb.CheckInResponse.FromString(body) if status == 200 else pb.CheckInResponse()
        if not answer.HasField("assignment"):
            time.sleep(0.02)
            return
        self.seed += 1
        self.pending = upload_request(answer.assignment, self.seed)
        self._upload(connection)

    def _settle(self, connection):
        """After a kill: the server must say whether the upload is in, and stand by it."""
        round_id = pb.UploadRequest.FromString(self.pending).round_id
        status, body = post(
            connection, "GetRoundStatus", pb.GetRoundStatusRequest(round_id=round_id).SerializeToString()
        )
        is_in = status == 200 and pb.GetRoundStatusResponse.FromString(body).has_your_upload
        outcome = self._upload(connection)
        if outcome is not None and is_in and not outcome:
            self.contradictions += 1

    def _upload(self, connection):
        """True: it is in. False: refused for good. None: ask again later."""
        status, body = post(connection, "Upload", self.pending)
        if status == 200:
            receipt = pb.UploadResponse.FromString(body)
            round_id = pb.UploadRequest.FromString(self.pending).round_id
            self.contradictions += receipt.request_sha256 != hashlib.sha256(self.pending).digest()
            self.uploads[round_id], self.pending = self.pending, b""
            self.acknowledged.add(round_id)
            return True
        if reason_of(body).reason in DROPPED:
            self.pending = b""
            return False
        return None


def post(connection, method, body):
    connection.request("POST", COORDINATOR + method, body, PROTO)
    response = connection.getresponse()
    return response.status, response.read()


class Campaign:
    def __init__(self, base, seed, privacy="clear"):
        self.base, self.random, self.privacy = base, random.Random(seed), privacy
        self.log = base / "coordinator.log"
        self.authority = Authority.init(base / "ca", ["127.0.0.1"])
        (base / "items.tsv").write_text("".join(f"item-{i}\t{1000 - i}\n" for i in range(N_ITEMS)))
        kind = self._kind_of_device()
        self.devices = [self._device(kind, n, seed) for n in range(N_DEVICES)]
        self.published = {}
        self.summary = Summary()

    def _device(self, kind, number, seed):
        pem = client_pem(self.authority, self.base)
        made = kind(f"device {number}", client_context(self.authority, pem), 1_000_000 * number + seed)
        made.member = Identity(pem, Trust(self.authority.folder / "trust.pem")).member()
        return made

    def _kind_of_device(self):
        if self.privacy == "clear":
            return Device
        from tests.campaigns.masking_device import MaskingDevice

        return self.trusting(MaskingDevice)

    def trusting(self, kind):
        """Masking devices that believe this campaign's coordinator and authority."""
        credentials = Credentials(self.authority.coordinator)
        kind.server_key = credentials.manifest_key.public_key().public_bytes_raw()
        kind.membership_keys = credentials.membership_keys
        return kind

    def options(self):
        return {
            "credentials": self.authority.coordinator, "catalogue": self.base / "items.tsv", "bits": BITS, "port": 0,
            "enrollment-port": 0, "operations-port": 0, "goal": 4, "over-selection": 1.5,
            "deadline-seconds": 1 if self.privacy == "clear" else 4,
            "gate-every": 1_000_000,
            "evaluate-every": 0,
            "privacy": self.privacy, "minimum": 1 if self.privacy == "clear" else 2,
        }  # fmt: skip

    def spawn(self):
        command = ["serve", str(self.base / "folder")]
        for name, value in self.options().items():
            command += [f"--{name}", str(value)]
        with self.log.open("ab") as log:
            return Program(command, log)

    def run_once(self, seconds, *, graceful=False):
        """Start, let devices work for a while, kill. Counts a start that fails as a torn state."""
        process = self.spawn()
        try:
            line = process.stdout.readline()
            if not line:
                self.summary.torn += 1
                print(self.log.read_text()[-2000:], file=sys.stderr)
                return
            self._work(urlsplit(json.loads(line)["server"]), process, seconds, graceful)
        finally:
            process.end()

    def kill_while_starting(self, seconds):
        process = self.spawn()
        time.sleep(seconds)
        process.end()

    def _work(self, address, process, seconds, graceful):
        stop, done = threading.Event(), threading.Event()
        threads = [
            threading.Thread(target=self._devices, args=(self.devices[n::N_THREADS], address, stop, done))
            for n in range(N_THREADS)
        ]
        self._note_version(address)
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        if graceful:
            stop.set()
            time.sleep(SETTLING_SECONDS)
            self.settled()
            process.terminate()
            self.summary.torn += process.wait(START_SECONDS) != 0
        else:
            process.kill()
        done.set()
        for thread in threads:
            thread.join()

    def settled(self):
        """Called while the coordinator runs and no device does anything."""

    def _devices(self, devices, address, stop, done):
        while not done.is_set():
            for device in devices:
                if not done.is_set():
                    device.step(address, stop)
            if stop.is_set():
                time.sleep(0.05)

    def _note_version(self, address):
        """What is published must never change, and in the end must be what the uploads make."""
        connection = http.client.HTTPSConnection(
            address.hostname, address.port, context=self.devices[0].context, timeout=START_SECONDS
        )
        request = pb.GetManifestRequest(capabilities=CAPABILITIES).SerializeToString()
        signed = pb.GetManifestResponse.FromString(post(connection, "GetManifest", request)[1]).signed_manifest
        manifest = manifest_pb2.Manifest.FromString(signed.manifest)
        known = self.published.setdefault(manifest.model_version, manifest.codes.sha256)
        self.summary.torn += known != manifest.codes.sha256
        connection.close()

    def audit(self):
        """Compute every version from the uploads that are in, and compare."""
        uploads = defaultdict(list)
        for device in self.devices:
            self.summary.lost += device.contradictions
            self.summary.acknowledged += len(device.acknowledged)
            for round_id, body in device.uploads.items():
                uploads[round_id].append(body)
        items = ItemList.read(self.base / "items.tsv", integer_ids=False)
        server = make_rule(Settings(BITS, 10, 0, False, self.privacy), items)
        self.audit_rounds(server, uploads)
        self._compare_state(server)
        if self.privacy != "clear":
            from tests.campaigns.masking_device import TOLD

            self.summary.torn += sum(len(told) > 1 for told in TOLD.values())

    def audit_rounds(self, server, uploads):
        for round_id, state, count, version in self._rounds():
            known = uploads[round_id]
            self.summary.lost += max(len(known) - count, 0)
            self.summary.double_counted += max(count - len(known), 0)
            if state == FINISHED:
                feed(server, known)
                self.summary.rounds += 1
                self.require_published(server, version)

    def require_published(self, server, version):
        codes = hashlib.sha256(server.codes.tobytes()).digest()
        self.summary.torn += self.published.get(version, codes) != codes

    @property
    def states(self):
        return self.base / "folder" / "states"

    def _rounds(self):
        with sqlite3.connect(self.base / "folder" / "coordinator.sqlite") as connection:
            return connection.execute(
                "SELECT round_id, state, upload_count, next_model_version FROM rounds WHERE ended_at IS NOT NULL"
                " ORDER BY number"
            ).fetchall()

    def _compare_state(self, server):
        path = max(self.states.iterdir(), key=lambda path: int(path.stem))
        with np.load(path) as saved:
            is_same = all(np.array_equal(saved[name], value) for name, value in server.state().items())
        self.summary.torn += not is_same


def run(kills, seed, base, progress=print, privacy="clear"):
    """Kill that often; the Summary."""
    campaign = Campaign(base, seed, privacy)
    longest_seconds = 0.8 if privacy == "clear" else 4.0  # Seven steps take longer than one.
    for kill in range(1, kills + 1):
        if campaign.random.random() < 0.1:
            campaign.kill_while_starting(campaign.random.uniform(0.0, 0.5))
        else:
            campaign.run_once(campaign.random.uniform(0.0, longest_seconds))
        campaign.summary.kills += 1
        progress(f"{kill} of {kills} kills, {sum(len(d.acknowledged) for d in campaign.devices)} acknowledged")
    campaign.run_once(1.0, graceful=True)
    campaign.audit()
    return campaign.summary


def main():
    options = kill_options(__doc__, with_privacy)
    with tempfile.TemporaryDirectory() as folder:
        summary = run(options.kills, options.seed, Path(folder), show, options.privacy)
    print(f"\n{summary}")
    write_record(options, asdict(summary))
    sys.exit(0 if summary.is_good() else 1)


if __name__ == "__main__":
    main()
