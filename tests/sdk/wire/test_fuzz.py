"""A few thousand spoiled answers and artifacts; `make fuzz` tries a million of each."""

import asyncio
from collections import Counter

import pytest

from tests.campaigns.device_targets import device_targets
from tests.campaigns.fuzz_messages import Record, Report, campaign


@pytest.mark.parametrize("target", device_targets(), ids=lambda target: target.name)
def test_whatever_a_server_sends_gives_a_typed_error_or_is_still_valid(target):
    report = asyncio.run(campaign(target, range(1500 if target.name != "HttpAnswer" else 300), seed=1))
    assert not report.findings
    assert len(report.outcomes) > 1


def test_a_record_goes_on_with_its_own_seed_and_no_other(tmp_path):
    path = tmp_path / "fuzz.json"
    Record(path, 7).add(Report("Bitmap", Counter(taken=3)))
    assert Record(path, 7).messages("Bitmap") == 3
    with pytest.raises(SystemExit, match="is of --seed 7"):
        Record(path, 8)
