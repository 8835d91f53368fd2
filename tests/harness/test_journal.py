"""A journal keeps finished runs, and only whole ones."""

import pytest

from lightfr_harness.errors import CannotRunError
from lightfr_harness.journal import Journal
from tests.harness.full_disk import full_disk


def test_a_result_is_found_once_and_then_read(tmp_path):
    path = tmp_path / "folder" / "runs.jsonl"
    assert Journal(path).result("a", lambda: {"hr": 0.5}) == {"key": "a", "hr": 0.5}

    def never():
        raise AssertionError

    assert Journal(path).result("a", never) == {"key": "a", "hr": 0.5}


def test_a_line_that_was_cut_short_is_run_again(tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_text('{"key": "a", "hr": 0.5}\n{"key": "b", "h')
    journal = Journal(path)
    assert journal.result("b", lambda: {"hr": 0.7})["hr"] == 0.7
    assert path.read_text() == '{"key": "a", "hr": 0.5}\n{"key": "b", "hr": 0.7}\n'


@pytest.mark.parametrize("line", ["{", "3", "[]", "{}", '{"key": []}', "[" * 100_000, "\xff"])
def test_a_file_that_holds_something_else_is_refused_and_stays_as_it_is(line, tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_text(f"{line}\ncut short", encoding="latin-1")
    before = path.read_bytes()
    with pytest.raises(CannotRunError, match="does not hold finished runs"):
        Journal(path)
    assert path.read_bytes() == before


def test_a_full_disk_leaves_the_finished_runs_of_a_journal_that_goes_on(tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_text('{"key": "a", "hr": 0.5}\n{"key": "b", "h')
    with full_disk():
        journal = Journal(path)
    assert path.read_text() == '{"key": "a", "hr": 0.5}\n'
    assert journal.result("a", dict)["hr"] == 0.5
