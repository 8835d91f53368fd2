"""Two records: what got worse is told, and noise is not."""

import copy
import json

import pytest
from typer.testing import CliRunner

from lightfr_harness.audits.cost import findings
from lightfr_harness.cli import app
from lightfr_harness.compare import compare, worse
from lightfr_harness.records import CostRecord, from_dict, to_dict
from tests.harness.audits.cost import records


def audited(*devices, **changes):
    record = records.record(*devices, **changes)
    record["findings"] = [finding.record() for finding in findings.audit(record)]
    return from_dict(CostRecord, json.loads(json.dumps(record)))


@pytest.fixture
def before():
    return audited()


def changed(record, claim, mode, **fields):
    after = copy.deepcopy(record)
    finding = next(f for f in after.findings if (f["claim"], f["mode"]) == (claim, mode))
    finding.update(fields)
    return after


def test_a_record_is_no_worse_than_itself(before):
    changes = compare(before, before)
    assert worse(changes) == []
    assert {change.what for change in changes} == {"same"}
    assert len(changes) == len(before.findings)


@pytest.mark.parametrize(
    ("claim", "mode", "factor", "what"),
    [
        ("storage of the codes, measured", "packed codes, (1+m) f/8", 1.005, "same"),
        ("storage of the codes, measured", "packed codes, (1+m) f/8", 1.02, "worse"),
        ("storage of the codes, measured", "packed codes, (1+m) f/8", 0.9, "better"),
        ("budget: memory", "mid-phone", 1.04, "same"),
        ("budget: memory", "mid-phone", 1.06, "worse"),
        ("budget: latency of recommend, p95", "mid-phone", 1.9, "same"),
        ("budget: latency of recommend, p95", "mid-phone", 2.1, "worse"),
    ],
)
def test_counted_figures_have_little_noise_and_timed_ones_more(before, claim, mode, factor, what):
    measured = next(f["measured"] for f in before.findings if (f["claim"], f["mode"]) == (claim, mode)) * factor
    after = changed(before, claim, mode, measured=measured, interval=[measured, measured])
    assert next(c.what for c in compare(before, after) if (c.claim, c.mode) == (claim, mode)) == what


@pytest.mark.parametrize(("ratio", "what"), [(44.0, "same"), (20.0, "worse"), (90.0, "better")])
def test_of_a_speed_up_more_is_better_and_overlapping_intervals_are_noise(before, ratio, what):
    after = audited(inference=records.timing(records.ITEMS, ratio))
    change = next(c for c in compare(before, after) if c.mode == "than FCF, FedRec, PrivRec")
    assert change.what == what


def test_a_limit_that_broke_is_worse_also_where_it_has_a_new_name(before):
    breach = records.breach("memory", "fit", 256 * records.MIB, 300 * records.MIB)
    after = audited(records.device(breaches=[breach]))
    assert [(c.claim, c.mode) for c in worse(compare(before, after))] == [("budget: memory", "mid-phone, fit")]
    assert worse(compare(after, before)) == []


def test_of_two_figures_of_the_same_name_neither_hides_the_other(before):
    """As those of two data sets whose files have the same name."""
    twice = copy.deepcopy(before)
    limit = next(f for f in twice.findings if f["verdict"] == "holds")
    twice.findings.append({**limit, "measured": 2 * limit["measured"], "interval": [2 * limit["measured"]] * 2})
    assert worse(compare(twice, twice)) == []
    broken = copy.deepcopy(twice)
    next(f for f in broken.findings if f["claim"] == limit["claim"] and f["mode"] == limit["mode"])["verdict"] = (
        "broken"
    )
    (found,) = worse(compare(twice, broken))
    assert (found.claim, found.mode) == (limit["claim"], limit["mode"])


def test_the_command_leaves_with_1_when_something_got_worse_and_writes_a_page(before, tmp_path):
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    heavy = records.device()
    heavy["message_bytes"]["Upload"][0] *= 2
    for path, record in zip(paths, (before, audited(heavy)), strict=True):
        path.write_text(json.dumps(to_dict(record)))
    arguments = ["compare", *map(str, paths), "--report", str(tmp_path / "report")]
    answer = CliRunner().invoke(app, arguments)
    assert answer.exit_code == 1, answer.output
    assert "bytes of an upload" in " ".join(answer.output.split())
    assert "1 got worse" in (tmp_path / "report" / "comparison.html").read_text()
    assert CliRunner().invoke(app, ["compare", str(paths[0]), str(paths[0])]).exit_code == 0


@pytest.mark.parametrize(
    "text", ["", "[]", '{"findings": 3}', '{"format": 1, "kind": "odd"}', '{"format": 2, "kind": "cost"}']
)
def test_what_is_no_record_is_told_in_one_sentence(tmp_path, text):
    path = tmp_path / "odd.json"
    path.write_text(text)
    answer = CliRunner().invoke(app, ["compare", str(path), str(path)])
    assert answer.exit_code == 2
    assert answer.output.startswith("Error: ")
    assert "Traceback" not in answer.output
