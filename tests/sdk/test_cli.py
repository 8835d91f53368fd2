"""The lightfr command, end to end with a real coordinator."""

import errno
import io
import json
import re
import runpy
import subprocess
import sys
import time
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from lightfr import Client, Device, FileKey, Participation, Reason, RoundStage, cli
from lightfr.store import Store
from lightfr.views import imported
from lightfr_harness.cli import app

FORGOTTEN = "Everything about this device and its user was removed.\n"
OPINIONS = ["like", "dislike", "seen", "hide"]
SHOWN = ["recommend", "similar", "explain", "status", "export", "views"]
COMMANDS = ["enroll", "rate", *OPINIONS, "unrate", "sync", "participate", *SHOWN, "forget"]


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "lightfr"


@pytest.fixture
def lightfr(folder, capsys):
    """Run a command that must succeed; returns what it printed."""

    def run(*arguments):
        code = cli.main(["--folder", str(folder), *map(str, arguments)])
        printed = capsys.readouterr()
        assert (code, printed.err) == (0, "")
        return printed.out

    return run


@pytest.fixture
def fails(folder, capsys):
    """Run a command that must fail; returns its one line of error."""

    def run(*arguments):
        code = cli.main(["--folder", str(folder), *map(str, arguments)])
        printed = capsys.readouterr()
        assert (code, printed.out) == (2, "")
        (line,) = printed.err.splitlines()
        assert line.startswith("lightfr: ")
        return line

    return run


@pytest.fixture
def enrolled(coordinator, invitation, lightfr):
    lightfr("enroll", invitation(coordinator))


def says(status, name, value):
    return f"{name:16} {value}\n" in status


def test_a_first_session(coordinator, invitation, lightfr, folder):
    assert "Next: lightfr sync" in lightfr("enroll", invitation(coordinator))
    assert lightfr("sync") == "Model version 1 (new): 300 items of 64 bits\n"
    assert lightfr("sync") == "Model version 1 (unchanged): 300 items of 64 bits\n"
    assert lightfr("rate", "item 3", 5) == ""
    assert lightfr("rate", "item 4", "1.5") == ""
    assert lightfr("unrate", "item 4") == "It was forgotten.\n"
    assert lightfr("unrate", "item 4") == "There was nothing to forget.\n"
    lines = lightfr("recommend", "-k", 299).splitlines()
    assert [line.split()[0] for line in lines] == [str(place) for place in range(1, 300)]
    assert "item 3" not in {line.split("  ")[-1] for line in lines}
    assert "  item 3\n" in lightfr("recommend", "-k", 300, "--include-rated")
    assert len(lightfr("recommend").splitlines()) == 10
    told = lightfr("participate", "--allow-clear-uploads").splitlines()
    assert told == ["  has a place in a round", "  uploaded", "Took part in a round (1 of 1)."]
    status = lightfr("status")
    for name, value in {"item count": 300, "rating count": 1, "rounds": 1, "upload pending": False}.items():
        assert says(status, name, value)
    exported = json.loads(lightfr("export"))
    assert exported["ratings"] == [{"item_id": "item 3", "rating": 5.0}]
    assert exported["rounds"] == 1


def test_opinions(enrolled, lightfr):
    lightfr("sync")
    assert [lightfr(verb, f"item {number}") for number, verb in enumerate(OPINIONS)] == [""] * 4
    exported = json.loads(lightfr("export"))
    assert {rated["item_id"]: rated["rating"] for rated in exported["ratings"]} == {
        "item 0": 5.0,
        "item 1": 1.0,
        "item 2": 3.0,
    }
    assert exported["hidden"] == ["item 3"]
    shown = {line.split("  ")[-1] for line in lightfr("recommend", "-k", 300, "--include-rated").splitlines()}
    assert {"item 0", "item 2"} <= shown
    assert not {"item 1", "item 3"} & shown
    assert says(lightfr("status"), "ranked by", "unknown")
    assert lightfr("unrate", "item 3") == "It was forgotten.\n"
    assert json.loads(lightfr("export"))["hidden"] == []


def test_items_that_are_alike_and_why_one_is_recommended(enrolled, lightfr, fails):
    lightfr("sync")
    alike = lightfr("similar", "item 9").splitlines()
    assert [line.split()[0] for line in alike] == [str(place) for place in range(1, 11)]
    assert "item 9" not in {line.split("  ")[-1] for line in alike}
    assert lightfr("similar", "item 9", "-k", 2).splitlines() == alike[:2]
    assert lightfr("explain", "item 9") == ""
    for number in range(5):
        lightfr("like", f"item {number}")
    lightfr("dislike", "item 5")
    why = lightfr("explain", "item 9").splitlines()
    assert [line.split()[0] for line in why] == ["1", "2", "3"]
    assert {line.split("  ")[-1] for line in lightfr("explain", "item 9", "-k", 9).splitlines()} == {
        f"item {number}" for number in range(5)
    }
    for command in ("similar", "explain"):
        assert "secret" not in fails(command, "a secret wish")


def test_before_the_first_sync_the_status_has_a_dash_for_what_is_not_known(enrolled, lightfr):
    status = lightfr("status")
    assert says(status, "item id kind", "-")
    assert "None" not in status


def test_training_that_is_over_is_said(start_coordinator, invitation, lightfr, monkeypatch):
    pauses, sleep = [], time.sleep
    monkeypatch.setattr(cli.time, "sleep", lambda seconds: (pauses.append(seconds), sleep(min(seconds, 0.05))))
    coordinator = start_coordinator(goal=1, rounds=2)
    lightfr("enroll", invitation(coordinator))
    printed = lightfr("participate", "--rounds", 3, "--allow-clear-uploads")
    assert "Took part in a round (2 of 3).\n" in printed
    assert printed.endswith("Training is finished.\n")
    # It waits as long as it says, and not at all after an upload.
    assert [f"{pause:.1f} s" for pause in pauses if pause] == re.findall(r"again in (.*)", printed)


def test_a_budget_that_is_spent_is_said_and_nobody_waits_for_it(enrolled, lightfr, monkeypatch):
    spent = Participation(took_part=False, retry_after_seconds=5400.0, reason=Reason.BUDGET)
    monkeypatch.setattr(Client, "participate", lambda client, progress: spent)
    assert lightfr("participate").endswith("it may take part again in 1.5 hours.\n")


def test_a_secure_round_says_how_far_it_is_and_for_how_many_others_it_waits(enrolled, lightfr, monkeypatch):
    def participate(client, progress):
        for stage in RoundStage:
            progress(stage)
        return Participation(took_part=True, retry_after_seconds=0.0)

    monkeypatch.setattr(Client, "participate", participate)
    monkeypatch.setattr(Client, "status", lambda client: SimpleNamespace(others_in_round=263))
    told = lightfr("participate").splitlines()
    assert len(told) == len(RoundStage) + 1
    assert "  uploaded; waiting for 263 others" in told


def test_what_the_server_told_is_written_to_a_file(enrolled, lightfr, tmp_path):
    file = tmp_path / "views.json"
    assert lightfr("views", "--export", file) == f"Wrote what the server told in 0 rounds to {file}.\n"
    assert imported(file.read_bytes()) == []


def test_a_file_that_cannot_be_written_ends_as_one_sentence(enrolled, fails, tmp_path):
    assert "could not write" in fails("views", "--export", tmp_path / "absent" / "views.json")


def test_integer_ids(start_coordinator, invitation, lightfr, fails):
    lightfr("enroll", invitation(start_coordinator([5, 7, -9], integer_ids=True)))
    lightfr("sync")
    lightfr("rate", 7, 4)
    assert {line.split()[-1] for line in lightfr("recommend").splitlines()} == {"5", "-9"}
    assert "whole numbers" in fails("rate", "seven", 4)
    lightfr("rate", "--", "-9", 4)
    assert lightfr("recommend").split()[-1] == "5"


def test_forgetting_leaves_no_file_and_no_key_and_no_folder(enrolled, lightfr, folder, fails):
    """Whatever an interruption anywhere may have left."""
    lightfr("sync")
    lightfr("rate", "item 1", 5)
    identity = ["identity.pem", "identity.new", "enrolling.pem", "renewing.pem", "trust.pem", "server", "enrollment"]
    data = ["data/store.lfr", "data/models/current", "data/models/0ab1.part", "data/models/0ab1.patched"]
    for name in [*identity, *data, "key"]:
        for leftover in (folder / name, folder / f"{name}.new"):
            if not leftover.exists():
                leftover.write_bytes(b"-----BEGIN PRIVATE KEY-----")
    assert lightfr("forget", "--yes") == FORGOTTEN
    assert not folder.exists(), sorted(folder.rglob("*"))
    assert "`lightfr enroll INVITATION` first" in fails("recommend")


def test_forgetting_leaves_the_files_of_others_and_says_so(enrolled, lightfr, folder):
    (folder / "notes.txt").write_text("mine")
    assert lightfr("forget", "--yes").endswith(f"Other files are left in {folder}.\n")
    assert [file.name for file in folder.rglob("*")] == ["notes.txt"]


def test_a_store_that_is_in_use_is_not_forgotten(enrolled, lightfr, folder, fails):
    with Store.open(folder / "data", FileKey(folder / "key")):
        assert "open already" in fails("forget", "--yes")
    assert lightfr("status")


def test_a_folder_that_was_forgotten_can_be_used_again(coordinator, invitation, enrolled, lightfr):
    lightfr("sync")
    lightfr("rate", "item 1", 5)
    lightfr("forget", "--yes")
    lightfr("enroll", invitation(coordinator))
    lightfr("sync")
    assert says(lightfr("status"), "rating count", 0)


@pytest.mark.parametrize(("reply", "forgets"), [("y", True), (" Y ", True), ("n", False), ("", False), ("yes", False)])
def test_forgetting_asks_first(enrolled, lightfr, folder, monkeypatch, reply, forgets):
    monkeypatch.setattr("builtins.input", lambda question: reply)
    assert lightfr("forget") == (FORGOTTEN if forgets else "Nothing was changed.\n")
    assert (folder / "identity.pem").exists() is not forgets


def test_forgetting_without_anybody_to_ask_changes_nothing(enrolled, lightfr, folder, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert lightfr("forget").endswith("Nothing was changed.\n")
    assert (folder / "identity.pem").exists()


def test_forgetting_removes_a_store_whose_identity_is_gone(enrolled, lightfr, folder):
    lightfr("sync")
    lightfr("rate", "item 1", 5)
    (folder / "identity.pem").unlink()
    assert lightfr("forget", "--yes") == FORGOTTEN
    assert not folder.exists()


@pytest.mark.parametrize("has_data", [False, True])
def test_forgetting_an_identity_without_a_store(enrolled, lightfr, folder, has_data):
    if has_data:
        (folder / "data").mkdir()
    assert lightfr("forget", "--yes") == FORGOTTEN
    assert not folder.exists()


def test_forgetting_where_no_device_is_touches_nothing(lightfr, folder):
    """A folder of somebody else may have files of these names."""
    nothing = f"There is no device in {folder}: nothing was changed.\n"
    assert lightfr("forget", "--yes") == nothing
    (folder / "data" / "models").mkdir(parents=True)
    files = {folder / name for name in ("key", "key.anchor", "server", "trust.pem", "data/lock", "data/models/current")}
    for file in files:
        file.write_text("not lightfr's")
    assert lightfr("forget", "--yes") == nothing
    assert {file for file in folder.rglob("*") if file.is_file()} == files


def test_forgetting_leaves_what_others_put_beside_the_data(enrolled, lightfr, folder):
    lightfr("sync")
    strange = [folder / "data" / "photo", folder / "data" / "models" / "mine" / "weights"]
    for file in strange:
        file.parent.mkdir(exist_ok=True)
        file.write_text("mine")
    assert lightfr("forget", "--yes").endswith(f"Other files are left in {folder}.\n")
    assert sorted(file for file in folder.rglob("*") if file.is_file()) == sorted(strange)


def test_an_empty_variable_is_no_folder(monkeypatch, tmp_path, capsys):
    """A unit or compose file gives an unset variable on as an empty one."""
    monkeypatch.setenv("LIGHTFR_FOLDER", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cli.main(["forget", "--yes"]) == 0
    assert f"There is no device in {tmp_path / '.lightfr'}" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["sync", "rate x 1", "hide x", "similar x", "status", "export", "participate"])
def test_before_enrolment_every_command_says_what_to_do(fails, command):
    assert "`lightfr enroll INVITATION` first" in fails(*command.split())


def test_enrolling_again_changes_nothing(coordinator, invitation, enrolled, lightfr, folder):
    before = (folder / "identity.pem").read_bytes()
    told = lightfr("enroll", invitation(coordinator))
    assert coordinator.addresses["server"] in told
    assert "the invitation was not used" in told
    assert (folder / "identity.pem").read_bytes() == before


def test_a_revoked_device_enrols_again_as_it_is_told_and_keeps_its_ratings(
    coordinator, authority, invitation, enrolled, lightfr, folder
):
    lightfr("sync")
    lightfr("rate", "item 1", 5)
    revoked = Device.load(folder).status().device_id
    authority.revoke(revoked)
    (to_remove,) = re.findall(r"remove (\S+) and enroll again", lightfr("enroll", invitation(coordinator)))
    Path(to_remove).unlink()
    assert "Next: lightfr sync" in lightfr("enroll", invitation(coordinator))
    assert Device.load(folder).status().device_id != revoked
    lightfr("sync")
    assert says(lightfr("status"), "rating count", 1)


def test_an_empty_folder_is_not_the_working_directory(fails):
    assert "--folder is empty" in fails("--folder", "", "status")


def test_the_status_names_the_device_as_the_authority_does(coordinator, authority, enrolled, lightfr, folder):
    status = lightfr("status")
    known = Device.load(folder).status()
    assert says(status, "device id", known.device_id)
    listed = CliRunner().invoke(app, ["ca", "list", str(authority.folder)])
    assert known.device_id in listed.output
    assert says(status, "certificate ends", known.certificate_ends)
    assert says(status, "server", coordinator.addresses["server"])


def test_errors_are_one_line(enrolled, fails, lightfr, tmp_path):
    assert "run `lightfr sync`" in fails("recommend")
    assert "sync() first" in fails("rate", "item 1", 5)
    lightfr("sync")
    assert "1 to 5" in fails("rate", "item 1", 6)
    assert "1 to 5" in fails("rate", "item 1", "nan")
    assert "invitation" in fails("--folder", tmp_path / "other", "enroll", tmp_path / "absent.json")


def test_a_server_that_is_away_is_one_line_too(enrolled, folder, fails):
    (folder / "server").write_text("https://localhost:1")
    assert "try again later" in fails("sync")


def test_a_damaged_address_is_one_line_too(enrolled, folder, fails):
    (folder / "server").write_bytes(b"\xff\xfe")
    assert "https://host:port" in fails("sync")


def test_an_interruption_is_exit_code_130(enrolled, folder, monkeypatch, capsys):
    def interrupt(_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_status", interrupt)
    assert cli.main(["--folder", str(folder), "status"]) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/a/file"), "/a/file: No space left on device"),
        (OSError(errno.EMFILE, "Too many open files"), "Too many open files"),
        (OSError("a device that says no more"), "a device that says no more"),
    ],
)
def test_what_the_system_refuses_is_one_line_with_the_file_if_there_is_one(enrolled, fails, monkeypatch, error, said):
    def refuse(_options):
        raise error

    monkeypatch.setattr(cli, "_status", refuse)
    assert fails("status") == f"lightfr: {said}"


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_every_command_has_help(command, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main([*command, "--help"])
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert printed.startswith("usage: lightfr")
    for name in COMMANDS if not command else ():
        assert f"    {name} " in printed


@pytest.mark.parametrize("wrong", [[], ["dance"], ["rate", "item"], ["rate", "item", "five"], ["recommend", "-k", "x"]])
def test_a_command_that_is_none_is_refused_with_the_usage(wrong, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(wrong)
    assert ended.value.code == 2
    assert "usage: lightfr" in capsys.readouterr().err


def test_the_folder_may_come_from_the_environment(enrolled, folder, monkeypatch, capsys):
    monkeypatch.setenv("LIGHTFR_FOLDER", str(folder))
    assert cli.main(["sync"]) == 0
    assert "300 items" in capsys.readouterr().out


def test_the_module_of_the_command_runs_only_as_a_program(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["lightfr", "--help"])
    runpy.run_module("lightfr.__main__")
    assert capsys.readouterr().out == ""
    with pytest.raises(SystemExit):
        runpy.run_module("lightfr", run_name="__main__")
    assert capsys.readouterr().out.startswith("usage: lightfr ")


def test_python_runs_the_same_command(enrolled, folder):
    def run(*arguments):
        command = [sys.executable, "-m", "lightfr", "--folder", str(folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert run("sync").stdout == "Model version 1 (new): 300 items of 64 bits\n"
    assert run("rate", "item 1", "5").returncode == 0
    refused = run("rate", "item 1", "17")
    assert (refused.returncode, refused.stdout, len(refused.stderr.splitlines())) == (2, "", 1)
    assert run("--help").stdout.startswith("usage: lightfr ")


def test_the_package_installs_the_command():
    (command,) = entry_points(group="console_scripts", name="lightfr")
    assert command.load() is cli.main


def test_the_folder_of_an_unknown_user_is_one_line_of_error(capsys):
    assert cli.main(["--folder", "~no-such-user/x", "status"]) == 2
    assert capsys.readouterr().err == "lightfr: --folder ~no-such-user/x: there is no such user\n"
