"""What one caller may use of a listener, so that nobody uses up the share of the others.

A caller is a device, known by its certificate; whoever shows none is known by the address. A connection counts for the
address until a request on it was accepted from a device, and for the device from then on: many may share one address.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from lightfr.v1 import error_pb2
from lightfr_harness.server.coordinator.refusals import Refusal


@dataclass(frozen=True)
class Limits:
    """Of one listener. The addresses' limits are wide: a whole company may be behind one address."""

    # Connections without an accepted request: of one address, of all, and how long each may stay so.
    unproven_per_address: int = 2048
    unproven: int = 8192
    proof_seconds: float = 30.0
    connections_per_device: int = 32
    # Of each caller. The burst is how many requests may come at any speed before the rate counts.
    requests_at_once: int = 16
    requests_per_second: float = 200.0
    request_burst: int = 1000
    # Of each address.
    wrong_tokens_per_second: float = 1.0
    wrong_token_burst: int = 100
    # A body may take so long, and a second more for every so many bytes of it that have come.
    body_seconds: float = 10.0
    body_bytes_per_second: int = 1024


FOR_DEVICES = Limits()
# Whoever enrols or renews sends one request and is done.
FOR_NEWCOMERS = Limits(
    unproven_per_address=256, unproven=2048, requests_at_once=64, requests_per_second=50, request_burst=500
)
# Programs of this machine. They prove nothing, and may keep a connection.
FOR_OPERATORS = Limits(proof_seconds=3600.0)


class Rate:
    """So many a second for each caller, after a burst."""

    def __init__(self, per_second: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._spacing, self._slack, self._clock = 1 / per_second, burst / per_second, clock
        # Caller to the time at which all that it took is paid off.
        self._paid_at: dict[str, float] = {}
        self._sweep_at = 1024

    def has_room(self, caller: str) -> bool:
        return self._paid_at.get(caller, 0.0) - self._clock() <= self._slack - self._spacing

    def take(self, caller: str) -> None:
        now = self._clock()
        self._paid_at[caller] = max(self._paid_at.get(caller, now), now) + self._spacing
        if len(self._paid_at) > self._sweep_at:
            self._paid_at = {one: paid_at for one, paid_at in self._paid_at.items() if paid_at > now}
            self._sweep_at = max(1024, 2 * len(self._paid_at))


class Requests:
    """The requests of all callers of one listener."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._at_once = limits.requests_at_once
        self._rate = Rate(limits.requests_per_second, limits.request_burst, clock)
        self._wrong_tokens = Rate(limits.wrong_tokens_per_second, limits.wrong_token_burst, clock)
        self._active: Counter[str] = Counter()

    @contextmanager
    def one_of(self, caller: str, address: str) -> Iterator[None]:
        """While a request of the caller is worked on; a refusal if it, or its address, has its share already."""
        if self._active[caller] >= self._at_once:
            raise overloaded(f"{self._at_once} requests of yours are being worked on: wait for their answers")
        if not self._rate.has_room(caller):
            raise overloaded("too many requests a second: try again later")
        if not self._wrong_tokens.has_room(address):
            raise overloaded("too many wrong tokens came from this address: try again later")
        self._rate.take(caller)
        self._active[caller] += 1
        try:
            yield
        finally:
            self._active[caller] -= 1
            if not self._active[caller]:
                del self._active[caller]

    def had_wrong_token(self, address: str) -> None:
        self._wrong_tokens.take(address)


def overloaded(message: str) -> Refusal:
    return Refusal(error_pb2.ERROR_REASON_OVERLOADED, message)


class Connection(socket.socket):
    """One that was accepted. It leaves the books when it is closed."""

    def __init__(self, accepted: socket.socket, books: Connections, peer: Any) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        self.books, self.peer, self.address = books, peer, address_of(peer)
        # Once a request of it was accepted.
        self.device = ""

    def close(self) -> None:
        super().close()
        self.books.forget(self)

    def drop(self) -> None:
        """End it, whatever it is about: the event loop sees its end and closes it."""
        self.books.forget(self)
        with suppress(OSError):
            self.shutdown(socket.SHUT_RDWR)


class Connections:
    """The open connections of one listener. `refused` is told of each that was ended for want of room."""

    def __init__(self, limits: Limits, refused: Callable[[], None] = lambda: None) -> None:
        self._limits, self._refused = limits, refused
        # By the address and port of the other side.
        self._open: dict[Any, Connection] = {}
        # Those without an accepted request, the oldest first, and what ends each when its time is over.
        self._unproven: dict[Connection, asyncio.TimerHandle] = {}
        self._of_address: Counter[str] = Counter()
        self._of_device: Counter[str] = Counter()

    def admit(self, connection: Connection) -> bool:
        """Whether a new connection may stay. When all are too many, the oldest that has shown nothing goes."""
        if self._of_address[connection.address] >= self._limits.unproven_per_address:
            self._refused()
            return False
        if len(self._unproven) >= self._limits.unproven:
            self._refused()
            next(iter(self._unproven)).drop()
        loop = asyncio.get_running_loop()
        self._unproven[connection] = loop.call_later(self._limits.proof_seconds, connection.drop)
        self._open[connection.peer] = connection
        self._of_address[connection.address] += 1
        return True

    def prove(self, peer: Any, device: str) -> None:
        """A device is known to be behind a connection; a refusal if it has too many."""
        connection = self._open.get(peer)
        if connection is None or connection.device:
            return
        if self._of_device[device] >= self._limits.connections_per_device:
            raise overloaded(f"this device has {self._limits.connections_per_device} connections: close some")
        self.forget(connection)
        self._open[peer], connection.device = connection, device
        self._of_device[device] += 1

    def forget(self, connection: Connection) -> None:
        """Count it no longer."""
        # Whoever reset a connection may come again from the same port before the first one is closed here.
        if self._open.get(connection.peer) is connection:
            del self._open[connection.peer]
        if connection.device:
            _count_down(self._of_device, connection.device)
            connection.device = ""
        elif connection in self._unproven:
            self._unproven.pop(connection).cancel()
            _count_down(self._of_address, connection.address)


def _count_down(counter: Counter[str], key: str) -> None:
    counter[key] -= 1
    if not counter[key]:
        del counter[key]


def address_of(peer: Any) -> str:
    """What counts as one address: with IPv6 a whole network, for its owner has all of it."""
    host = str(peer[0]).partition("%")[0]
    if ":" not in host:
        return host
    address = ipaddress.IPv6Address(host)
    return str(address.ipv4_mapped or ipaddress.IPv6Network((address, 64), strict=False))


class Door(socket.socket):
    """A listening socket that lets in only as many as the limits allow, before TLS costs anything."""

    def __init__(self, family: int, kind: int, protocol: int, books: Connections) -> None:
        super().__init__(family, kind, protocol)
        self._books = books

    def accept(self) -> tuple[Connection, Any]:
        """The next connection that may stay; BlockingIOError when there is none."""
        while True:
            accepted, peer = super().accept()
            connection = Connection(accepted, self._books, peer)
            if self._books.admit(connection):
                return connection, peer
            # A reset: the system need not remember the connection.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()


def doors(host: str, port: int, books: Connections) -> list[Door]:
    """Bound sockets for every address that the host has; raises OSError."""
    made: list[Door] = []
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            door = Door(family, kind, protocol, books)
            made.append(door)
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                door.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            door.bind(address)
    except OSError:
        for door in made:
            door.close()
        raise
    return made
