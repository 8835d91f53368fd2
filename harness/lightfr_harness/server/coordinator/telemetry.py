"""What the coordinator tells about itself: logs for people, counters for Prometheus and the status page.

Neither ever holds a message body or a key, and no device id but that of a device at fault. A log is one JSON object a
line; counters are totals.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TextIO

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

if TYPE_CHECKING:
    # Not at run time: the authority logs too, and needs nothing of the rules of aggregation.
    from lightfr_harness.server.coordinator.accuracy import Evaluations


# How often a library's warnings of one kind have a line in the log.
LIBRARY_SECONDS = 60.0


class Log:
    """Writes events to a stream, standard error unless told."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr

    def event(self, name: str, **facts: object) -> None:
        line = json.dumps({"time": round(time.time(), 3), "event": name, **facts}, separators=(",", ":"))
        # Whoever read the log may be gone; the rounds go on without.
        with suppress(OSError, ValueError):
            print(line, file=self._stream, flush=True)

    def fault(self, name: str, error: BaseException) -> None:
        """What went wrong by its type and place alone: its text might quote what a device sent."""
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{frames[-1].name}:{frames[-1].lineno}" if frames else ""
        self.event(name, error=type(error).__name__, place=place)


class LibraryHandler(logging.Handler):
    """Turns what libraries log into events that keep the logger's name and the error's type, and no text.

    Strangers can make a library warn of each of their requests. So each kind has a line a minute at the most, which
    says how many came since the last one.
    """

    def __init__(self, log: Log, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(logging.WARNING)
        self._log, self._clock = log, clock
        # Kind to when it may have a line again, and how many came.
        self._known: dict[tuple[str, str, str], tuple[float, int]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Log one record, or count it."""
        error = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else ""
        kind, now = (record.name, record.levelname.lower(), error), self._clock()
        quiet_until, times = self._known.get(kind, (now, 0))
        self._known[kind] = quiet_until, times + 1
        if now >= quiet_until:
            self._known[kind] = now + LIBRARY_SECONDS, 0
            self._log.event("library", logger=record.name, level=kind[1], error=error, times=times + 1)


def route_libraries(log: Log) -> None:
    """Send what aiohttp and asyncio log the same way."""
    for name in ("aiohttp", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [LibraryHandler(log)], False


_EVALUATED = {
    "hit_rate": "HR@10 of held-out opinions that are no dislikes",
    "hit_rate_within": "Half of the 95 % interval of the hit rate",
    "ndcg": "NDCG@10 of held-out opinions that are no dislikes",
    "ndcg_within": "Half of the 95 % interval of the NDCG",
    "disliked_hit_rate": "HR@10 of held-out dislikes: lower is better",
}


class Metrics:
    """All counters of one coordinator, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        count = partial(Counter, namespace="lightfr", registry=self.registry)
        gauge = partial(Gauge, namespace="lightfr", registry=self.registry)
        times = partial(Histogram, namespace="lightfr", registry=self.registry)
        self.rounds = count("rounds", "Rounds that ended.", labelnames=["state"])
        self.sums_dropped = count("sums_dropped", "Sums that were not learnt from.")
        self.faults = count("faults", "Faults of devices; the log and the status page name them.")
        self.uploads = count("uploads", "Uploads that became durable.")
        self.upload_bytes = count("upload_bytes", "Bytes of durable uploads.")
        self.check_ins = count("check_ins", "Check-ins by answer.", labelnames=["answer"])
        self.refusals = count("refusals", "Requests refused, by reason.", labelnames=["reason"])
        self.received = count("received_bytes", "Bytes of request bodies.")
        self.sent = count("sent_bytes", "Bytes of response bodies.")
        self.connections = gauge("connections", "Connections open now.")
        self.connections_refused = count(
            "connections_refused", "Connections ended for want of room, before any request."
        )
        self.seconds = times("request_seconds", "Time to answer a request.", labelnames=["method"])
        self.aggregation_seconds = times("aggregation_seconds", "Time to make a version of a round.")
        self.model_version = gauge("model_version", "The newest version.")
        self.round_phase = gauge("round_phase", "Phase of the current round, 1 to 7; 0 without phases.")
        self.phase_devices = gauge(
            "phase_devices", "Devices that delivered, in the current round.", labelnames=["phase"]
        )
        self.privacy = gauge("privacy_mode", "1 for the mode in use.", labelnames=["mode"])
        self.round_uploads = gauge("round_uploads", "Uploads in the current round.")
        self._evaluated = {
            name: gauge(f"evaluated_{name}", f"{what}, by the newest evaluation.", labelnames=["ranking"])
            for name, what in _EVALUATED.items()
        }
        self._evaluated_version = gauge("evaluated_model_version", "The version of the newest evaluation; 0: none.")

    def show(self, evaluations: Evaluations) -> None:
        """Show what the newest evaluation says, if there is one."""
        for quality in evaluations.qualities[-1:]:
            self._evaluated_version.set(quality.model_version)
            for ranking, figures in (("chosen", quality.chosen), ("popularity", quality.popularity)):
                for name, value in figures.shares().items():
                    self._evaluated[name].labels(ranking).set(value)

    def received_total(self) -> float:
        """Bytes of request bodies since the start."""
        return _value(self.received)

    def sent_total(self) -> float:
        """Bytes of response bodies since the start."""
        return _value(self.sent)


def _value(counter: Counter) -> float:
    return next(
        sample.value for metric in counter.collect() for sample in metric.samples if sample.name.endswith("_total")
    )
