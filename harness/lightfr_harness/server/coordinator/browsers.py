"""HTTPS for web pages: the newest signed manifest and the artifacts, to anybody, and nothing else.

A page cannot show a client certificate, so this port asks for none. What it serves is public; pages of one other origin
may read it.
"""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import web

from lightfr_harness.server.authority import keys
from lightfr_harness.server.coordinator import downloads
from lightfr_harness.server.coordinator.coordinator import Coordinator
from lightfr_harness.server.coordinator.database import StorageError
from lightfr_harness.server.coordinator.limits import Connections, Limits, Requests, address_of
from lightfr_harness.server.coordinator.options import SettingsError, is_loopback
from lightfr_harness.server.coordinator.refusals import Refusal

# By address, behind which a whole company may be. A connection proves itself by its first request.
FOR_BROWSERS = Limits(
    unproven_per_address=256,
    unproven=2048,
    connections_per_device=256,
    requests_at_once=64,
    requests_per_second=50,
    request_burst=500,
)

_PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True)
class BrowserPort:
    """Where pages ask: port 0 picks a free one. Without an origin only pages of this very address may read answers."""

    port: int = 0
    origin: str = ""
    # PEM files that browsers trust; None: what the coordinator shows to devices.
    certificate: Path | None = None
    key: Path | None = None

    def __post_init__(self) -> None:
        if self.origin and not _is_origin(self.origin):
            raise SettingsError(
                f"--web-origin is {self.origin}, expected https://HOST or https://HOST:PORT as a browser sends it:"
                " without a path, without the port 443, and a name of other letters as xn--..."
            )
        if (self.certificate is None) != (self.key is None):
            raise SettingsError("--web-certificate and --web-key belong together: name both or none")


def _is_origin(text: str) -> bool:
    """Whether it is exactly what a browser sends as Origin; plain HTTP only for pages of this machine."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return False
    shown = f"[{host}]" if ":" in host else host
    # Browsers leave out the port that the scheme has anyway, and write names in ASCII.
    whole = f"{parts.scheme}://{shown}" + ("" if port is None or port == _PORTS.get(parts.scheme) else f":{port}")
    is_allowed = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
    return text == whole and text.isascii() and bool(host) and is_allowed


def _new_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


class Certificate:
    """What this port shows to browsers. Renewed files are taken up while it listens."""

    def __init__(self, wanted: BrowserPort, credentials: Path) -> None:
        """Take the options, and the coordinator's own folder."""
        self._files = (
            wanted.certificate or credentials / keys.SERVER_CERTIFICATE,
            wanted.key or credentials / keys.SERVER_KEY,
        )
        self._state: list[int] = []
        self.refresh()

    def context(self) -> ssl.SSLContext:
        """TLS 1.3 without client certificates, with the files of the last refresh."""
        context = _new_context()
        # Called in every handshake, with or without a server name.
        context.sni_callback = self._switch_to_live_context
        return context

    def refresh(self) -> None:
        """Load the files if they changed; raises SettingsError when they do not fit, and goes on with the old ones."""
        try:
            state = [file.stat().st_mtime_ns for file in self._files]
            if state == self._state:
                return
            context = _new_context()
            context.load_cert_chain(*self._files)
        except OSError as error:  # SSLError is one too.
            names = " and ".join(f"'{file.name}'" for file in self._files)
            raise SettingsError(
                f"the certificate for browsers cannot be used: {names} must be readable PEM files, a certificate and"
                " the key that belongs to it, not encrypted. Name them with --web-certificate and --web-key"
            ) from error
        self._live_context, self._state = context, state

    def _switch_to_live_context(self, connection: ssl.SSLObject, _name: str | None, _first: ssl.SSLContext) -> None:
        connection.context = self._live_context


def application(
    coordinator: Coordinator, origin: str, connections: Connections, limits: Limits = FOR_BROWSERS
) -> web.Application:
    """The routes: GET and HEAD of /manifest and of /artifacts/<digest>."""
    requests = Requests(limits)

    @web.middleware
    async def limited(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        peer = request.get_extra_info("peername")
        if peer is None:
            return web.Response(status=503)
        address = address_of(peer)
        try:
            connections.prove(peer, address)
            with requests.one_of(address, address):
                return await handler(request)
        except Refusal as refusal:
            return web.Response(status=503, text=f"{refusal}\n", headers={"Retry-After": "10"})

    async def manifest(request: web.Request) -> web.Response:
        signed = coordinator.version.signed.SerializeToString()
        tag = f'"{hashlib.sha256(signed).hexdigest()}"'
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        if request.headers.get("If-None-Match") == tag:
            return web.Response(status=304, headers=headers)
        coordinator.metrics.sent.inc(len(signed))
        return web.Response(body=signed, content_type="application/proto", headers=headers)

    async def artifact(request: web.Request) -> web.StreamResponse:
        try:
            await coordinator.have_artifact(request.match_info["digest"])
        except StorageError:
            return web.Response(status=503, text="the database is away\n", headers={"Retry-After": "10"})
        response, size = await downloads.answer(request, coordinator.artifacts, request.match_info["digest"])
        coordinator.metrics.sent.inc(size)
        return response

    async def finish_headers(_: web.Request, response: web.StreamResponse) -> None:
        response.headers.pop("Server", None)
        response.headers["X-Content-Type-Options"] = "nosniff"
        if origin:
            response.headers["Access-Control-Allow-Origin"] = origin

    made = web.Application(middlewares=[limited], client_max_size=0)
    made.router.add_get("/manifest", manifest)
    made.router.add_get("/artifacts/{digest:[0-9a-f]{64}}", artifact)
    made.on_response_prepare.append(finish_headers)
    return made
