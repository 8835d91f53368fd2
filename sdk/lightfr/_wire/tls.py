"""The TLS of a device: version 1.3, its own authority and no other, host names checked. Nothing turns it off."""

from __future__ import annotations

import os
import select
import ssl
import time
from http.client import HTTPResponse, HTTPSConnection
from math import inf
from typing import TYPE_CHECKING

from lightfr.errors import InvalidInputError, ProtocolError, ServerUnavailableError

if TYPE_CHECKING:
    from pathlib import Path

    from _typeshed import ReadableBuffer, WriteableBuffer

# How long a device waits for a server that says nothing after the handshake, in seconds.
_SILENCE = 2.0
# A request and its answer have the patience of their channel, and a second more for so many bytes of them: networks may
# be slow. Who sends a byte now and then is not.
_SLOWEST_BYTES_PER_SECOND = 1_000
# What is sent at a time: a TLS record.
_PIECE_BYTES = 16_384


def context(trust: Path, identity: str | os.PathLike[str] | None) -> ssl.SSLContext:
    """Make the context of every connection; `identity` is a PEM file with the device's key and certificates."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    made.sslsocket_class = PacedSocket
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


class Pace:
    """When the request that is under way must be over, answer and all; a socket's own timeout is for each read."""

    def __init__(self) -> None:
        self.begin(inf, 0, inf)

    def begin(self, patience_seconds: float, most_bytes: int, ends: float) -> None:
        """Begin a request. No more than `most_bytes` earn it time; `ends` is its end in any case (time.monotonic)."""
        self._began, self._patience, self._most_bytes, self._ends = time.monotonic(), patience_seconds, most_bytes, ends
        self._moved = 0

    def seconds_left(self) -> float | None:
        """Return how long the next read or write may take, None for ever; raises TimeoutError when time is over."""
        ends = self._began + self._patience + min(self._moved, self._most_bytes) / _SLOWEST_BYTES_PER_SECOND
        left = min(ends, self._ends) - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request took too long")
        return None if left == inf else left

    def count(self, n_bytes: int) -> int:
        """Count bytes that were sent or received; returns them."""
        self._moved += n_bytes
        return n_bytes


class PacedSocket(ssl.SSLSocket):
    """A socket that ends with the request."""

    # Whoever has none keeps the socket's own timeout.
    pace: Pace | None = None

    def recv_into(self, buffer: WriteableBuffer, nbytes: int | None = None, flags: int = 0) -> int:
        """Receive, while there is time."""
        if self.pace is None:
            return super().recv_into(buffer, nbytes, flags)
        self.settimeout(self.pace.seconds_left())
        return self.pace.count(super().recv_into(buffer, nbytes, flags))

    def send(self, data: ReadableBuffer, flags: int = 0) -> int:
        """Send a piece, while there is time: what has gone earns time for the rest."""
        if self.pace is None:
            return super().send(data, flags)
        self.settimeout(self.pace.seconds_left())
        return self.pace.count(super().send(memoryview(data)[:_PIECE_BYTES], flags))


class Response(HTTPResponse):
    """An answer whose chunks have a size. http.client takes a negative one too, and then reads without a limit."""

    def _read_next_chunk_size(self) -> int:
        size: int = super()._read_next_chunk_size()  # type: ignore[misc]
        if size < 0:
            raise ValueError  # as for a size that is no number
        return size


class Connection(HTTPSConnection):
    """An HTTPS connection that sends nothing before the server has accepted the device's certificate.

    TLS 1.3 lets a client speak before the server has judged its certificate. Servers send session tickets once they
    have; waiting for the first one costs a round trip and keeps a revoked device silent. A server that sends none is
    believed after a while.
    """

    response_class = Response
    sock: PacedSocket
    pace: Pace

    def connect(self) -> None:
        """Connect, shake hands, and wait for the server's verdict."""
        super().connect()
        self.sock.setblocking(False)
        _await_verdict(self.sock)
        # From now on each read and write has the time that is left.
        self.sock.pace = self.pace


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
