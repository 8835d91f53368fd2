"""Puts the authority behind an address of its own: `lightfr-harness ca serve`."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from lightfr_harness.server.coordinator.limits import FOR_NEWCOMERS, Limits
from lightfr_harness.server.coordinator.process import address, first_of, keep_fresh, prepare_process, stop_signal
from lightfr_harness.server.coordinator.telemetry import Log, Metrics
from lightfr_harness.server.coordinator.web import HttpService, listen

from .authority import Authority
from .credentials import Admission
from .service import EnrollmentService


async def serve_until_stopped(authority: Authority, host: str, port: int, *, until_input_ends: bool = False) -> None:
    """Serve until SIGTERM or SIGINT or, for whoever started this as a part of itself, until standard input ends."""
    log, admission, stop = Log(), authority.admission(), stop_signal()
    prepare_process(log)
    if until_input_ends:
        await _at_end_of_input(stop)
    async with serving(authority, admission, host, port, log) as port_used:
        print(json.dumps({"enrollment": address(host, port_used)}), flush=True)
        await first_of(stop.wait(), keep_fresh(authority.refresh, log), keep_fresh(admission.refresh, log))
    log.event("authority_stopped")


@asynccontextmanager
async def serving(
    authority: Authority, admission: Admission, host: str, port: int, log: Log, limits: Limits = FOR_NEWCOMERS
) -> AsyncIterator[int]:
    """Listen for newcomers and for devices that renew; gives the port. On leaving, answer what was begun."""
    # Whoever shows no good certificate is a newcomer.
    service = HttpService(
        EnrollmentService(authority), lambda peer: admission.device_of(peer) or "", Metrics(), log, limits
    )
    runner, port_used = await listen(service.application(), host, port, admission.context(), service.connections)
    try:
        yield port_used
    finally:
        service.is_closing = True
        await runner.cleanup()


async def _at_end_of_input(stop: asyncio.Event) -> None:
    """Set the event once nobody holds the other end of standard input, however that process ended."""

    class Input(asyncio.Protocol):
        def connection_lost(self, exc: Exception | None) -> None:
            stop.set()

    await asyncio.get_running_loop().connect_read_pipe(Input, sys.stdin)


def open_and_serve(folder: Path, host: str, port: int, *, until_input_ends: bool) -> None:
    """Open an authority's folder and serve."""
    authority = Authority.open(folder)
    try:
        asyncio.run(serve_until_stopped(authority, host, port, until_input_ends=until_input_ends))
    finally:
        authority.close()
