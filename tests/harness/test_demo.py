import json

from rich.console import Console

from lightfr_harness import demo


def test_the_demo_trains_shows_and_reports(tmp_path):
    """A short version: the real one has 16 device processes and more rounds of a larger set."""
    console = Console(record=True, width=120)
    demo.run(console, tmp_path, demo.Scene(synthetic="small", rounds=3, processes=2, cohort=30))
    shown = console.export_text()
    assert "before training" in shown
    assert "learned codes" in shown
    assert "not private" in shown
    outcome = json.loads((tmp_path / "report.json").read_text())
    assert outcome["rounds"] == 3
    assert outcome["processes"] == 2
    assert outcome["uploads"] > 0
    assert outcome["process_up_bytes"] > 0
    assert (tmp_path / "items.codes").stat().st_size == outcome["codes_bytes"]
    page = (tmp_path / "report.html").read_text()
    assert "<svg" in page
    assert "http" not in page
