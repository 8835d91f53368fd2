"""`lightfr-harness ca`, as a person types it."""

import json
import ssl
import stat
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import CliRunner

from lightfr_harness.cli import app
from lightfr_harness.server.authority import Authority
from tests.certificates import OneLineServer, ask, client_context, credentials_of, member_key, signing_request

ADDRESSES = ("--server", "https://localhost:8443", "--enrollment", "https://localhost:8444")


def run(*arguments):
    runner = CliRunner(env={"COLUMNS": "120", "NO_COLOR": "1"})
    return runner.invoke(app, ["ca", *(str(each) for each in arguments)])


def require_error(result, *parts):
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    for part in parts:
        assert part in result.stderr


def test_init_token_enrol_revoke_go_together(tmp_path):
    folder = tmp_path / "authority"
    assert run("init", folder, "--host", "localhost", "--host", "127.0.0.1").exit_code == 0
    invitation = json.loads(run("token", folder, *ADDRESSES).stdout)
    authority = Authority.open(folder)
    assert authority.enroll(invitation["token"], signing_request(), member_key())
    ids = [authority.issue(signing_request(), member_key())[0] for _ in range(2)]
    credentials = credentials_of(authority)
    assert run("revoke", folder, *ids).exit_code == 0
    credentials.refresh()
    assert credentials._revoked == {int(device_id, 16) for device_id in ids}
    authority.close()


def test_devices_are_listed_with_their_times_and_revoked_by_the_ids_of_the_list(tmp_path):
    folder = tmp_path / "authority"
    run("init", folder, "--host", "localhost")
    now = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    with closing(Authority(folder, now=lambda: now)) as authority:
        for _ in range(2):
            authority.issue(signing_request(), member_key())
    ids = [line.split()[0] for line in run("list", folder).stdout.splitlines()[1:]]
    with closing(Authority(folder, now=lambda: now + timedelta(days=300))) as authority:
        authority.renew(ids[0], signing_request(), member_key())
    assert run("revoke", folder, ids[1]).exit_code == 0
    assert run("list", folder).stdout.splitlines()[1:] == [
        f"{ids[0]}  2026-01-02 03:04  2026-10-29 03:04",
        f"{ids[1]}  2026-01-02 03:04  2026-01-02 03:04  revoked",
    ]


def test_the_authority_may_have_a_host_of_its_own(tmp_path):
    folder = tmp_path / "authority"
    assert run("init", folder, "--host", "c.example", "--enrollment-host", "a.example").exit_code == 0
    good = ("--server", "https://c.example:1", "--enrollment", "https://a.example:1")
    assert run("token", folder, *good).exit_code == 0
    require_error(run("token", folder, *ADDRESSES), "does not name localhost")


def test_several_invitations_go_to_private_files(authority, tmp_path):
    out = tmp_path / "invitations"
    result = run("token", authority.folder, *ADDRESSES, "--count", 3, "--out", out)
    assert result.stdout.split() == [str(out / f"invitation-{number}.json") for number in (1, 2, 3)]
    tokens = {json.loads(path.read_text())["token"] for path in out.iterdir()}
    assert len(tokens) == 3
    assert {stat.S_IMODE(path.stat().st_mode) for path in out.iterdir()} == {0o600}
    require_error(run("token", authority.folder, *ADDRESSES, "--out", out), "invitation-1.json", "--out")


def test_several_invitations_need_a_folder(authority):
    require_error(run("token", authority.folder, *ADDRESSES, "--count", 2), "--out FOLDER")


def test_a_second_init_is_refused(authority):
    require_error(run("init", authority.folder, "--host", "localhost"), "does not exist yet")


def test_a_folder_without_authority_says_how_to_make_one(tmp_path):
    for command in (("token", tmp_path, *ADDRESSES), ("revoke", tmp_path, "0" * 32)):
        require_error(run(*command), f"lightfr-harness ca init {tmp_path} --host NAME")


def test_an_id_that_is_no_text_is_unknown_too(authority):
    require_error(run("revoke", authority.folder, "\udcff"), "knows no device", "nothing was revoked")


def test_a_host_that_is_no_name_is_said_in_a_sentence(authority):
    for host in ("..", "a..b"):
        require_error(run("serve", authority.folder, "--host", host), f"cannot listen on {host}", "no name of a host")


def test_an_unknown_device_is_named(authority):
    require_error(run("revoke", authority.folder, "0" * 32), "0" * 32, "nothing was revoked")


def test_another_server_gets_a_key_and_a_certificate_for_its_own_host(authority, tmp_path):
    out = tmp_path / "cache"
    assert run("server", authority.folder, "--host", "cache.example", "--out", out).exit_code == 0
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in out.iterdir()}
    assert modes == {"server.key": 0o600, "server.pem": 0o644, "authority.pem": 0o644, "crl.pem": 0o644}
    for name in ("authority.pem", "crl.pem"):
        assert (out / name).read_bytes() == (authority.folder / name).read_bytes()
    assert (out / "server.key").read_bytes() != (authority.folder / "server.key").read_bytes()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(out / "server.pem", out / "server.key")
    with OneLineServer(server) as listening:
        assert ask(client_context(authority), listening.port, "cache.example") == b"hello"
        with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
            ask(client_context(authority), listening.port, "localhost")


def test_the_folder_of_another_server_is_never_overwritten(authority, tmp_path):
    out = tmp_path / "cache"
    run("server", authority.folder, "--host", "cache.example", "--out", out)
    before = (out / "server.key").read_bytes()
    require_error(run("server", authority.folder, "--host", "cache.example", "--out", out), str(out), "not exist yet")
    require_error(run("server", authority.folder, "--host", "a b", "--out", tmp_path / "new"), "'a b'", "DNS name")
    assert (out / "server.key").read_bytes() == before
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("command", [[], ["init"], ["serve"], ["token"], ["revoke"], ["server"]])
def test_every_command_explains_itself(command):
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert "Usage" in result.stdout
