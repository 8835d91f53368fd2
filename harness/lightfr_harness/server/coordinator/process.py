"""What a server's process does besides serving, the coordinator's and the authority's: begin, stay up to date, stop."""

from __future__ import annotations

import asyncio
import resource
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress

from lightfr_harness.server.coordinator.telemetry import Log, route_libraries

# How long a revocation, which the authority writes, may take to be seen.
REFRESH_SECONDS = 0.5


def address(host: str, port: int) -> str:
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def stop_signal() -> asyncio.Event:
    """An event that SIGTERM and SIGINT set."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


def prepare_process(log: Log) -> None:
    """Let libraries log as we do, and have as many open files as the system lets us: the usual 1,024 are too few."""
    route_libraries(log)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def keep_fresh(refresh: Callable[[], None], log: Log) -> None:
    """Look again and again for what another process has written."""
    while True:
        await asyncio.sleep(REFRESH_SECONDS)
        try:
            await asyncio.to_thread(refresh)
        except Exception as error:  # The next try comes in a moment; what is known to be revoked stays revoked.
            log.fault("refresh_failed", error)


async def first_of(*coroutines: Coroutine[None, None, object]) -> None:
    """Wait until one of them is done, end the others, and raise what it raised."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    for task in done:
        task.result()
