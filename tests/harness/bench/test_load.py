from argparse import Namespace
from itertools import count

import pytest

from lightfr_harness.bench import load, load_secure
from lightfr_harness.bench.load_devices import LoadError
from lightfr_harness.bench.load_options import SecureLoad
from lightfr_harness.bench.load_server import quantiles


def test_a_quantile_is_the_smallest_value_that_its_share_does_not_exceed():
    assert quantiles(range(1, 201)) == {"min": 1, "p50": 100, "p95": 190, "p99": 198, "max": 200}
    assert quantiles([7.0]) == dict.fromkeys(("min", "p50", "p95", "p99", "max"), 7.0)


def test_every_unit_is_accepted_although_rounds_turn_over_and_kept_connections_are_counted(monkeypatch):
    monkeypatch.setattr(load, "IDENTITIES", 12)
    monkeypatch.setattr(load, "GOAL", 6)
    monkeypatch.setattr(load, "THREADS", 4)
    with load.started() as bench:
        units = load.run_units(bench, rate=30, seconds=1)
        held = load.run_held(bench, 20, seconds=0)
        finished = bench.server.log.count('"event":"round_finished"')
    assert (units["accepted"], units["errors"], units["request_bytes"]) == (30, {}, 2668)
    assert finished >= 4
    assert (held["open_at_the_server"], held["check_ins"], held["errors"]) == (20, 20, 0)


def test_masked_rounds_of_cheap_devices_finish_and_their_cost_is_measured():
    """The server takes off the masks and finds the sum plausible: nothing else finishes a round."""
    record = load_secure.run(SecureLoad(cohort=6, open_rows=20, rounds=1, dropout=0.0, deadline_seconds=60))
    (measured,) = record.rounds
    assert (measured["devices"], measured["uploaded"], measured["dropped"], measured["errors"]) == (6, 6, 0, {})
    assert measured["server_cpu_ms_each"] > 0
    assert measured["latency_ms"]["p99"] >= measured["latency_ms"]["p50"] > 0
    assert measured["server_peak_rss_bytes"] > 10**7


class Held:
    """A connection whose check-ins are served, or fail."""

    def __init__(self, *, works):
        self._works = works

    def call(self, method, body):
        if not self._works:
            raise ConnectionError
        return 200, b""

    def close(self):
        pass


def bench_of(*works):
    """A bench whose connections work, or not, in their order."""
    server = Namespace(rss_bytes=lambda: 0, metric=lambda name: len(works))
    return Namespace(server=server, connect=lambda number: Held(works=works[number]))


@pytest.fixture
def ticking(monkeypatch):
    """A clock that goes on by a second whenever somebody looks at it."""
    monkeypatch.setattr(load, "time", Namespace(perf_counter=count().__next__))


@pytest.mark.usefixtures("ticking")
def test_a_check_in_that_fails_counts_in_every_turn():
    held = load.run_held(bench_of(True, True, True, False), 4, seconds=10)
    assert (held["turns"], held["check_ins"], held["errors"]) == (10, 30, 10)


@pytest.mark.usefixtures("ticking")
def test_a_server_that_serves_no_held_connection_is_not_asked_for_ever():
    with pytest.raises(LoadError, match="try a smaller --kept"):
        load.run_held(bench_of(False, False), 2, seconds=10)
