"""Puts the parts of `serve` together, from the first start to the last answer."""

from __future__ import annotations

import asyncio
import json
import resource
import signal
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from lightfr_harness.server.authority import Authority
from lightfr_harness.server.coordinator import operations
from lightfr_harness.server.coordinator.coordinator import Coordinator
from lightfr_harness.server.coordinator.folder import write_atomically
from lightfr_harness.server.coordinator.limits import (
    FOR_DEVICES,
    FOR_NEWCOMERS,
    FOR_OPERATORS,
    Connections,
    Limits,
)
from lightfr_harness.server.coordinator.options import ItemList, MakeRule, Settings, make_rule
from lightfr_harness.server.coordinator.rounds import Plan
from lightfr_harness.server.coordinator.service import CoordinatorService, EnrollmentService
from lightfr_harness.server.coordinator.telemetry import Log, route_libraries
from lightfr_harness.server.coordinator.web import HttpService, Observer, listen

__all__ = ["Addresses", "MakeRule", "Observer", "make_rule", "serve_until_stopped", "serving"]

# How long a revocation made by another process may take to be seen.
REFRESH_SECONDS = 1.0


@dataclass(frozen=True)
class Addresses:
    """Where the coordinator listens; port 0 picks a free one."""

    host: str = "127.0.0.1"
    port: int = 0
    enrollment_port: int = 0
    operations_port: int = 0

    def as_json(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return json.dumps(
            {
                "server": f"https://{host}:{self.port}",
                "enrollment": f"https://{host}:{self.enrollment_port}",
                "operations": f"http://127.0.0.1:{self.operations_port}",
            }
        )


async def serve_until_stopped(
    folder: Path,
    authority: Authority,
    items: ItemList,
    settings: Settings,
    plan: Plan,
    wanted: Addresses,
    *,
    make_rule: MakeRule = make_rule,
    observer: Observer | None = None,
) -> bool:
    """Serve until SIGTERM or SIGINT, or until the storage fails: then False.

    `make_rule` and `observer` are for programs that measure: another way to aggregate, and a view of what passes.
    """
    log = Log()
    route_libraries(log)
    _allow_many_connections()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    coordinator = Coordinator(folder, items, settings, plan, authority, log, make_rule=make_rule)
    try:
        await coordinator.start()
        async with serving(coordinator, authority, wanted, log, observer) as addresses:
            write_atomically(folder / "addresses.json", lambda file: file.write(f"{addresses.as_json()}\n".encode()))
            print(addresses.as_json(), flush=True)
            await _first(stop.wait(), coordinator.failed.wait(), _refresh(authority, log), coordinator.run())
    finally:
        await coordinator.close()
    log.event("stopped")
    return not coordinator.failed.is_set()


@asynccontextmanager
async def serving(
    coordinator: Coordinator,
    authority: Authority,
    wanted: Addresses,
    log: Log,
    observer: Observer | None = None,
    for_devices: Limits = FOR_DEVICES,
    for_newcomers: Limits = FOR_NEWCOMERS,
) -> AsyncIterator[Addresses]:
    """Listen for devices, newcomers and the operator; on leaving, answer the requests that were begun."""
    service, metrics = CoordinatorService(coordinator, authority), coordinator.metrics
    devices = HttpService(service, authority.device_of, metrics, log, for_devices, observer)
    newcomers = HttpService(EnrollmentService(authority), lambda _: "", metrics, log, for_newcomers)
    applications = (
        (
            devices.application(coordinator.artifacts, coordinator.artifact_kind),
            wanted.host,
            wanted.port,
            authority.server_context(),
            devices.connections,
        ),
        (
            newcomers.application(),
            wanted.host,
            wanted.enrollment_port,
            authority.enrollment_context(),
            newcomers.connections,
        ),
        (
            operations.application(coordinator, lambda: not devices.is_closing),
            "127.0.0.1",
            wanted.operations_port,
            None,
            Connections(FOR_OPERATORS),
        ),
    )
    runners, ports = [], []
    try:
        for application in applications:
            runner, port = await listen(*application)
            runners.append(runner)
            ports.append(port)
        listening = runners[0].server
        metrics.connections.set_function(lambda: len(listening.connections) if listening else 0)
        yield Addresses(wanted.host, *ports)
    finally:
        devices.is_closing = newcomers.is_closing = True
        coordinator.steps.wake()
        for runner in runners:
            await runner.cleanup()


async def _refresh(authority: Authority, log: Log) -> None:
    while True:
        await asyncio.sleep(REFRESH_SECONDS)
        try:
            await asyncio.to_thread(authority.refresh)
        except Exception as error:  # The next try comes in a moment; what is known to be revoked stays revoked.
            log.fault("refresh_failed", error)


def _allow_many_connections() -> None:
    """As many open files as the system lets us have: the usual 1,024 are too few."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def _first(*coroutines: Coroutine[None, None, object]) -> None:
    """Wait until one of them is done, end the others, and raise what it raised."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    for task in done:
        task.result()
