"""paper all: one page of every table and figure, made from the records that there are."""

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lightfr_harness.cli import app
from lightfr_harness.paper import everything
from lightfr_harness.paper.sources import Source
from lightfr_harness.records import read
from lightfr_harness.reports.paper_all import Parts, page
from tests.harness.record_examples import EXAMPLES

ACCURACY, COSTS, FIGURES = (EXAMPLES[f"paper-{part}"] for part in ("accuracy", "costs", "figures"))
TITLES = (
    "Table 1:",
    "Table 3:",
    "Table 4:",
    "Table 5:",
    "Table 6:",
    "Figure 1:",
    "Figure 3:",
    "Figure 4:",
    "Figure 5:",
)


@pytest.fixture
def measured(monkeypatch):
    """Each part gives an example at once; the names of the parts in the order in which they were asked for."""
    asked = []

    def gives(name, record):
        def measure(*arguments):
            asked.append((name, arguments))
            arguments[-1](f"all of {name}", 0)
            return record

        return measure

    for module, record in ((everything.costs, COSTS), (everything.figures, FIGURES), (everything.accuracy, ACCURACY)):
        name = module.__name__.rpartition(".")[2]
        monkeypatch.setattr(module, "measure", gives(name, record))
    return asked


def test_the_page_has_every_table_and_figure_with_its_claim_and_what_we_make_of_it():
    text = page(Parts([ACCURACY], COSTS, FIGURES))
    assert all(f"<h2>{title}" in text for title in (*TITLES, "Figure 6:"))
    assert text.count("<strong>The paper:</strong>") == text.count("<strong>What we make of it:</strong>") == 10
    assert "Missing" not in text


def test_what_is_not_measured_is_said_to_be_missing_and_nothing_is_made_up():
    text = page(Parts())
    assert all(f"<h2>{title}" in text for title in (*TITLES, "Figure 6:"))
    assert text.count("Missing: ") == 10
    assert "0 of 0 claims" in text
    assert "What we make of it" not in text
    assert page(Parts(costs=COSTS)).count("Missing: ") == 7
    assert page(Parts(figures=FIGURES)).count("Missing: ") == 6


def test_figures_on_the_page_are_those_of_the_records():
    rows = [{**row, "hr": 0.4321} if row["method"] == "pmf" else row for row in ACCURACY.rows]
    assert "0.4321" in page(Parts([replace(ACCURACY, rows=rows)]))
    costs = [{**row, "storage_bytes": 123_456_789.0} if row["name"] == "FCF" else row for row in COSTS.rows]
    assert "123.5 MB" in page(Parts(costs=replace(COSTS, rows=costs)))


def test_table_3_says_where_a_file_differs_from_the_paper():
    text = page(Parts([replace(ACCURACY, dataset="ml-1m", items=3_706)]))
    assert "ml-1m has 3,706 rated items, not 3,952" in text
    assert "No file was given for filmtrust, douban, ciao." in text


def test_the_ablations_order_is_compared_with_the_papers():
    variants = ("lightfr-grad", "lightfr-para", "lightfr-init", "lightfr-random")
    row = {**ACCURACY.rows[0], "protocol": next(iter(ACCURACY.held_out)), "outcome": ""}

    def with_figures(*figures):
        rows = [{**row, "method": name, "title": name, "hr": hr} for name, hr in zip(variants, figures, strict=True)]
        return page(Parts([replace(ACCURACY, rows=rows)]))

    assert ", as the paper has it" in with_figures(0.5, 0.4, 0.3, 0.2)
    assert "lightfr-para &gt; lightfr-grad &gt; lightfr-init &gt; lightfr-random, not as" in with_figures(
        0.4, 0.5, 0.3, 0.2
    )


def test_every_part_is_measured_saved_and_put_on_the_page(measured, tmp_path):
    sources = [Source(None, "ml-100k", size) for size in ("tiny", "small")]
    told = []
    found = everything.measure(sources, tmp_path, lambda what, share: told.append(what), quick=True)
    assert [name for name, _ in measured] == ["costs", "figures", "accuracy", "accuracy"]
    assert told[-1] == "accuracy on synthetic small: all of accuracy"
    assert found.read_text() == page(Parts([ACCURACY, ACCURACY], COSTS, FIGURES))
    assert read(tmp_path / "paper-costs.json") == COSTS
    assert read(tmp_path / "data-2" / "paper-accuracy.json") == ACCURACY


def test_quick_is_small_in_every_part(measured, tmp_path):
    everything.measure([Source(None, "ml-100k", "tiny")], tmp_path, lambda what, share: None, quick=True)
    asked = dict(measured)
    drawing, judging = asked["figures"][0], asked["accuracy"][3]
    assert (drawing.rounds, drawing.seeds, max(drawing.items)) == (10, 1, 10**6)
    assert (judging.quick, judging.settings, judging.seeds) == (True, "authors", 1)


def test_ctrl_c_keeps_what_is_there(measured, tmp_path, monkeypatch):
    def stopped(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(everything.figures, "measure", stopped)
    result = CliRunner().invoke(app, ["paper", "all", "--synthetic", "tiny", "--report", str(tmp_path)])
    assert result.exit_code == 130
    assert "The same command goes on" in result.output
    assert Path(tmp_path / "paper.html").read_text() == page(Parts(costs=COSTS))
