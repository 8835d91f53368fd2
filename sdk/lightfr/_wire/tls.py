"""The TLS of a device: version 1.3, its own authority and no other, host names checked. Nothing turns it off."""

from __future__ import annotations

import os
import select
import ssl
import time
from http.client import HTTPSConnection
from typing import TYPE_CHECKING

from lightfr.errors import InvalidInputError, ProtocolError, ServerUnavailableError

if TYPE_CHECKING:
    from pathlib import Path

# How long a device waits for a server that says nothing after the handshake, in seconds.
_SILENCE = 2.0


def context(trust: Path, identity: str | os.PathLike[str] | None) -> ssl.SSLContext:
    """Make the context of every connection; `identity` is a PEM file with the device's key and certificates."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    _load_trust(made, trust)
    if identity is not None:
        try:
            made.load_cert_chain(identity)
        except (OSError, ssl.SSLError) as error:
            raise InvalidInputError(
                f"the identity {os.fspath(identity)} is not a PEM file with a key and its certificate: enrol first"
            ) from error
    return made


def _load_trust(made: ssl.SSLContext, trust: Path) -> None:
    try:
        made.load_verify_locations(trust)
        # A trust file may carry a revocation list; then the server's certificate must not be on it.
        if b"-----BEGIN X509 CRL-----" in trust.read_bytes():
            made.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF
    except (OSError, ssl.SSLError) as error:
        raise InvalidInputError(f"the trust file {trust} is not a PEM file with the authority's certificate") from error


class Connection(HTTPSConnection):
    """An HTTPS connection that sends nothing before the server has accepted the device's certificate.

    TLS 1.3 lets a client speak before the server has judged its certificate. Servers send session tickets once they
    have; waiting for the first one costs a round trip and keeps a revoked device silent. A server that sends none is
    believed after a while.
    """

    def connect(self) -> None:
        """Connect, shake hands, and wait for the server's verdict."""
        super().connect()
        timeout = self.sock.gettimeout()
        try:
            self.sock.setblocking(False)
            _await_verdict(self.sock)
        finally:
            self.sock.settimeout(timeout)


def _await_verdict(sock: ssl.SSLSocket) -> None:
    """Wait for a session ticket. A server that refuses the certificate sends an alert, which is raised as SSLError."""
    ends = time.monotonic() + _SILENCE
    poller = select.poll()  # select.select takes no descriptor above 1023
    poller.register(sock, select.POLLIN)
    while not (sock.session is not None and sock.session.has_ticket) and (left := ends - time.monotonic()) > 0:
        if not poller.poll(left * 1000):
            return
        try:
            # Reading makes OpenSSL take in what arrived: a ticket, an alert, or the end.
            if sock.recv(1):
                raise ProtocolError("the server broke the protocol: it spoke before it was asked")
            # An end without an alert does not say that the certificate was refused: the server may be restarting.
            raise ServerUnavailableError("the server closed the connection after the handshake: try again later")
        except ssl.SSLWantReadError:
            continue
