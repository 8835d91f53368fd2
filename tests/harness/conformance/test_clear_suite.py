"""Our coordinator is conformant in the clear; and what the command says when there is nothing to try."""

import json

import pytest
from typer.testing import CliRunner

from lightfr_harness.cli import app
from lightfr_harness.conformance.kit import make_kit
from lightfr_harness.conformance.vectors import DEFAULT_FOLDER, Vectors
from lightfr_harness.server.coordinator.child import CoordinatorProcess


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    return make_kit(tmp_path_factory.mktemp("clear") / "kit", "clear", "localhost", Vectors.read(DEFAULT_FOLDER))


def conformance(server, enrollment, kit, *more):
    arguments = ["conformance", server, "--enrollment", enrollment, "--kit", str(kit.folder), *map(str, more)]
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "100"})


def test_our_coordinator_passes_every_case_and_is_then_no_longer_fresh(kit, tmp_path):
    report, known = tmp_path / "report.json", tmp_path / "known.txt"
    with CoordinatorProcess(
        tmp_path / "state", kit.authority, kit.folder / "items.tsv", **kit.serve_options()
    ) as running:
        addresses = (running.addresses["server"], running.addresses["enrollment"])
        whole = conformance(*addresses, kit, "--json", report)
        again = conformance(*addresses, kit)
    result = json.loads(report.read_text())
    assert [one for one in result["cases"] if one["outcome"] != "passed"] == []
    assert (whole.exit_code, result["is_good"], result["kit"]) == (0, True, "clear")
    assert len(result["cases"]) >= 150
    assert again.exit_code == 2
    assert "Make a new kit" in again.output
    known.write_text("no.such-case\n")
    assert conformance(*addresses, kit, "--known-failing", known).exit_code == 2


def test_a_server_that_is_not_there_cannot_be_tried(kit):
    result = conformance("https://127.0.0.1:1", "https://127.0.0.1:1", kit)
    assert result.exit_code == 2
    assert "could not enrol at https://127.0.0.1:1" in result.output


def test_the_list_needs_no_server():
    result = CliRunner().invoke(app, ["conformance", "--list", "--only", "upload.*"], env={"COLUMNS": "100"})
    assert result.exit_code == 0
    assert "upload.same-bytes-again" in result.output
    assert "tls." not in result.output


def test_without_a_server_the_command_says_what_it_needs(kit):
    result = CliRunner().invoke(app, ["conformance"])
    assert result.exit_code == 2
    assert "--enrollment" in result.output


@pytest.mark.parametrize(
    "wrong", ["https://localhost:port", "https://localhost:99999", "localhost:1", "https://[::1", "x"]
)
def test_an_address_that_is_none_ends_in_one_sentence_that_names_it(kit, wrong):
    right = "https://localhost:1"
    for addresses, name in (((wrong, right), "SERVER"), ((right, wrong), "--enrollment")):
        result = conformance(*addresses, kit)
        assert result.exit_code == 2
        assert result.output == f"Error: {name} is {wrong!r}: give an address of the form https://host:port\n"
