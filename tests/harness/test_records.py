"""Records: written, read back, documented, drawn and compared, whatever their kind."""

import errno
import json
import os
import re
from dataclasses import fields, replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lightfr_harness import compare, records
from lightfr_harness.cli import app
from lightfr_harness.reports.pages import PAGES, page_of
from tests.harness.full_disk import full_disk
from tests.harness.record_examples import EXAMPLES

PAGE = Path(__file__).parents[2] / "docs" / "records.md"
PARTS = {name: part for name, part in vars(records).items() if hasattr(part, "__total__")}


def documented():
    """Field names by heading."""
    sections = re.split(r"^### (.+)$", PAGE.read_text(), flags=re.MULTILINE)[1:]
    return {
        name: re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
        for name, text in zip(sections[::2], sections[1::2], strict=True)
    }


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def written(tmp_path):
    paths = {kind: tmp_path / f"{kind}.json" for kind in EXAMPLES}
    for kind, path in paths.items():
        records.write(EXAMPLES[kind], path)
    return paths


def test_the_page_has_every_kind_and_every_part_with_exactly_its_fields():
    classes = {kind: [field.name for field in fields(each)] for kind, each in records.KINDS.items()}
    parts = {name: list(part.__annotations__) for name, part in PARTS.items()}
    assert documented() == classes | parts


def test_every_kind_has_a_page_figures_to_compare_and_an_example():
    assert set(PAGES) == set(records.KINDS.values())
    audits = set(compare.WITH_FINDINGS)
    assert set(compare.FIGURES) | audits == set(records.KINDS.values())
    assert EXAMPLES.keys() == records.KINDS.keys()


@pytest.mark.parametrize("kind", EXAMPLES)
def test_a_record_comes_back_from_its_file_as_it_was(kind, written):
    assert records.read(written[kind]) == EXAMPLES[kind]
    assert json.loads(written[kind].read_text()).items() >= {"format": 1, "kind": kind}.items()


def test_fields_that_scripts_read_stand_at_the_top():
    train, topk = (records.to_dict(EXAMPLES[kind]) for kind in ("train", "topk"))
    assert {"hr", "ndcg", "popularity"} <= train.keys()
    assert {"hr", "ndcg"} <= train["popularity"].keys()
    assert {"faiss_ratio", "floor_ratio", "float64_ratio"} <= topk.keys()
    assert "recall" not in train


def test_a_field_of_a_later_version_is_ignored_and_a_missing_one_is_named(written):
    values = json.loads(written["fit"].read_text())
    written["fit"].write_text(json.dumps({**values, "colour": "blue"}))
    assert records.read(written["fit"]) == EXAMPLES["fit"]
    del values["rated"]
    written["fit"].write_text(json.dumps(values))
    with pytest.raises(records.RecordError, match="the fit record has no field rated"):
        records.read(written["fit"])


@pytest.mark.parametrize("kind", EXAMPLES)
def test_every_record_is_no_worse_than_itself(kind, written):
    answer = run("compare", written[kind], written[kind])
    assert answer.exit_code == 0, answer.output
    assert "nothing, beyond noise" in answer.output


def test_lower_accuracy_is_worse_and_a_little_lower_is_noise(written, tmp_path):
    for factor, exit_code in ((0.99, 0), (0.9, 1)):
        records.write(replace(EXAMPLES["train"], hr=EXAMPLES["train"].hr * factor), tmp_path / "after.json")
        assert run("compare", written["train"], tmp_path / "after.json").exit_code == exit_code


def test_a_slower_kernel_is_worse_whichever_way_its_ratio_counts(written, tmp_path):
    topk = EXAMPLES["topk"]
    for change in ({"faiss_ratio": topk.faiss_ratio / 4}, {"floor_ratio": topk.floor_ratio * 4}):
        records.write(replace(topk, **change), tmp_path / "after.json")
        assert run("compare", written["topk"], tmp_path / "after.json").exit_code == 1
        assert run("compare", tmp_path / "after.json", written["topk"]).exit_code == 0


def test_a_day_in_which_no_round_ends_has_no_better_rounds(written, tmp_path):
    answer = {**EXAMPLES["scale"].answer, "rounds": 0, "round_seconds_p50": 0.0, "round_seconds_p95": 0.0}
    after = replace(EXAMPLES["scale"], answer=answer)
    changes = {(each.claim, each.mode): each.what for each in compare.compare(EXAMPLES["scale"], after)}
    assert changes["a round", "median"] == compare.GONE
    assert "NO ROUND ENDED" in page_of(after)


def test_records_of_different_kinds_are_an_error_in_one_sentence(written):
    answer = run("compare", written["train"], written["sweep"])
    assert answer.exit_code == 2
    assert answer.output == (
        "Error: a train record cannot be compared with a sweep record: name two records of one kind\n"
    )


@pytest.mark.parametrize("change", [{"measured": "much"}, {"measured": []}, {"unit": None}])
def test_a_new_figure_that_is_no_figure_is_an_error_in_one_sentence(change, written, tmp_path):
    values = json.loads(written["privacy"].read_text())
    values["findings"].append({**values["findings"][0], "claim": "a new one", **change})
    (tmp_path / "after.json").write_text(json.dumps(values))
    answer = run("compare", written["privacy"], tmp_path / "after.json")
    assert answer.exit_code == 2
    assert "has a field that does not hold what its kind of record holds" in answer.output


def test_a_table_of_methods_by_no_protocol_is_drawn_without_a_best_one(written):
    values = json.loads(written["paper-accuracy"].read_text())
    written["paper-accuracy"].write_text(json.dumps({**values, "held_out": {}}))
    assert run("report", written["paper-accuracy"]).exit_code == 0
    assert "No method gave a figure." in written["paper-accuracy"].with_suffix(".html").read_text()


def test_a_new_figure_without_a_verdict_is_an_error_in_one_sentence(written, tmp_path):
    values = json.loads(written["privacy"].read_text())
    values["findings"].append({**values["findings"][0], "claim": "a new one"})
    del values["findings"][-1]["verdict"]
    (tmp_path / "after.json").write_text(json.dumps(values))
    assert run("compare", written["privacy"], tmp_path / "after.json").exit_code == 2


@pytest.mark.parametrize(("claim", "shown"), [("epsilon, ε", r"epsilon, \u03b5"), ("\ud800", r"\ud800")])
def test_a_letter_that_the_terminal_lacks_is_shown_by_its_number(claim, shown, written, tmp_path):
    values = json.loads(written["privacy"].read_text())
    values["findings"].append({**values["findings"][0], "claim": claim})
    (tmp_path / "after.json").write_text(json.dumps(values))
    words = ["compare", str(written["privacy"]), str(tmp_path / "after.json")]
    answer = CliRunner(charset="latin-1", env={"COLUMNS": "200"}).invoke(app, words)
    assert answer.exit_code == 0, answer.output
    assert shown in answer.stdout


def test_a_claim_that_is_no_text_is_shown_all_the_same(written, tmp_path):
    values = json.loads(written["privacy"].read_text())
    values["findings"].append({**values["findings"][0], "claim": 5, "verdict": "holds"})
    (tmp_path / "after.json").write_text(json.dumps(values))
    assert run("compare", written["privacy"], tmp_path / "after.json").exit_code == 0


def test_a_cell_of_a_page_that_is_no_text_is_an_error_in_one_sentence(written):
    values = json.loads(written["demo"].read_text())
    values["device"]["liked"] = [1, 2]
    written["demo"].write_text(json.dumps(values))
    answer = run("report", written["demo"])
    assert answer.exit_code == 2
    assert "has a field that does not hold what its kind of record holds" in answer.output


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_figure_that_is_no_number_is_neither_better_nor_the_same(number, written):
    figure = f'"measured": {EXAMPLES["privacy"].findings[0]["measured"]}'
    after = written["privacy"].with_name("after.json")
    after.write_text(written["privacy"].read_text().replace(figure, f'"measured": {number}', 1))
    assert number in after.read_text()
    answer = run("compare", written["privacy"], after)
    assert answer.exit_code == 2
    assert f"{number} is not a finite number" in answer.output


def test_lists_within_lists_without_end_are_no_record(tmp_path):
    (tmp_path / "deep.json").write_text("[" * 100_000)
    answer = run("report", tmp_path / "deep.json")
    assert answer.exit_code == 2
    assert "is not JSON" in answer.output


def test_report_draws_every_record_and_prints_where(written, tmp_path):
    answer = run("report", *written.values(), "--report", tmp_path / "pages")
    assert answer.exit_code == 0, answer.output
    assert answer.output.split() == [str(tmp_path / "pages" / f"{kind}.html") for kind in EXAMPLES]
    for kind in EXAMPLES:
        assert (tmp_path / "pages" / f"{kind}.html").read_text() == page_of(EXAMPLES[kind])


def test_no_page_is_written_over_another_or_over_a_record(written, tmp_path):
    other = tmp_path / "other" / "fit.json"
    records.write(EXAMPLES["topk"], other)
    answer = run("report", written["fit"], other, "--report", tmp_path / "pages")
    assert answer.exit_code == 2
    assert f"the page of {other} would be written over" in answer.output
    assert (tmp_path / "pages" / "fit.html").read_text() == page_of(EXAMPLES["fit"])
    named = written["fit"].rename(tmp_path / "fit.html")
    assert run("report", named).exit_code == 2
    assert records.read(named) == EXAMPLES["fit"]


def test_a_page_lands_beside_its_record(written):
    assert run("report", written["fit"]).exit_code == 0
    assert written["fit"].with_suffix(".html").exists()


def test_a_file_that_cannot_be_written_is_named():
    with pytest.raises(records.RecordError, match=r"cannot write the record /proc/no/record\.json"):
        records.write(EXAMPLES["fit"], "/proc/no/record.json")


def test_a_full_disk_leaves_the_record_that_was_there(written):
    folder, path = written["train"].parent, written["train"]
    before = {each.name for each in folder.iterdir()}
    with full_disk(1000), pytest.raises(records.RecordError, match="cannot write the record"):
        records.write(EXAMPLES["train"], path)
    assert records.read(path) == EXAMPLES["train"]
    assert {each.name for each in folder.iterdir()} == before


def test_a_record_is_written_into_a_pipe_and_through_a_link(written, tmp_path):
    link, pipe = tmp_path / "link.json", tmp_path / "pipe"
    link.symlink_to(written["fit"])
    records.write(EXAMPLES["topk"], link)
    assert link.is_symlink()
    assert records.read(written["fit"]) == EXAMPLES["topk"]
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    records.write(EXAMPLES["fit"], pipe)
    assert json.loads(os.read(reading, 65_536)) == records.to_dict(EXAMPLES["fit"])
    os.close(reading)


def test_a_record_is_written_into_a_file_that_is_mounted_by_itself(written, monkeypatch):
    def busy(path, target):
        raise OSError(errno.EBUSY, "Device or resource busy")

    monkeypatch.setattr(Path, "replace", busy)
    before = {each.name for each in written["fit"].parent.iterdir()}
    records.write(EXAMPLES["topk"], written["fit"])
    assert records.read(written["fit"]) == EXAMPLES["topk"]
    assert {each.name for each in written["fit"].parent.iterdir()} == before


def test_a_dash_prints_the_record_and_nothing_else(capsys):
    records.write(EXAMPLES["fit"], "-")
    assert json.loads(capsys.readouterr().out) == records.to_dict(EXAMPLES["fit"])
