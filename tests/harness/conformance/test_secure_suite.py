"""Our coordinator is conformant with secure aggregation."""

import json

import pytest
from typer.testing import CliRunner

from lightfr_harness.cli import app
from lightfr_harness.conformance.kit import make_kit
from lightfr_harness.conformance.vectors import DEFAULT_FOLDER, Vectors
from lightfr_harness.server.coordinator.child import CoordinatorProcess


def require_all_passed(kind, least, folder):
    kit = make_kit(folder / "kit", kind, "localhost", Vectors.read(DEFAULT_FOLDER))
    report = folder / "report.json"
    with CoordinatorProcess(
        folder / "state", kit.authority, kit.folder / "items.tsv", **kit.serve_options()
    ) as running:
        where = [running.addresses["server"], "--enrollment", running.addresses["enrollment"], "--kit", str(kit.folder)]
        whole = CliRunner().invoke(app, ["conformance", *where, "--json", str(report)], env={"COLUMNS": "100"})
    result = json.loads(report.read_text())
    assert [one for one in result["cases"] if one["outcome"] != "passed"] == []
    assert (whole.exit_code, result["is_good"], result["kit"]) == (0, True, kind)
    assert len(result["cases"]) >= least


def test_our_coordinator_passes_every_case_with_masks(tmp_path):
    require_all_passed("secagg", 180, tmp_path)


@pytest.mark.conformance
def test_our_coordinator_passes_every_case_with_seventy_devices(tmp_path):
    require_all_passed("crowd", 100, tmp_path)
