"""What a coordinator has of its authority: whom it lets in, and what it signs with."""

import os
import shutil
import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from lightfr.errors import OutOfRangeError
from lightfr_harness.server.authority import Admission, Authority, AuthorityError, AuthorityFolderError, Credentials
from tests.certificates import credentials_of, member_key, signing_request


def peer(authority, device_id):
    """What ssl tells of a verified device."""
    (name,) = authority._issuer.certificate.subject
    return {
        "subject": ((("commonName", device_id),),),
        "issuer": ((("commonName", name.value),),),
        "notAfter": "Jan  1 00:00:00 2100 GMT",
    }


def test_a_device_is_known_until_it_is_revoked(authority):
    (first, _), (second, _) = (authority.issue(signing_request(), member_key()) for _ in range(2))
    authority.revoke(first)
    authority.revoke(first)
    credentials = credentials_of(authority)
    assert credentials.device_of(peer(authority, first)) is None
    assert credentials.device_of(peer(authority, second)) == second


@pytest.mark.parametrize("device_id", ["", "A" * 32, "0" * 31, "0" * 33, "0" * 32 + "\n", "lightfr server"])
def test_a_name_of_another_form_is_nobody(authority, device_id):
    assert credentials_of(authority).device_of(peer(authority, device_id)) is None


def test_a_device_is_known_until_its_certificate_ends(authority):
    device_id, _ = authority.issue(signing_request(), member_key())
    ends = (datetime.now(UTC) + timedelta(days=100)).replace(microsecond=0)
    certificate = peer(authority, device_id) | {"notAfter": ends.strftime("%b %d %H:%M:%S %Y GMT")}
    for now, known in ((ends - timedelta(seconds=1), device_id), (ends, None)):
        assert Credentials(authority.coordinator, now=lambda at=now: at).device_of(certificate) == known


def test_no_certificate_or_one_of_another_issuer_is_nobody(authority):
    device_id, _ = authority.issue(signing_request(), member_key())
    credentials = credentials_of(authority)
    assert credentials.device_of(None) is None
    assert credentials.device_of({}) is None
    foreign = peer(authority, device_id) | {"issuer": ((("commonName", "lightfr authority 00000000"),),)}
    assert credentials.device_of(foreign) is None
    twice = ((("commonName", device_id),), (("commonName", "0" * 32),))
    assert credentials.device_of(peer(authority, device_id) | {"subject": twice}) is None


def test_a_manifest_is_signed_as_the_contract_says(authority):
    """Ed25519 of the seed 00 01 .. 1f over "lightfr manifest v1\\n" 08 01 10 07, computed with the openssl program."""
    seeded = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    pem = seeded.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (authority.coordinator / "manifest.key").write_bytes(pem)
    signed = credentials_of(authority).sign(bytes.fromhex("08011007"))
    assert signed.manifest.hex() == "08011007"
    assert signed.signature.hex() == (
        "dc2234621d542fc0fbe113e61a8d10daeb9dadb5111d8f778a581103e6879330"
        "ca4d8bc8580238e9c687455e6a2bf6fc5f1aa0d54543f10f932bbaa449b6ab03"
    )
    assert signed.key_id.hex() == "56475aa75463474c"


def test_a_manifest_above_the_limit_is_not_signed(authority):
    credentials = credentials_of(authority)
    assert len(credentials.sign(bytes(65_536)).signature) == 64
    with pytest.raises(OutOfRangeError, match="65537"):
        credentials.sign(bytes(65_537))


def test_server_contexts_trust_this_authority_alone(authority):
    context = credentials_of(authority).context()
    assert context.cert_store_stats() == {"x509": 1, "crl": 1, "x509_ca": 1}
    assert context.verify_flags & ssl.VERIFY_CRL_CHECK_LEAF


def test_a_copy_of_the_folder_is_all_that_a_coordinator_needs(authority, tmp_path):
    device_id, _ = authority.issue(signing_request(), member_key())
    copied = Credentials(shutil.copytree(authority.coordinator, tmp_path / "elsewhere"))
    shutil.rmtree(authority.coordinator)
    assert copied.device_of(peer(authority, device_id)) == device_id
    copied.context()
    copied.refresh()


def test_the_coordinators_folder_has_no_key_that_names_devices(authority):
    secret = [(authority.folder / name).read_bytes() for name in ("authority.key", "membership.key", "server.key")]
    kept = [path.read_bytes() for path in authority.coordinator.iterdir()]
    assert {path.name for path in authority.coordinator.iterdir()} == {
        *("server.pem", "server.key", "authority.pem", "crl.pem", "trust.pem", "manifest.key")
    }
    assert not any(key in content for key in secret for content in kept)


def test_a_list_that_was_copied_over_counts_after_refresh(authority, tmp_path):
    device_id, _ = authority.issue(signing_request(), member_key())
    copied = Credentials(shutil.copytree(authority.coordinator, tmp_path / "elsewhere"))
    authority.revoke(device_id)
    copied.refresh()
    assert copied.device_of(peer(authority, device_id)) == device_id
    shutil.copy(authority.coordinator / "crl.pem", copied.folder)
    copied.refresh()
    assert copied.device_of(peer(authority, device_id)) is None


def test_refresh_loads_nothing_when_nothing_was_written(authority):
    credentials = credentials_of(authority)
    before = credentials._live_context
    credentials.refresh()
    assert credentials._live_context is before
    os.utime(authority.coordinator / "server.pem")
    credentials.refresh()
    assert credentials._live_context is not before


@pytest.mark.parametrize("name", ["crl.pem", "server.pem"])
@pytest.mark.parametrize("content", [None, b"", b"half a fi"])
def test_a_file_that_is_half_copied_changes_nothing_and_is_read_again(authority, name, content):
    device_id, _ = authority.issue(signing_request(), member_key())
    credentials, path = credentials_of(authority), authority.coordinator / name
    authority.revoke(device_id)
    whole = path.read_bytes()
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(AuthorityFolderError, match="anew"):
        credentials.refresh()
    assert credentials.device_of(peer(authority, device_id)) == device_id
    path.write_bytes(whole)
    credentials.refresh()
    assert credentials.device_of(peer(authority, device_id)) is None


def test_the_list_of_another_authority_is_refused(authority, tmp_path):
    stranger = Authority.init(tmp_path / "stranger", ["localhost"])
    shutil.copy(stranger.coordinator / "crl.pem", authority.coordinator)
    stranger.close()
    with pytest.raises(AuthorityFolderError, match="of another authority"):
        credentials_of(authority)


@pytest.mark.parametrize("name", ["authority.pem", "server.key", "server.pem", "manifest.key", "crl.pem"])
def test_a_damaged_or_lost_file_is_a_typed_error(authority, name):
    (authority.coordinator / name).write_bytes(b"damaged" * 100)
    with pytest.raises(AuthorityError, match=r"cannot be read|has damaged certificates"):
        credentials_of(authority)
    (authority.coordinator / name).unlink()
    with pytest.raises(AuthorityFolderError, match=name):
        credentials_of(authority)


def test_the_authoritys_own_server_lets_in_newcomers_and_knows_its_devices(authority):
    device_id, _ = authority.issue(signing_request(), member_key())
    admission = authority.admission()
    assert isinstance(admission, Admission)
    assert admission.context().verify_mode == ssl.CERT_OPTIONAL
    assert admission.device_of({}) is None
    assert admission.device_of(peer(authority, device_id)) == device_id
