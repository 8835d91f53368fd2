"""One caller that wants everything, against a real `serve`: `python -m tests.campaigns.abuse_coordinator`.

One certificate sends bodies that never end; one address opens connections to the enrolment port and says nothing; one
tries token after token. Meanwhile an honest device, and an honest newcomer from another address, must be served. Exit
code 1 otherwise.
"""

import argparse
import http.client
import json
import select
import socket
import ssl
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import enrollment_pb2
from lightfr_harness.server.authority import Authority
from tests.campaigns.fuzz_messages import resident_bytes
from tests.certificates import client_context, client_pem, member_key, signing_request
from tests.harness.server.coordinator.helpers import CAPABILITIES
from tests.warm import CoordinatorProcess

# All of 127.0.0.0/8 is this machine: the attacker's address need not be that of the honest.
ATTACKER, HONEST = "127.0.0.2", "127.0.0.1"
MANIFEST, ENROLL = "/lightfr.v1.CoordinatorService/GetManifest", "/lightfr.v1.EnrollmentService/Enroll"
SLOW_HEAD = (
    f"POST {MANIFEST} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/proto\r\nContent-Length: 99\r\n\r\n"
)
TOKEN = "a-token-that-nobody-ever-gave-out"  # noqa: S105 - it opens nothing
# How often the honest ask during each attack.
QUESTIONS = 10
PATIENCE_SECONDS = 30.0


@dataclass
class Summary:
    """Statuses by attack. `held`: slow bodies, or silent connections, that the coordinator keeps waiting for."""

    held: dict[str, int] = field(default_factory=dict)
    attacker: dict[str, Counter] = field(default_factory=dict)
    honest: dict[str, Counter] = field(default_factory=dict)
    grown_bytes: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    wrong_tokens_logged: int = 0
    token_in_log: bool = False

    def is_good(self):
        return not self.token_in_log and all(set(answers) == {200} for answers in self.honest.values())


class Abuse:
    """A coordinator in a process of its own, its attacker and the honest."""

    def __init__(self, folder):
        self._folder, self.summary = folder, Summary()
        (folder / "items.txt").write_text("".join(f"item-{number}\n" for number in range(50)))
        self._authority = Authority.init(folder / "ca", ["localhost", "127.0.0.1"])
        self._honest, self._attacker = (
            client_context(self._authority, client_pem(self._authority, folder)) for _ in range(2)
        )

    def run(self, slow_bodies, silent, wrong_tokens):
        with CoordinatorProcess(self._folder / "state", self._authority.folder, self._folder / "items.txt") as process:
            self._process = process
            self._during("slow bodies", slow_bodies, self._send_slow_bodies, self._asks)
            self._during("silent connections", silent, self._connect_and_say_nothing, self._enrols)
            self._during("wrong tokens", wrong_tokens, self._try_tokens, self._enrols)
        self.summary.wrong_tokens_logged = process.log.count("wrong_token")
        self.summary.token_in_log = TOKEN in process.log
        self._authority.close()
        return self.summary

    def _during(self, name, count, attack, honest):
        pid, before, started = self._process.process.pid, resident_bytes(self._process.process.pid), time.monotonic()
        connections, self.summary.held[name], self.summary.attacker[name] = attack(count)
        self.summary.seconds[name] = time.monotonic() - started
        self.summary.honest[name] = Counter(honest() for _ in range(QUESTIONS))
        self.summary.grown_bytes[name] = resident_bytes(pid) - before
        for connection in connections:
            connection.close()
        # So that the next attack does not meet the limits of this one.
        time.sleep(1)

    # Attacks: the connections, how many of them the coordinator waits for, and the answers by status.

    def _send_slow_bodies(self, count):
        connections, refused = [], 0
        for _ in range(count):
            try:
                connections.append(_connected(self._process.addresses["server"], self._attacker, ATTACKER))
                connections[-1].sendall(SLOW_HEAD.encode() + b"x")
            except OSError:
                refused += 1
        answers = _answers(connections)
        return connections, count - refused - answers.total(), answers + Counter({"no connection": refused})

    def _connect_and_say_nothing(self, count):
        address = urlsplit(self._process.addresses["enrollment"])
        connections = []
        for _ in range(count):
            connections.append(socket.socket())
            connections[-1].bind((ATTACKER, 0))
            connections[-1].connect((address.hostname, address.port))
        return connections, _still_open(connections), Counter()

    def _try_tokens(self, count):
        answers, connection = Counter(), self._newcomer(ATTACKER)
        request = _enrolment(TOKEN)
        for _ in range(count):
            answers[_post(connection, ENROLL, request)] += 1
        connection.close()
        return [], 0, answers

    # What the honest want.

    def _asks(self):
        body = pb.GetManifestRequest(capabilities=CAPABILITIES).SerializeToString()
        address = urlsplit(self._process.addresses["server"])
        connection = http.client.HTTPSConnection(address.hostname, address.port, context=self._honest)
        return _post_once(connection, MANIFEST, body)

    def _enrols(self):
        token = self._authority.invite("https://localhost:1", "https://localhost:1", 600)["token"]
        return _post_once(self._newcomer(HONEST), ENROLL, _enrolment(token))

    def _newcomer(self, source):
        address, context = urlsplit(self._process.addresses["enrollment"]), client_context(self._authority)
        return http.client.HTTPSConnection(
            address.hostname, address.port, context=context, source_address=(source, 0), timeout=PATIENCE_SECONDS
        )


def _enrolment(token):
    request = enrollment_pb2.EnrollRequest(token=token, signing_request=signing_request(), member_key=member_key())
    return request.SerializeToString()


def _connected(url, context, source):
    address = urlsplit(url)
    plain = socket.create_connection((address.hostname, address.port), PATIENCE_SECONDS, (source, 0))
    return context.wrap_socket(plain, server_hostname=address.hostname)


def _post(connection, path, body):
    connection.request("POST", path, body, {"Content-Type": "application/proto"})
    response = connection.getresponse()
    response.read()
    return response.status


def _post_once(connection, path, body):
    try:
        return _post(connection, path, body)
    finally:
        connection.close()


def _answers(connections):
    """Of those that are answered, the statuses; until nothing comes for a second."""
    answers, poll = Counter(), select.poll()
    for connection in connections:
        connection.setblocking(False)
        poll.register(connection, select.POLLIN)
    by_descriptor = {connection.fileno(): connection for connection in connections}
    while events := poll.poll(1000):
        for descriptor, _ in events:
            try:
                answer = by_descriptor[descriptor].recv(64)
            except ssl.SSLWantReadError:
                continue  # A session ticket.
            except OSError:
                answer = b""
            answers[int(answer.split()[1]) if answer else "closed"] += 1
            poll.unregister(descriptor)
    return answers


def _still_open(connections):
    """How many the other side has not closed, a second later."""
    time.sleep(1)
    poll = select.poll()
    for connection in connections:
        poll.register(connection, select.POLLIN)
    return len(connections) - len(poll.poll(0))


def run(*, slow_bodies, silent, wrong_tokens, base):
    """The three attacks, one after the other."""
    return Abuse(base).run(slow_bodies, silent, wrong_tokens)


def main(arguments=None):
    """Run the campaign; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slow-bodies", type=int, default=4200)
    parser.add_argument("--silent", type=int, default=16_000)
    parser.add_argument("--wrong-tokens", type=int, default=5000)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        summary = run(
            slow_bodies=options.slow_bodies,
            silent=options.silent,
            wrong_tokens=options.wrong_tokens,
            base=Path(folder),
        )
    for name, honest in summary.honest.items():
        facts = {
            "attacker": dict(summary.attacker[name]),
            "held": summary.held[name],
            "honest": dict(honest),
            "grown_mb": round(summary.grown_bytes[name] / 1e6, 1),
            "seconds": round(summary.seconds[name], 1),
        }
        print(f"{name}: {json.dumps(facts)}")
    print(f"wrong tokens logged: {summary.wrong_tokens_logged}; the token is in the log: {summary.token_in_log}")
    return 0 if summary.is_good() else 1


if __name__ == "__main__":
    sys.exit(main())
