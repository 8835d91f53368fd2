from dataclasses import replace

import pytest

from lightfr_harness.devices.profiles import MIB, load_profile
from lightfr_harness.devices.record import budget_breaches, quantile

PROFILE = replace(
    load_profile("watch"), recommend_ms=100, fit_ms=1000, up_mib_per_day=1, down_mib_per_day=2, storage_mib=3
)


def phase(at, *latencies, up=0, down=0):
    return {"ended_seconds": at, "latencies_ms": list(latencies), "up_bytes": up, "down_bytes": down}


def device(**phases):
    within = {
        "open": phase(1.0),
        "sync": phase(2.0, up=1000, down=MIB),
        "fit": phase(3.0, 900.0),
        "round": phase(4.0, 50.0, up=MIB // 2),
        "recommend": phase(5.0, *[99.0] * 100),
    }
    disk = {"codes": MIB, "catalogue": MIB, "store": MIB // 2, "other": 0}
    return {"phases": within | phases, "disk_bytes": disk}


def test_a_device_within_its_budgets_breaks_none():
    assert budget_breaches(PROFILE, device()) == []


def test_a_slow_phase_is_named_by_its_p95():
    slow = device(recommend=phase(5.0, *[1.0] * 94, *[250.0] * 6))
    breach = {"kind": "latency", "phase": "recommend", "seconds": 5.0, "limit": 100, "actual": 250.0}
    assert budget_breaches(PROFILE, slow) == [breach]


def test_a_few_slow_answers_are_no_breach():
    assert budget_breaches(PROFILE, device(recommend=phase(5.0, *[1.0] * 95, *[250.0] * 5))) == []


def test_traffic_is_named_by_the_phase_that_passes_the_days_budget():
    chatty = device(round=phase(4.0, 50.0, up=MIB, down=2 * MIB))
    breaches = [(breach["kind"], breach["phase"], breach["actual"]) for breach in budget_breaches(PROFILE, chatty)]
    assert breaches == [("traffic", "round", MIB + 1000), ("traffic", "round", 3 * MIB)]


def test_storage_counts_everything_that_the_device_keeps():
    hoarding = device()
    hoarding["disk_bytes"]["other"] = MIB
    [breach] = budget_breaches(PROFILE, hoarding)
    assert (breach["kind"], breach["limit"], breach["actual"]) == ("storage", 3 * MIB, 3.5 * MIB)


def test_phases_that_never_came_break_nothing():
    assert budget_breaches(PROFILE, {"phases": {}, "disk_bytes": {}}) == []


@pytest.mark.parametrize(("share", "expected"), [(0.5, 50), (0.95, 95), (0.99, 99), (1.0, 100)])
def test_a_quantile_is_the_smallest_value_that_its_share_does_not_exceed(share, expected):
    assert quantile(range(1, 101), share) == expected
