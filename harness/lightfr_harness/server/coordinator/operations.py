"""HTTP for whoever runs the coordinator: metrics, health, the status page. It listens on loopback only."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Awaitable, Callable
from functools import partial

from aiohttp import web
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from lightfr.errors import InvalidInputError
from lightfr_harness.reports.figures import in_bytes
from lightfr_harness.reports.page import Facts, Part, Progress, Section, Text, Verdict, document, table
from lightfr_harness.reports.svg import Plot, Series, linear_axis, share_axis
from lightfr_harness.server.coordinator.accuracy import AccuracyReport, Evaluations, has_fallen, in_words
from lightfr_harness.server.coordinator.cohort import Cohort
from lightfr_harness.server.coordinator.coordinator import Coordinator
from lightfr_harness.server.coordinator.database import StorageError
from lightfr_harness.server.coordinator.folder import FolderError
from lightfr_harness.server.coordinator.options import SettingsError
from lightfr_harness.server.coordinator.phases import PHASE_NAMES, PHASES
from lightfr_harness.server.coordinator.plan import EVALUATION, GATE_REFRESH, TRAINING
from lightfr_harness.server.coordinator.rounds import AGGREGATING, OPEN, STATE_NAMES, Round
from lightfr_harness.server.coordinator.stored import PastRound

_LARGEST_REPORT_BYTES = 1024
_LARGEST_CATALOGUE_BYTES = 2**28
# Rows of a table, at most.
_SHOWN = 50
_NEWEST = f"Newest first, at most {_SHOWN}"
PAGE_REFRESH_SECONDS = 3
_KINDS: dict[int, str] = {
    TRAINING: "Round", GATE_REFRESH: "Gate refresh in round", EVALUATION: "Evaluation in round"
}  # fmt: skip
_LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")


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

    async def catalogue(request: web.Request) -> web.Response:
        return await _take_catalogue(coordinator, request)

    _watch_phases(coordinator)
    made = web.Application(client_max_size=_LARGEST_REPORT_BYTES, middlewares=[_require_loopback_host])
    made.router.add_get("/", status)
    made.router.add_get("/metrics", metrics)
    made.router.add_get("/healthz", healthz)
    made.router.add_get("/readyz", readyz)
    made.router.add_post("/accuracy", accuracy)
    made.router.add_post("/catalogue", catalogue)
    return made


@web.middleware
async def _require_loopback_host(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """A page in somebody's browser may reach this port under a name of its own that leads here, and is not answered."""
    port = request.get_extra_info("sockname", ("", 0))[1]
    if request.headers.get("Host") in [f"{host}:{port}" for host in _LOOPBACK_HOSTS]:
        return await handler(request)
    return web.Response(status=421, text=f"This port answers to http://127.0.0.1:{port} only: use that address.\n")


def _watch_phases(coordinator: Coordinator) -> None:
    """Read the phase and its devices when somebody asks."""

    def cohort() -> Cohort | None:
        return coordinator.book.current.cohort if coordinator.book.current else None

    def devices(phase: int) -> int:
        return sum(len(one.delivered[phase]) for one in coordinator.book.cohorts if one.cohort)

    metrics = coordinator.metrics
    metrics.privacy.labels(coordinator.settings.privacy).set(1)
    metrics.round_phase.set_function(lambda: at_hand.phase if (at_hand := cohort()) else 0)
    for phase, name in PHASE_NAMES.items():
        metrics.phase_devices.labels(name).set_function(partial(devices, phase))


_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "Cache-Control": "no-store",
    # Not in the page itself: a saved copy stays as it is.
    "Refresh": str(PAGE_REFRESH_SECONDS),
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


async def _take_catalogue(coordinator: Coordinator, request: web.Request) -> web.Response:
    # As above: a page in somebody's browser cannot send this type either.
    if request.content_type != "text/tab-separated-values":
        return web.Response(status=415, text="send text/tab-separated-values\n")
    try:
        change = await coordinator.offer_catalogue(await request.clone(client_max_size=_LARGEST_CATALOGUE_BYTES).read())
    except SettingsError as error:
        return web.Response(status=400, text=f"{error}\n")
    except (FolderError, StorageError) as error:
        return web.Response(status=503, text=f"{error}\n")
    return web.Response(status=202, text=f"{change}. It happens when the round has ended.\n")


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


# The status page: one self-contained document, with the same facts as /metrics and the history.


def render(coordinator: Coordinator) -> str:
    """The page as it is now."""
    parts = [
        *_warnings(coordinator),
        *_current(coordinator),
        *_evaluated(coordinator.evaluations),
        *_reported(list(coordinator.accuracy.values())),
        *_faults(coordinator),
        _catalogue(coordinator),
        _model(coordinator),
        _history(list(coordinator.history)),
    ]
    footer = (
        f"As of {_moment(time.time())}. The coordinator's own page refreshes every {PAGE_REFRESH_SECONDS} seconds, a "
        "saved copy does not. The same numbers for machines: /metrics"
    )
    aside = f"model version {coordinator.version.manifest.model_version}"
    return document("lightfr coordinator", _verdict(coordinator), parts, aside=aside, footer=footer)


def _moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))


def _verdict(coordinator: Coordinator) -> Verdict:
    current = coordinator.book.current
    if current is None:
        return Verdict("Training is finished.", rest="The model stays available.")
    return Verdict(_title(current))


def _title(current: Round) -> str:
    state = "added up" if current.is_summed else STATE_NAMES[current.state]
    if current.cohort is not None and current.state == OPEN:
        state = f"{state}, {PHASE_NAMES[current.cohort.phase]}"
    cohort = f", cohort {current.index + 1}" if current.cohorts > 1 else ""
    return f"{_KINDS[current.kind]} {current.number}{cohort}: {state}"


def _warnings(coordinator: Coordinator) -> list[Part]:
    warnings = []
    if not coordinator.settings.is_secure:
        warnings.append("Uploads are in the clear (mode CLEAR): this server can recover what users rated.")
    tolerance, what_to_do = coordinator.plan.tolerance, "`lightfr-harness rollback` goes back to an older version."
    if coordinator.evaluations.has_fallen(tolerance):
        warnings.append(f"The hit rate that devices find has fallen: {what_to_do}")
    if has_fallen(coordinator.accuracy, tolerance):
        warnings.append(f"The reported hit rate has fallen: {what_to_do}")
    return [Text(warning, kind="warning") for warning in warnings]


def _current(coordinator: Coordinator) -> list[Part]:
    current = coordinator.book.current
    if current is None:
        return []
    cohorts = coordinator.book.cohorts
    if len(cohorts) == 1:
        return _cohort(current, coordinator)
    return [Section(_title(one), _cohort(one, coordinator)) for one in reversed(cohorts[-_SHOWN:])]


def _cohort(current: Round, coordinator: Coordinator) -> list[Part]:
    return [*_bars(current), Facts(_round_facts(current, coordinator))]


def _bars(current: Round) -> list[Progress]:
    """How many devices have delivered in each phase that has begun."""
    cohort = current.cohort
    if cohort is None:
        return [Progress("uploads", len(current.receipts), current.goal)]
    begun = (phase for phase in PHASES if phase <= cohort.phase)
    return [Progress(PHASE_NAMES[p], len(cohort.delivered[p]), cohort.expected(p)) for p in begun]


def _round_facts(current: Round, coordinator: Coordinator) -> dict[str, str]:
    left = f"{current.deadline_ms(coordinator.now()) / 1000:,.0f} s" if current.deadline else "not started"
    return {
        "privacy mode": coordinator.settings.privacy,
        "cohort (places taken)": f"{len(current.assigned)} of {current.places}",
        "devices needed at least": str(coordinator.plan.minimum),
        "time left": "adding up" if current.state == AGGREGATING else left,
        "received": in_bytes(current.upload_bytes),
    }


def _model(coordinator: Coordinator) -> Section:
    manifest = coordinator.version.manifest
    facts = {
        "code length": f"{manifest.model.code_bits} bits",
        "codes": in_bytes(manifest.codes.size_bytes),
        "delta from the last version": in_bytes(manifest.codes_deltas[0].artifact.size_bytes)
        if manifest.codes_deltas
        else "none",
        "largest upload": in_bytes(coordinator.version.upload_limit_bytes),
        "received in all": in_bytes(coordinator.metrics.received_total()),
        "sent in all": in_bytes(coordinator.metrics.sent_total()),
    }
    return Section("Model and bytes", [Facts(facts)])


def _catalogue(coordinator: Coordinator) -> Section:
    manifest, changes = coordinator.version.manifest, coordinator.catalogue_changes
    n_items, code_bytes = manifest.model.item_count, manifest.model.code_bits // 8
    n_open = manifest.codes.size_bytes // code_bytes - 1 if manifest.HasField("open_rows") else n_items
    first, last, parts = changes[0], changes[-1], manifest.catalogue_parts
    facts = {
        "items": f"{n_items - coordinator.removed_items:,}",
        "open": f"{n_open:,}",
        "left, numbers kept": f"{coordinator.removed_items:,}",
        "ids": f"{in_bytes(sum(part.size_bytes for part in parts))} in {len(parts)}",
    }
    says = "It is the first one." if last is first else (
        f"Changed for the {len(changes) - 1:,}. time at version {last.model_version}, {_moment(last.at)}: "
        f"{last.joined:,} items joined, {last.left:,} left, {last.returned:,} returned"
        f"{', and all were numbered anew' if last.is_renumbered else ''}."
    )  # fmt: skip
    waiting = " Another list waits for the end of the round." if coordinator.next_catalogue.is_there else ""
    return Section("Catalogue", [Text(says + waiting), Facts(facts)])


def _faults(coordinator: Coordinator) -> list[Part]:
    standing, now = coordinator.standing.faults, coordinator.now()
    rows = [
        (
            fault.device,
            [
                f"{fault.count:,}",
                fault.reason,
                f"{max(now - fault.at, 0) / 3600:,.1f} h ago",
                "no places" if standing.is_paused(fault.device, now) else "has places",
            ],
        )
        for fault in standing.newest_first()[:_SHOWN]
    ]
    heads = ("device", "faults", "what was wrong at last", "when", "now")
    return [Section("Devices at fault", [table(_NEWEST, heads, rows)])] if rows else []


def _history(history: list[PastRound]) -> Section:
    rows = [
        (
            str(past.number),
            [
                STATE_NAMES[past.state],
                str(past.model_version),
                f"{past.upload_count:,}",
                f"{past.seconds:,.1f} s",
                in_bytes(past.upload_bytes),
            ],
        )
        for past in history[:_SHOWN]
    ]
    heads = ("round", "state", "on version", "uploads", "took", "received")
    return Section("Rounds so far", [table(_NEWEST, heads, rows) if rows else Text("None has ended yet.")])


def _evaluated(evaluations: Evaluations) -> list[Part]:
    """What evaluation rounds say of each version, and how devices rank since the newest."""
    if not evaluations.kept:
        return []
    qualities = evaluations.qualities
    newest, popularity = qualities[-1].chosen, qualities[-1].popularity
    says = (
        f"hit rate {newest.hr:.3f} ± {newest.hr_within:.3f}, NDCG {newest.ndcg:.3f} ± {newest.ndcg_within:.3f}, "
        f"of disliked items {newest.disliked_hr:.3f}, at version {qualities[-1].model_version}; by popularity "
        f"{popularity.hr:.3f}, {popularity.ndcg:.3f} and {popularity.disliked_hr:.3f}"
    )
    drawn = _by_version(
        {
            "hit rate": [(q.model_version, q.chosen.hr, q.chosen.hr_within) for q in qualities],
            "by popularity": [(q.model_version, q.popularity.hr, q.popularity.hr_within) for q in qualities],
        }
    )
    groups = ("fewer than 5", "5 to 19", "20 to 99", "100 and more")
    chosen = {
        f"users with {group} opinions": in_words(ranking)
        for group, ranking in zip(groups, qualities[-1].rankings, strict=True)
    }
    return [Section("Accuracy, as devices evaluate it", [Text(says), drawn, Facts(chosen)])]


def _reported(reports: list[AccuracyReport]) -> list[Part]:
    if not reports:
        return []
    reports.sort(key=lambda report: report.model_version)
    last = reports[-1]
    says = (
        f"hit rate {last.hit_rate:.3f}, NDCG {last.ndcg:.3f} at version {last.model_version}, "
        f"on {last.users:,} held-out devices"
    )
    drawn = _by_version(
        {
            "hit rate": [(report.model_version, report.hit_rate, 0.0) for report in reports],
            "NDCG": [(report.model_version, report.ndcg, 0.0) for report in reports],
        }
    )
    return [Section("Accuracy, as reported", [Text(says), drawn])]


def _by_version(lines: dict[str, list[tuple[int, float, float]]]) -> Plot:
    """Shares with half of their intervals, by ascending version."""
    series = [
        Series(
            name,
            [(version, share, f"{share:.3f} at version {version}") for version, share, _ in points],
            within=[half for _, _, half in points],
        )
        for name, points in lines.items()
    ]
    versions = [version for points in lines.values() for version, _, _ in points]
    across = linear_axis("model version", versions, whole=True, start=min(versions))
    return Plot("By model version", across, share_axis("share"), series)
