"""A device renews its certificate by itself, with a real coordinator, and is interrupted anywhere."""

import errno
import logging
import ssl
import time
from contextlib import ExitStack, closing, suppress
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from hypothesis import given
from hypothesis import strategies as st

from lightfr import Device, FileKey
from lightfr._certificates import parse_certificate
from lightfr._wire import coordinator as calls
from lightfr._wire import tls
from lightfr._wire.channel import Channel
from lightfr.device import Identity, Trust
from lightfr.errors import IdentityRefusedError, RefusedError, ServerUnavailableError
from lightfr.identities import Issued, pem
from lightfr.membership import require_membership
from lightfr_harness.server.authority import Authority
from lightfr_harness.server.authority.certificates import make_device_certificate, make_issuer, new_key
from lightfr_harness.simulation.identities import make_identity
from tests.sdk.store.faults import CrashError, Files
from tests.sdk.store.media import open_files

NOW = datetime.now(UTC)
NOT_RENEWED = "the certificate for 127.0.0.1 was not renewed"
ADVICE = "Enrol again before it ends, unless a later sync renews it"
KEY = b"-----BEGIN PRIVATE KEY-----\n"
GOOD = make_device_certificate(make_issuer(NOW), new_key().public_key(), "1" * 32, NOW).public_bytes(Encoding.DER)
RENEWED_FILES = {"identity.pem", "trust.pem", "server", "enrollment", "data", "key", "key.anchor"}


def certificate_of(identity):
    ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(identity)  # whole, and for the key beside it
    return x509.load_pem_x509_certificate(identity.read_bytes())


def member_of(device):
    return Identity(device.identity, Trust(device.trust)).member()


def days_left(identity):
    return (certificate_of(identity).not_valid_after_utc - datetime.now(UTC)).days


@pytest.fixture
def device_of_age(authority, coordinator, tmp_path):
    """A device that got its certificate some days ago; a year after that it ends."""
    made = 0

    def make(days):
        nonlocal made
        made += 1
        folder = tmp_path / f"aged{made}"
        folder.mkdir()
        past = Authority(authority.folder, now=lambda: datetime.now(UTC) - timedelta(days=days))
        make_identity(past, folder / "identity.pem")
        past.close()
        (folder / "trust.pem").write_bytes((authority.folder / "trust.pem").read_bytes())
        (folder / "server").write_text(coordinator.addresses["server"])
        (folder / "enrollment").write_text(coordinator.addresses["enrollment"])
        return Device.load(folder)

    return make


@pytest.mark.parametrize("shift", [0, 300, 365 * 23, 365 * 25, -365 * 40])
def test_the_life_of_a_certificate_is_read_as_a_parser_reads_it(authority, shift):
    """Before and after 2050, when years begin to have four digits."""
    now = datetime.now(UTC) + timedelta(days=shift)
    certificate = make_device_certificate(make_issuer(now), new_key().public_key(), "0" * 31 + "1", now)
    content = b"-----BEGIN PRIVATE KEY-----\nabc\n" + certificate.public_bytes(Encoding.PEM)
    life = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    assert parse_certificate(content) == ("0" * 31 + "1", *(moment.timestamp() for moment in life))


@given(st.binary(max_size=60), st.integers(0, 700))
def test_an_identity_that_is_none_has_no_life_and_is_not_renewed(garbage, cut):
    for content in (garbage, GOOD[:cut] + garbage, GOOD[:cut] + garbage + GOOD[cut + len(garbage) :]):
        with suppress(ValueError, IndexError):
            parse_certificate(KEY + pem("CERTIFICATE", content))
        with suppress(ValueError, IndexError):
            parse_certificate(content)


class Nowhere:
    """Stands for a channel to the coordinator, from which a way to the authority is asked."""

    host = "127.0.0.1"

    def to(self, server, timeout_seconds):
        raise AssertionError("there is no address")


DAY = 86_400


@pytest.mark.parametrize(("life_days", "due_days"), [(365, 60), (200, 60), (180, 60), (90, 30), (3, 1)])
def test_a_renewal_is_due_with_fewer_than_60_days_left_or_a_third_of_a_shorter_life(
    authority, tmp_path, monkeypatch, caplog, life_days, due_days
):
    """One that is due is seen to be tried: it fails at once, where the address of the authority is not known."""
    (tmp_path / "identity.pem").write_bytes(KEY + pem("CERTIFICATE", certificate_for(timedelta(days=life_days))))
    identity = Identity(tmp_path / "identity.pem", Trust(authority.folder / "trust.pem"))
    ends = NOW.timestamp() // 1 + life_days * DAY
    for left, is_due in ((life_days * DAY, False), (due_days * DAY, False), (due_days * DAY - 0.001, True)):
        monkeypatch.setattr("time.time", lambda left=left: ends - left)
        caplog.clear()
        identity.renew_if_due(Nowhere())
        expected = [f"{NOT_RENEWED}: EnrollmentError. {ADVICE}"] if is_due else []
        assert [record.getMessage() for record in caplog.records] == expected


def certificate_for(life):
    """A certificate that begins now, DER."""
    key, name = new_key(), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "1" * 32)])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1).not_valid_before(NOW).not_valid_after(NOW + life)
    return builder.sign(key, SHA256()).public_bytes(Encoding.DER)


@pytest.fixture
def open_client():
    """Open clients of a device, closed at the end."""
    with ExitStack() as opened:
        yield lambda device: opened.enter_context(
            device.client(device.folder / "data", key=FileKey(device.folder / "key"))
        )


@pytest.fixture
def answers(monkeypatch):
    """All certificates that the server answered with; `answers.lost` says whether they get through."""
    real = calls.renew

    class Answers(list):
        lost = None

    kept = Answers()

    def renew(*request):
        kept.append(real(*request))
        if kept.lost:
            raise kept.lost
        return kept[-1]

    monkeypatch.setattr(calls, "renew", renew)
    return kept


def test_a_certificate_with_two_months_left_is_renewed_and_the_device_stays_who_it_is(open_client, device_of_age):
    device = device_of_age(306)
    before, member = certificate_of(device.identity), member_of(device)
    client = open_client(device)
    assert client.sync()
    after = certificate_of(device.identity)
    assert days_left(device.identity) == 364
    assert after.subject == before.subject
    assert after.serial_number != before.serial_number
    assert after.public_key() != before.public_key(), "the key is a new one"
    assert member_of(device).key.public != member.key.public, "neighbours do not recognise the device"
    assert require_membership(member_of(device).membership, Trust(device.trust).membership_keys, time.time())
    assert {file.name for file in device.identity.parent.iterdir()} == RENEWED_FILES
    assert device.identity.stat().st_mode & 0o777 == 0o600
    assert not client.sync()
    assert certificate_of(device.identity) == after, "once"


def test_a_device_that_renewed_and_was_forgotten_leaves_no_private_key_in_any_file(
    open_client, device_of_age, monkeypatch
):
    """Neither the old key, nor the new one, nor what they were written to on the way."""
    with open_files(monkeypatch) as (_, look):
        device = device_of_age(306)
        client = open_client(device)
        with device.identity.open("rb") as old:
            assert client.sync()
            assert not any(old.read())
        assert look().count(b"BEGIN PRIVATE KEY") == look().count(b"BEGIN LIGHTFR MEMBER KEY") == 1
        client.forget()
        device.forget()
        assert b"PRIVATE KEY" not in look()
        assert b"MEMBER" not in look()


@pytest.mark.parametrize("days", [0, 304])
def test_a_certificate_with_more_left_is_left_alone(open_client, device_of_age, answers, days):
    assert open_client(device_of_age(days)).sync()
    assert not answers


def test_the_next_connection_is_made_with_the_new_certificate(open_client, device_of_age):
    device = device_of_age(306)
    client = open_client(device)
    old = client._channel._context
    client.sync()
    assert client._channel._context is not old
    client.close()
    assert not open_client(device).sync()


def test_a_copy_of_the_old_identity_is_good_until_it_ends(open_client, device_of_age, tmp_path):
    device = device_of_age(306)
    copy = tmp_path / "copy.pem"
    copy.write_bytes(device.identity.read_bytes())
    open_client(device).sync()
    copied = device_of_age(0)
    copied.identity.write_bytes(copy.read_bytes())
    assert open_client(copied).sync()


def test_after_a_lost_answer_the_same_certificate_comes_again_and_the_sync_does_not_mind(
    open_client, device_of_age, answers, caplog
):
    device = device_of_age(306)
    client = open_client(device)
    answers.lost = ServerUnavailableError("the answer was lost")
    assert client.sync(), "the model came nevertheless"
    assert caplog.record_tuples == [
        ("lightfr.device", logging.WARNING, f"{NOT_RENEWED}: ServerUnavailableError. {ADVICE}")
    ]
    assert days_left(device.identity) < 60
    assert (device.identity.parent / "renewing.pem").stat().st_mode & 0o777 == 0o600
    answers.lost = None
    client.sync()
    assert answers[0] == answers[1]
    assert days_left(device.identity) == 364


def test_a_device_that_does_not_know_the_authority_says_so_and_goes_on(open_client, device_of_age, answers, caplog):
    device = device_of_age(306)
    (device.folder / "enrollment").unlink()
    assert open_client(device).sync()
    assert [record.getMessage() for record in caplog.records] == [f"{NOT_RENEWED}: EnrollmentError. {ADVICE}"]
    assert not answers
    assert not (device.folder / "renewing.pem").exists()


def test_a_server_that_does_not_know_how_is_asked_again_next_time(open_client, device_of_age, answers):
    answers.lost = RefusedError("HTTP 404", "UNSPECIFIED", "no such method")
    client = open_client(device_of_age(306))
    assert client.sync()
    client.sync()
    assert len(answers) == 2


def test_a_revoked_device_gets_no_certificate(open_client, device_of_age, authority, answers):
    device = device_of_age(306)
    before = certificate_of(device.identity)
    (name,) = before.subject
    authority.revoke(name.value)
    # The coordinator's process hears of it within seconds and then refuses the connection, where its alert may be lost
    # on the way; the authority knows at once.
    with suppress(IdentityRefusedError, ServerUnavailableError):
        open_client(device).sync()
    assert not answers
    assert certificate_of(device.identity) == before


@pytest.mark.parametrize("spoil", [lambda content: b"", lambda content: content[:-100]])
def test_a_damaged_rest_of_a_renewal_that_nobody_heard_of_is_begun_anew(
    open_client, device_of_age, answers, monkeypatch, spoil
):
    device = device_of_age(306)
    client, kept = open_client(device), device.folder / "renewing.pem"
    with monkeypatch.context() as away:
        away.setattr(calls, "renew", lambda *_: raise_(ServerUnavailableError("the request was lost")))
        client.sync()
    kept.write_bytes(spoil(kept.read_bytes()))
    client.sync()
    assert days_left(device.identity) == 364
    assert not kept.exists()


def test_keys_of_a_renewal_that_cannot_be_read_now_keep_nobody_from_the_model_and_stay(
    open_client, device_of_age, answers, caplog
):
    """Such as those that another user of the system has left."""
    device = device_of_age(306)
    (device.folder / "renewing.pem").mkdir()
    assert open_client(device).sync()
    assert [record.getMessage() for record in caplog.records] == [f"{NOT_RENEWED}: EnrollmentError. {ADVICE}"]
    assert (device.folder / "renewing.pem").is_dir()
    assert not answers


def raise_(error):
    raise error


def test_a_device_that_lost_the_keys_of_its_renewal_goes_on_with_the_old_certificate_and_asks_again(
    open_client, device_of_age, answers, caplog
):
    """The authority gives no third certificate while two have not ended."""
    device = device_of_age(306)
    client, before = open_client(device), device.identity.read_bytes()
    answers.lost = ServerUnavailableError("the answer was lost")
    assert client.sync()
    answers.lost = None
    (device.folder / "renewing.pem").unlink()
    caplog.clear()
    for _ in range(2):
        client.sync()
    refused = f"{NOT_RENEWED}: RefusedError. {ADVICE}"
    assert [record.getMessage() for record in caplog.records] == [refused] * 2, "once with every sync"
    assert device.identity.read_bytes() == before
    assert len(answers) == 1
    client.close()
    assert not open_client(device).sync(), "the old certificate still opens connections"


def test_what_is_left_of_a_renewal_that_was_over_is_not_used_for_the_next(open_client, device_of_age, answers):
    device = device_of_age(306)
    kept = device.identity.parent / "renewing.pem"
    # A year ago: the identity was swapped, and the file not removed any more.
    private_key = device.identity.read_bytes().partition(b"-----BEGIN CERTIFICATE")[0]
    kept.write_bytes(private_key + request_of(private_key) + pem("LIGHTFR MEMBER KEY", bytes(32)))
    open_client(device).sync()
    assert days_left(device.identity) == 364
    assert not device.identity.read_bytes().startswith(private_key), "another key"


def request_of(private_key):
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    return builder.sign(load_pem_private_key(private_key, None), SHA256()).public_bytes(Encoding.PEM)


@pytest.mark.parametrize("garbage", [[b"garbage"], [b""]])
def test_certificates_that_are_no_use_do_not_replace_the_old_one(open_client, device_of_age, monkeypatch, garbage):
    device = device_of_age(306)
    before = device.identity.read_bytes()
    monkeypatch.setattr(calls, "renew", lambda *request: Issued(garbage, bytes(104)))
    assert open_client(device).sync()
    assert device.identity.read_bytes() == before


@pytest.mark.parametrize("fault", ["refuse", "torn"])
def test_a_renewal_interrupted_at_any_file_operation_leaves_a_good_identity_and_is_finished_later(
    device_of_age, monkeypatch, fault
):
    files = Files(monkeypatch)

    def renew(device):
        trust = Trust(device.trust)
        channel = Channel(device.server, tls.context(trust.path, device.identity))
        with closing(channel):
            Identity(device.identity, trust).renew_if_due(channel)

    renew(device_of_age(306))
    count = files.count
    assert count > 12
    for at in range(1, count + 1):
        device = device_of_age(306)
        files.arm(at, fault, errno.ENOSPC)
        with suppress(CrashError):  # a refusal is for the next time
            renew(device)
        files.end_program()
        certificate_of(device.identity)
        assert member_of(device).membership.startswith(member_of(device).key.public), "a whole pair"
        renew(device)
        assert days_left(device.identity) == 364
