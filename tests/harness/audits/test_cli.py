"""`lightfr-harness audit privacy` end to end on a tiny set."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lightfr_harness import records
from lightfr_harness.audits.privacy.plan import AuditOptions, scenarios
from lightfr_harness.cli import app
from tests.harness.record_examples import EXAMPLES

ARGUMENTS = ["audit", "privacy", "--synthetic", "tiny", "--rounds", "2"]
MODES = ("secagg", "secagg+dp", "clear")


def audit(tmp_path, *more, modes=MODES):
    asked = [word for mode in modes for word in ("--mode", mode)]
    answer = CliRunner().invoke(app, [*ARGUMENTS, *asked, "--report", str(tmp_path), *more])
    return answer, json.loads((tmp_path / "privacy.json").read_text())


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audit")
    return folder, *audit(folder)


def test_it_prints_a_table_and_writes_a_record_of_every_claim(audited):
    _, answer, record = audited
    assert "guessing" in answer.output
    claims = {finding["claim"] for finding in record["findings"]}
    assert {"ratings recovered exactly", "rated items named", "user codes read from one sum"} <= claims
    assert {run["mode"] for run in record["runs"]} >= {"clear", "secagg, cohort 38", "secagg+dp, cohort 38"}
    assert all(finding["interval"][0] <= finding["interval"][1] for finding in record["findings"])


def test_epsilon_is_stated_of_the_noisy_mode_alone(audited):
    folder, _, record = audited
    losses = {run["mode"]: run["privacy_loss"] for run in record["runs"]}
    stated = losses.pop("secagg+dp, cohort 38")
    assert (stated["rounds"], stated["honest_devices"]) == (2, 34)
    assert set(losses.values()) == {None}
    assert f"epsilon {stated['epsilon']:.1f} at delta 1e-05" in (folder / "privacy.html").read_text()


def test_every_mode_of_secure_sums_uploads_as_many_bytes_as_its_blocks_take(audited):
    size = {run["mode"]: run["upload_bytes"] for run in audited[2]["runs"]}
    # Noise takes more bits in rows, and fewer in sums, where all weigh 1.
    assert 0 < size["secagg, cohort 38"] < size["secagg+dp, cohort 38"]


def test_the_exit_code_says_whether_a_limit_is_broken(audited, tmp_path):
    _, answer, record = audited
    assert answer.exit_code == int(any(finding["verdict"] == "broken" for finding in record["findings"]))
    # A cohort of one device that is told to be private cannot be.
    strict, record = audit(tmp_path, "--cohort", "1", "--minimum-cohort", "1", modes=["secagg"])
    assert strict.exit_code == 1
    assert any(finding["verdict"] == "broken" for finding in record["findings"])


def test_the_same_seed_gives_the_same_record(audited, tmp_path):
    found = audit(tmp_path, modes=["secagg+dp"])[1]["findings"]
    of_the_mode = [finding for finding in audited[2]["findings"] if finding["mode"].startswith("secagg+dp")]
    assert [finding for finding in found if finding["mode"].startswith("secagg+dp")] == of_the_mode
    assert of_the_mode


def test_other_methods_stand_in_one_table_beside_our_modes(audited, tmp_path):
    arguments = ["audit", "privacy", "--synthetic", "tiny", "--rounds", "2", "--method", "pfedrec", "--method", "fcf"]
    arguments += ["--beside", str(audited[0] / "privacy.json"), "--report", str(tmp_path)]
    answer = CliRunner(env={"COLUMNS": "200"}).invoke(app, arguments)
    assert answer.exit_code == 0, answer.output
    record = json.loads((tmp_path / "privacy-methods.json").read_text())
    assert [each["mode"] for each in record["findings"] if each["claim"] == "rated items named"] == ["PFedRec", "FCF"]
    assert record["options"]["rounds"] == 2
    ours = {each["mode"] for each in record["beside"]}
    assert ours == {"secagg, cohort 38", "secagg+dp, cohort 38", "clear"}
    page = (tmp_path / "privacy-methods.html").read_text()
    for name in ("PFedRec (1)", "FCF (1)", *(f"LightFR, {mode} (2)" for mode in ours)):
        assert re.search(rf'<th scope="row"[^>]*>{re.escape(name)}</th>', page)
        assert f"{name} " in answer.output


def test_the_scale_of_a_file_reaches_every_run_of_an_audit():
    scale = {"rating_min": 1.0, "rating_max": 5.0}
    asked = AuditOptions(data=Path("ratings.inter"), format="inter", data_options=scale)
    assert all(asked.training(mode, None).data_options == scale for mode in asked.modes)


def test_a_mode_or_a_cohort_that_is_named_twice_is_audited_once():
    asked = AuditOptions(modes=("secagg", "clear", "secagg"), cohorts=(30, 40, 30))
    names = [scenario.name for scenario in scenarios(asked, 100)]
    assert names == ["secagg, cohort 30", "secagg, cohort 40", "secagg, cohort 40, gate off", "clear"]


def test_only_a_record_of_our_modes_stands_beside_other_methods(tmp_path):
    records.write(EXAMPLES["fit"], tmp_path / "fit.json")
    answer = CliRunner().invoke(app, ["audit", "privacy", "--method", "fcf", "--beside", str(tmp_path / "fit.json")])
    assert answer.exit_code == 2
    assert "a record of kind fit" in answer.output


@pytest.mark.parametrize(
    "change", [{"findings": [{}]}, {"runs": 3}, {"options": {}}, {"runs": [{"mode": "paper", "gate_only": False}]}]
)
def test_a_record_that_cannot_stand_beside_other_methods_is_refused_before_they_are_watched(change, tmp_path):
    path = tmp_path / "ours.json"
    path.write_text(json.dumps(records.to_dict(EXAMPLES["privacy"]) | change))
    # The data are not looked at: they are not there.
    asked = ["audit", "privacy", "--method", "fcf", "--beside", str(path), "--data", "missing", "--format", "inter"]
    answer = CliRunner().invoke(app, asked)
    assert answer.exit_code == 2
    assert "has a field that does not hold what its kind of record holds" in answer.output


class Page(HTMLParser):
    """Collects what a self-contained and readable page must and must not have."""

    def __init__(self):
        super().__init__()
        self.links, self.tags, self.open = [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.links += [value for name, value in attributes if name in ("src", "href", "data")]
        if tag not in ("meta", "line"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_stands_alone_and_can_be_read_aloud(audited):
    text = (audited[0] / "privacy.html").read_text()
    page = Page()
    page.feed(text)
    assert (page.open, [link for link in page.links if not link.startswith("#")]) == ([], [])
    assert not re.search(r"url\(|@import|<script", text)
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text
    plots = [attributes for tag, attributes in page.tags if tag == "svg" and "aria-hidden" not in attributes]
    assert len(plots) == 7
    assert all(plot["role"] == "img" and len(plot["aria-label"]) > 50 for plot in plots)
    assert text.index('class="verdict') < text.index("<table")
    assert all("scope" in attributes for tag, attributes in page.tags if tag == "th")


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        (["--mode", "secagg+dp", "--epsilon", "0"], "epsilon is 0"),
        (["--method", "fcf", "--mode", "clear"], "two audits"),
        (["--beside", "privacy.json"], "needs --method"),
    ],
)
def test_bad_options_end_as_one_sentence(option, reason):
    answer = CliRunner().invoke(app, ["audit", "privacy", *option])
    assert answer.exit_code == 2
    assert reason in answer.output
