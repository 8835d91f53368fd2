"""The folder, names of devices, and the signature of manifests."""

import os
import shutil
import signal
import sqlite3
import ssl
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_public_key

from lightfr.errors import OutOfRangeError
from lightfr_harness.server.authority import (
    Authority,
    AuthorityError,
    AuthorityFolderError,
)
from tests.certificates import signing_request


def clock(days):
    return lambda: datetime.now(UTC) + timedelta(days=days)


def server_certificate(folder):
    return x509.load_pem_x509_certificate((folder / "server.pem").read_bytes())


def peer(authority, device_id):
    """What ssl tells of a verified device."""
    (name,) = authority._issuer.certificate.subject
    return {
        "subject": ((("commonName", device_id),),),
        "issuer": ((("commonName", name.value),),),
        "notAfter": "Jan  1 00:00:00 2100 GMT",
    }


def test_keys_are_readable_by_their_owner_alone(fresh_folder):
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in fresh_folder.iterdir()}
    assert stat.S_IMODE(fresh_folder.stat().st_mode) == 0o700
    for name in ("authority.key", "server.key", "manifest.key", "authority.sqlite"):
        assert modes[name] == 0o600
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


# Eight steps: the seven files and, last, the name of the folder.
@pytest.mark.parametrize("step", [1, 4, 8])
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
    (authority.folder / "manifest.key").unlink()
    with pytest.raises(AuthorityFolderError, match=r"lacks manifest\.key"):
        Authority.open(authority.folder)


@pytest.mark.parametrize(
    "name", ["authority.key", "authority.pem", "server.key", "server.pem", "manifest.key", "authority.sqlite"]
)
def test_open_refuses_a_damaged_file_with_a_typed_error(fresh_folder, tmp_path, name):
    folder = shutil.copytree(fresh_folder, tmp_path / "authority")
    (folder / name).write_bytes(b"damaged" * 100)
    with pytest.raises(AuthorityError, match=name):
        Authority.open(folder)


@pytest.mark.parametrize(("days", "renewed"), [(334, False), (336, True), (400, True)])
def test_opening_renews_a_server_certificate_with_fewer_than_30_days_left(authority, days, renewed):
    before = server_certificate(authority.folder)
    Authority(authority.folder, now=clock(days)).close()
    after = server_certificate(authority.folder)
    assert (after != before) == renewed
    assert after.public_key() == before.public_key()
    assert after.extensions.get_extension_for_class(x509.SubjectAlternativeName) == (
        before.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    )
    if renewed:
        assert after.not_valid_after_utc - clock(days)() > timedelta(days=364)


def test_nothing_signed_outlives_the_authority(authority):
    late = Authority(authority.folder, now=clock(3600))
    certificate = x509.load_der_x509_certificate(late.issue(signing_request())[1])
    assert certificate.not_valid_after_utc == late._issuer.certificate.not_valid_after_utc
    late.close()


def test_the_server_names_a_device_whatever_its_request_says(authority):
    device_id, der = authority.issue(signing_request())
    certificate = x509.load_der_x509_certificate(der)
    assert certificate.subject.rfc4514_string() == f"CN={device_id}"
    assert (len(device_id), int(device_id, 16)) == (32, certificate.serial_number)
    lifetime = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    assert lifetime == timedelta(days=365, minutes=5)


def test_a_device_is_known_until_it_is_revoked(authority):
    (first, _), (second, _) = (authority.issue(signing_request()) for _ in range(2))
    authority.revoke(first)
    authority.revoke(first)
    assert authority.device_of(peer(authority, first)) is None
    assert authority.device_of(peer(authority, second)) == second


@pytest.mark.parametrize("device_id", ["", "A" * 32, "0" * 31, "0" * 33, "0" * 32 + "\n", "lightfr server"])
def test_a_name_of_another_form_is_nobody(authority, device_id):
    assert authority.device_of(peer(authority, device_id)) is None


def test_a_device_is_known_until_its_certificate_ends(authority):
    device_id, _ = authority.issue(signing_request())
    ends = (datetime.now(UTC) + timedelta(days=100)).replace(microsecond=0)
    certificate = peer(authority, device_id) | {"notAfter": ends.strftime("%b %d %H:%M:%S %Y GMT")}
    for now, known in ((ends - timedelta(seconds=1), device_id), (ends, None)):
        later = Authority(authority.folder, now=lambda at=now: at)
        assert later.device_of(certificate) == known
        later.close()


def test_no_certificate_or_one_of_another_issuer_is_nobody(authority):
    device_id, _ = authority.issue(signing_request())
    assert authority.device_of(None) is None
    assert authority.device_of({}) is None
    foreign = peer(authority, device_id) | {"issuer": ((("commonName", "lightfr authority 00000000"),),)}
    assert authority.device_of(foreign) is None
    twice = ((("commonName", device_id),), (("commonName", "0" * 32),))
    assert authority.device_of(peer(authority, device_id) | {"subject": twice}) is None


def test_an_unknown_device_revokes_nobody(authority):
    device_id, _ = authority.issue(signing_request())
    with pytest.raises(AuthorityError, match="32 hexadecimal digits"):
        authority.revoke(device_id, "0" * 32)
    assert authority.device_of(peer(authority, device_id)) == device_id


def test_the_revocation_list_has_every_revoked_device_and_lasts_as_long_as_the_authority(authority):
    device_ids = [authority.issue(signing_request())[0] for _ in range(3)]
    authority.revoke(*device_ids[:2])
    revoked = x509.load_pem_x509_crl((authority.folder / "crl.pem").read_bytes())
    assert {entry.serial_number for entry in revoked} == {int(device_id, 16) for device_id in device_ids[:2]}
    assert revoked.next_update_utc == authority._issuer.certificate.not_valid_after_utc
    assert revoked.is_signature_valid(authority._issuer.certificate.public_key())


def test_opening_makes_a_lost_revocation_list_anew(authority):
    device_id, _ = authority.issue(signing_request())
    authority.revoke(device_id)
    (authority.folder / "crl.pem").unlink()
    again = Authority.open(authority.folder)
    assert again.device_of(peer(authority, device_id)) is None
    assert len(list(x509.load_pem_x509_crl((authority.folder / "crl.pem").read_bytes()))) == 1
    again.close()


def test_refresh_writes_nothing_when_nothing_was_revoked(authority):
    before = (os.stat(authority.folder / "crl.pem"), authority._live_context)
    authority.issue(signing_request())
    authority.refresh()
    assert (os.stat(authority.folder / "crl.pem"), authority._live_context) == before


def test_a_refresh_that_failed_is_tried_again(authority, monkeypatch):
    device_id, _ = authority.issue(signing_request())
    running = Authority.open(authority.folder)
    authority.revoke(device_id)
    with monkeypatch.context() as broken:
        broken.setattr(os, "replace", _full_disk)
        with pytest.raises(AuthorityFolderError, match="No space"):
            running.refresh()
    assert running.device_of(peer(authority, device_id)) is None
    assert running._last_revocation == 0
    running.refresh()
    assert running._last_revocation == 1
    running.close()


def _full_disk(*_):
    raise OSError(28, "No space left on device")


def test_a_locked_database_gives_a_typed_error(authority):
    authority._registry._connection.execute("PRAGMA busy_timeout = 1")
    other = sqlite3.connect(authority.folder / "authority.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(AuthorityError, match="locked"):
        authority.issue(signing_request())
    other.execute("ROLLBACK")
    other.close()
    authority.issue(signing_request())


def test_a_manifest_is_signed_as_the_contract_says(authority):
    """Ed25519 of the seed 00 01 .. 1f over "lightfr manifest v1\\n" 08 01 10 07, computed with the openssl program."""
    seeded = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    pem = seeded.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (authority.folder / "manifest.key").write_bytes(pem)
    seeded_authority = Authority.open(authority.folder)
    signed = seeded_authority.sign(bytes.fromhex("08011007"))
    seeded_authority.close()
    assert signed.manifest.hex() == "08011007"
    assert signed.signature.hex() == (
        "dc2234621d542fc0fbe113e61a8d10daeb9dadb5111d8f778a581103e6879330"
        "ca4d8bc8580238e9c687455e6a2bf6fc5f1aa0d54543f10f932bbaa449b6ab03"
    )
    assert signed.key_id.hex() == "56475aa75463474c"


def test_trust_holds_the_key_that_checks_manifests_and_the_authority(authority):
    trust = (authority.folder / "trust.pem").read_bytes()
    start = trust.index(b"-----BEGIN PUBLIC KEY")
    signed = authority.sign(b"manifest")
    load_pem_public_key(trust[start:]).verify(signed.signature, b"lightfr manifest v1\nmanifest")
    assert x509.load_pem_x509_certificate(trust[:start]) == authority._issuer.certificate
    assert b"PRIVATE" not in trust


def test_a_manifest_above_the_limit_is_not_signed(authority):
    assert len(authority.sign(bytes(65_536)).signature) == 64
    with pytest.raises(OutOfRangeError, match="65537"):
        authority.sign(bytes(65_537))


def test_server_contexts_trust_this_authority_alone(authority):
    context = authority.server_context()
    assert context.cert_store_stats() == {"x509": 1, "crl": 1, "x509_ca": 1}
    assert context.verify_flags & ssl.VERIFY_CRL_CHECK_LEAF
