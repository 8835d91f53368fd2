"""`lightfr-harness audit cost` end to end on a tiny catalogue, with short timings."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from lightfr.errors import InvalidInputError
from lightfr_harness.audits.cost import run as runs
from lightfr_harness.audits.cost.cli import _earlier
from lightfr_harness.bench import fit
from lightfr_harness.cli import app
from lightfr_harness.devices import Plan, Scenario, load_profile

PARTS = ("devices", "baselines", "training", "inference", "search", "figure_1")
SMALL = ["audit", "cost", "--items", "500", "--ratings", "10", "--cohort", "5"]
# Figures that follow from times or memory.
TIMED = (
    *("latency", "memory", "inference", "exponent", "CPU time", "bytes of the first round", "at the socket"),
    *("budget: upload", "budget: download", "bytes of each stage", "bytes of a later round", "search of open rows"),
)


@pytest.fixture(autouse=True, scope="module")
def short():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(runs, "FIGURE_1_ITEMS", (1_000, 2_000))
        patched.setattr(runs, "TIMING_SECONDS", 0.0)
        patched.setattr(fit, "SAMPLES", 2)
        patched.setattr(fit, "VARIED", {"bits": (64, 128), "ratings": (100, 200), "items": (1_000, 2_000)})
        patched.setattr(fit, "ITEMS", 1_000)
        yield


def options():
    return runs.CostOptions(Scenario(500, 10, cohort=5), (load_profile("mid-phone"),), Plan(fits=1, recommendations=2))


def counted(record):
    """What a record says apart from times, memory and what TLS adds."""
    device = record["devices"]["devices"][0]
    findings = [f for f in record["findings"] if not any(word in f["claim"] for word in TIMED)]
    named = [
        (f["claim"], f["mode"], f["predicted"], f["measured"], f["verdict"])
        for f in findings
        # The file that ciphertexts lie in, and what a round takes at the socket.
        if f["mode"] not in ("store", "mid-phone") and "of a round by" not in f["claim"]
    ]
    return named, record["scenario"], record["baselines"], device["message_bytes"], device["disk_bytes"]["codes"]


def test_the_command_prints_a_table_and_writes_record_and_page(tmp_path):
    answer = CliRunner().invoke(app, [*SMALL, "--report", str(tmp_path)])
    assert answer.exit_code == 0, answer.output
    assert "budget: memory" in answer.output
    record = json.loads((tmp_path / "cost.json").read_text())
    assert all(part in record for part in PARTS)
    assert not record["interrupted"]
    page = (tmp_path / "cost.html").read_text()
    assert "of our limits hold" in page
    assert record["scenario"]["privacy"] == "secagg"
    for stage in ("keys_sent", "shares_sent", "included_signed", "uploaded", "survivors_signed", "revealed"):
        assert record["devices"]["devices"][0]["phases"]["round"]["stages"][stage]["peak_rss_bytes"] > 0
    for named in ("The secure round of each device", "mid-phone, keys sent", "shares sent", "uploaded", "revealed"):
        assert named in page


def test_the_clear_mode_stays_possible_and_the_page_says_that_it_is_not_private(tmp_path):
    answer = CliRunner().invoke(app, [*SMALL, "--privacy", "clear", "--report", str(tmp_path)])
    assert answer.exit_code == 0, answer.output
    assert "Uploads are in the clear, which is not private" in (tmp_path / "cost.html").read_text()


def test_a_broken_budget_gives_exit_code_1_and_json_on_request(tmp_path):
    tiny = tmp_path / "tiny.toml"
    packaged = load_profile("mid-phone")
    figures = {name: value for name, value in packaged.record().items() if name not in ("name", "sources")}
    lines = [f"{name} = {json.dumps(value)}" for name, value in (figures | {"storage_mib": 0.005}).items()]
    sources = [f"{name} = 'a test'" for name in packaged.sources]
    tiny.write_text("\n".join([*lines, "[sources]", *sources]))
    answer = CliRunner().invoke(app, [*SMALL, "--profile", str(tiny), "--json", "-"])
    assert answer.exit_code == 1, answer.output
    findings = json.loads(answer.stdout)["findings"]
    assert [f["claim"] for f in findings if f["verdict"] == "broken"] == ["budget: storage"]


@pytest.fixture(scope="module")
def whole(short):
    """A run without interruption, and the shares of it that were told while it went on."""
    shares = []
    return runs.run(options(), lambda what, share: shares.append(share)), shares


def test_an_interrupted_audit_keeps_what_it_has_and_goes_on_to_the_record_of_a_whole_one(monkeypatch, whole):
    def impatient(what, share):
        if what == "training":
            raise KeyboardInterrupt

    partial = runs.run(options(), impatient)
    assert partial["interrupted"]
    assert "training" not in partial
    assert partial["devices"]["devices"][0]["finished"]
    assert any(finding["claim"] == "budget: memory" for finding in partial["findings"])
    partial = json.loads(json.dumps(partial))
    monkeypatch.setattr(runs.devices, "run", lambda *a, **k: pytest.fail("devices ran again"))
    done = runs.run(options(), earlier=partial)
    assert not done["interrupted"]
    assert done["devices"] == partial["devices"]
    assert all(part in done for part in PARTS)
    # The same seed gives the same record but for timings, whether or not a run was interrupted.
    assert counted(done) == counted(whole[0])


def test_a_whole_record_or_one_of_other_options_is_not_gone_on_with():
    begun = runs._begun(options()) | {"interrupted": True}
    assert runs.continues(begun, options())
    assert not runs.continues(begun | {"interrupted": False}, options())
    assert not runs.continues(begun | {"seed": 1}, options())


def test_devices_that_ran_under_other_figures_of_the_same_profile_are_not_gone_on_with():
    begun = json.loads(json.dumps(runs._begun(options()))) | {"interrupted": True}
    for memory_mib, goes_on in ((load_profile("mid-phone").memory_mib, True), (1.0, False)):
        profile = json.loads(json.dumps(replace(load_profile("mid-phone"), memory_mib=memory_mib).record()))
        assert runs.continues(begun | {"devices": {"devices": [{"profile": profile}]}}, options()) == goes_on


@pytest.mark.parametrize("text", ["[1, 2]", "3", "null", "{", '{"format": 1, "kind": "cost", "interrupted": true}'])
def test_what_is_no_record_of_an_audit_is_not_gone_on_with(text, tmp_path):
    (tmp_path / "cost.json").write_text(text)
    assert _earlier(tmp_path) is None


def test_two_profiles_of_one_name_are_refused_unless_they_are_the_same():
    phone = load_profile("mid-phone")
    assert runs.CostOptions(Scenario(), (phone, phone)).profiles == (phone, phone)
    with pytest.raises(InvalidInputError, match="two different profiles are called 'mid-phone'"):
        runs.CostOptions(Scenario(), (phone, replace(phone, memory_mib=1.0)))


def test_progress_never_goes_back_and_ends_with_all_done(whole):
    _, shares = whole
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert shares[-1] == 1


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        (["--profile", "fridge"], "no profile 'fridge'"),
        (["--ratings", "600"], "number of ratings is 600"),
        (["--bits", "12"], "12 bits"),
    ],
)
def test_bad_options_end_as_one_sentence(option, reason):
    answer = CliRunner().invoke(app, [*SMALL, *option])
    assert answer.exit_code == 2
    assert reason in answer.output
