"""The table of all methods: its rows, what it tunes by, what it keeps, and how it is shown."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lightfr_harness.cli import app
from lightfr_harness.data import generate
from lightfr_harness.data.readers import READERS
from lightfr_harness.paper import accuracy, sources
from lightfr_harness.paper.accuracy import AccuracyOptions, measure
from lightfr_harness.paper.stated import DATASETS, STATED
from lightfr_harness.records import read
from lightfr_harness.reports.pages import page_of
from lightfr_harness.simulation.baselines.method import STEPS
from lightfr_harness.simulation.baselines.registry import ENTRIES, METHODS
from lightfr_harness.simulation.baselines.variants import LightFr

RATINGS = generate("tiny")
FAMILIES = {"federated", "centralised", "variant", "peer", "reference"}


def measured(path, stated="", **options):
    options = AccuracyOptions(**{"quick": True, "seeds": 1, **options})
    labels = []
    record = measure(RATINGS, "tiny", stated, options, path, lambda label, done: labels.append((label, done)))
    assert labels[-1][1] == options.n_runs
    assert [done for _, done in labels] == sorted(done for _, done in labels)
    return record


def test_the_registry_has_each_name_once_known_families_and_grids_that_can_be_made():
    assert len(METHODS) == len(ENTRIES)
    for entry in ENTRIES:
        assert entry.family in FAMILIES
        assert 1 <= len(entry.grid) <= 6
        for settings in (entry.authors, *entry.grid):
            entry.make(settings)


def test_the_paper_states_thirteen_rows_for_each_of_its_data_sets():
    assert set(DATASETS) == STATED.keys() <= READERS.keys()
    assert {len(rows) for rows in STATED.values()} == {13}
    assert STATED["ciao"]["privrec"] == (0.4534, 0.2411)
    assert STATED["filmtrust"]["lightfr-grad"] == (0.8615, 0.6565)


def test_every_method_has_its_rows_and_tuned_ones_say_what_was_chosen(tmp_path):
    names = ("pmf", "ials", "popularity", "lightfr-grad")
    rows = measured(tmp_path / "runs.jsonl", methods=names).rows
    assert [(row["method"], row["settings"]) for row in rows] == [
        ("pmf", "authors"),
        ("pmf", "tuned"),
        ("lightfr-grad", "authors"),
        ("lightfr-grad", "tuned"),
        ("popularity", "only"),
        ("ials", "authors"),
        ("ials", "tuned"),
    ]
    for row in rows:
        entry = METHODS[row["method"]]
        tuned = row["settings"] == "tuned"
        assert row["constants"] in ([dict(each) for each in entry.grid[:2]] if tuned else [entry.authors])
        assert (row["validation_ndcg"] is not None) == tuned
        assert 0 < row["ndcg"] < row["hr"] <= 1
        assert (row["up_bytes"] is not None) == (row["method"] == "lightfr-grad")
        assert row["stated_hr"] is None


def test_the_setting_that_is_best_on_validation_is_taken(tmp_path):
    rows = measured(tmp_path / "runs.jsonl", methods=("ease",), settings="tuned").rows
    lines = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    tried = {json.loads(line["key"])[4]["regularization"]: line["figures"]["validation"]["ndcg"] for line in lines[:-1]}
    assert len(tried) == 2
    assert rows[0]["constants"]["regularization"] == max(tried, key=tried.get)
    assert rows[0]["validation_ndcg"] == max(tried.values())


def test_what_is_finished_is_not_run_again(tmp_path, monkeypatch):
    path = tmp_path / "runs.jsonl"
    first = measured(path, methods=("pmf", "ease"))
    for name in ("final_run", "tuning_run"):
        monkeypatch.setattr(accuracy, name, lambda *arguments: pytest.fail("it was run again"))
    assert measured(path, methods=("pmf", "ease")) == first


def test_other_data_are_run_anew(tmp_path):
    path = tmp_path / "runs.jsonl"
    measured(path, methods=("popularity",))
    other = replace(RATINGS, rating=RATINGS.rating[::-1])
    measure(other, "", "", AccuracyOptions(methods=("popularity",), seeds=1), path, lambda label, done: None)
    assert len(path.read_text().splitlines()) == 2


def test_a_method_that_diverges_has_a_row_that_says_so(tmp_path, monkeypatch):
    wild = replace(METHODS["pmf"], authors={"learning_rate": 1e6, "regularization": 0.0})
    wild = replace(wild, grid=({"learning_rate": 1e7, "regularization": 0.0}, wild.authors))
    monkeypatch.setitem(METHODS, "pmf", wild)
    record = measured(tmp_path / "runs.jsonl", stated="ciao", methods=("pmf",))
    for row in record.rows:
        assert (row["outcome"], row["hr"], row["ndcg"], row["by_seed"]) == ("diverged", None, None, [])
        assert row["stated_hr"] == 0.4636
    assert "diverged" in page_of(record)


def test_authors_take_their_own_steps_and_tuned_ones_at_most_fifty():
    options = AccuracyOptions()
    assert options.steps(METHODS["ddl"], "authors") == METHODS["ddl"].authors_steps
    assert options.steps(METHODS["ddl"], "tuned") == STEPS
    assert options.steps(METHODS["pmf"], "authors") == STEPS
    assert options.steps(METHODS["ease"], "tuned") == 0
    assert replace(options, quick=True).steps(METHODS["ddl"], "authors") == 10


def test_several_protocols_have_rows_of_their_own(tmp_path):
    protocols = ("last-out-99", "80-10-10-sampled")
    record = measured(tmp_path / "runs.jsonl", methods=("popularity", "ease"), settings="authors", protocols=protocols)
    assert [row["protocol"] for row in record.rows] == [*["last-out-99"] * 2, *["80-10-10-sampled"] * 2]
    assert tuple(record.held_out) == protocols
    page = page_of(record)
    assert all(f"<h2>{protocol}</h2>" in page for protocol in protocols)


def test_protocols_that_hold_out_the_same_ratings_share_their_runs(tmp_path):
    path = tmp_path / "runs.jsonl"
    record = measured(path, methods=("ease",), protocols=("last-out-49", "last-out-99"))
    of_49, of_99 = record.rows[:2], record.rows[2:]
    assert [row["constants"] for row in of_49] == [row["constants"] for row in of_99]
    assert all(easy["hr"] > hard["hr"] for easy, hard in zip(of_49, of_99, strict=True))
    n_lines = len(path.read_text().splitlines())
    assert measured(path, methods=("ease",), protocols=("last-out-99",)).rows == of_99
    assert len(path.read_text().splitlines()) == n_lines


def test_the_command_writes_a_table_a_record_and_a_page(tmp_path):
    arguments = ["paper", "accuracy", "--synthetic", "tiny", "--quick", "--method", "popularity", "--method", "ease"]
    result = CliRunner().invoke(app, [*arguments, "--report", str(tmp_path)], env={"COLUMNS": "160"})
    assert result.exit_code == 0, result.output
    assert "popularity list" in result.output
    record = read(tmp_path / "paper-accuracy.json")
    assert (record.quick, record.seeds, len(record.rows)) == (True, 1, 3)
    assert (tmp_path / "paper-accuracy.html").read_text() == page_of(record)


def test_a_prepared_split_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "load", lambda *arguments: object())
    result = CliRunner().invoke(app, ["paper", "accuracy", "--data", str(Path(tmp_path)), "--format", "prepared"])
    assert result.exit_code == 2
    assert "prepared split has its own test" in result.output


def test_ours_are_made_for_each_run_anew():
    """A method that kept the seed of the run before would give the same figures for all seeds."""
    entry = METHODS["ours-clear"]
    assert isinstance(entry.make({}), LightFr)
    assert entry.make({}) is not entry.make({})
