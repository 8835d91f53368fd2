"""The suite's own client: HTTP over TLS with any certificate, any headers and any body, so that it can misbehave."""

from __future__ import annotations

import base64
import json
import select
import ssl
import time
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from google.protobuf.message import DecodeError, Message

from lightfr.v1 import error_pb2
from lightfr_harness.conformance.expectations import Unexpected, expect, expect_equal

TIMEOUT_SECONDS = 20.0
SERVICE = "/lightfr.v1.CoordinatorService/"
ENROLLMENT = "/lightfr.v1.EnrollmentService/"
PROTO = {"Content-Type": "application/proto", "Connect-Protocol-Version": "1"}

# error.proto: the Connect code of each reason, and the HTTP status that Connect gives to the code.
CODE_OF_REASON = {
    "MALFORMED": "invalid_argument",
    "WIRE_VERSION": "failed_precondition",
    "TOO_LARGE": "resource_exhausted",
    "IDENTITY": "permission_denied",
    "TOKEN": "permission_denied",
    "ROUND_UNKNOWN": "not_found",
    "ROUND_CLOSED": "failed_precondition",
    "NOT_ASSIGNED": "permission_denied",
    "MODEL_MISMATCH": "failed_precondition",
    "UPLOAD_CONFLICT": "already_exists",
    "UPLOAD_INVALID": "invalid_argument",
    "OVERLOADED": "unavailable",
    "RENEWAL_EARLY": "failed_precondition",
}
STATUS_OF_CODE = {
    "invalid_argument": 400,
    "failed_precondition": 400,
    "permission_denied": 403,
    "not_found": 404,
    "already_exists": 409,
    "resource_exhausted": 429,
    "unimplemented": 501,
    "unavailable": 503,
    "deadline_exceeded": 504,
}

AnyMessage = TypeVar("AnyMessage", bound=Message)


class NoAnswer(Exception):  # noqa: N818 - what some cases want to see
    """The connection or its handshake ended without an HTTP answer; says how."""


class Hanging(Exception):  # noqa: N818 - what no case wants to see
    """Nothing came in time, not even an end of the connection."""


@dataclass(frozen=True)
class Answer:
    """What the server said."""

    status: int
    headers: dict[str, str]
    body: bytes = field(repr=False)
    # The method or the path that was asked.
    to: str = ""

    def message(self, kind: type[AnyMessage]) -> AnyMessage:
        """The message of a good answer; anything else is unexpected."""
        name = kind.DESCRIPTOR.name
        expect(self.status == 200, f"200 with a {name} from {self.to}", self)
        expect_equal("Content-Type of a good answer", self.headers.get("content-type"), "application/proto")
        try:
            return kind.FromString(self.body)
        except DecodeError as error:
            raise Unexpected(f"a {name}", f"{len(self.body)} bytes that do not parse") from error

    def refusal(self, reason: str) -> error_pb2.ErrorDetail:
        """The detail of a refusal for this reason, with its code and HTTP status; anything else is unexpected."""
        error = self.error_with(CODE_OF_REASON[reason], f", {reason}")
        detail = _detail(error, reason)
        got = error_pb2.ErrorReason.Name(detail.reason).removeprefix("ERROR_REASON_")
        expect(got == reason, f"reason {reason} from {self.to}", f"{got} ({error.get('message')})")
        return detail

    def error_with(self, code: str, more: str = "") -> dict[str, object]:
        """Connect's JSON with this code and its HTTP status; anything else is unexpected."""
        status = STATUS_OF_CODE[code]
        expect(self.status == status, f"HTTP {status}, {code}{more} from {self.to}", self)
        error = self.error()
        expect(error.get("code") == code, f"code {code}{more} from {self.to}", self)
        return error

    def error(self) -> dict[str, object]:
        """Connect's JSON."""
        expect_equal("Content-Type of an error", self.headers.get("content-type", "").split(";")[0], "application/json")
        try:
            error = json.loads(self.body)
        except ValueError as fault:
            raise Unexpected("an error in JSON", f"{len(self.body)} bytes that are not JSON") from fault
        if not isinstance(error, dict):
            raise Unexpected("a JSON object", type(error).__name__)
        return error

    def __str__(self) -> str:
        if self.headers.get("content-type", "").startswith("application/json"):
            return f"HTTP {self.status}, {self.body[:300].decode(errors='replace')}"
        return f"HTTP {self.status} with {len(self.body)} bytes"


def _detail(error: dict[str, object], reason: str) -> error_pb2.ErrorDetail:
    details = error.get("details")
    expect(
        isinstance(details, list) and len(details) == 1 and isinstance(details[0], dict),
        f"one detail in the error, an ErrorDetail with {reason}",
        f"details {details}",
    )
    detail = details[0]  # type: ignore[index]
    expect_equal("type of the detail", detail.get("type"), "lightfr.v1.ErrorDetail")
    value = detail.get("value")
    expect(isinstance(value, str) and "=" not in value, "a detail in base64 without padding", value)
    try:
        return error_pb2.ErrorDetail.FromString(base64.b64decode(value + "=" * (-len(value) % 4), validate=True))
    except (ValueError, DecodeError) as fault:
        raise Unexpected("a detail that is an ErrorDetail in base64", value) from fault


def tls_context(trust: Path, identity: Path | None) -> ssl.SSLContext:
    """As a good device has it; cases turn its screws."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(trust)
    if identity is not None:
        context.load_cert_chain(identity)
    return context


class RawClient:
    """One connection to one address, opened when needed and kept. For one thread."""

    def __init__(self, address: str, context: ssl.SSLContext) -> None:
        parts = urlsplit(address)
        self._host, self._port = parts.hostname or "", parts.port or 443
        self._context = context
        self._connection: HTTPSConnection | None = None

    def post(self, path: str, body: bytes, headers: dict[str, str] | None = None) -> Answer:
        """A call as a good device makes it, with these headers besides or instead."""
        return self.request("POST", path, body, PROTO | (headers or {}))

    def request(self, verb: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        """Any request. A body gets its Content-Length unless headers say how it is sent."""
        named = {name.lower() for name in headers}
        if body is not None and not named & {"content-length", "transfer-encoding"}:
            headers = headers | {"Content-Length": str(len(body))}
        is_kept = self._connection is not None
        try:
            return self._exchange(verb, path, body, headers)
        except NoAnswer:
            # The server may close a kept connection between two requests; a new one has no such excuse.
            if not is_kept:
                raise
        return self._exchange(verb, path, body, headers)

    def _exchange(self, verb: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        asked = path.rsplit("/", 1)[-1][:24]
        try:
            connection = self._connection = self._connection or self._connected()
            connection.putrequest(verb, path, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            return self._answer(connection.getresponse(), asked)
        except (OSError, HTTPException) as error:
            self.close()
            raise _no_answer(f"no answer from {asked}", error) from error

    def _answer(self, response: HTTPResponse, asked: str) -> Answer:
        headers = {name.lower(): value for name, value in response.getheaders()}
        answer = Answer(response.status, headers, response.read(), asked)
        if response.will_close:
            self.close()
        return answer

    def _connected(self) -> HTTPSConnection:
        connection = HTTPSConnection(self._host, self._port, context=self._context, timeout=TIMEOUT_SECONDS)
        try:
            connection.connect()
        except OSError:
            connection.close()
            raise
        return connection

    def break_off(self, path: str, body: bytes, announced: int) -> None:
        """Announce so many bytes, send these, and be gone."""
        self.handshake()
        assert self._connection is not None  # noqa: S101 - handshake made it
        self._connection.putrequest("POST", path, skip_accept_encoding=True)
        for name, value in (PROTO | {"Content-Length": str(announced)}).items():
            self._connection.putheader(name, value)
        self._connection.endheaders(body)
        self.close()

    def handshake(self) -> ssl.SSLSocket:
        """Connect and shake hands; the socket, of this client."""
        try:
            self._connection = self._connection or self._connected()
        except OSError as error:
            raise _no_answer("no handshake", error) from error
        return self._connection.sock

    def has_ticket(self, seconds: float) -> bool:
        """Whether the server sends a session ticket after the handshake, before it is asked anything."""
        sock, ends = self.handshake(), time.monotonic() + seconds
        sock.setblocking(False)
        try:
            while not (sock.session and sock.session.has_ticket) and (left := ends - time.monotonic()) > 0:
                select.select([sock], [], [], left)
                try:
                    sock.recv(1)
                    return False
                except ssl.SSLWantReadError:
                    continue
            return bool(sock.session and sock.session.has_ticket)
        finally:
            sock.settimeout(TIMEOUT_SECONDS)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def _no_answer(what: str, error: BaseException) -> NoAnswer | Hanging:
    if isinstance(error, TimeoutError):
        return Hanging(f"{what} within {TIMEOUT_SECONDS:.0f} s")
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or ""
    return NoAnswer(f"{what} ({type(error).__name__}{': ' if reason else ''}{reason})")
