from lightfr_harness.bench import load
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
