"""The paper's figures: measured for each data set, kept run by run, and drawn beside what its text says."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lightfr_harness.cli import app
from lightfr_harness.errors import CannotRunError
from lightfr_harness.paper import figures
from lightfr_harness.paper.figures import FiguresOptions, measure
from lightfr_harness.paper.sources import Source, sources
from lightfr_harness.simulation import sweep
from tests.harness.record_examples import EXAMPLES

TINY = Source(None, "ml-100k", "tiny")


def made_up(point):
    """Training has tests of its own; here a run is known by its place."""
    hr = 0.3 + (float(point.x) % 1) / 10
    return {
        "key": point.key,
        "panel": point.panel,
        "line": point.line,
        "x": point.x,
        "seed": 0,
        "hr": hr,
        "ndcg": hr / 2,
    } | {"popularity": {"hr": 0.4, "ndcg": 0.2}}


@pytest.fixture
def runs(monkeypatch):
    """The keys of the runs that were really made."""
    made = []

    def run(point):
        made.append(point.key)
        return made_up(point)

    monkeypatch.setattr(sweep, "run", run)
    return made


def drawn(folder, labels=None, **options):
    options = FiguresOptions(**{"sources": [TINY], "rounds": 2, "items": (1000,), **options})
    seen = [] if labels is None else labels
    record = measure(options, folder / "figures.jsonl", lambda label, done: seen.append(done))
    assert seen == list(range(options.n_runs + 1))
    return record


def test_each_data_set_has_the_panels_of_figures_4_to_6_and_no_ablation(tmp_path, runs):
    record = drawn(tmp_path, sources=[TINY, Source(None, "ml-100k", "80x60x900")])
    assert [each["data"] for each in record.sweeps] == ["synthetic tiny", "synthetic 80x60x900"]
    for each in record.sweeps:
        assert {point["panel"] for point in each["points"]} == {"code bits f", "lambda", "cohort share p"}
        assert len(each["points"]) == 8 + 8 + 10
    modes = {each["mode"] for each in record.findings if each["claim"].startswith("Figure 4")}
    assert modes == {f"{each['data']}, objective {line}" for each in record.sweeps for line in ("catalogue", "paper")}


def test_figure_1_is_timed_for_each_number_of_items(tmp_path, runs):
    [point] = drawn(tmp_path).figure_1
    assert (point["items"], point["storage_bytes"]["codes, packed"]) == (1000, 8 * 1001)
    assert point["real_ns"] > 0 < point["codes_ns"]


def test_a_stopped_command_goes_on_and_other_rounds_are_run_anew(tmp_path, runs, monkeypatch):
    first = drawn(tmp_path)
    lines = (tmp_path / "figures.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "figures.jsonl").write_text("".join(lines[:-3]))
    runs.clear()
    monkeypatch.setattr(figures, "figure_1_point", lambda *arguments: pytest.fail("it was timed again"))
    assert drawn(tmp_path) == first
    assert len(runs) == 3
    drawn(tmp_path, rounds=3)
    assert len(runs) == 3 + 26


def test_a_real_run_of_a_point_is_a_training(tmp_path):
    options = FiguresOptions([TINY], rounds=1)
    point = sweep.named(options.points(TINY)[0])["point"]
    assert 0 < point["ndcg"] < point["hr"] <= 1
    assert json.dumps(point)


def test_the_command_writes_findings_a_record_and_a_page(tmp_path, runs, monkeypatch):
    [example, *_] = EXAMPLES["paper-figures"].figure_1
    monkeypatch.setattr(figures, "figure_1_point", lambda items, seed: {**example, "items": items})
    asked = ["paper", "figures", "--synthetic", "tiny", "--rounds", "2", "--report", str(tmp_path)]
    result = CliRunner().invoke(app, asked, env={"COLUMNS": "160"})
    assert result.exit_code == 0, result.output
    assert "Figure 6: HR@10 gained beyond 0.8" in result.output
    page = (tmp_path / "paper-figures.html").read_text()
    assert all(f"<h2>Figure {number}</h2>" in page for number in (1, 4, 5, 6))


def test_files_have_one_format_for_all_or_one_each():
    files = [Path("a.dat"), Path("b.txt")]
    assert [each.format for each in sources(files, ["ml-1m"], "tiny")] == ["ml-1m", "ml-1m"]
    assert [each.stated for each in sources(files, ["ml-1m", "ciao"], "tiny")] == ["ml-1m", "ciao"]
    assert sources([], ["ciao"], "tiny")[0].stated == ""
    with pytest.raises(CannotRunError, match="3 --data and 2 --format"):
        sources([*files, Path("c")], ["ml-1m", "ciao"], "tiny")


def test_the_scale_of_a_file_reaches_every_run_of_the_figures():
    scale = {"rating_min": 1.0, "rating_max": 5.0}
    found = sources([Path("a.inter")], ["inter"], "tiny", scale)
    points = FiguresOptions(found, rounds=1).points(found[0])
    assert points
    assert all(point.options.data_options == scale for point in points)
