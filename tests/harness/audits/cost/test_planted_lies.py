"""Devices that lie, run for real: the finding that the lie is about turns red, and no other."""

from dataclasses import replace
from pathlib import Path

import pytest

from lightfr_harness import devices
from lightfr_harness.audits.cost import findings
from tests.harness.audits.cost import lies

ROOT = Path(__file__).parents[4]
# Few enough ratings that an upload of twice the size is still one that the server takes.
SCENARIO = devices.Scenario(items=2_000, ratings=24)
# Generous but in what the lies break, so that a busy machine breaks nothing.
PROFILE = replace(
    devices.load_profile("flagship-phone"),
    memory_mib=96,
    recommend_ms=1000 * lies.SLEEP_SECONDS - 200,
    fit_ms=60_000,
    round_ms=120_000,
)


def broken(script=None):
    plan = devices.Plan(fits=10, recommendations=3, **({"script": script} if script else {}))
    run = devices.run(SCENARIO, [PROFILE], plan=plan)
    found = findings.audit({"scenario": SCENARIO.record(), "devices": run})
    assert found
    return [(finding.claim, finding.mode) for finding in found if finding.verdict == "broken"]


def test_an_honest_device_turns_nothing_red():
    assert broken() == []


@pytest.mark.parametrize(
    ("lie", "red"),
    [
        (lies.doubles_uploads, ("bytes of an upload, measured", "clear, ternary rows")),
        (lies.leaks_in_fit, ("budget: memory", "flagship-phone, fit")),
        (lies.sleeps_in_recommend, ("budget: latency of recommend, p95", "flagship-phone, recommend")),
    ],
)
def test_a_lie_turns_its_own_finding_red_and_only_that_one(lie, red, tmp_path):
    name = lie.__name__
    script = tmp_path / "liar.py"
    script.write_text(f"import sys\nsys.path.append({str(ROOT)!r})\nfrom {lie.__module__} import {name}\n{name}()\n")
    assert broken(script) == [red]
