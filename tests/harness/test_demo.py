from dataclasses import replace

from rich.console import Console

from lightfr_harness import demo


def test_the_demo_trains_shows_and_saves(monkeypatch, tmp_path):
    """A short version: the real one takes 30 rounds of a larger set."""
    monkeypatch.setattr(demo, "OPTIONS", replace(demo.OPTIONS, synthetic="small", rounds=5))
    console = Console(record=True, width=120)
    demo.run(console, tmp_path)
    shown = console.export_text()
    assert "before training" in shown
    assert "learned codes" in shown
    assert "not private" in shown
    assert (tmp_path / "items.codes").stat().st_size > 0
