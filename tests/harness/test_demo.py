import json

from rich.console import Console

from lightfr_harness import demo


def test_the_demo_trains_shows_and_reports(tmp_path):
    """A short version: the real one has 16 device processes, and more and larger rounds of a larger set."""
    console = Console(record=True, width=120)
    demo.run(console, tmp_path, demo.Scene("small", rounds=2, processes=2, cohort=24, minimum_cohort=20))
    shown = console.export_text()
    assert "before training" in shown
    assert "learned codes" in shown
    assert "secure aggregation" in shown
    outcome = json.loads((tmp_path / "report.json").read_text())
    assert outcome["rounds"] == 2
    assert outcome["processes"] == 2
    assert outcome["uploads"] + outcome["process_rounds"] == 2 * 24
    assert outcome["process_up_bytes"] > 0
    assert (tmp_path / "items.codes").stat().st_size == outcome["codes_bytes"]
    page = (tmp_path / "report.html").read_text()
    assert "<svg" in page
    assert "http" not in page
    _require_hidden(outcome["upload"])


def _require_hidden(upload):
    """The upload that went out was masked, and as large for every user; in the clear it would name what was rated."""
    assert abs(upload["masked_ones"] - 0.5) < 0.01
    assert upload["masked_items"] > 500
    assert 0 < upload["clear_items"] <= 64
    assert upload["clear_code_bits"] == 64
    assert upload["clear_bytes"] < upload["masked_bytes"]
