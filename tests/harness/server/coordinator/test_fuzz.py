"""A few thousand spoiled messages; `make fuzz` sends a million to each procedure."""

import asyncio

import pytest

from tests.campaigns import fuzz_coordinator, fuzz_messages
from tests.campaigns.server_targets import server_targets

SEED = 1


@pytest.mark.parametrize("target", server_targets(), ids=lambda target: target.name)
def test_spoiled_requests_are_refused_with_a_reason_or_still_valid(target):
    report = asyncio.run(fuzz_messages.campaign(target, range(2000), SEED))
    assert not report.findings
    assert report.outcomes["malformed"] > 100
    # Some are still valid, so what stands behind the decoder is reached too.
    assert sum(report.outcomes.values()) - report.outcomes["malformed"] > 100


def test_a_live_coordinator_survives_spoiled_requests_and_logs_none_of_them(tmp_path):
    outcomes, findings, _ = fuzz_coordinator.campaign(240, SEED, tmp_path)
    assert findings == []
    assert sum(outcomes.values()) == 240
