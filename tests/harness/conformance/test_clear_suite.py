"""Our coordinator is conformant in the clear; and what the command says when there is nothing to try."""

import json
import socket
import threading

import pytest
from typer.testing import CliRunner

from lightfr_harness.cli import app
from lightfr_harness.conformance import cases
from lightfr_harness.conformance.kit import make_kit
from lightfr_harness.conformance.registry import registry
from lightfr_harness.conformance.runner import Outcome, run_one
from lightfr_harness.conformance.vectors import DEFAULT_FOLDER, Vectors
from lightfr_harness.server.authority.credentials import Admission
from tests.harness.conformance.running import catalogue_command, coordinator, free_ports, world_of


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    return make_kit(tmp_path_factory.mktemp("clear") / "kit", "clear", "localhost", Vectors.read(DEFAULT_FOLDER))


def conformance(server, enrollment, kit, *more):
    arguments = ["conformance", server, "--enrollment", enrollment, "--kit", str(kit.folder), *map(str, more)]
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "100"})


def test_our_coordinator_passes_every_case_and_is_then_no_longer_fresh(kit, tmp_path):
    report, known = tmp_path / "report.json", tmp_path / "known.txt"
    with coordinator(kit, tmp_path) as running:
        addresses = (running.addresses["server"], running.addresses["enrollment"])
        command = "--catalogue-command", catalogue_command(tmp_path)
        whole = conformance(*addresses, kit, *command, "--json", report)
        again = conformance(*addresses, kit)
    result = json.loads(report.read_text())
    assert [one for one in result["cases"] if one["outcome"] != "passed"] == []
    assert (whole.exit_code, result["is_good"], result["kit"]) == (0, True, "clear")
    assert len(result["cases"]) >= 200
    assert {"catalogue.ids", "catalogue.memory-stays"} <= {one["id"] for one in result["cases"]}
    assert again.exit_code == 2
    assert "Make a new kit" in again.output
    known.write_text("no.such-case\n")
    assert conformance(*addresses, kit, "--known-failing", known).exit_code == 2


@pytest.mark.conformance
@pytest.mark.parametrize("kind", ["exact", "paper", "codes"])
def test_our_coordinator_passes_every_case_of_the_other_uploads(kind, tmp_path):
    kit = make_kit(tmp_path / "kit", kind, "localhost", Vectors.read(DEFAULT_FOLDER))
    report = tmp_path / "report.json"
    with coordinator(kit, tmp_path) as running:
        conformance(running.addresses["server"], running.addresses["enrollment"], kit, "--json", report)
    result = json.loads(report.read_text())
    assert [one for one in result["cases"] if one["outcome"] != "passed"] == []
    assert (result["is_good"], result["kit"], len(result["cases"]) >= 26) == (True, kind, True)


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


@pytest.mark.conformance
@pytest.mark.parametrize("kind", ["clear", "secagg"])
def test_our_coordinator_knows_what_it_promised_when_it_was_killed(kind, tmp_path):
    cases.load()
    kit = make_kit(tmp_path / "kit", kind, "localhost", Vectors.read(DEFAULT_FOLDER))
    with coordinator(kit, tmp_path) as running, world_of(running, kit, tmp_path) as world:
        results = [run_one(one, world) for one in registry.cases(kind, ["restart.*"])]
    assert [(one.case.id, one.got) for one in results if one.outcome != Outcome.PASSED] == []
    assert len(results) >= 5


@pytest.mark.parametrize("group", ["restart", "catalogue"])
def test_cases_that_need_a_command_are_left_out_without_it(kit, group):
    result = conformance("https://localhost:1", "https://localhost:1", kit, "--only", f"{group}.*")
    assert result.exit_code == 2
    assert f"no case of this kit is called {group}.*" in result.output


def test_a_server_that_has_only_tls_can_be_tried_with_the_cases_of_tls(kit, tmp_path):
    report = tmp_path / "report.json"
    coordinator_alone = Admission(kit.authority / "coordinator")
    authority_alone = Admission(kit.authority, requires_certificate=False)
    with TlsOnly(coordinator_alone) as server, TlsOnly(authority_alone) as enrollment:
        result = conformance(server, enrollment, kit, "--only", "tls.*", "--json", report)
    outcomes = {one["id"]: one["outcome"] for one in json.loads(report.read_text())["cases"]}
    assert [name for name, outcome in outcomes.items() if outcome != "passed"] == []
    assert len(outcomes) >= 10
    assert result.exit_code == 0


def test_missing_vectors_end_the_suite_with_one_sentence_and_exit_code_2(kit, tmp_path):
    result = conformance("https://localhost:1", "https://localhost:1", kit, "--vectors", tmp_path / "none")
    assert result.exit_code == 2
    assert "--vectors FOLDER" in result.output


class TlsOnly:
    """A server that shakes hands as it should, and knows nothing else."""

    def __init__(self, admission):
        self._context = admission.context()
        (self._port,) = free_ports(1)

    def __enter__(self):
        self._listener = socket.create_server(("localhost", self._port))
        threading.Thread(target=self._serve, daemon=True).start()
        return f"https://localhost:{self._port}"

    def __exit__(self, *_):
        self._listener.close()

    def _serve(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection):
        try:
            with self._context.wrap_socket(connection, server_side=True) as secure:
                secure.recv(4096)
        except OSError:
            connection.close()
