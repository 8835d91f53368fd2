"""Puts the parts of `serve` together, from the first start to the last answer."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from lightfr_harness.server.authority.credentials import Credentials
from lightfr_harness.server.coordinator import browsers, operations
from lightfr_harness.server.coordinator.beside import authority_beside
from lightfr_harness.server.coordinator.browsers import FOR_BROWSERS, BrowserPort, Certificate
from lightfr_harness.server.coordinator.coordinator import Coordinator
from lightfr_harness.server.coordinator.folder import write_atomically
from lightfr_harness.server.coordinator.limits import FOR_DEVICES, FOR_OPERATORS, Connections, Limits
from lightfr_harness.server.coordinator.options import ItemList, MakeRule, Settings, make_rule
from lightfr_harness.server.coordinator.plan import Plan
from lightfr_harness.server.coordinator.process import address, first_of, keep_fresh, prepare_process, stop_signal
from lightfr_harness.server.coordinator.replica import Replica
from lightfr_harness.server.coordinator.service import CoordinatorService
from lightfr_harness.server.coordinator.telemetry import Log
from lightfr_harness.server.coordinator.web import HttpService, Observer, listen

__all__ = ["Addresses", "MakeRule", "Observer", "make_rule", "serve_until_stopped", "serving"]


@dataclass(frozen=True)
class Addresses:
    """Where the coordinator listens, and the authority if it is started too; port 0 picks a free one."""

    host: str = "127.0.0.1"
    port: int = 0
    operations_port: int = 0
    # None: the authority runs elsewhere.
    enrollment_port: int | None = None
    # None: web pages get nothing.
    browsers: BrowserPort | None = None

    def as_json(self) -> str:
        addresses = {"server": address(self.host, self.port)}
        if self.enrollment_port is not None:
            addresses["enrollment"] = address(self.host, self.enrollment_port)
        if self.browsers is not None:
            addresses["web"] = address(self.host, self.browsers.port)
        return json.dumps({**addresses, "operations": f"http://127.0.0.1:{self.operations_port}"})


async def serve_until_stopped(
    folder: Path,
    credentials: Credentials,
    items: ItemList | None,
    settings: Settings,
    plan: Plan,
    wanted: Addresses,
    *,
    authority: Path | None = None,
    make_rule: MakeRule = make_rule,
    observer: Observer | None = None,
    database: str = "",
) -> bool:
    """Serve until SIGTERM or SIGINT, or until the storage fails: then False.

    With the folder of an authority, that one is started too and ends with this; if it ends by itself, so does this.
    `make_rule` and `observer` are for programs that measure: another way to aggregate, and a view of what passes.
    With the address of a database this is one of several replicas that share it.
    """
    log, stop = Log(), stop_signal()
    prepare_process(log)
    kind = Replica if database else Coordinator
    coordinator = kind(folder, items, settings, plan, credentials, log, make_rule=make_rule, database=database)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(coordinator.close)
        beside = None
        if authority is not None:
            beside = await stack.enter_async_context(
                authority_beside(authority, wanted.host, wanted.enrollment_port or 0)
            )
        await coordinator.start()
        addresses = await stack.enter_async_context(serving(coordinator, credentials, wanted, log, observer))
        addresses = replace(addresses, enrollment_port=await beside.port() if beside else None)
        write_atomically(folder / "addresses.json", lambda file: file.write(f"{addresses.as_json()}\n".encode()))
        print(addresses.as_json(), flush=True)
        settle_memory()
        refreshing = keep_fresh(credentials.refresh, log)
        ended = beside.ended(stop) if beside else stop.wait()
        await first_of(stop.wait(), coordinator.failed.wait(), refreshing, coordinator.run(), ended)
    log.event("stopped")
    return not coordinator.failed.is_set()


@asynccontextmanager
async def serving(
    coordinator: Coordinator,
    credentials: Credentials,
    wanted: Addresses,
    log: Log,
    observer: Observer | None = None,
    for_devices: Limits = FOR_DEVICES,
) -> AsyncIterator[Addresses]:
    """Listen for devices, the operator and, if wanted, web pages; on leaving, answer the requests that were begun."""
    service, metrics = CoordinatorService(coordinator), coordinator.metrics
    devices = HttpService(service, credentials.device_of, metrics, log, for_devices, observer)
    applications = [
        (
            devices.application(coordinator.artifacts, coordinator.have_artifact, coordinator.artifact_kind),
            wanted.host,
            wanted.port,
            credentials.context(),
            devices.connections,
        ),
        (
            operations.application(coordinator, lambda: not devices.is_closing),
            "127.0.0.1",
            wanted.operations_port,
            None,
            Connections(FOR_OPERATORS),
        ),
    ]
    runners, ports, refreshing = [], [], None
    if wanted.browsers is not None:
        certificate, connections = Certificate(wanted.browsers, credentials.folder), Connections(FOR_BROWSERS)
        pages = browsers.application(coordinator, wanted.browsers.origin, connections)
        applications.append((pages, wanted.host, wanted.browsers.port, certificate.context(), connections))
        refreshing = asyncio.create_task(keep_fresh(certificate.refresh, log))
    try:
        for application in applications:
            runner, port = await listen(*application)
            runners.append(runner)
            ports.append(port)
        listening = runners[0].server
        metrics.connections.set_function(lambda: len(listening.connections) if listening else 0)
        for_pages = None if wanted.browsers is None else replace(wanted.browsers, port=ports[2])
        yield Addresses(wanted.host, ports[0], ports[1], browsers=for_pages)
    finally:
        if refreshing is not None:
            refreshing.cancel()
        devices.is_closing = True
        coordinator.steps.wake()
        for runner in runners:
            await runner.cleanup()


def settle_memory() -> None:
    """Let the garbage collector look less often, and never at what was there at the start.

    Requests leave next to no cycles behind, and a look at everything took an eighth of the CPU time of a masked round.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
