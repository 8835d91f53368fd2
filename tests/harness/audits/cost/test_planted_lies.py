"""Devices that lie, run for real: the finding that the lie is about turns red, and no other."""

from dataclasses import replace
from pathlib import Path

import pytest

from lightfr_harness import emulation
from lightfr_harness.audits.cost import findings

LIES = Path(__file__).parent / "lies"
# Few enough ratings that an upload of twice the size is still one that the server takes.
SCENARIO = emulation.Scenario(items=2_000, ratings=24)
# Generous but in what the lies break, so that a busy machine breaks nothing.
PROFILE = replace(
    emulation.load_profile("flagship-phone"), memory_mib=96, recommend_ms=600, fit_ms=60_000, round_ms=120_000
)


def broken(script=None):
    plan = emulation.Plan(fits=10, recommendations=3, **({"script": LIES / script} if script else {}))
    run = emulation.run(SCENARIO, [PROFILE], plan=plan)
    found = findings.audit({"scenario": SCENARIO.record(), "devices": run})
    assert found
    return [(finding.claim, finding.mode) for finding in found if finding.verdict == "broken"]


@pytest.mark.parametrize(
    ("lie", "red"),
    [
        (None, []),
        ("doubles_uploads.py", [("bytes of an upload, measured", "clear, ternary rows")]),
        ("leaks_in_fit.py", [("budget: memory", "flagship-phone, fit")]),
        ("sleeps_in_recommend.py", [("budget: latency of recommend, p95", "flagship-phone, recommend")]),
    ],
)
def test_a_lie_turns_its_own_finding_red_and_only_that_one(lie, red):
    assert broken(lie) == red
