"""Our coordinator is conformant with secure aggregation."""

import json

import pytest
from typer.testing import CliRunner

from lightfr_harness.cli import app
from lightfr_harness.conformance.kit import make_kit
from lightfr_harness.conformance.vectors import DEFAULT_FOLDER, Vectors
from tests.harness.conformance.running import coordinator

# None of these waits for a deadline.
QUICK = (
    *("tls.*", "cohort.peer-ids", "roster.same-for-all", "roster.entries", "roster.signature", "roster.vouchers"),
    *("advertise.[klmos]*", "share.[io]*", "acknowledge.s*", "included.[bo]*", "included.same*", "survivors.[bo]*"),
    *("masked.[mrps]*", "reveal.o*", "step.same*", "step.other*", "sums.everybody", "sums.false-shares"),
)


def require_all_passed(kind, least, folder, *options):
    kit = make_kit(folder / "kit", kind, "localhost", Vectors.read(DEFAULT_FOLDER))
    report = folder / "report.json"
    with coordinator(kit, folder) as running:
        where = [running.addresses["server"], "--enrollment", running.addresses["enrollment"], "--kit", str(kit.folder)]
        arguments = ["conformance", *where, "--json", str(report), *options]
        whole = CliRunner().invoke(app, arguments, env={"COLUMNS": "100"})
    result = json.loads(report.read_text())
    assert [one for one in result["cases"] if one["outcome"] != "passed"] == []
    assert (whole.exit_code, result["is_good"], result["kit"]) == (0, True, kind)
    assert len(result["cases"]) >= least


def test_our_coordinator_passes_the_quick_cases_with_masks(tmp_path):
    require_all_passed("secagg", 40, tmp_path, *(f"--only={pattern}" for pattern in QUICK))


def test_our_coordinator_passes_every_case_of_gate_refreshes(tmp_path):
    require_all_passed("gate", 9, tmp_path)


def test_our_coordinator_passes_every_case_of_noise(tmp_path):
    require_all_passed("noise", 5, tmp_path)


def test_our_coordinator_passes_every_case_of_evaluations(tmp_path):
    require_all_passed("evaluation", 10, tmp_path)


@pytest.mark.conformance
def test_our_coordinator_passes_every_case_with_masks(tmp_path):
    require_all_passed("secagg", 250, tmp_path)


@pytest.mark.conformance
def test_our_coordinator_passes_every_case_with_130_devices(tmp_path):
    require_all_passed("crowd", 100, tmp_path)
