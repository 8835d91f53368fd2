"""The device's link: a proxy on loopback that counts bytes and, for a profile, passes them on as its network would.

Without a profile the link only counts. For a profile it emulates, in each direction, the rate of the bottleneck, which
all connections of the device share; the delay from end to end; and for every lost segment the wait until it was sent
again, during which everything behind it waits too. It does not emulate how congestion control lowers the rate after a
loss, headers below TCP (about 3 % of a full segment), the radio's wake-up, or packets that overtake each other. Bytes
are counted as they enter the bottleneck. Both ends talk to a loopback socket, so TCP handshakes cost the link nothing;
TLS handshakes do.
"""

from __future__ import annotations

import asyncio
import math
import random
import threading
import time
from collections.abc import Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

from lightfr_harness.devices.profiles import Profile

T = TypeVar("T")
# What one segment carries over Ethernet with timestamps.
_SEGMENT_BYTES = 1448
# A lost segment is noticed by what follows it, a round trip later; the last one of a burst by the timer.
_LEAST_STALL_SECONDS = 0.2
# Read at a time: at most this long on the bottleneck, so that rates hold over short times too.
_CHUNK_SECONDS = 0.02
_CHUNK_BYTES = (1448, 65_536)
# How late the proxy may come back to a sender that waits, and still make good for it.
_LATEST_SECONDS = 0.2
# A read that takes less found bytes that were there already.
_INSTANT_SECONDS = 0.001


class Loop:
    """One event loop in a thread of its own, for the links of all devices."""

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="links", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it there and wait for its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


class Lane:
    """One direction of a link: it says when bytes that come now will have arrived. An infinite rate only counts."""

    def __init__(self, bits_per_second: float, delay_seconds: float, loss: float, chance: random.Random) -> None:
        self.bytes_per_second = bits_per_second / 8
        self.bytes = 0
        self._delay, self._loss, self._chance = delay_seconds, loss, chance
        self._free_at = 0.0
        lowest, highest = _CHUNK_BYTES
        self.chunk_bytes = int(min(max(self.bytes_per_second * _CHUNK_SECONDS, lowest), highest))
        longest_way = delay_seconds + max(2 * delay_seconds, _LEAST_STALL_SECONDS)
        on_the_way = 0.0 if math.isinf(bits_per_second) else longest_way * self.bytes_per_second / self.chunk_bytes
        self.most_chunks = 2 + int(on_the_way)

    def take(self, n_bytes: int, now: float, *, have_waited: bool) -> tuple[float, float]:
        """Send this many bytes: when the bottleneck is free again, and when they are at the other end.

        Bytes that have waited for the bottleneck go when it became free, even if that was noticed late.
        """
        earliest = now - _LATEST_SECONDS if have_waited else now
        self._free_at = max(self._free_at, earliest) + n_bytes / self.bytes_per_second
        self.bytes += n_bytes
        arrival = max(self._free_at, now) + self._delay
        segments = -(-n_bytes // _SEGMENT_BYTES) if self._loss else 0
        if any(self._chance.random() < self._loss for _ in range(segments)):
            arrival += max(2 * self._delay, _LEAST_STALL_SECONDS)
        return self._free_at, arrival


class Link:
    """The proxy of one device, or of several. `port` is where devices find the server.

    `break_after` cuts every connection once so many bytes came down it.
    """

    def __init__(self, loop: Loop, target: tuple[str, int], profile: Profile | None = None, seed: int = 0) -> None:
        chance = random.Random(seed)
        delay, loss = (profile.delay_ms / 1000, profile.loss) if profile else (0.0, 0.0)
        self._loop, self._target = loop, target
        self._up = Lane(profile.up_bits_per_second if profile else math.inf, delay, loss, chance)
        self._down = Lane(profile.down_bits_per_second if profile else math.inf, delay, loss, chance)
        self._tasks: set[asyncio.Task[None]] = set()
        self.break_after: int | None = None
        self.connections = 0
        self.port = 0

    def counts(self) -> tuple[int, int]:
        """Bytes so far, up (toward the server) and down."""
        return self._up.bytes, self._down.bytes

    def __enter__(self) -> Self:
        self._loop.do(self._listen())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._loop.do(self._close())

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=_CHUNK_BYTES[1])
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("asyncio called this outside a task")
        self._tasks.add(task)
        with suppress(OSError, asyncio.CancelledError):
            await self._join(reader, writer)
        self._tasks.discard(task)

    async def _join(self, device_in: asyncio.StreamReader, device_out: asyncio.StreamWriter) -> None:
        try:
            server_in, server_out = await asyncio.open_connection(*self._target, limit=_CHUNK_BYTES[1])
        except OSError:
            device_out.close()
            raise
        self.connections += 1
        try:
            # A group: when one direction breaks, the other ends too.
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pass_on(device_in, server_out, self._up))
                both.create_task(self._pass_on(server_in, device_out, self._down))
        except* OSError:
            pass
        finally:
            for end in (server_out, device_out):
                end.close()

    async def _pass_on(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, lane: Lane) -> None:
        """Read as fast as the bottleneck takes it; deliver later, in order."""
        # A device that does not keep up makes its server wait, as TCP does.
        on_the_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(lane.most_chunks)
        async with asyncio.TaskGroup() as both:
            delivery = both.create_task(_deliver(on_the_way, target))
            passed, asked = 0, time.monotonic()
            while chunk := await source.read(lane.chunk_bytes):
                now, whole = time.monotonic(), len(chunk)
                if self.break_after is not None and lane is self._down:
                    chunk = chunk[: max(self.break_after - passed, 0)]
                passed += len(chunk)
                free_at, arrival = lane.take(len(chunk), now, have_waited=now - asked < _INSTANT_SECONDS)
                if chunk:
                    await on_the_way.put((arrival, chunk))
                if len(chunk) < whole:
                    await on_the_way.put((0.0, b""))
                    await delivery
                    raise ConnectionAbortedError("the link was cut")
                await asyncio.sleep(free_at - time.monotonic())
                asked = time.monotonic()
            await on_the_way.put((0.0, b""))


async def _deliver(on_the_way: asyncio.Queue[tuple[float, bytes]], target: asyncio.StreamWriter) -> None:
    while True:
        arrival, chunk = await on_the_way.get()
        # Also without a wait, so that other connections get their turn.
        await asyncio.sleep(max(arrival - time.monotonic(), 0))
        if not chunk:
            with suppress(OSError):
                target.write_eof()
            return
        target.write(chunk)
        await target.drain()
