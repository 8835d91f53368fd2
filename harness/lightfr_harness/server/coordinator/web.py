"""HTTP for devices: Connect unary and artifacts over aiohttp. The connection's certificate says who calls."""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from asyncio import sslproto
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from aiohttp import web

from lightfr.errors import InvalidInputError
from lightfr.v1 import error_pb2
from lightfr_harness.server.coordinator import downloads
from lightfr_harness.server.coordinator.database import StorageError
from lightfr_harness.server.coordinator.limits import Connections, Limits, Requests, address_of, doors, overloaded
from lightfr_harness.server.coordinator.refusals import STATUS_OF_CODE, Refusal, connect_error
from lightfr_harness.server.coordinator.requests import Method, seconds_allowed
from lightfr_harness.server.coordinator.telemetry import Log, Metrics

CONTENT_TYPE = "application/proto"
# A request may not take longer to arrive than this, whatever its Connect-Timeout-Ms says.
LONGEST_REQUEST_SECONDS = 60.0
MOST_REQUESTS_AT_ONCE = 4096
KEEP_ALIVE_SECONDS = 75.0
# After a refusal, how long the rest of a body is read and dropped so that the answer gets through.
LINGERING_SECONDS = 2.0
# When stopping, how long requests may still take.
SHUTDOWN_SECONDS = 5.0
# asyncio gives each TLS connection a read buffer of 256 KB, and touches all of it: half a gigabyte for 2,000 devices
# that wait. A TLS record has at most 16 KB.
TLS_BUFFER_BYTES = 16 * 1024
_TIMEOUT = re.compile(r"\d{1,10}", re.ASCII)

# The device that a connection belongs to; empty: a newcomer; None: nobody that may call.
Identify = Callable[[Any], str | None]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Service(Protocol):
    """A service of proto/: its full name, and its methods by name."""

    name: str
    methods: dict[str, Method]

    def limit_bytes(self, method: str) -> int:
        """The largest request that is read."""


class Caller(NamedTuple):
    """Who sent a request: the device, empty for a newcomer, and from which address."""

    device: str
    address: str


# Of the request at hand.
_caller: ContextVar[Caller] = ContextVar("caller")


class Observer(Protocol):
    """What a measuring program may watch. It is called on the event loop and must be quick."""

    def called(self, device: str, method: str, request_bytes: int, answer_bytes: int) -> None:
        """A procedure was carried out for a device; refused calls are not told."""

    def downloaded(self, device: str, artifact: str, sent_bytes: int) -> None:
        """So many bytes were sent of an artifact, which is named by its kind: see Coordinator.artifact_kind."""


class HttpService:
    """One service behind HTTP, and the connections to it."""

    def __init__(
        self,
        service: Service,
        identify: Identify,
        metrics: Metrics,
        log: Log,
        limits: Limits,
        observer: Observer | None = None,
    ) -> None:
        self._service, self._identify = service, identify
        self._metrics, self._log, self._observer = metrics, log, observer
        self._limits, self._requests = limits, Requests(limits)
        self.connections = Connections(limits, metrics.connections_refused.inc)
        self._active = 0
        self.is_closing = False

    def application(
        self,
        artifacts: Path | None = None,
        have: Callable[[str], Awaitable[None]] | None = None,
        kind_of: Callable[[str], str] = lambda _: "unknown",
    ) -> web.Application:
        """The routes: procedures, and downloads where there are any.

        `have` may bring an artifact into the folder; `kind_of`: what the observer calls a digest.
        """
        application = web.Application(middlewares=[self._limited])
        for name in self._service.methods:
            application.router.add_post(f"/{self._service.name}/{name}", self._route(name))
        if artifacts is not None:
            self._artifacts, self._have, self._kind_of = artifacts, have, kind_of
            application.router.add_get("/artifacts/{digest:[0-9a-f]{64}}", self._download)
        application.on_response_prepare.append(_drop_server_header)
        return application

    @web.middleware
    async def _limited(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Ask who calls, anew with every request, and let each caller have its share."""
        try:
            peer, device = request.get_extra_info("peername"), self._identify(request.get_extra_info("peercert"))
            if device is None:
                message = "this identity has ended, is revoked or unknown: enrol again"
                raise Refusal(error_pb2.ERROR_REASON_IDENTITY, message)
            if peer is None:
                raise overloaded("the connection is closed")
            if device:
                self.connections.prove(peer, device)
            caller = Caller(device, address_of(peer))
            _caller.set(caller)
            with self._requests.one_of(caller.device or caller.address, caller.address):
                return await handler(request)
        except Refusal as refusal:
            return self._refuse(refusal)

    def _route(self, name: str) -> Callable[[web.Request], Any]:
        seconds = self._metrics.seconds.labels(name)

        async def handle(request: web.Request) -> web.Response:
            started = time.perf_counter()
            self._active += 1
            try:
                return await self._answer(request, name)
            finally:
                self._active -= 1
                seconds.observe(time.perf_counter() - started)

        return handle

    async def _answer(self, request: web.Request, name: str) -> web.Response:
        if request.content_type != CONTENT_TYPE:
            return web.Response(status=415, headers={"Accept-Post": CONTENT_TYPE})
        if request.headers.get("Content-Encoding", "identity") != "identity":
            return self._error("unimplemented", "this server does not read compressed requests: send plain bytes")
        try:
            body = await self._call(request, name)
        except Refusal as refusal:
            if refusal.reason == error_pb2.ERROR_REASON_TOKEN:
                self._note_wrong_token(_caller.get().address)
            return self._refuse(refusal)
        except TimeoutError:
            return self._error("deadline_exceeded", "the request took longer than its timeout")
        except StorageError:
            return self._refuse(overloaded("the server is stopping: try again later"))
        except Exception as error:  # A fault of ours: it must not tell the device anything, nor stop the others.
            self._log.fault("internal_error", error)
            return self._error("internal", "internal error")
        self._metrics.sent.inc(len(body))
        return web.Response(body=body, content_type=CONTENT_TYPE)

    async def _call(self, request: web.Request, name: str) -> bytes:
        if self.is_closing or self._active > MOST_REQUESTS_AT_ONCE:
            raise overloaded("the server is busy or stopping: try again later")
        if request.headers.get("Connect-Protocol-Version", "1") != "1":
            raise Refusal(error_pb2.ERROR_REASON_MALFORMED, "this server speaks version 1 of the Connect protocol")
        seconds, clock = _timeout_seconds(request), asyncio.get_running_loop().time
        ends = clock() + seconds
        seconds_allowed.set(seconds)
        async with asyncio.timeout_at(ends):
            body = await _read(request, self._service.limit_bytes(name), self._limits)
        if clock() >= ends:
            raise TimeoutError
        self._metrics.received.inc(len(body))
        # To its end, also when time is over meanwhile: a change that is stored must come into memory as well.
        answer = await self._service.methods[name](_caller.get().device, body)
        if self._observer is not None:
            self._observer.called(_caller.get().device, name, len(body), len(answer))
        return answer

    def _note_wrong_token(self, address: str) -> None:
        self._requests.had_wrong_token(address)
        self._log.event("wrong_token", address=address)

    async def _download(self, request: web.Request) -> web.StreamResponse:
        digest = request.match_info["digest"]
        kind = self._kind_of(digest) if self._observer else ""
        try:
            if self._have is not None:
                await self._have(digest)
        except StorageError:
            return self._refuse(overloaded("the database is away: try again later"))
        response, size = await downloads.answer(request, self._artifacts, digest)
        self._metrics.sent.inc(size)
        if self._observer is not None and response.status in (200, 206):
            self._observer.downloaded(_caller.get().device, kind, size)
        return response

    def _refuse(self, refusal: Refusal) -> web.Response:
        self._metrics.refusals.labels(refusal.name).inc()
        return _json(STATUS_OF_CODE[refusal.code], refusal.body())

    def _error(self, code: str, message: str) -> web.Response:
        self._metrics.refusals.labels(code).inc()
        return _json(STATUS_OF_CODE[code], connect_error(code, message))


def _json(status: int, body: bytes) -> web.Response:
    return web.Response(status=status, body=body, content_type="application/json")


def _timeout_seconds(request: web.Request) -> float:
    header = request.headers.get("Connect-Timeout-Ms")
    if header is None:
        return LONGEST_REQUEST_SECONDS
    if not _TIMEOUT.fullmatch(header):
        raise Refusal(error_pb2.ERROR_REASON_MALFORMED, "Connect-Timeout-Ms must be a number of at most 10 digits")
    return min(int(header) / 1000, LONGEST_REQUEST_SECONDS)


async def _read(request: web.Request, limit_bytes: int, limits: Limits) -> bytes:
    """The body, if it is within the limit, by what is announced and while it comes, and if it comes fast enough."""
    if request.content_length is not None:
        _require_size(request.content_length, limit_bytes)
    try:
        # A small body comes with its headers, and needs no clock.
        is_there = request.content.is_eof()
        body = request.content.read_nowait() if is_there else await _read_in_time(request, limit_bytes, limits)
    except (web.RequestPayloadError, ConnectionError) as error:
        raise Refusal(error_pb2.ERROR_REASON_MALFORMED, "the body ended early") from error
    _require_size(len(body), limit_bytes)
    return body


async def _read_in_time(request: web.Request, limit_bytes: int, limits: Limits) -> bytes:
    """The body that is on its way. Every byte puts its deadline off, which is reckoned when the last one is over."""
    pieces: list[bytes] = []
    size, latest = 0, asyncio.get_running_loop().time() + limits.body_seconds
    deadline = latest
    while True:
        try:
            async with asyncio.timeout_at(deadline):
                async for piece in request.content.iter_any():
                    pieces.append(piece)
                    size += len(piece)
                    _require_size(size, limit_bytes)
                return b"".join(pieces)
        except TimeoutError as error:
            put_off = latest + size / limits.body_bytes_per_second
            if put_off <= deadline:
                raise overloaded("the body came too slowly: try again on a better link") from error
            deadline = put_off


def _require_size(size_bytes: int, limit_bytes: int) -> None:
    if size_bytes > limit_bytes:
        message = f"the request has {size_bytes} bytes or more; the limit is {limit_bytes}"
        raise Refusal(error_pb2.ERROR_REASON_TOO_LARGE, message, limit_bytes=limit_bytes)


async def _drop_server_header(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.pop("Server", None)


async def listen(
    application: web.Application, host: str, port: int, context: ssl.SSLContext | None, connections: Connections
) -> tuple[web.AppRunner, int]:
    """Start to serve; the runner and the port it got."""
    sslproto.SSLProtocol.max_size = TLS_BUFFER_BYTES
    runner = web.AppRunner(
        application,
        access_log=None,
        keepalive_timeout=KEEP_ALIVE_SECONDS,
        lingering_time=LINGERING_SECONDS,
        auto_decompress=False,
        shutdown_timeout=SHUTDOWN_SECONDS,
    )
    await runner.setup()
    try:
        for door in doors(host, port, connections):
            await web.SockSite(runner, door, ssl_context=context, backlog=1024).start()
    except (OSError, UnicodeError) as error:
        await runner.cleanup()
        reason = error.strerror if isinstance(error, OSError) else "that is no name of a host"
        message = f"cannot listen on {host}, port {port}: {reason}. Choose another host or port"
        raise InvalidInputError(message) from error
    return runner, runner.addresses[0][1]
