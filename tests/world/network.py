"""The network: connections of bytes that come late, are cut anywhere, are refused, or are said twice by something
in between.

TLS is left out: its records are random, so a cut would not repeat. A connection carries the certificate that the device
shows, and the checks of a handshake are made when it opens: the issuer, the time and the revocation list. What the
shipped code asks for with every request, it asks here too. HTTP is real on both sides: http.client, and aiohttp's
protocol, are fed with the bytes.
"""

from __future__ import annotations

import asyncio
import io
import os
import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cryptography import x509

from lightfr._wire.tls import Pace, Response
from lightfr.device import read_certificate
from lightfr.errors import EnrollmentError, InvalidInputError
from lightfr_harness.server.authority.credentials import Admission, _name_as_ssl_tells_it
from tests.world.clock import EPOCH, Host, WorldLoop
from tests.world.system import SYSTEM

if TYPE_CHECKING:
    from tests.world.world import World


class Shown(NamedTuple):
    """What stands in for an ssl.SSLContext: the certificate that a device would show; empty: none."""

    certificate: bytes


def context(trust: Path, identity: str | os.PathLike[str] | None) -> Shown:
    """Stand in for lightfr._wire.tls.context, which refuses the same files."""
    if not Path(trust).is_file():
        raise InvalidInputError(f"the trust file {trust} is not a PEM file with the authority's certificate")
    if identity is None:
        return Shown(b"")
    try:
        read_certificate(Path(identity))
        return Shown(Path(identity).read_bytes())
    except (OSError, EnrollmentError) as error:
        raise InvalidInputError(f"the identity {identity} is not a PEM file with a key and its certificate") from error


@lru_cache(4096)
def peer_of(identity: bytes) -> tuple[dict[str, Any], int, float, float]:
    """What `getpeercert()` tells of an identity file's certificate, its serial number, and when it is good."""
    certificate = x509.load_pem_x509_certificates(identity[identity.index(b"-----BEGIN CERTIFICATE") :])[0]
    ends = certificate.not_valid_after_utc
    told = {
        "issuer": _name_as_ssl_tells_it(certificate.issuer),
        "subject": _name_as_ssl_tells_it(certificate.subject),
        "notAfter": ends.strftime("%b %d %H:%M:%S %Y GMT"),
    }
    return told, certificate.serial_number, certificate.not_valid_before_utc.timestamp(), ends.timestamp()


class Listener(NamedTuple):
    """A server that takes connections: its host, its loop, whom it lets in, and what makes a protocol."""

    host: Host
    loop: WorldLoop
    admission: Admission
    protocol: Callable[[], asyncio.Protocol]


class Network:
    """Who listens where, and every connection."""

    def __init__(self, world: World) -> None:
        self.world, self.clock = world, world.clock
        # By host name of an address; several replicas listen behind one.
        self.listeners: dict[str, list[Listener]] = {}
        self.links: list[Link] = []
        self._ports = 1024

    def connect(self, address: str, shown: Shown, timeout: float) -> ClientEnd:
        """Open a connection for the device whose turn it is, or raise as a socket or TLS would."""
        world, host = self.world, SYSTEM.host
        assert host is not None
        SYSTEM.sleep(world.weather.latency())
        fate = world.weather.fate_of_connection()
        if fate == "silent":
            world.note("no_answer", host.name)
            SYSTEM.sleep(timeout)
            raise TimeoutError("timed out")
        alive = [one for one in self.listeners.get(address, []) if one.host.is_alive]
        if fate == "refused" or not alive:
            raise ConnectionRefusedError("refused")
        listener = alive[int(world.weather.random() * len(alive))]
        peer = _require_admitted(listener, shown)
        link = Link(self, listener, host, peer)
        SYSTEM.sleep(world.weather.latency())
        return ClientEnd(link)

    def repeat(self, request: bytes, listener: Listener, host: Host, peer: dict[str, Any] | None) -> None:
        """Say a request once more, on a connection of its own. Nobody hears the answer."""
        alive = [one for one in self.listeners_of(listener) if one.host.is_alive]
        if alive:
            self.world.note("repeated", host.name)
            Link(self, alive[-1], host, peer).up(request, is_first=False)

    def listeners_of(self, listener: Listener) -> list[Listener]:
        return next((found for found in self.listeners.values() if listener in found), [])

    def next_port(self) -> int:
        self._ports += 1
        return self._ports

    def drop(self, host: Host) -> None:
        """A program is dead: the system ends its connections."""
        for found in self.listeners.values():
            found[:] = [one for one in found if one.host is not host]
        for link in [one for one in self.links if host in (one.listener.host, one.host)]:
            link.break_off()


def _require_admitted(listener: Listener, shown: Shown) -> dict[str, Any] | None:
    """Do what a handshake checks; raises SSLError with the alert of a server that refuses."""
    if not shown.certificate:
        return None
    told, serial, begins, ends = peer_of(shown.certificate)
    now = EPOCH + SYSTEM.clock.now + listener.host.clock_offset
    is_known = told["issuer"] == listener.admission._issuer_name
    if not is_known or serial in listener.admission._revoked or not begins <= now <= ends:
        error = ssl.SSLError(1, "[SSL: TLSV13_ALERT_CERTIFICATE] refused")
        error.reason = "SSLV3_ALERT_CERTIFICATE_REVOKED" if is_known else "TLSV1_ALERT_UNKNOWN_CA"
        raise error
    return told


class Link:
    """One connection: two streams of bytes, each in order, until it breaks."""

    def __init__(self, network: Network, listener: Listener, host: Host, peer: dict[str, Any] | None) -> None:
        self.network, self.listener, self.host, self.peer = network, listener, host, peer
        self.inbox, self.is_ended, self.is_reset, self.is_closed = bytearray(), False, False, False
        self.wake: Callable[[], None] | None = None
        self._up_at = self._down_at = 0.0
        self.request = bytearray()
        self.protocol = listener.protocol()
        self.transport = ServerEnd(self)
        network.links.append(self)
        listener.loop.step(self.protocol.connection_made, self.transport)

    def up(self, data: bytes, *, is_first: bool = True) -> None:
        """Carry bytes of the device to the server, or a part of them, and then the end."""
        if is_first:
            self.request += data
        part, is_cut = self._fate(data)
        self._up_at = max(self._up_at, self.network.clock.now + self.network.world.weather.latency())
        self.network.clock.at(self._up_at, lambda: self._arrive(part))
        if is_cut:
            self.network.clock.at(self._up_at, self.break_off)

    def down(self, data: bytes) -> None:
        """Carry bytes of the server to the device, or a part of them."""
        part, is_cut = self._fate(data)
        self._down_at = max(self._down_at, self.network.clock.now + self.network.world.weather.latency())
        self.network.clock.at(self._down_at, lambda: self._hear(part))
        if is_cut:
            self.network.clock.at(self._down_at, self.break_off)

    def _fate(self, data: bytes) -> tuple[bytes, bool]:
        weather = self.network.world.weather
        if not weather.is_cut():
            return data, False
        self.network.world.note("cut", self.host.name)
        return data[: int(weather.random() * len(data))], True

    def _arrive(self, data: bytes) -> None:
        if not self.transport.is_over and data:
            self.listener.loop.step(self.protocol.data_received, data)

    def _hear(self, data: bytes) -> None:
        if not self.is_reset:
            self.inbox += data
            self._wake()

    def _wake(self) -> None:
        if self.wake is not None:
            wake, self.wake = self.wake, None
            wake()

    def end_down(self) -> None:
        """The server closes: the device hears the end after all that was sent."""

        def ended() -> None:
            self.is_ended = True
            self._wake()

        self._down_at = max(self._down_at, self.network.clock.now + self.network.world.weather.latency())
        self.network.clock.at(self._down_at, ended)

    def end_up(self) -> None:
        """The device closes."""
        self.is_closed = True
        self._up_at = max(self._up_at, self.network.clock.now + self.network.world.weather.latency())
        self.network.clock.at(self._up_at, lambda: self.transport.lose(None))

    def break_off(self) -> None:
        """Both sides see a broken connection, unless the device hears nothing more at all."""
        weather = self.network.world.weather
        self.transport.lose(ConnectionResetError("reset"))
        self.is_reset = weather.random() < 0.5
        if not weather.is_silent():
            self.is_ended = True
            self._wake()

    def forget(self) -> None:
        if self in self.network.links:
            self.network.links.remove(self)


class ServerEnd(asyncio.Transport):
    """What aiohttp writes to."""

    def __init__(self, link: Link) -> None:
        super().__init__({"peername": ("192.0.2.1", link.network.next_port()), "peercert": link.peer})
        self._link, self.is_over = link, False

    def write(self, data: Any) -> None:
        if not self.is_over:
            self._link.down(bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def is_closing(self) -> bool:
        return self.is_over

    def close(self) -> None:
        if not self.is_over:
            self._link.end_down()
            self.lose(None)

    abort = close

    def lose(self, error: Exception | None) -> None:
        if not self.is_over:
            self.is_over = True
            self._link.forget()
            self._link.listener.loop.call_soon(self._link.protocol.connection_lost, error)

    def pause_reading(self) -> None:
        """Nothing here is large."""

    def resume_reading(self) -> None:
        """Nothing here is large."""

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing here is large."""


class ClientEnd(io.RawIOBase):
    """What http.client takes for a socket, and for the file of it."""

    pace: Pace

    def __init__(self, link: Link) -> None:
        self._link = link

    def sendall(self, data: Any) -> None:
        self._require_alive()
        if self._link.is_reset or self._link.is_ended:
            raise BrokenPipeError("broken")
        self._link.network.world.watch.leaves(self._link.host, bytes(data))
        self._link.up(bytes(data))
        self.pace.count(len(data))

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(Reader(self._link, self.pace))

    def is_sent(self) -> None:
        """A whole request is under way; something in between may say it again later."""
        link, weather = self._link, self._link.network.world.weather
        request, link.request = bytes(link.request), bytearray()
        if weather.is_repeated():
            later = weather.repeat_seconds()
            link.network.clock.after(
                later, lambda: link.network.repeat(request, link.listener, link.host, link.peer)
            )  # fmt: skip

    def close(self) -> None:
        if not self._link.is_closed:
            self._link.end_up()

    def _require_alive(self) -> None:
        if not self._link.host.is_alive:
            raise BrokenPipeError("the program is dead")


class Reader(io.RawIOBase):
    """The bytes that the device hears, for as long as the pace of its request allows."""

    def __init__(self, link: Link, pace: Pace) -> None:
        self._link, self._pace = link, pace

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        link = self._link
        while not link.inbox:
            if link.is_ended:
                if link.is_reset:
                    raise ConnectionResetError("reset")
                return 0
            assert SYSTEM.world is not None
            assert SYSTEM.host is not None
            link.wake = SYSTEM.world.program_of(SYSTEM.host).waking(True)
            if SYSTEM.block(self._pace.seconds_left()) is None:
                link.wake = None
                raise TimeoutError("timed out")
        count = min(len(buffer), len(link.inbox))
        buffer[:count] = link.inbox[:count]
        del link.inbox[:count]
        return self._pace.count(count)


class Connection(HTTPConnection):
    """Stands in for lightfr._wire.tls.Connection."""

    response_class = Response
    sock: Any
    pace: Pace

    def __init__(self, host: str, port: int, *, context: Shown, timeout: float) -> None:
        super().__init__(host, port, timeout=timeout)
        self._shown, self._patience, self._path = context, timeout, ""

    def putrequest(self, method: str, url: str, **options: Any) -> None:
        self._path = url
        super().putrequest(method, url, **options)

    def endheaders(self, message_body: Any = None, **options: Any) -> None:
        assert SYSTEM.world is not None
        assert SYSTEM.host is not None
        SYSTEM.world.watch.sends(SYSTEM.host, self._path, message_body or b"")
        super().endheaders(message_body, **options)

    def connect(self) -> None:
        assert SYSTEM.world is not None
        self.sock = SYSTEM.world.network.connect(self.host, self._shown, self._patience)
        self.sock.pace = self.pace

    def getresponse(self) -> HTTPResponse:
        if self.sock is not None:
            self.sock.is_sent()
        return super().getresponse()


def utc_of(host: Callable[[], Host]) -> Callable[[], datetime]:
    """The clock of a host, as the authority and its credentials want it."""
    return lambda: datetime.fromtimestamp(EPOCH + SYSTEM.clock.now + host().clock_offset, UTC)
