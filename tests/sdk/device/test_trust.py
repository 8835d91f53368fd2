"""The trust file: which keys are taken from it, and which files are refused."""

import hashlib
from base64 import b64encode

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, x25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from lightfr.device import Trust, key_id
from lightfr.errors import InvalidInputError
from lightfr.membership import require_membership
from tests.certificates import credentials_of, member_key, signing_request


def public_pem(key):
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def raw(key):
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def membership_pem(key):
    return public_pem(key).replace(b"PUBLIC KEY", b"LIGHTFR MEMBERSHIP KEY")


MEMBERSHIP_KEY = ed25519.Ed25519PrivateKey.generate()
MEMBERSHIP_BLOCK = membership_pem(MEMBERSHIP_KEY)


@pytest.fixture
def trust_of(tmp_path):
    """Read a trust file; one key for memberships is in it already unless told."""

    def make(content, membership=MEMBERSHIP_BLOCK):
        (tmp_path / "trust.pem").write_bytes(content + membership)
        return Trust(tmp_path / "trust.pem")

    return make


def test_the_trust_of_a_real_authority_has_its_keys(authority):
    signed, trust = credentials_of(authority).sign(b"anything"), Trust(authority.folder / "trust.pem")
    assert list(trust.manifest_keys) == [signed.key_id]
    _, issued = authority.issue(signing_request(), member_key())
    assert require_membership(issued.membership, trust.membership_keys, 0)


def test_several_membership_keys_count_while_one_is_being_replaced(trust_of):
    keys = [ed25519.Ed25519PrivateKey.generate() for _ in range(2)]
    trust = trust_of(public_pem(keys[0]), membership_pem(keys[0]) + membership_pem(keys[1]))
    assert trust.membership_keys == [raw(key) for key in keys]
    assert list(trust.manifest_keys.values()) == [raw(keys[0])], "the labels are not mixed up"


def test_a_trust_without_a_membership_key_is_refused(trust_of):
    with pytest.raises(InvalidInputError, match=r"no LIGHTFR MEMBERSHIP KEY block.*enrol again"):
        trust_of(public_pem(MEMBERSHIP_KEY), membership=b"")


def test_a_membership_key_of_another_kind_is_refused(trust_of):
    with pytest.raises(InvalidInputError, match=r"a LIGHTFR MEMBERSHIP KEY block .* is not an Ed25519 key"):
        trust_of(public_pem(MEMBERSHIP_KEY), membership_pem(x25519.X25519PrivateKey.generate()))


def test_a_key_is_named_by_the_first_eight_bytes_of_its_digest(trust_of):
    key = ed25519.Ed25519PrivateKey.generate()
    assert trust_of(public_pem(key)).manifest_keys == {hashlib.sha256(raw(key)).digest()[:8]: raw(key)}
    assert len(key_id(raw(key))) == 8


def test_several_keys_count_while_one_is_being_replaced(trust_of):
    keys = [ed25519.Ed25519PrivateKey.generate() for _ in range(3)]
    trust = trust_of(b"a comment\n".join(public_pem(key).replace(b"\n", b"\r\n") for key in keys))
    assert set(trust.manifest_keys.values()) == {raw(key) for key in keys}
    assert repr(trust) == "<Trust with 3 manifest keys>"


@pytest.mark.parametrize("content", [b"", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_a_trust_without_a_key_is_refused(trust_of, content):
    with pytest.raises(InvalidInputError, match="no PUBLIC KEY"):
        trust_of(content)


@pytest.mark.parametrize("kind", [x25519.X25519PrivateKey.generate, lambda: ec.generate_private_key(ec.SECP256R1())])
def test_a_key_of_another_kind_is_refused_even_beside_a_good_one(trust_of, kind):
    with pytest.raises(InvalidInputError, match="not an Ed25519 key"):
        trust_of(public_pem(ed25519.Ed25519PrivateKey.generate()) + public_pem(kind()))


@pytest.mark.parametrize("change", [lambda text: text[:-1], lambda text: text + b"A", lambda text: b"=" + text[1:]])
def test_a_damaged_block_is_refused(trust_of, change):
    body = b64encode(bytes.fromhex("302a300506032b6570032100") + bytes(32))
    assert trust_of(b"-----BEGIN PUBLIC KEY-----\n" + body + b"\n-----END PUBLIC KEY-----\n").manifest_keys
    with pytest.raises(InvalidInputError, match="damaged"):
        trust_of(b"-----BEGIN PUBLIC KEY-----\n" + change(body) + b"\n-----END PUBLIC KEY-----\n")


def test_a_block_of_another_length_is_refused(trust_of):
    for length in (31, 33):
        body = b64encode(bytes.fromhex("302a300506032b6570032100") + bytes(length))
        with pytest.raises(InvalidInputError, match="not an Ed25519 key"):
            trust_of(b"-----BEGIN PUBLIC KEY-----\n" + body + b"\n-----END PUBLIC KEY-----\n")


def test_a_trust_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="No such file"):
        Trust(tmp_path / "absent.pem")
    with pytest.raises(InvalidInputError, match="directory"):
        Trust(tmp_path)
