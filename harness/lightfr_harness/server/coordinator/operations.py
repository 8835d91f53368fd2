"""The door for whoever runs the coordinator: metrics, health, the status page. Loopback only, plain HTTP."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import partial

from aiohttp import web
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from lightfr.errors import InvalidInputError
from lightfr_harness.server.coordinator.cohort import PHASE_NAMES, Cohort
from lightfr_harness.server.coordinator.coordinator import Coordinator
from lightfr_harness.server.coordinator.status_page import render
from lightfr_harness.server.coordinator.storage import AccuracyReport

_LARGEST_REPORT_BYTES = 1024


def application(coordinator: Coordinator, is_ready: Callable[[], bool]) -> web.Application:
    """The routes. `is_ready`: whether devices are served at this moment."""

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(
            body=generate_latest(coordinator.metrics.registry), headers={"Content-Type": CONTENT_TYPE_LATEST}
        )

    async def healthz(_: web.Request) -> web.Response:
        return _health(not coordinator.failed.is_set())

    async def readyz(_: web.Request) -> web.Response:
        return _health(is_ready() and not coordinator.failed.is_set())

    async def status(_: web.Request) -> web.Response:
        return web.Response(text=render(coordinator), content_type="text/html", headers=_PAGE_HEADERS)

    async def accuracy(request: web.Request) -> web.Response:
        return await _take_report(coordinator, request)

    _watch_phases(coordinator)
    made = web.Application(client_max_size=_LARGEST_REPORT_BYTES)
    made.router.add_get("/", status)
    made.router.add_get("/metrics", metrics)
    made.router.add_get("/healthz", healthz)
    made.router.add_get("/readyz", readyz)
    made.router.add_post("/accuracy", accuracy)
    return made


def _watch_phases(coordinator: Coordinator) -> None:
    """Read the phase and its devices when somebody asks."""

    def cohort() -> Cohort | None:
        return coordinator.book.current.cohort if coordinator.book.current else None

    def devices(phase: int) -> int:
        at_hand = cohort()
        return len(at_hand.delivered[phase]) if at_hand else 0

    metrics = coordinator.metrics
    metrics.privacy.labels(coordinator.settings.privacy).set(1)
    metrics.round_phase.set_function(lambda: at_hand.phase if (at_hand := cohort()) else 0)
    for phase, name in PHASE_NAMES.items():
        metrics.phase_devices.labels(name).set_function(partial(devices, phase))


_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "Cache-Control": "no-store",
}


def _health(is_good: bool) -> web.Response:
    return web.Response(text="ok\n") if is_good else web.Response(status=503, text="not ready\n")


async def _take_report(coordinator: Coordinator, request: web.Request) -> web.Response:
    # A page in somebody's browser cannot send this content type here without asking first, and is not answered.
    if request.content_type != "application/json":
        return web.Response(status=415, text="send application/json\n")
    try:
        report = parse_report(await request.read(), coordinator.version.manifest.model_version)
    except InvalidInputError as error:
        return web.Response(status=400, text=f"{error}\n")
    await coordinator.report_accuracy(report)
    return web.Response(status=204)


def parse_report(body: bytes, newest_version: int) -> AccuracyReport:
    """Read `{"model_version", "users", "hit_rate", "ndcg"}`; raises InvalidInputError."""
    try:
        fields = json.loads(body)
        report = AccuracyReport(**fields)
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidInputError("expected a JSON object with model_version, users, hit_rate and ndcg") from error
    if not (_is_integer(report.model_version, 1, newest_version) and _is_integer(report.users, 1, 2**53)):
        raise InvalidInputError(f"model_version must be 1 to {newest_version}, users at least 1")
    if not (_is_share(report.hit_rate) and _is_share(report.ndcg)):
        raise InvalidInputError("hit_rate and ndcg must be numbers from 0 to 1")
    return report


def _is_integer(value: object, minimum: int, maximum: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and minimum <= value <= maximum


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and 0 <= value <= 1
