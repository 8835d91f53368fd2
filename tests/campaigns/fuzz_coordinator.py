"""Spoiled requests against a real `lightfr-harness serve`: `python -m tests.campaigns.fuzz_coordinator`.

Over mutual TLS. Messages in good HTTP must be answered, with what they ask for or with a typed refusal; on spoiled HTTP
the coordinator may also hang up. Afterwards it must serve a good device, hold no more memory or files than before, and
its log must be free of faults and of what was sent. Exit code 1 otherwise.
"""

import argparse
import http.client
import json
import random
import select
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import http_exceptions

from lightfr import Device, FileKey
from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import enrollment_pb2, secure_pb2, update_pb2
from lightfr_harness.server.authority import Authority
from tests.campaigns.fuzz_messages import GROWTH_LIMIT_BYTES, resident_bytes
from tests.campaigns.http_mutations import CANARY, HttpMutator, request
from tests.campaigns.mutations import Mutator
from tests.campaigns.recording import write_record
from tests.certificates import client_context, client_pem, signing_request
from tests.harness.server.coordinator.helpers import CAPABILITIES
from tests.warm import CoordinatorProcess

THREADS = 8
# A good request is answered within this; spoiled HTTP that is waited for is given up after the shorter time.
PATIENCE_SECONDS, SHORT_PATIENCE_SECONDS = 30.0, 0.3
COORDINATOR, ENROLLMENT = b"/lightfr.v1.CoordinatorService/", b"/lightfr.v1.EnrollmentService/"
FAULTS = ("internal_error", "storage_failed", "refresh_failed")
# What aiohttp calls a request that is no HTTP: the sender's fault.
BAD_HTTP = {name for name, kind in vars(http_exceptions).items() if isinstance(kind, type)}
TYPED = {200, 400, 403, 404, 409, 429, 503, 504}
UNTYPED = {500, 502}
ITEMS = [f"item {number}" for number in range(300)]


def corpus():
    """(address name, path, kind, valid message) of every procedure."""
    rows = update_pb2.RowUpdate(code_bits=64, user_code=CANARY[:8], item_indices=bytes(4))
    rows.ternary.nonzero, rows.ternary.positive = CANARY[:8], bytes(8)
    upload = pb.UploadRequest(
        round_id=bytes(16), manifest_sha256=bytes(32), upload_id=(CANARY * 2)[:16], row_update=rows
    )
    enrol = enrollment_pb2.EnrollRequest(
        token=CANARY.decode() * 2, signing_request=signing_request(), member_key=(CANARY * 3)[:32]
    )
    renewal = enrollment_pb2.RenewCertificateRequest(signing_request=signing_request(), member_key=(CANARY * 3)[:32])
    key = (CANARY * 3)[:32]
    signature = (CANARY * 6)[:64]
    keys = secure_pb2.AdvertiseKeysRequest(
        round_id=bytes(16), mask_public_key=key, share_public_key=key, membership=bytes(104), signature=signature
    )
    unopened = secure_pb2.AcknowledgeSharesRequest(round_id=bytes(16), unopened=CANARY)
    signed = secure_pb2.SignIncludedRequest(round_id=bytes(16), signature=signature)
    confirmed = secure_pb2.SignSurvivorsRequest(round_id=bytes(16), signature=signature)
    messages = [
        ("server", COORDINATOR + b"GetManifest", pb.GetManifestRequest(capabilities=CAPABILITIES)),
        ("server", COORDINATOR + b"CheckIn", pb.CheckInRequest(capabilities=CAPABILITIES)),
        ("server", COORDINATOR + b"Upload", upload),
        ("server", COORDINATOR + b"GetRoundStatus", pb.GetRoundStatusRequest(round_id=CANARY + b"xyz")),
        ("server", COORDINATOR + b"AdvertiseKeys", keys),
        ("server", COORDINATOR + b"ShareKeys", secure_pb2.ShareKeysRequest(round_id=bytes(16), sealed_shares=CANARY)),
        ("server", COORDINATOR + b"AcknowledgeShares", unopened),
        ("server", COORDINATOR + b"SignIncluded", signed),
        ("server", COORDINATOR + b"SignSurvivors", confirmed),
        ("server", COORDINATOR + b"RevealShares", secure_pb2.RevealSharesRequest(round_id=bytes(16), mask_keys=CANARY)),
        ("server", COORDINATOR + b"GetStep", secure_pb2.GetStepRequest(round_id=bytes(16), max_wait_ms=100)),
        ("enrollment", ENROLLMENT + b"RenewCertificate", renewal),
        ("enrollment", ENROLLMENT + b"Enroll", enrol),
    ]
    return [(name, path, type(message), message.SerializeToString()) for name, path, message in messages]


class Attacker(threading.Thread):
    """Sends its share of the requests, on kept connections where the server keeps them."""

    def __init__(self, number, seed, count, addresses, context):
        super().__init__()
        self._seeds = [seed << 40 | number << 32 | index for index in range(count)]
        self._number, self._addresses, self._context = number, addresses, context
        self._corpus, self._messages, self._http = corpus(), Mutator(70_000), HttpMutator()
        self._kept = {}
        self.outcomes, self.findings = Counter(), []

    def run(self):
        for seed in self._seeds:
            try:
                outcome = self._attack(seed)
            except Exception as error:  # The attacker's own fault must be seen, too.
                outcome = f"FINDING {type(error).__name__} of the attacker: {error}"
            self.outcomes[outcome.split(":")[0]] += 1
            if outcome.startswith("FINDING"):
                self.findings.append(f"{outcome}, seed {seed}")
        for connection in self._kept.values():
            connection.close()

    def _attack(self, seed):
        chooser = random.Random(seed)
        name, path, kind, valid = chooser.choice(self._corpus)
        body = self._messages.mutate(seed, valid, kind)
        if chooser.random() < 0.6:
            return self._well_formed(name, path, body)
        self._http.random.seed(seed)
        return self._spoiled(
            name, self._http.mutate(path, body), chooser.choice(("wait", "wait", "half-close", "drop"))
        )

    def _well_formed(self, name, path, body):
        status, answer = self._exchange(name, request(path, body))
        if status not in TYPED:
            return f"FINDING status {status} for a message in good HTTP"
        if status != 200 and "code" not in json.loads(answer):
            return f"FINDING status {status} without a Connect error"
        return f"message {status}"

    def _exchange(self, name, sent):
        """Send on the kept connection, once more on a new one if that was closed meanwhile."""
        is_new = name not in self._kept
        try:
            connection = self._kept.setdefault(name, None) or self._connect(name)
            self._kept[name] = connection
            connection.sendall(sent)
            response = http.client.HTTPResponse(connection)
            response.begin()
            answer = response.read()
        except (OSError, http.client.HTTPException):
            self._forget(name)
            if is_new:
                raise
            return self._exchange(name, sent)
        if response.will_close:
            self._forget(name)
        return response.status, answer

    def _forget(self, name):
        connection = self._kept.pop(name, None)
        if connection is not None:
            connection.close()

    def _spoiled(self, name, pieces, end):
        with self._connect(name) as connection:
            try:
                for piece in pieces:
                    time.sleep(piece) if isinstance(piece, float) else connection.sendall(piece)
                if end == "half-close":
                    # SSLSocket's own would take TLS away from what is read afterwards.
                    socket.socket.shutdown(connection, socket.SHUT_WR)
            except OSError:
                pass  # Hung up on while sending; there may be an answer all the same.
            return f"http {end}" if end == "drop" else self._verdict(_heard(connection))

    def _verdict(self, heard):
        if not heard:
            return "http hung up or silent"
        # The version is that of the request, so it may be any.
        status = int(heard[9:12]) if heard.startswith(b"HTTP/") and heard[9:12].isdigit() else 0
        return f"FINDING status {status} for spoiled HTTP" if status in UNTYPED | {0} else f"http {status}"

    def _connect(self, name):
        # An address of its own, of those that all are this machine: limits count for each.
        plain = socket.create_connection(self._addresses[name], PATIENCE_SECONDS, (f"127.0.0.{2 + self._number}", 0))
        return self._context.wrap_socket(plain, server_hostname="localhost")


def _heard(connection):
    """What the server says until it stops."""
    heard = b""
    try:
        while len(heard) < 1_000_000 and (
            connection.pending() or select.select([connection], [], [], SHORT_PATIENCE_SECONDS)[0]
        ):
            connection.settimeout(SHORT_PATIENCE_SECONDS)
            more = connection.recv(65536)
            if not more:
                break
            heard += more
    except OSError:
        pass
    return heard


def campaign(requests, seed, folder):
    """Attack a coordinator of its own; (outcomes, findings, facts)."""
    authority = Authority.init(folder / "ca", ["localhost", "127.0.0.1"])
    (folder / "items.txt").write_text("".join(f"{item}\n" for item in ITEMS))
    contexts = [client_context(authority, client_pem(authority, folder)) for _ in range(THREADS)]
    how = {"goal": 2, "privacy": "clear"}
    with CoordinatorProcess(folder / "data", authority.folder, folder / "items.txt", **how) as coordinator:
        _require_good_service(authority, coordinator, folder / "before")
        outcomes, findings, facts = _attack(coordinator, contexts, requests, seed)
        _require_good_service(authority, coordinator, folder / "after")
        findings += _log_findings(coordinator.log)
        exit_code = coordinator.stop()
    authority.close()
    if facts["peak_bytes"] - facts["start_bytes"] > GROWTH_LIMIT_BYTES:
        findings.append(f"memory grew from {facts['start_bytes']} to {facts['peak_bytes']} bytes")
    if facts["files_after"] > facts["files_before"] + 8:
        findings.append(f"{facts['files_after']} files are open, {facts['files_before']} were before")
    return outcomes, findings + ([f"exit code {exit_code}"] if exit_code else []), facts


def _attack(coordinator, contexts, requests, seed):
    addresses = {name: (urlsplit(url).hostname, urlsplit(url).port) for name, url in coordinator.addresses.items()}
    pid, started = coordinator.process.pid, time.perf_counter()
    files_before = _open_files(pid)
    attackers = [Attacker(n, seed, requests // THREADS, addresses, contexts[n]) for n in range(THREADS)]
    start_bytes = peak_bytes = resident_bytes(pid)
    for attacker in attackers:
        attacker.start()
    while any(attacker.is_alive() for attacker in attackers):
        time.sleep(0.2)
        peak_bytes = max(peak_bytes, resident_bytes(pid))
    outcomes = sum((attacker.outcomes for attacker in attackers), Counter())
    findings = [finding for attacker in attackers for finding in attacker.findings]
    facts = {
        "seconds": time.perf_counter() - started,
        "start_bytes": start_bytes,
        "peak_bytes": peak_bytes,
        "files_before": files_before,
        "files_after": _settled_files(pid, files_before),
    }
    return outcomes, findings, facts


def _open_files(pid):
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def _settled_files(pid, before):
    """Once the connections that were dropped are noticed."""
    for _ in range(50):
        if _open_files(pid) <= before + 8:
            break
        time.sleep(0.2)
    return _open_files(pid)


def _require_good_service(authority, coordinator, folder):
    """A new device enrols, syncs, takes part and recommends."""
    folder.mkdir()
    invited = authority.invite(coordinator.addresses["server"], coordinator.addresses["enrollment"], 600)
    (folder / "invitation.json").write_text(json.dumps(invited))
    device = Device.enroll(folder / "invitation.json", folder)
    with device.client(folder / "data", key=FileKey(folder / "key"), allow_clear_uploads=True) as client:
        client.sync()
        client.rate(ITEMS[3], 5)
        client.participate()
        if len(client.recommend(5)) != 5:
            raise AssertionError("a good device was not served")


def _log_findings(log):
    findings = [f"log has {text}" for text in ("Traceback", CANARY.decode(), CANARY.hex()) if text in log]
    for line in log.splitlines():
        event = json.loads(line)
        if event["event"] in FAULTS or (event["event"] == "library" and not _is_about_bad_http(event)):
            findings.append(f"log has {line}")
    return findings


def _is_about_bad_http(event):
    # Newer asyncio warns, without an error, when it writes to a connection that the attacker has left.
    return event["error"] in BAD_HTTP or (event["level"], event["error"]) == ("warning", "")


def main(arguments=None):
    """Run the campaign; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", type=Path, help="what came of it, as JSON")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        outcomes, findings, facts = campaign(options.requests, options.seed, Path(folder))
    print(f"{sum(outcomes.values())} requests in {facts['seconds']:.0f} s; the coordinator held "
          f"{facts['start_bytes'] / 2**20:.0f} to {facts['peak_bytes'] / 2**20:.0f} MB and still serves")  # fmt: skip
    print(", ".join(f"{name} {count}" for name, count in outcomes.most_common()))
    for finding in findings[:20]:
        print(f"  FINDING {finding}")
    write_record(options, {**facts, "outcomes": outcomes, "findings": findings})
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
