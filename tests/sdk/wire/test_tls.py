"""Who a device talks to, and to whom it sends nothing at all."""

import os
import resource
import select
import socket
import ssl
import subprocess
import sys
import threading
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from lightfr._wire import address_of, tls
from lightfr._wire import channel as channels
from lightfr._wire.channel import Channel
from lightfr.errors import (
    IdentityRefusedError,
    InvalidInputError,
    ProtocolError,
    ServerNotTrustedError,
    ServerUnavailableError,
)
from tests.certificates import (
    CLIENT_FAULTS,
    SERVER_FAULTS,
    client_pem,
    credentials_of,
    plain_server_context,
    server_pem,
)
from tests.sdk.wire.servers import ScriptedServer


def trust_of(authority):
    return authority.folder / "trust.pem"


def ok(*_):
    return 200, {"Content-Type": "application/proto"}, b"answer"


@pytest.fixture
def sent(monkeypatch):
    """Every application byte that the device's side of TLS is given to send."""
    record, sendall = [], ssl.SSLSocket.sendall

    def watched(self, data, *flags):
        if not self.server_side:
            record.append(bytes(data))
        return sendall(self, data, *flags)

    monkeypatch.setattr(ssl.SSLSocket, "sendall", watched)
    return record


def call(server, trust, identity):
    channel = Channel(server.url, tls.context(trust, identity))
    try:
        return channel.call("CoordinatorService/GetManifest", b"question", 100)
    finally:
        channel.close()


def test_a_genuine_pair_talks(authority, tmp_path, sent):
    with ScriptedServer(credentials_of(authority).context(), ok) as server:
        assert call(server, trust_of(authority), client_pem(authority, tmp_path)) == b"answer"
    assert b"".join(sent).endswith(b"question")


@pytest.mark.parametrize("fault", SERVER_FAULTS)
def test_a_device_sends_nothing_to_a_server_with_a_bad_certificate(authority, tmp_path, sent, fault):
    context = plain_server_context(server_pem(authority, tmp_path, "localhost", fault))
    with ScriptedServer(context, ok) as server, pytest.raises(ServerNotTrustedError):
        call(server, trust_of(authority), client_pem(authority, tmp_path))
    assert (sent, server.requests) == ([], [])


def revocation_list(authority, pem):
    serial = x509.load_pem_x509_certificate(pem.read_bytes()).serial_number
    now = datetime.now(UTC)
    entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now).build()
    builder = x509.CertificateRevocationListBuilder().issuer_name(authority._issuer.certificate.subject)
    builder = builder.last_update(now).next_update(now + timedelta(days=1)).add_revoked_certificate(entry)
    return builder.sign(authority._issuer.key, SHA256()).public_bytes(Encoding.PEM)


def test_a_device_sends_nothing_to_a_server_on_the_revocation_list_of_its_trust(authority, tmp_path, sent):
    pem = server_pem(authority, tmp_path, "localhost")
    trust = tmp_path / "trust.pem"
    trust.write_bytes(trust_of(authority).read_bytes() + revocation_list(authority, pem))
    with (
        ScriptedServer(plain_server_context(pem), ok) as server,
        pytest.raises(ServerNotTrustedError, match="revoked"),
    ):
        call(server, trust, client_pem(authority, tmp_path))
    assert (sent, server.requests) == ([], [])


def test_a_device_sends_nothing_over_tls_1_2(authority, tmp_path, sent):
    context = plain_server_context(server_pem(authority, tmp_path, "localhost"))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with ScriptedServer(context, ok) as server, pytest.raises(ServerNotTrustedError, match=r"TLS 1\.3"):
        call(server, trust_of(authority), client_pem(authority, tmp_path))
    assert (sent, server.requests) == ([], [])


@pytest.mark.parametrize("fault", CLIENT_FAULTS)
def test_a_device_whose_certificate_is_refused_sends_nothing(authority, tmp_path, sent, fault):
    identity = client_pem(authority, tmp_path, fault)
    with ScriptedServer(credentials_of(authority).context(), ok) as server, pytest.raises(IdentityRefusedError):
        call(server, trust_of(authority), identity)
    assert (sent, server.requests) == ([], [])


def test_a_device_without_a_certificate_sends_nothing(authority, sent):
    with ScriptedServer(credentials_of(authority).context(), ok) as server, pytest.raises(IdentityRefusedError):
        call(server, trust_of(authority), None)
    assert (sent, server.requests) == ([], [])


def test_a_server_that_sends_no_tickets_is_believed_after_a_while(authority, tmp_path, monkeypatch):
    monkeypatch.setattr(tls, "_SILENCE", 0.05)
    context = plain_server_context(server_pem(authority, tmp_path, "localhost"))
    context.num_tickets = 0
    with ScriptedServer(context, ok) as server:
        assert call(server, trust_of(authority), client_pem(authority, tmp_path)) == b"answer"


class SilentServer:
    """Shakes hands as often as it is asked to, says what it is told to, and closes the connection."""

    def __init__(self, context, says=b""):
        self._context, self._says, self.handshakes = context, says, 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://localhost:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)

    def _serve(self):
        with suppress(OSError):  # the listener was shut down
            while True:
                accepted, _ = self._listener.accept()
                with self._context.wrap_socket(accepted, server_side=True) as sock:
                    self.handshakes += 1
                    if self._says:
                        sock.sendall(self._says)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()


def context_without_tickets(authority, tmp_path):
    context = plain_server_context(server_pem(authority, tmp_path, "localhost"))
    context.num_tickets = 0
    return context


def test_a_server_that_closes_after_the_handshake_may_be_restarting_and_is_tried_again(
    authority, tmp_path, monkeypatch, sent
):
    monkeypatch.setattr(channels, "_FIRST_PAUSE", 0.001)
    closing = SilentServer(context_without_tickets(authority, tmp_path))
    with closing as server, pytest.raises(ServerUnavailableError, match="try again later"):
        call(server, trust_of(authority), client_pem(authority, tmp_path))
    assert (server.handshakes, sent) == (3, [])


def test_a_server_that_speaks_first_breaks_the_protocol(authority, tmp_path, sent):
    hasty = SilentServer(context_without_tickets(authority, tmp_path), b"HTTP/1.1 200 OK")
    with hasty as server, pytest.raises(ProtocolError, match="spoke before it was asked"):
        call(server, trust_of(authority), client_pem(authority, tmp_path))
    assert sent == []


def test_a_process_with_more_than_a_thousand_open_files_can_talk(authority, tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, limits[1]), limits[1]))
    try:
        with ScriptedServer(credentials_of(authority).context(), ok) as server, ExitStack() as many:
            while many.enter_context(open(os.devnull)).fileno() < 1030:
                pass
            assert call(server, trust_of(authority), client_pem(authority, tmp_path)) == b"answer"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_waiting_for_the_verdict_does_not_wait_for_the_silence(authority, tmp_path, monkeypatch):
    monkeypatch.setattr(tls, "_SILENCE", 3600)
    with ScriptedServer(credentials_of(authority).context(), ok) as server:
        assert call(server, trust_of(authority), client_pem(authority, tmp_path)) == b"answer"


class Handshaken:
    """Stands for a socket after its handshake: each record that is read takes half a second to come.

    `ticket_after` is the number of the record that brings the ticket; the others bring nothing to the application.
    """

    def __init__(self, ticket_after):
        self.now, self.patience, self._ticket_after, self._records = 100.0, [], ticket_after, 0

    @property
    def session(self):
        return SimpleNamespace(has_ticket=self._records >= self._ticket_after) if self._records else None

    def recv(self, _):
        self._records += 1
        raise ssl.SSLWantReadError

    def register(self, sock, events):
        assert (sock, events) == (self, select.POLLIN)

    def poll(self, milliseconds):
        self.patience.append(milliseconds)
        self.now += min(0.5, milliseconds / 1000)
        return [self]


@pytest.mark.parametrize(
    ("ticket_after", "patience"), [(1, [2000]), (3, [2000, 1500, 1000]), (9, [2000, 1500, 1000, 500])]
)
def test_a_device_waits_for_a_ticket_for_two_seconds_in_all_whatever_else_comes(monkeypatch, ticket_after, patience):
    sock = Handshaken(ticket_after)
    monkeypatch.setattr(tls, "time", SimpleNamespace(monotonic=lambda: sock.now))
    monkeypatch.setattr(tls, "select", SimpleNamespace(poll=lambda: sock, POLLIN=select.POLLIN))
    tls._await_verdict(sock)
    assert sock.patience == patience


@pytest.mark.parametrize(
    "variable", ["SSL_CERT_FILE", "PYTHONHTTPSVERIFY", "SSLKEYLOGFILE", "HTTPS_PROXY", "https_proxy"]
)
def test_no_environment_variable_turns_verification_off(authority, tmp_path, variable):
    """A process under each of the usual suspects still refuses a stranger, and writes no keys to a log."""
    stranger = server_pem(authority, tmp_path, "localhost", "self_signed")
    value = {"PYTHONHTTPSVERIFY": "0", "SSLKEYLOGFILE": str(tmp_path / "keys"), "SSL_CERT_FILE": str(stranger)}
    code = (
        "import sys; from pathlib import Path; from lightfr._wire import tls\n"
        "from lightfr._wire.channel import Channel\n"
        "from lightfr.errors import ServerNotTrustedError\n"
        "channel = Channel(sys.argv[1], tls.context(Path(sys.argv[2]), sys.argv[3]))\n"
        "try: channel.call('CoordinatorService/GetManifest', b'', 9)\n"
        "except ServerNotTrustedError: print('refused')"
    )
    with ScriptedServer(plain_server_context(stranger), ok) as server:
        arguments = [
            sys.executable,
            "-c",
            code,
            server.url,
            str(trust_of(authority)),
            str(client_pem(authority, tmp_path)),
        ]
        environment = {variable: value.get(variable, server.url)}
        done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), server.requests) == ("refused", [])
    assert not (tmp_path / "keys").exists()


def test_a_trust_or_an_identity_that_is_none_is_refused_before_any_connection(authority, tmp_path):
    (tmp_path / "empty.pem").write_text("")
    with pytest.raises(InvalidInputError, match="trust"):
        tls.context(tmp_path / "empty.pem", None)
    with pytest.raises(InvalidInputError, match="identity"):
        tls.context(trust_of(authority), tmp_path / "absent.pem")
    with pytest.raises(InvalidInputError, match="identity"):
        tls.context(trust_of(authority), trust_of(authority))


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:1",
        "localhost:1",
        "https://",
        "https://u@h:1",
        "https://h:1/x",
        "https://h:1?q",
        "https://h:99999",
        "https://h:0",
        "https://:p@h:1",
        "https://h:1#f",
    ],
)
def test_only_https_addresses_of_a_host_and_a_port_are_taken(authority, tmp_path, url):
    with pytest.raises(InvalidInputError, match="https://host:port"):
        Channel(url, tls.context(trust_of(authority), None))


@pytest.mark.parametrize("url", ["https://h", "https://h/", "https://h:443"])
def test_a_port_that_is_left_out_is_443(url):
    assert address_of(url) == ("h", 443)
    assert address_of("https://localhost:8443") == ("localhost", 8443)
