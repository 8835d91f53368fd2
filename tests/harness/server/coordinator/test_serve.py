"""The real process: started, asked, stopped, killed."""

import http.client
import json
import signal
import socket
import subprocess
import sys
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from lightfr_harness.cli import app
from tests.campaigns import kill_coordinator, living_catalogue
from tests.harness.server.coordinator.live import exchange


@pytest.fixture
def items(tmp_path):
    path = tmp_path / "items.tsv"
    path.write_text("".join(f"item-{i}\t{100 - i}\n" for i in range(50)))
    return path


def command(tmp_path, authority, items, *more):
    ports = ["--port", "0", "--enrollment-port", "0", "--operations-port", "0"]
    folder = str(tmp_path / "folder")
    return ["serve", folder, "--authority", str(authority.folder), "--catalogue", str(items), *ports, *more]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_where_it_listens_and_stops_when_asked(tmp_path, authority, items, number):
    arguments = [sys.executable, "-m", "lightfr_harness", *command(tmp_path, authority, items)]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        addresses = json.loads(process.stdout.readline())
        assert json.loads((tmp_path / "folder" / "addresses.json").read_text()) == addresses
        operations = http.client.HTTPConnection(urlsplit(addresses["operations"]).netloc, timeout=20)
        assert exchange(operations, "GET", "/readyz")[0] == 200
        process.send_signal(number)
        rest, log = process.communicate(timeout=30)
    finally:
        process.kill()
        process.communicate()
    assert (process.returncode, rest) == (0, "")
    assert [json.loads(line)["event"] for line in log.splitlines()] == [*("started", "authority_stopped", "stopped")]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--host", "10.0.0.1", "--privacy", "clear"], "--allow-clear-uploads"),
        (["--bits", "60"], "60 bits"),
        (["--integer-ids"], "line 1"),
        (["--artifacts-address", "cache.example"], "--artifacts-address must be https://HOST:PORT"),
    ],
)
def test_options_that_cannot_be_are_one_sentence(tmp_path, authority, items, more, says):
    result = CliRunner().invoke(app, command(tmp_path, authority, items, *more))
    assert result.exit_code == 2
    assert says in result.output
    assert not (tmp_path / "folder").exists()


@pytest.mark.parametrize("both", [True, False])
def test_it_wants_an_authority_or_credentials(tmp_path, authority, items, both):
    named = ["--authority", str(authority.folder), "--credentials", str(authority.coordinator)] if both else []
    result = CliRunner().invoke(app, ["serve", str(tmp_path / "folder"), "--catalogue", str(items), *named])
    assert result.exit_code == 2
    assert "name --authority to start both, or --credentials" in result.output


@pytest.mark.parametrize("option", ["--authority", "--credentials"])
def test_a_folder_that_is_none_says_how_to_get_one(tmp_path, items, option):
    named = [option, str(tmp_path / "absent")]
    result = CliRunner().invoke(app, ["serve", str(tmp_path / "folder"), "--catalogue", str(items), *named])
    assert result.exit_code == 2
    assert "lightfr-harness ca init" in result.output


def test_a_port_that_is_taken_is_one_sentence(tmp_path, authority, items):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = CliRunner().invoke(app, command(tmp_path, authority, items, "--operations-port", port))
    assert result.exit_code == 2
    assert f"cannot listen on 127.0.0.1, port {port}" in result.output


def test_a_port_of_the_authority_that_is_taken_is_two_sentences(tmp_path, authority, items, capfd):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = CliRunner().invoke(app, command(tmp_path, authority, items, "--enrollment-port", port))
    assert result.exit_code == 2
    assert f"Error: cannot listen on 127.0.0.1, port {port}" in capfd.readouterr().err
    assert "the authority's process ended with exit code 2, so the coordinator was stopped too" in result.output


def test_killed_three_times_it_loses_nothing_and_counts_nothing_twice(tmp_path):
    summary = kill_coordinator.run(kills=3, seed=1, base=tmp_path, progress=lambda _: None)
    assert summary.is_good(), summary


def test_killed_while_its_items_change_it_has_the_codes_and_rankings_of_the_oracle(tmp_path):
    """The small version of `python -m tests.campaigns.living_catalogue`: the items are numbered anew too."""
    done = living_catalogue.run(updates=1, kills=1, seed=1, base=tmp_path, progress=lambda _: None)
    assert done.renumbered == 1
    assert done.rounds > 0
