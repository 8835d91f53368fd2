"""Good and bad certificates for TLS tests, each with one fault, and the smallest server to try them on.

A PEM file made here holds the certificate and its key, as `ssl.SSLContext.load_cert_chain` takes it.
"""

import contextlib
import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from lightfr.identities import pem
from lightfr.membership import MemberKey
from lightfr_harness.server.authority import Credentials
from lightfr_harness.server.authority.certificates import (
    common_name,
    make_device_certificate,
    make_issuer,
    make_server_certificate,
    new_key,
    parse_host,
)

CLIENT_FAULTS = ("expired", "not_yet_valid", "other_authority", "self_signed", "server_certificate", "revoked")
SERVER_FAULTS = ("wrong_host", "expired", "not_yet_valid", "other_authority", "self_signed")
SHIFTS = {"expired": timedelta(days=-400), "not_yet_valid": timedelta(days=2)}
TIMEOUT_SECONDS = 10


def signing_request(key=None):
    """PKCS #10, DER, for a P-256 key."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(common_name("whatever the device says"))
    return builder.sign(key or new_key(), SHA256()).public_bytes(Encoding.DER)


def member_key():
    """A new member key, its public half."""
    return MemberKey.new().public


def credentials_of(authority):
    """What a coordinator of this authority works with."""
    return Credentials(authority.coordinator)


def client_pem(authority, folder, fault=None):
    """A device's certificate of this authority, or one with one of CLIENT_FAULTS."""
    now = datetime.now(UTC) + SHIFTS.get(fault, timedelta())
    # A real device in each case, so that nothing but the fault is wrong.
    key = new_key()
    member_key = MemberKey.new()
    device_id, issued = authority._issue(signing_request(key), member_key.public, now)
    certificate = x509.load_der_x509_certificate(issued.certificates[0])
    if fault == "revoked":
        authority.revoke(device_id)
    elif fault == "server_certificate":
        certificate = make_server_certificate(authority._issuer, key.public_key(), [parse_host("localhost")], now)
    elif fault in ("other_authority", "self_signed"):
        issuer = _other_issuer(authority, fault, common_name(device_id))
        key = issuer.key
        certificate = make_device_certificate(issuer, key.public_key(), device_id, now)
    path = write_pem(folder / f"client-{fault}.pem", certificate, key)
    member = pem("LIGHTFR MEMBER KEY", member_key.private) + pem("LIGHTFR MEMBERSHIP", issued.membership)
    path.write_bytes(path.read_bytes() + member)
    return path


def server_pem(authority, folder, host, fault=None):
    """A server's certificate of this authority for `host`, or one with one of SERVER_FAULTS."""
    now = datetime.now(UTC) + SHIFTS.get(fault, timedelta())
    issuer, key = authority._issuer, new_key()
    if fault in ("other_authority", "self_signed"):
        issuer = _other_issuer(authority, fault, common_name("lightfr server"))
        key = issuer.key
    names = [parse_host("elsewhere.example" if fault == "wrong_host" else host)]
    certificate = make_server_certificate(issuer, key.public_key(), names, now)
    return write_pem(folder / f"server-{fault}.pem", certificate, key)


def common_name_of(pem):
    """The device id in a client's certificate."""
    (attribute,) = x509.load_pem_x509_certificate(pem.read_bytes()).subject
    return attribute.value


def client_context(authority, pem=None):
    """What a device uses: TLS 1.3, the trust of the invitation alone, its own certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(authority.folder / "trust.pem")
    if pem is not None:
        context.load_cert_chain(pem)
    return context


def plain_server_context(pem):
    """A server that shows this certificate and asks for none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    return context


class OneLineServer:
    """Answers each connection's first bytes with "hello", and remembers every byte that got past TLS."""

    def __init__(self, context):
        self.context = context
        self.received = []
        self.peers = []
        self.refusals = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        # A closed listener does not wake accept(), a shut one does.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(TIMEOUT_SECONDS)
        self._listener.close()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                self._answer(self._listener.accept()[0])

    def _answer(self, connection):
        connection.settimeout(TIMEOUT_SECONDS)
        with connection:
            try:
                with self.context.wrap_socket(connection, server_side=True) as secured:
                    self.peers.append(secured.getpeercert())
                    self.received.append(secured.recv(100))
                    secured.sendall(b"hello")
            except OSError as error:
                self.refusals.append(error)


def connect(context, port, host="localhost", session=None):
    """A connection over loopback whose handshake is done, as far as the client can tell."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_SECONDS)
    try:
        return context.wrap_socket(connection, server_hostname=host, session=session)
    except BaseException:
        connection.close()
        raise


def ask(context, port, host="localhost"):
    """Connect, send, and return the answer. In TLS 1.3 a client that is refused learns it only when it reads."""
    with connect(context, port, host) as secured:
        secured.sendall(b"upload")
        return secured.recv(100)


def _other_issuer(authority, fault, subject):
    """Not our authority: a stranger under our name (the harder case), or the subject itself."""
    return make_issuer(datetime.now(UTC), subject if fault == "self_signed" else authority._issuer.certificate.subject)


def write_pem(path, certificate, key):
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(certificate.public_bytes(Encoding.PEM) + private)
    return path
