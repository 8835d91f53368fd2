from argparse import Namespace
from contextlib import nullcontext
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from lightfr import RoundStage
from lightfr_harness.bench import device
from lightfr_harness.cli import app
from lightfr_harness.reports.bench import device_page
from tests.harness.record_examples import EXAMPLES


def test_a_real_device_is_measured_from_outside_phase_by_phase():
    phases = []
    record = device.run_all(items=20_000, bits=64, ratings=50, open_items=0, progress=phases.append)
    assert phases[-1] == "recommend"
    assert record["most_threads"] == 1
    assert record["loaded"] == []
    # What a bare Python takes is the machine's affair. What comes on top of it is ours: 27 MiB here.
    assert 0 < record["bare_rss_bytes"] < record["peak_rss_bytes"] < record["bare_rss_bytes"] + 36 * 2**20
    assert 0 < record["first_sync_over_codes_bytes"] <= record["first_sync_limit_bytes"]
    assert 0 < record["upload_overhead_bytes"] <= 600
    # Of so few rows the manifest is a large part; for a million the ratio is below 1.2.
    assert 1 < record["delta_ratio"] < 4
    assert record["import_cpu_ms_min"] > 0


def test_a_device_that_ends_early_is_no_broken_limit_but_a_benchmark_that_could_not_be_tried(monkeypatch):
    monkeypatch.setattr(device, "import_cost", lambda: {})
    monkeypatch.setattr(device, "surroundings", lambda *arguments, **named: nullcontext())
    ended = Namespace(run=lambda: {"finished": False, "ended": "link"})
    monkeypatch.setattr(device, "MeasuredDevice", lambda *arguments: ended)
    answer = CliRunner().invoke(app, ["bench", "device", "--items", "5000"])
    assert answer.exit_code == 2
    assert "the device ended early (link)" in answer.output


@pytest.mark.parametrize(("open_rows", "upload_bytes"), [(500, 500 * 64 * 5 // 8), (0, 20_000 * 5 // 8)])
def test_a_round_among_others_is_measured_message_by_message(open_rows, upload_bytes):
    record = device.run_secure(20_000, 64, ratings=50, open_rows=open_rows, cohort=5, progress=[].append)
    assert record["most_threads"] == 1
    assert record["loaded"] == []
    before = record["peak_rss_before_bytes"]
    assert 0 < before <= record["peak_rss_bytes"] < before + 10 * 2**20
    assert record["cpu_ms"] > 0
    calls, stages = record["calls"], record["stages"]
    assert {name: calls[name]["count"] for name in device.MESSAGES} == dict.fromkeys(device.MESSAGES, 1)
    # A round id, two keys, a membership and a signature with their tags; four sealed shares; a byte of complaints; a
    # signature; all rows, or a count for each item; five shares.
    assert calls["AdvertiseKeys"]["request_bytes"] == 18 + 2 * 34 + 106 + 66
    assert calls["ShareKeys"]["request_bytes"] == 18 + 3 + 4 * 98
    assert calls["AcknowledgeShares"]["request_bytes"] == 18 + 3
    assert calls["SignIncluded"]["request_bytes"] == calls["SignSurvivors"]["request_bytes"] == 18 + 66
    assert upload_bytes < calls["Upload"]["request_bytes"] < upload_bytes + 3000
    assert calls["RevealShares"]["request_bytes"] == 18 + 3 + 5 * 37
    assert tuple(stages) == (*RoundStage, "finished")
    for name, stage in zip(device.MESSAGES, tuple(stages.values())[1:-1], strict=True):
        # HTTP and TLS around it and around the questions before. There is no handshake: the connection is the sync's.
        assert calls[name]["request_bytes"] < stage["up_bytes"] < calls[name]["request_bytes"] + 1200
    for figure in ("up_bytes", "down_bytes"):
        assert sum(stage[figure] for stage in stages.values()) == record[figure]
    assert record["peak_rss_bytes"] >= max(stage["peak_rss_bytes"] for stage in stages.values())
    page = device_page(replace(EXAMPLES["device"], secure=record))
    assert f"{calls['Upload']['request_bytes']:,} and {calls['Upload']['answer_bytes']:,}" in page
