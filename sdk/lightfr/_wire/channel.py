"""The one door by which bytes leave the device: Connect unary calls and artifact downloads over one kept connection."""

from __future__ import annotations

import random
import socket
import ssl
import time
from contextlib import contextmanager, suppress
from http.client import HTTPException, HTTPResponse, RemoteDisconnected
from math import inf
from typing import TYPE_CHECKING

from lightfr._wire import address_of
from lightfr._wire.refusals import refusal
from lightfr._wire.tls import Connection, Pace
from lightfr.errors import (
    IdentityRefusedError,
    LightFRError,
    ProtocolError,
    ServerNotTrustedError,
    ServerUnavailableError,
)

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    T = TypeVar("T")

# The server gives up first, so that its answer says so; the socket's patience is longer.
CALL_TIMEOUT_MS = 30_000
_SOCKET_TIMEOUT_SECONDS = 40.0
_TRIES = 3
# The first pause is uniform below this many seconds, the next below twice that.
_FIRST_PAUSE = 0.5
# Of an answer that is none of ours, and of headers.
_ERROR_LIMIT_BYTES = 65_536


class Channel:
    """A connection to one server, opened when needed and kept. Used by one thread at a time."""

    def __init__(self, server: str, context: ssl.SSLContext, timeout_seconds: float = _SOCKET_TIMEOUT_SECONDS) -> None:
        self.host, self._port = address_of(server)
        self._context, self._timeout_seconds = context, timeout_seconds
        self._connection: Connection | None = None
        self._pace = Pace()
        # Once this is set, no call is begun or tried again: see interrupt.
        self.stop: threading.Event | None = None
        # No call waits for longer, by time.monotonic().
        self.ends = inf

    def to(self, server: str, timeout_seconds: float) -> Channel:
        """Return a channel to another server of the same authority, as the same device, with other patience."""
        other = Channel(server, self._context, timeout_seconds)
        other.stop, other.ends = self.stop, self.ends
        return other

    def call(self, method: str, request: bytes, limit_bytes: int) -> bytes:
        """Call 'Service/Method' and return the answer's bytes; every call may be repeated without harm, and is."""
        headers = {
            "Content-Type": "application/proto",
            "Connect-Protocol-Version": "1",
            "Connect-Timeout-Ms": str(CALL_TIMEOUT_MS),
        }

        def once() -> bytes:
            with self._request("POST", f"/lightfr.v1.{method}", headers, request, limit_bytes) as response:
                return _read(response, limit_bytes)

        return self._with_retries(once)

    @contextmanager
    def get(self, path: str, headers: dict[str, str], limit_bytes: int) -> Iterator[HTTPResponse]:
        """GET a path: 200, 206 or 416; the body must be read to its end, else the connection is given up."""
        with self._request("GET", path, headers, None, limit_bytes, accepted=(200, 206, 416)) as response:
            yield response

    def use_identity(self, context: ssl.SSLContext) -> None:
        """Go on with another identity, from the next request on."""
        self.close()
        self._context = context

    def interrupt(self) -> None:
        """Wake up a call that waits for the server in another thread. It fails if `stop` is set, else tries again."""
        sock = self._connection.sock if self._connection is not None else None
        if sock is not None:
            with suppress(OSError):
                # The method of ssl would take the TLS state away from the thread that reads.
                socket.socket.shutdown(sock, socket.SHUT_RDWR)

    def _is_stopped(self) -> bool:
        return (self.stop is not None and self.stop.is_set()) or time.monotonic() > self.ends

    def close(self) -> None:
        """Close the connection; the next request opens a new one."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _with_retries(self, once: Callable[[], T]) -> T:
        for tried in range(1, _TRIES + 1):
            try:
                return once()
            except ServerUnavailableError:
                if tried == _TRIES or self._is_stopped():
                    raise
                # Jitter: devices that lost the same server do not come back together. No secret, so any generator.
                time.sleep(random.uniform(0, _FIRST_PAUSE * 2 ** (tried - 1)))  # noqa: S311
        raise AssertionError("unreachable")  # pragma: no cover - the last try returns or raises

    @contextmanager
    def _request(
        self,
        verb: str,
        path: str,
        headers: dict[str, str],
        body: bytes | None,
        limit_bytes: int,
        accepted: tuple[int, ...] = (200,),
    ) -> Iterator[HTTPResponse]:
        response = None
        try:
            most_bytes = len(body or b"") + _ERROR_LIMIT_BYTES + limit_bytes
            self._pace.begin(self._timeout_seconds, most_bytes, self.ends)
            response = self._send(verb, path, headers, body)
            if response.status not in accepted:
                body = response.read(_ERROR_LIMIT_BYTES)
                if len(body) < _ERROR_LIMIT_BYTES:
                    _require_whole(response, body)
                raise refusal(response.status, body)
            yield response
        except LightFRError:
            raise
        except (OSError, HTTPException) as error:
            raise _explained(error, f"{self.host}:{self._port}") from error
        finally:
            # An answer that was not read to its end would be taken for the next one's.
            if response is None or not response.isclosed():
                self.close()

    def _send(self, verb: str, path: str, headers: dict[str, str], body: bytes | None) -> HTTPResponse:
        """Send on the kept connection; when the server has closed that meanwhile, once more on a new one."""
        kept = self._connection is not None
        try:
            return self._send_once(verb, path, headers, body)
        except (RemoteDisconnected, ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError):
            self.close()
            if not kept:
                raise
        return self._send_once(verb, path, headers, body)

    def _send_once(self, verb: str, path: str, headers: dict[str, str], body: bytes | None) -> HTTPResponse:
        if self._is_stopped():
            raise ServerUnavailableError("the call was interrupted, or its time is over")
        if self._connection is None:
            self._connection = Connection(self.host, self._port, context=self._context, timeout=self._timeout_seconds)
            self._connection.pace = self._pace
        connection = self._connection
        connection.putrequest(verb, path, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        return connection.getresponse()


def _read(response: HTTPResponse, limit_bytes: int) -> bytes:
    body = response.read(limit_bytes + 1)
    if len(body) > limit_bytes:
        raise ProtocolError(f"the server's answer is longer than {limit_bytes} bytes")
    _require_whole(response, body)
    # A message that was cut off may parse as well.
    if response.length is None and not response.chunked:
        raise ProtocolError("the server's answer does not say how long it is")
    return body


def _require_whole(response: HTTPResponse, body: bytes) -> None:
    """Raise ServerUnavailableError for an answer that broke off.

    http.client takes the end of the connection for the end of the answer, and even for the end of its headers: then the
    answer has neither a length nor a body.
    """
    if response.length or (response.length is None and not response.chunked and not body):
        raise ServerUnavailableError(f"the server's answer broke off after {len(body)} bytes: try again later")


def _explained(error: OSError | HTTPException, server: str) -> LightFRError:
    """Say what went wrong on the way, and whose turn it is."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return ServerNotTrustedError(f"the certificate of {server} was not accepted: {error.verify_message}")
    if isinstance(error, ssl.SSLError):
        alert = (error.reason or "").upper()
        if ("ALERT" in alert and "CERTIFICATE" in alert) or "UNKNOWN_CA" in alert:
            return IdentityRefusedError(
                f"{server} refused this device's certificate ({alert.lower()}): forget this device and enrol again"
            )
        if "VERSION" in alert or "PROTOCOL" in alert:
            return ServerNotTrustedError(f"{server} does not speak TLS 1.3")
    return ServerUnavailableError(f"no answer from {server} ({type(error).__name__}): try again later")
