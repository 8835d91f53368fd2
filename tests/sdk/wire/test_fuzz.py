"""A few thousand spoiled answers and artifacts; `make fuzz` tries a million of each."""

import asyncio

import pytest

from tests.campaigns.device_targets import device_targets
from tests.campaigns.fuzz_messages import campaign


@pytest.mark.parametrize("target", device_targets(), ids=lambda target: target.name)
def test_whatever_a_server_sends_gives_a_typed_error_or_is_still_valid(target):
    report = asyncio.run(campaign(target, range(1500 if target.name != "HttpAnswer" else 300), seed=1))
    assert not report.findings
    assert len(report.outcomes) > 1
