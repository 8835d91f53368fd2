"""The folder, names of devices, and their revocation."""

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from lightfr_harness.server.authority import (
    Authority,
    AuthorityError,
    AuthorityFolderError,
)
from tests.certificates import credentials_of, member_key, signing_request


def clock(days):
    return lambda: datetime.now(UTC) + timedelta(days=days)


def server_certificate(folder):
    return x509.load_pem_x509_certificate((folder / "server.pem").read_bytes())


def revoked_by(folder):
    """The serial numbers on a folder's revocation list."""
    return {entry.serial_number for entry in x509.load_pem_x509_crl((folder / "crl.pem").read_bytes())}


def test_keys_are_readable_by_their_owner_alone(fresh_folder):
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in fresh_folder.iterdir()}
    assert stat.S_IMODE(fresh_folder.stat().st_mode) == 0o700
    for name in ("authority.key", "server.key", "membership.key", "authority.sqlite"):
        assert modes[name] == 0o600
    assert modes["coordinator"] == 0o700
    for name in ("server.key", "manifest.key"):
        assert stat.S_IMODE((fresh_folder / "coordinator" / name).stat().st_mode) == 0o600
    assert not [name for name in modes if name.startswith(".")]


def test_init_refuses_a_folder_that_holds_anything_and_leaves_it_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("keep")
    with pytest.raises(AuthorityFolderError, match="does not exist yet"):
        Authority.init(tmp_path / "mine", ["localhost"])
    assert [path.name for path in tmp_path.rglob("*")] == ["mine", "notes"]


@pytest.mark.parametrize("host", ["https://localhost", "localhost:1", "*.example.org", "", "a..b", "a" * 64, "exämple"])
def test_init_refuses_what_is_no_host(tmp_path, host):
    with pytest.raises(AuthorityError, match="neither a DNS name nor an IP address"):
        Authority.init(tmp_path / "authority", ["localhost", host])
    assert not list(tmp_path.iterdir())


def test_init_wants_a_host(tmp_path):
    with pytest.raises(AuthorityError, match="at least one"):
        Authority.init(tmp_path / "authority", [])


# Fourteen steps: the thirteen files and, last, the name of the folder.
@pytest.mark.parametrize("step", [1, 7, 14])
def test_init_killed_half_way_leaves_nothing_that_opens(tmp_path, step):
    code = f"""
import os, signal, sys
from pathlib import Path
from lightfr_harness.server.authority import Authority
left = {step}
def counted(do):
    def run(*arguments):
        global left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        return do(*arguments)
    return run
os.replace, os.rename = counted(os.replace), counted(os.rename)
Authority.init(Path(sys.argv[1]), ["localhost"])
"""
    folder = tmp_path / "authority"
    assert subprocess.run([sys.executable, "-c", code, folder], check=False).returncode == -signal.SIGKILL
    with pytest.raises(AuthorityFolderError, match="ca init"):
        Authority.open(folder)
    Authority.init(folder, ["localhost"]).close()


def test_open_names_the_file_that_is_lost(authority):
    (authority.folder / "membership.key").unlink()
    with pytest.raises(AuthorityFolderError, match=r"lacks membership\.key"):
        Authority.open(authority.folder)


@pytest.mark.parametrize(
    "name",
    ["authority.key", "authority.pem", "server.pem", "membership.key", "authority.sqlite", "coordinator/server.pem"],
)
def test_open_refuses_a_damaged_file_with_a_typed_error(fresh_folder, tmp_path, name):
    folder = shutil.copytree(fresh_folder, tmp_path / "authority")
    (folder / name).write_bytes(b"damaged" * 100)
    with pytest.raises(AuthorityError, match=name):
        Authority.open(folder)


@pytest.mark.parametrize(("days", "renewed"), [(334, False), (336, True), (400, True)])
@pytest.mark.parametrize("place", [".", "coordinator"])
def test_opening_renews_a_server_certificate_with_fewer_than_30_days_left(authority, place, days, renewed):
    # The coordinator's key may be on another machine.
    (authority.coordinator / "server.key").unlink()
    before = server_certificate(authority.folder / place)
    Authority(authority.folder, now=clock(days)).close()
    after = server_certificate(authority.folder / place)
    assert (after != before) == renewed
    assert after.public_key() == before.public_key()
    assert after.extensions.get_extension_for_class(x509.SubjectAlternativeName) == (
        before.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    )
    if renewed:
        assert after.not_valid_after_utc - clock(days)() > timedelta(days=364)


def test_a_running_authority_renews_server_certificates_too(authority):
    days = [0]
    places = [authority.folder, authority.coordinator]
    before = [server_certificate(place) for place in places]
    running = Authority(authority.folder, now=lambda: clock(days[0])())
    for days[0], renewed in ((334, False), (336, True)):
        running.refresh()
        assert [server_certificate(place) != old for place, old in zip(places, before, strict=True)] == [renewed] * 2
    running.close()


def test_nothing_signed_outlives_the_authority(authority):
    late = Authority(authority.folder, now=clock(3600))
    certificate = x509.load_der_x509_certificate(late.issue(signing_request(), member_key())[1].certificates[0])
    assert certificate.not_valid_after_utc == late._issuer.certificate.not_valid_after_utc
    late.close()


def test_the_server_names_a_device_whatever_its_request_says(authority):
    device_id, issued = authority.issue(signing_request(), member_key())
    certificate = x509.load_der_x509_certificate(issued.certificates[0])
    assert certificate.subject.rfc4514_string() == f"CN={device_id}"
    assert (len(device_id), int(device_id, 16)) == (32, certificate.serial_number)
    lifetime = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    assert lifetime == timedelta(days=365, minutes=5)


def test_an_unknown_device_revokes_nobody(authority):
    device_id, _ = authority.issue(signing_request(), member_key())
    with pytest.raises(AuthorityError, match="32 hexadecimal digits"):
        authority.revoke(device_id, "0" * 32)
    assert revoked_by(authority.folder) == set()


def test_the_revocation_list_has_every_revoked_device_and_lasts_as_long_as_the_authority(authority):
    device_ids = [authority.issue(signing_request(), member_key())[0] for _ in range(3)]
    authority.revoke(*device_ids[:2])
    for place in (authority.folder, authority.coordinator):
        assert revoked_by(place) == {int(device_id, 16) for device_id in device_ids[:2]}
    revoked = x509.load_pem_x509_crl((authority.coordinator / "crl.pem").read_bytes())
    assert revoked.next_update_utc == authority._issuer.certificate.not_valid_after_utc
    assert revoked.is_signature_valid(authority._issuer.certificate.public_key())


def test_opening_makes_a_lost_revocation_list_anew(authority):
    device_id, _ = authority.issue(signing_request(), member_key())
    authority.revoke(device_id)
    (authority.folder / "crl.pem").unlink()
    (authority.coordinator / "crl.pem").unlink()
    Authority.open(authority.folder).close()
    assert revoked_by(authority.folder) == revoked_by(authority.coordinator) == {int(device_id, 16)}


def test_refresh_writes_nothing_when_nothing_was_revoked(authority):
    before = os.stat(authority.coordinator / "crl.pem")
    authority.issue(signing_request(), member_key())
    authority.refresh()
    assert os.stat(authority.coordinator / "crl.pem") == before


def test_a_list_that_could_not_be_written_is_written_by_the_next_refresh(authority, monkeypatch):
    device_id, _ = authority.issue(signing_request(), member_key())
    with monkeypatch.context() as broken:
        broken.setattr(os, "replace", _full_disk)
        with pytest.raises(AuthorityFolderError, match="No space"):
            authority.revoke(device_id)
    assert revoked_by(authority.coordinator) == set()
    authority.refresh()
    assert revoked_by(authority.coordinator) == {int(device_id, 16)}


def test_what_another_process_revoked_and_did_not_write_is_written_by_the_next_refresh(authority):
    device_id, _ = authority.issue(signing_request(), member_key())
    running = Authority.open(authority.folder)
    authority._registry.revoke(device_id)
    running.refresh()
    assert revoked_by(running.coordinator) == {int(device_id, 16)}
    running.close()


def _full_disk(*_):
    raise OSError(28, "No space left on device")


def test_a_locked_database_gives_a_typed_error(fresh_folder, tmp_path):
    authority = Authority.open(shutil.copytree(fresh_folder, tmp_path / "locked"))
    authority._registry._database.connection.execute("PRAGMA busy_timeout = 1")
    other = sqlite3.connect(authority.folder / "authority.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(AuthorityError, match="locked"):
        authority.issue(signing_request(), member_key())
    other.execute("ROLLBACK")
    other.close()
    authority.issue(signing_request(), member_key())


def test_trust_holds_the_key_that_checks_manifests_and_the_authority(authority):
    trust = (authority.folder / "trust.pem").read_bytes()
    start = trust.index(b"-----BEGIN PUBLIC KEY")
    signed = credentials_of(authority).sign(b"manifest")
    load_pem_public_key(trust[start:]).verify(signed.signature, b"lightfr manifest v1\nmanifest")
    assert x509.load_pem_x509_certificate(trust[:start]) == authority._issuer.certificate
    assert b"PRIVATE" not in trust
    assert (authority.coordinator / "trust.pem").read_bytes() == trust


def test_the_coordinator_and_the_authority_have_keys_and_hosts_of_their_own(tmp_path):
    made = Authority.init(tmp_path / "authority", ["coordinator.example"], ["authority.example"])
    names = {}
    for place in (made.folder, made.coordinator):
        found = server_certificate(place).extensions.get_extension_for_class(x509.SubjectAlternativeName)
        names[place] = found.value.get_values_for_type(x509.DNSName)
    assert names == {made.folder: ["authority.example"], made.coordinator: ["coordinator.example"]}
    assert server_certificate(made.folder).public_key() != server_certificate(made.coordinator).public_key()
    assert made.invite("https://coordinator.example:1", "https://authority.example:1", 60)
    with pytest.raises(AuthorityError, match=r"does not name authority\.example"):
        made.invite("https://authority.example:1", "https://authority.example:1", 60)
    made.close()
