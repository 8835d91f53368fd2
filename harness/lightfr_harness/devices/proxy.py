"""A TCP proxy that counts: what passes it is what the TLS sockets at both ends sent, handshakes included."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

_CHUNK_BYTES = 65_536


class CountingProxy:
    """Listens on loopback and passes bytes on. `break_after` cuts every connection once so many bytes came down it."""

    def __init__(self, host: str, port: int, *, break_after: int | None = None) -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._lock = threading.Lock()
        self._ends: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.port: int = self._listener.getsockname()[1]
        self.break_after = break_after
        self.up_bytes = 0
        self.down_bytes = 0
        self.connections = 0

    def counts(self) -> tuple[int, int]:
        """Bytes so far, up (toward the server) and down."""
        with self._lock:
            return self.up_bytes, self.down_bytes

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        # A closed socket does not wake who waits for it, a shut one does.
        for waited_for in (self._listener, *self._ends):
            with suppress(OSError):
                waited_for.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _start(self, work: Callable[..., None], *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                device, _ = self._listener.accept()
                self._start(self._connect, device)

    def _connect(self, device: socket.socket) -> None:
        with device, suppress(OSError), socket.create_connection(self._target) as server:
            self.connections += 1
            self._ends += (device, server)
            down = self._start(self._pass_on, server, device, False)
            self._pass_on(device, server, True)
            down.join()

    def _pass_on(self, source: socket.socket, target: socket.socket, is_up: bool) -> None:
        passed = 0
        with suppress(OSError):
            while chunk := source.recv(_CHUNK_BYTES):
                allowed = chunk if is_up or self.break_after is None else chunk[: max(self.break_after - passed, 0)]
                passed += len(allowed)
                self._count(len(allowed), is_up)
                target.sendall(allowed)
                if len(allowed) < len(chunk):
                    break
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _count(self, n_bytes: int, is_up: bool) -> None:
        with self._lock:
            if is_up:
                self.up_bytes += n_bytes
            else:
                self.down_bytes += n_bytes
