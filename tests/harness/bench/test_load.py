from lightfr_harness.bench import load, load_secure
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
