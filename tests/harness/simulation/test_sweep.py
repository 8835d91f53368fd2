import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from lightfr_harness.cli import app
from lightfr_harness.simulation import sweep
from lightfr_harness.simulation.options import TrainOptions

BASE = TrainOptions(synthetic="tiny", rounds=1, bits=16)


@pytest.fixture
def quick(monkeypatch):
    """One value per axis, so that a whole sweep takes a second."""
    for name, value in (("BITS", (8,)), ("LAMBDAS", (0.2,)), ("FRACTIONS", (0.5,)), ("ABLATION", ("random", "grad"))):
        monkeypatch.setattr(sweep, name, value)


def test_the_plan_covers_the_papers_plots_and_the_ablation():
    points = sweep.plan(BASE, seeds=2)
    assert {p.panel for p in points} == {"code bits f", "lambda", "cohort share p", "ablation"}
    assert {p.x for p in points if p.panel == "ablation"} == {"random", "init", "para", "grad", "catalogue"}
    assert {"0.2", "1.0"} <= {p.x for p in points if p.panel == "lambda"}
    assert len({p.key for p in points}) == len(points)


def test_a_stopped_sweep_goes_on_where_it_was(quick, tmp_path):
    points, path = sweep.plan(BASE, seeds=1), tmp_path / "runs.jsonl"
    sweep.run_all(BASE, 1, points[:2], path, lambda point: None)
    with path.open("a") as file:
        file.write('{"key": "cut sho')
    first_two = path.read_text().splitlines()[:2]
    record = sweep.run_all(BASE, 1, points, path, lambda point: None)
    assert [point["key"] for point in record.points] == [p.key for p in points]
    assert path.read_text().splitlines()[:2] == first_two
    assert all(json.loads(line) for line in path.read_text().splitlines())


def test_runs_of_other_data_or_rounds_are_no_results_of_this_sweep(quick, tmp_path):
    path = tmp_path / "runs.jsonl"

    def swept(base):
        (point,) = sweep.run_all(base, 1, sweep.plan(base, seeds=1)[:1], path, lambda point: None).points
        return point["popularity"]["n_users"], len(path.read_text().splitlines())

    tiny, more_rounds, other = BASE, replace(BASE, rounds=2), replace(BASE, synthetic="30x40x300")
    assert [swept(base)[1] for base in (tiny, more_rounds, other, tiny)] == [1, 2, 3, 3]
    assert swept(other)[0] <= 30 < swept(tiny)[0]


def test_the_command_writes_a_record_and_a_page_with_all_panels(quick, tmp_path):
    answer = CliRunner().invoke(app, ["sweep", "--synthetic", "tiny", "--rounds", "1", "--report", str(tmp_path)])
    assert answer.exit_code == 0, answer.output
    page = (tmp_path / "sweep.html").read_text()
    assert page.count("<figure") == 5
    assert page.count("popularity list, ") >= 5
    assert json.loads((tmp_path / "sweep.json").read_text())["kind"] == "sweep"
