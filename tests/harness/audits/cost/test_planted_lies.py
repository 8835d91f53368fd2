"""Devices that lie, run for real: the finding that the lie is about turns red, and no other."""

from dataclasses import replace
from pathlib import Path

import pytest

from lightfr_harness import devices
from lightfr_harness.audits.cost import findings
from tests.harness.audits.cost import lies

ROOT = Path(__file__).parents[4]
# Few enough ratings that an upload of twice the size is still one that the server takes.
CLEAR = devices.Scenario(items=2_000, ratings=24, privacy="clear")
SECURE = replace(CLEAR, privacy="secagg", cohort=6, open_rows=300)
# Generous but in what the lies break, so that a busy machine breaks nothing.
PROFILE = replace(
    devices.load_profile("flagship-phone"),
    memory_mib=96,
    recommend_ms=1000 * lies.SLEEP_SECONDS - 200,
    fit_ms=60_000,
    round_ms=120_000,
)


def broken(scenario, script=None):
    plan = devices.Plan(fits=10, recommendations=3, **({"script": script} if script else {}))
    run = devices.run(scenario, [PROFILE], plan=plan)
    found = findings.audit({"scenario": scenario.record(), "devices": run})
    assert found
    return [(finding.claim, finding.mode) for finding in found if finding.verdict == "broken"]


@pytest.mark.parametrize("scenario", [CLEAR, SECURE, replace(SECURE, privacy="secagg+dp")])
def test_an_honest_device_turns_nothing_red(scenario):
    assert broken(scenario) == []


@pytest.mark.parametrize(
    ("scenario", "lie", "red"),
    [
        (CLEAR, lies.doubles_uploads, ("bytes of an upload, measured", "clear, ternary rows")),
        (CLEAR, lies.leaks_in_fit, ("budget: memory", "flagship-phone, fit")),
        (CLEAR, lies.sleeps_in_recommend, ("budget: latency of recommend, p95", "flagship-phone, recommend")),
        (SECURE, lies.doubles_shares, ("bytes of a secure round's messages, measured", "shares up")),
        (SECURE, lies.hoards_in_a_round, ("budget: memory", "flagship-phone, round")),
    ],
)
def test_a_lie_turns_its_own_finding_red_and_only_that_one(scenario, lie, red, tmp_path):
    name = lie.__name__
    script = tmp_path / "liar.py"
    script.write_text(f"import sys\nsys.path.append({str(ROOT)!r})\nfrom {lie.__module__} import {name}\n{name}()\n")
    assert broken(scenario, script) == [red]
