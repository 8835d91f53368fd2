"""Invitations and signing requests."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given, settings
from hypothesis import strategies as st

from lightfr.device import Trust
from lightfr.errors import OutOfRangeError, PrivacyError
from lightfr.membership import require_membership
from lightfr_harness.server.authority import (
    Authority,
    AuthorityError,
    EarlyRenewalError,
    MemberKeyError,
    RenewalError,
    SigningRequestError,
    TokenError,
)
from lightfr_harness.server.authority import authority as authority_module
from lightfr_harness.server.authority.certificates import common_name, new_key, requested_key
from tests.certificates import member_key, signing_request

SERVER, ENROLLMENT = "https://localhost:8443", "https://127.0.0.1:8444"
KEY = new_key()
REQUEST = signing_request(KEY)
MEMBER, OTHER = member_key(), member_key()


def request_of(key, algorithm=None, **attributes):
    builder = x509.CertificateSigningRequestBuilder().subject_name(common_name("x"))
    for value in attributes.values():
        builder = builder.add_extension(value, critical=False)
    return builder.sign(key, algorithm).public_bytes(Encoding.DER)


def token_of(authority, valid_seconds=60):
    return authority.invite(SERVER, ENROLLMENT, valid_seconds)["token"]


def device_count(authority):
    return authority._registry._run("SELECT count(*) FROM devices")[0][0]


def test_an_invitation_says_all_that_a_device_needs(authority):
    invitation = authority.invite(SERVER, ENROLLMENT, 60)
    assert (invitation["server"], invitation["enrollment"]) == (SERVER, ENROLLMENT)
    assert invitation["trust"] == (authority.folder / "trust.pem").read_text()
    assert len(invitation["token"]) == 32  # 192 bits in base64.


def test_no_token_is_in_any_file(authority):
    token = token_of(authority).encode()
    authority.enroll(token.decode(), REQUEST, MEMBER)
    assert not [path for path in authority.folder.rglob("*") if path.is_file() and token in path.read_bytes()]


@pytest.mark.parametrize(
    "address",
    [
        *("http://localhost:1", "localhost:1", "https://localhost:1/path", "https://", "https://elsewhere:1"),
        *("https://a b", "https://name@localhost:1", "https://name:word@localhost:1"),
    ],
)
def test_an_address_that_devices_could_not_use_is_refused(authority, address):
    with pytest.raises(AuthorityError, match=r"https://HOST:PORT|DNS name|certificate"):
        authority.invite(address, ENROLLMENT, 60)
    with pytest.raises(AuthorityError, match=r"https://HOST:PORT|DNS name|certificate"):
        authority.invite(SERVER, address, 60)


@pytest.mark.parametrize("seconds", [0, -1, 365 * 86_400 + 1])
def test_a_validity_outside_a_year_is_refused(authority, seconds):
    with pytest.raises(OutOfRangeError):
        authority.invite(SERVER, ENROLLMENT, seconds)


def test_a_token_gives_a_certificate_for_the_key_of_the_request(authority):
    key = new_key()
    (der,) = authority.enroll(token_of(authority), signing_request(key), MEMBER).certificates
    certificate = x509.load_der_x509_certificate(der)
    assert certificate.public_key() == key.public_key()
    certificate.verify_directly_issued_by(authority._issuer.certificate)


def test_a_lost_answer_is_repeated_also_after_the_token_expired(authority):
    token = token_of(authority)
    first = authority.enroll(token, REQUEST, MEMBER)
    later = Authority(authority.folder, now=lambda: datetime.now(UTC) + timedelta(hours=1))
    assert later.enroll(token, REQUEST, MEMBER) == first
    assert device_count(authority) == 1
    later.close()


def test_a_spent_token_serves_no_other_request(authority):
    token = token_of(authority)
    authority.enroll(token, REQUEST, MEMBER)
    with pytest.raises(TokenError, match="spent"):
        authority.enroll(token, signing_request(), MEMBER)
    assert device_count(authority) == 1


def test_an_expired_token_is_refused(authority):
    token = token_of(authority, 60)
    later = Authority(authority.folder, now=lambda: datetime.now(UTC) + timedelta(seconds=61))
    with pytest.raises(TokenError, match="expired"):
        later.enroll(token, REQUEST, MEMBER)
    later.close()
    authority.enroll(token, REQUEST, MEMBER)


@pytest.mark.parametrize("token", ["", "x" * 15, "x" * 32, "x" * 129, "é" * 20, "\ud800" * 20])
def test_a_token_that_was_never_given_is_refused_without_repeating_it(authority, token):
    with pytest.raises(TokenError) as refusal:
        authority.enroll(token, REQUEST, MEMBER)
    assert not token or token not in str(refusal.value)


def test_a_refused_request_does_not_spend_the_token(authority):
    token = token_of(authority)
    with pytest.raises(SigningRequestError):
        authority.enroll(token, b"no request", MEMBER)
    assert authority.enroll(token, REQUEST, MEMBER)


def test_a_token_is_spent_and_a_device_recorded_at_once_or_not_at_all(authority, monkeypatch):
    token = token_of(authority)
    with monkeypatch.context() as broken:
        broken.setattr(authority._registry, "spend_token", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            authority.enroll(token, REQUEST, MEMBER)
    assert device_count(authority) == 0
    authority.enroll(token, REQUEST, MEMBER)
    assert device_count(authority) == 1


def test_of_many_who_spend_one_token_at_once_one_succeeds(authority):
    token, outcomes = token_of(authority), []
    opened = [authority, Authority.open(authority.folder)]

    def spend(one):
        try:
            outcomes.append(one.enroll(token, signing_request(), MEMBER)[0])
        except TokenError as refusal:
            outcomes.append(refusal.reason)

    threads = [threading.Thread(target=spend, args=(opened[n % 2],)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    opened[1].close()
    assert outcomes.count("spent") == 7
    assert device_count(authority) == 1


BAD_REQUESTS = {
    "empty": b"",
    "no DER": b"-----BEGIN CERTIFICATE REQUEST-----",
    "more behind": REQUEST + b"\0",
    "P-384": request_of(ec.generate_private_key(ec.SECP384R1()), SHA256()),
    "secp256k1": request_of(ec.generate_private_key(ec.SECP256K1()), SHA256()),
    "Ed25519": request_of(ed25519.Ed25519PrivateKey.generate()),
    "RSA": request_of(rsa.generate_private_key(65537, 2048), SHA256()),
    "wrong signature": REQUEST[:-1] + bytes([REQUEST[-1] ^ 1]),
}


@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_only_a_signed_request_with_a_p256_key_is_taken(authority, name):
    with pytest.raises(SigningRequestError):
        authority.issue(BAD_REQUESTS[name], MEMBER)
    assert device_count(authority) == 0


def test_a_request_above_4096_bytes_is_not_even_read():
    padding = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), bytes(4096))
    with pytest.raises(SigningRequestError, match="above 4096"):
        requested_key(request_of(new_key(), SHA256(), padding=padding))


@settings(max_examples=200)
@given(st.integers(0, len(REQUEST) - 1), st.integers(1, 255), st.integers(0, 3))
def test_a_damaged_request_never_gives_another_key_nor_another_error(position, flip, cut):
    damaged = bytearray(REQUEST)
    damaged[position] ^= flip
    # What the signature does not cover may read the same: the count of unused bits behind it, for one.
    with contextlib.suppress(SigningRequestError):
        assert requested_key(bytes(damaged[: len(damaged) - cut])) == KEY.public_key()


def subject_of(der):
    return x509.load_der_x509_certificate(der).subject


def test_a_renewed_certificate_is_for_the_new_key_and_the_same_device(authority):
    device_id, first = authority.issue(REQUEST, MEMBER)
    key = new_key()
    (der,) = authority.renew(device_id, signing_request(key), MEMBER).certificates
    certificate = x509.load_der_x509_certificate(der)
    assert certificate.public_key() == key.public_key()
    assert certificate.subject == subject_of(first.certificates[0]) == common_name(device_id)
    assert certificate.serial_number != int(device_id, 16)
    certificate.verify_directly_issued_by(authority._issuer.certificate)


def test_the_same_renewal_again_gets_the_same_certificate_in_another_process_too(authority):
    device_id, _ = authority.issue(REQUEST, MEMBER)
    first = authority.renew(device_id, REQUEST, MEMBER)
    other = Authority.open(authority.folder)
    assert other.renew(device_id, REQUEST, MEMBER) == first
    other.close()


def test_a_renewal_is_for_devices_that_are_known_and_not_revoked(authority):
    device_id, _ = authority.issue(REQUEST, MEMBER)
    authority.renew(device_id, REQUEST, MEMBER)
    authority.revoke(device_id)
    for nobody in (device_id, "0" * 32):
        with pytest.raises(RenewalError):
            authority.renew(nobody, REQUEST, MEMBER)


def test_a_renewal_of_no_request_is_refused(authority):
    device_id, _ = authority.issue(REQUEST, MEMBER)
    with pytest.raises(SigningRequestError):
        authority.renew(device_id, b"no request", MEMBER)


def end_of(issued):
    return int(x509.load_der_x509_certificate(issued.certificates[0]).not_valid_after_utc.timestamp())


@contextlib.contextmanager
def at(authority, unix_seconds):
    """The same authority at another time."""
    other = Authority(authority.folder, now=lambda: datetime.fromtimestamp(unix_seconds, UTC))
    with contextlib.closing(other):
        yield other


def test_a_device_has_two_unended_certificates_and_renews_again_when_the_first_has_ended(authority):
    device_id, first = authority.issue(REQUEST, MEMBER)
    ends = end_of(first)
    with at(authority, ends - 60 * 86_400) as later:
        second = later.renew(device_id, REQUEST, OTHER)
    with at(authority, ends - 1) as later:
        with pytest.raises(EarlyRenewalError) as refusal:
            later.renew(device_id, signing_request(), member_key())
        assert refusal.value.renewable_unix_seconds == ends
        assert later.renew(device_id, REQUEST, OTHER) == second, "a lost answer is repeated"
    with at(authority, ends) as later:
        third = later.renew(device_id, signing_request(), member_key())
        with pytest.raises(EarlyRenewalError) as refusal:
            later.renew(device_id, signing_request(), member_key())
    assert refusal.value.renewable_unix_seconds == end_of(second) < end_of(third)


def test_a_device_that_got_many_certificates_of_an_earlier_release_waits_until_one_is_left(authority, monkeypatch):
    device_id, _ = authority.issue(REQUEST, MEMBER)
    with monkeypatch.context() as earlier:
        earlier.setattr(authority_module, "MOST_UNENDED", 33)
        ends = []
        for day in (3, 1, 2):
            with at(authority, datetime.now(UTC).timestamp() + day * 86_400) as later:
                ends.append(end_of(later.renew(device_id, signing_request(), MEMBER)))
    with pytest.raises(EarlyRenewalError) as refusal:
        authority.renew(device_id, signing_request(), MEMBER)
    assert refusal.value.renewable_unix_seconds == sorted(ends)[-2]


def test_ended_renewals_are_forgotten_and_their_member_keys_stay_taken(authority):
    device_id, issued = authority.issue(REQUEST, MEMBER)
    renewed = [member_key() for _ in range(5)]
    for key in renewed:
        with at(authority, end_of(issued) - 1) as later:
            issued = later.renew(device_id, signing_request(), key)
    assert len(authority._registry.renewals(device_id)) <= 2
    for key in (MEMBER, *renewed):
        with pytest.raises(MemberKeyError):
            authority.issue(REQUEST, key)


def test_of_renewals_that_come_at_once_one_succeeds(authority):
    device_id, _ = authority.issue(REQUEST, MEMBER)
    opened = [authority, Authority.open(authority.folder)]
    requests = [(signing_request(), member_key()) for _ in range(8)]

    def renew(n):
        try:
            return opened[n % 2].renew(device_id, *requests[n])
        except EarlyRenewalError:
            return None

    with ThreadPoolExecutor(8) as pool:
        issued = list(pool.map(renew, range(8)))
    opened[1].close()
    assert issued.count(None) == 7


def keys_of(authority):
    return Trust(authority.folder / "trust.pem").membership_keys


def test_a_membership_is_for_the_member_key_until_the_certificate_ends(authority):
    device_id, first = authority.issue(REQUEST, MEMBER)
    later = Authority(authority.folder, now=lambda: datetime.now(UTC) + timedelta(days=300))
    renewed = later.renew(device_id, REQUEST, OTHER)
    later.close()
    for issued, key in ((first, MEMBER), (renewed, OTHER)):
        ends = x509.load_der_x509_certificate(issued.certificates[0]).not_valid_after_utc.timestamp()
        assert require_membership(issued.membership, keys_of(authority), ends - 1) == key
        with pytest.raises(PrivacyError, match="ended"):
            require_membership(issued.membership, keys_of(authority), ends)


def test_the_same_signing_request_with_another_member_key_is_another_request(authority):
    token = token_of(authority)
    authority.enroll(token, REQUEST, MEMBER)
    with pytest.raises(TokenError, match="spent"):
        authority.enroll(token, REQUEST, OTHER)
    device_id, _ = authority.issue(REQUEST, member_key())
    authority.renew(device_id, REQUEST, OTHER)
    with pytest.raises(EarlyRenewalError):
        authority.renew(device_id, REQUEST, member_key())


@pytest.mark.parametrize("key", [b"", bytes(31), bytes(33), "another device's"])
def test_a_member_key_of_another_length_or_of_another_device_is_refused_and_spends_nothing(authority, key):
    other, _ = authority.issue(REQUEST, MEMBER)
    renewed = member_key()
    authority.renew(other, REQUEST, renewed)
    device_id, _ = authority.issue(REQUEST, OTHER)
    token = token_of(authority)
    # A key that a device had before its renewal is its own for good.
    for refused in (MEMBER, renewed) if isinstance(key, str) else (key,):
        with pytest.raises(MemberKeyError):
            authority.enroll(token, REQUEST, refused)
        with pytest.raises(MemberKeyError):
            authority.renew(device_id, REQUEST, refused)
    assert authority.enroll(token, REQUEST, member_key())
    assert authority.renew(device_id, REQUEST, OTHER), "its own key will do"


def test_a_request_that_is_refused_does_not_keep_its_member_key(authority):
    token = token_of(authority)
    with pytest.raises(SigningRequestError):
        authority.enroll(token, b"no request", MEMBER)
    device_id, _ = authority.issue(REQUEST, OTHER)
    authority.renew(device_id, signing_request(), OTHER)
    with pytest.raises(EarlyRenewalError):
        authority.renew(device_id, signing_request(), MEMBER)
    assert authority.issue(REQUEST, MEMBER)
