"""Enrolment with a real coordinator: once per invitation, repeatable after any interruption, the key staying here."""

import errno
import json
import ssl
import time
from base64 import b64encode
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from lightfr import Device, FileKey
from lightfr._wire import coordinator as calls
from lightfr.device import Identity, Trust
from lightfr.errors import (
    EnrollmentError,
    IdentityRefusedError,
    InvalidInputError,
    ServerNotTrustedError,
    ServerUnavailableError,
    StoreWriteError,
)
from lightfr.identities import new_key_and_request
from lightfr.membership import require_membership
from lightfr_harness.server.authority import Authority
from lightfr_harness.simulation.identities import make_identity
from tests.certificates import member_key, signing_request
from tests.sdk.store.faults import CrashError, Files

LOST = ServerUnavailableError("the answer was lost")


@pytest.fixture
def answer(monkeypatch):
    """Do something with the answers of the server: `answer(function)`."""
    real = calls.enroll

    def use(change):
        monkeypatch.setattr(calls, "enroll", lambda *request: change(real(*request)))

    yield use
    monkeypatch.setattr(calls, "enroll", real)


def changed(invitation, **fields):
    invitation.write_text(json.dumps({**json.loads(invitation.read_text()), **fields}))
    return invitation


def certificate_of(identity):
    return x509.load_pem_x509_certificate(identity.read_bytes())


def lose(_certificates):
    raise LOST


def test_a_device_enrols_and_can_talk(coordinator, invitation, tmp_path):
    device = Device.enroll(invitation(coordinator), tmp_path / "new" / "folder")
    assert device.server == coordinator.addresses["server"]
    assert (device.identity, device.trust) == tuple(tmp_path / "new/folder" / n for n in ("identity.pem", "trust.pem"))
    with device.client(tmp_path / "data", key=FileKey(tmp_path / "key")) as client:
        assert client.sync()


def test_only_the_owner_reads_what_enrolment_wrote(coordinator, invitation, tmp_path, answer):
    answer(lose)
    with pytest.raises(ServerUnavailableError):
        Device.enroll(invitation(coordinator), tmp_path / "lost")
    assert (tmp_path / "lost").stat().st_mode & 0o777 == 0o700
    assert {f.name: f.stat().st_mode & 0o777 for f in (tmp_path / "lost").iterdir()} == {
        "enrolling.pem": 0o600,
        "enrollment": 0o600,
        "server": 0o600,
        "trust.pem": 0o600,
    }
    answer(lambda certificates: certificates)
    device = Device.enroll(invitation(coordinator), tmp_path / "done")
    assert {f.name: f.stat().st_mode & 0o777 for f in device.identity.parent.iterdir()} == {
        "enrollment": 0o600,
        "identity.pem": 0o600,
        "server": 0o600,
        "trust.pem": 0o600,
    }


def test_a_token_is_spent_once(coordinator, invitation, tmp_path):
    invited = invitation(coordinator)
    Device.enroll(invited, tmp_path / "first")
    with pytest.raises(EnrollmentError, match="new invitation"):
        Device.enroll(invited, tmp_path / "second")
    assert not (tmp_path / "second/identity.pem").exists()


def test_an_unknown_token_is_refused(coordinator, invitation, tmp_path):
    with pytest.raises(EnrollmentError, match="TOKEN"):
        Device.enroll(changed(invitation(coordinator), token="x" * 32), tmp_path / "device")


def test_after_a_lost_answer_the_same_certificate_comes_again(coordinator, invitation, tmp_path, answer):
    invited, lost = invitation(coordinator), []

    def keep_and_lose(certificates):
        lost.append(certificates)
        raise LOST

    answer(keep_and_lose)
    for _ in range(2):
        with pytest.raises(ServerUnavailableError):
            Device.enroll(invited, tmp_path / "device")
    answer(lambda certificates: certificates)
    device = Device.enroll(invited, tmp_path / "device")
    assert lost[0] == lost[1]
    assert certificate_of(device.identity).public_bytes(Encoding.DER) == lost[0].certificates[0]
    assert Identity(device.identity, Trust(device.trust)).member().membership == lost[0].membership
    assert not (tmp_path / "device/enrolling.pem").exists()


@pytest.mark.parametrize("fault", ["refuse", "torn"])
def test_enrolment_interrupted_at_any_file_operation_is_finished_by_repeating_it(
    coordinator, invitation, tmp_path, monkeypatch, fault
):
    files = Files(monkeypatch)
    Device.enroll(invitation(coordinator), tmp_path / "healthy")
    at, count = 0, files.count
    assert count > 12
    while at < count:
        at += 1
        invited, folder = invitation(coordinator), tmp_path / f"{at}"
        files.arm(at, fault, errno.ENOSPC)
        with pytest.raises((StoreWriteError, CrashError)):
            Device.enroll(invited, folder)
        files.heal()
        Device.enroll(invited, folder)
        certificate_of(folder / "identity.pem")
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(folder / "identity.pem")
        member = Identity(folder / "identity.pem", Trust(folder / "trust.pem")).member()
        assert member.membership.startswith(member.key.public), "a whole pair"


def test_enrolling_again_loads_the_device(coordinator, invitation, tmp_path):
    invited = invitation(coordinator)
    device = Device.enroll(invited, tmp_path / "device")
    before = device.identity.read_bytes()
    assert Device.enroll(invited, tmp_path / "device") == device
    assert Device.load(tmp_path / "device") == device
    assert device.identity.read_bytes() == before


def test_enrolling_a_known_device_with_another_invitation_of_its_server_does_not_spend_it(
    coordinator, invitation, tmp_path
):
    device = Device.enroll(invitation(coordinator), tmp_path / "device")
    another = invitation(coordinator)
    assert Device.enroll(another, tmp_path / "device") == device
    Device.enroll(another, tmp_path / "another")


def test_the_invitation_of_another_server_leaves_the_device_alone(coordinator, invitation, tmp_path):
    device = Device.enroll(invitation(coordinator), tmp_path / "device")
    before = device.identity.read_bytes()
    with pytest.raises(EnrollmentError, match="https://localhost:1: enrol into another folder"):
        Device.enroll(changed(invitation(coordinator), server="https://localhost:1"), tmp_path / "device")
    assert device.identity.read_bytes() == before
    assert Device.load(tmp_path / "device") == device


def test_an_expired_identity_is_replaced(coordinator, authority, invitation, tmp_path):
    device = Device.enroll(invitation(coordinator), tmp_path / "device")
    long_ago = datetime.now(UTC) - timedelta(days=400)
    past = Authority(authority.folder, now=lambda: long_ago)
    make_identity(past, device.identity)
    past.close()
    (device.folder / "renewing.pem").write_bytes(b"too late")
    assert Device.enroll(invitation(coordinator), tmp_path / "device") == device
    assert device.status().certificate_ends > datetime.now(UTC)
    assert not (device.folder / "renewing.pem").exists()
    with device.client(tmp_path / "data", key=FileKey(tmp_path / "key")) as client:
        assert client.sync()


def test_a_revoked_device_that_does_as_it_is_told_is_back_with_its_users_data(
    coordinator, authority, invitation, tmp_path
):
    device, key = Device.enroll(invitation(coordinator), tmp_path / "device"), FileKey(tmp_path / "key")
    with device.client(tmp_path / "user", key=key) as client:
        client.rate("item 1", 5)
        assert client.sync()
        authority.revoke(device.status().device_id)
        with pytest.raises(IdentityRefusedError, match="forget this device and enrol again"):
            # Until the coordinator has read the list.
            [(client.sync(), time.sleep(0.01)) for _ in range(1000)]
    device.forget()
    again = Device.enroll(invitation(coordinator), device.folder)
    with again.client(tmp_path / "user", key=key) as client:
        client.sync()
        assert client.ratings() == [("item 1", 5)]


def test_an_identity_is_replaced_from_the_second_on_in_which_it_ends(authority, tmp_path, monkeypatch):
    """As a membership has ended from that second on."""
    device, address = Device(tmp_path, "https://localhost:1"), "https://localhost:1"
    make_identity(authority, device.identity)
    (tmp_path / "server").write_text(address)
    invited = tmp_path / "invitation.json"
    invited.write_text(json.dumps(authority.invite(address, address, 600)))
    monkeypatch.setattr(calls, "enroll", lambda *_: lose(None))
    ends = device.status().certificate_ends.timestamp()
    monkeypatch.setattr("time.time", lambda: ends - 0.001)
    assert Device.enroll(invited, tmp_path) == device
    monkeypatch.setattr("time.time", lambda: ends)
    with pytest.raises(ServerUnavailableError):
        Device.enroll(invited, tmp_path)


BAD_INVITATIONS = [
    b"",
    b"{}",
    b"[]",
    b"null",
    b"\xff",
    b"[" * 100_000,
    b'{"server": "https://h:1", "enrollment": "https://h:1", "token": "t"}',
    b'{"server": "https://h:1", "enrollment": "https://h:1", "token": 5, "trust": "x"}',
    b'{"server": "https://h:1", "enrollment": "https://h:1", "token": "t", "trust": "\\ud800"}',
]


@pytest.mark.parametrize("content", BAD_INVITATIONS, ids=range(len(BAD_INVITATIONS)))
def test_a_damaged_invitation_is_refused_before_anything_is_written(tmp_path, content):
    (tmp_path / "invitation.json").write_bytes(content)
    with pytest.raises(EnrollmentError, match="invitation"):
        Device.enroll(tmp_path / "invitation.json", tmp_path / "device")
    assert not (tmp_path / "device").exists()


def test_an_invitation_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(EnrollmentError, match="invitation"):
        Device.enroll(tmp_path / "absent.json", tmp_path / "device")


@pytest.mark.parametrize("field", ["server", "enrollment"])
def test_an_address_that_is_none_is_refused_before_anything_is_written(coordinator, invitation, tmp_path, field):
    with pytest.raises(InvalidInputError, match="https://host:port"):
        Device.enroll(changed(invitation(coordinator), **{field: "http://localhost:1"}), tmp_path / "device")
    assert not (tmp_path / "device").exists()


def test_a_trust_that_is_none_is_refused(coordinator, invitation, tmp_path):
    with pytest.raises(InvalidInputError, match="trust"):
        Device.enroll(changed(invitation(coordinator), trust="not PEM"), tmp_path / "device")


@pytest.fixture
def interrupted(coordinator, invitation, tmp_path, answer):
    """The invitation and folder of an enrolment whose answer was lost."""
    invited = invitation(coordinator)
    answer(lose)
    with pytest.raises(ServerUnavailableError):
        Device.enroll(invited, tmp_path / "device")
    answer(lambda certificates: certificates)
    return invited, tmp_path / "device"


def test_after_a_lost_answer_another_invitation_enrols_as_well(interrupted, invitation, coordinator):
    """The authority has made a device of the keys that are left; no other device can have them."""
    _, folder = interrupted
    device = Device.enroll(invitation(coordinator), folder)
    with device.client(folder / "data", key=FileKey(folder / "key")) as client:
        assert client.sync()
    assert not (folder / "enrolling.pem").exists()


def test_a_token_that_is_refused_leaves_the_keys_that_are_left_as_they_are(interrupted, invitation, coordinator):
    """The first invitation may still be good, and its answer come."""
    first, folder = interrupted
    kept = (folder / "enrolling.pem").read_bytes()
    with pytest.raises(EnrollmentError, match="TOKEN"):
        Device.enroll(changed(invitation(coordinator), token="x" * 32), folder)
    assert (folder / "enrolling.pem").read_bytes() == kept
    Device.enroll(first, folder)


def test_keys_that_an_interruption_left_beside_a_whole_identity_are_removed(coordinator, invitation, tmp_path):
    device = Device.enroll(invitation(coordinator), tmp_path / "device")
    (device.folder / "enrolling.pem").write_bytes(device.identity.read_bytes())
    assert Device.enroll(invitation(coordinator), device.folder) == device
    assert not (device.folder / "enrolling.pem").exists()


def test_the_keys_of_an_old_renewal_are_gone_before_another_identity_is_there(
    authority, coordinator, invitation, tmp_path, monkeypatch
):
    """With them the authority would refuse every renewal of the new identity."""
    device = Device.enroll(invitation(coordinator), tmp_path / "device")
    past = Authority(authority.folder, now=lambda: datetime.now(UTC) - timedelta(days=400))
    make_identity(past, device.identity)
    past.close()
    old = device.identity.read_bytes()
    (device.folder / "renewing.pem").write_bytes(b"keys of the old identity")
    files, invited, at = Files(monkeypatch), invitation(coordinator), 0
    while device.identity.read_bytes() == old:
        at += 1
        files.arm(at, "crash")
        with pytest.raises(CrashError):
            Device.enroll(invited, device.folder)
        files.end_program()
    assert not (device.folder / "renewing.pem").exists()


def other_key(content):
    private_key, _ = new_key_and_request()
    return private_key + content[content.index(b"-----BEGIN CERTIFICATE REQUEST") :]


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:100],
        lambda content: content[:-100],
        lambda content: content[300:],
        lambda content: content.replace(b"-----BEGIN CERTIFICATE REQUEST", b"-----BEGIN SOMETHING"),
        lambda content: content[:400] + bytes([content[400] ^ 1]) + content[401:],
        other_key,
    ],
)
def test_a_damaged_enrolling_file_is_named_and_removing_it_helps(interrupted, invitation, coordinator, damage):
    invited, folder = interrupted
    (folder / "enrolling.pem").write_bytes(damage((folder / "enrolling.pem").read_bytes()))
    with pytest.raises(InvalidInputError, match=r"enrolling\.pem is damaged: remove it"):
        Device.enroll(invited, folder)
    (folder / "enrolling.pem").unlink()
    Device.enroll(invitation(coordinator), folder)


def test_the_private_key_is_never_sent(coordinator, invitation, tmp_path, monkeypatch):
    sent, sendall = [], ssl.SSLSocket.sendall
    monkeypatch.setattr(
        ssl.SSLSocket, "sendall", lambda self, data, *f: (sent.append(bytes(data)), sendall(self, data, *f))[1]
    )
    device = Device.enroll(invitation(coordinator), tmp_path / "device")
    key = load_pem_private_key(device.identity.read_bytes(), None)
    secret = key.private_numbers().private_value.to_bytes(32, "big")
    der = key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    wire = b"".join(sent)
    public = key.public_key().public_numbers().x.to_bytes(32, "big")
    assert public in wire  # so the search can find a key
    member_key = Identity(device.identity, Trust(device.trust)).member().key
    assert member_key.public in wire
    for raw in (secret, member_key.private):
        for form in (raw, raw.hex().encode(), b64encode(raw)):
            assert form not in wire
    for form in (der, b64encode(der), b"PRIVATE KEY", b"MEMBER KEY"):
        assert form not in wire


@pytest.mark.parametrize("fault", ["no certificate", "garbage", "for another key", "garbage after a good one"])
def test_certificates_that_are_no_use_are_not_kept_and_the_next_try_works(
    coordinator, authority, invitation, tmp_path, answer, fault
):
    faults = {
        "no certificate": lambda good: [b"no certificate"],
        "garbage": lambda good: [b"0" * 500],
        "for another key": lambda good: authority.issue(signing_request(), member_key())[1].certificates,
        "garbage after a good one": lambda good: [*good, b"0" * 500],
    }
    invited, folder = invitation(coordinator), tmp_path / "device"
    answer(lambda issued: issued._replace(certificates=faults[fault](issued.certificates)))
    with pytest.raises(EnrollmentError, match="no usable certificate or membership, or one for another key: enrol"):
        Device.enroll(invited, folder)
    assert not list(folder.glob("identity*"))
    answer(lambda issued: issued)
    assert Device.enroll(invited, folder).identity.exists()


@pytest.mark.parametrize("fault", ["another signature", "another key", "ended"])
def test_a_membership_that_is_no_use_is_not_kept_and_the_next_try_works(
    coordinator, authority, invitation, tmp_path, answer, fault
):
    past = Authority(authority.folder, now=lambda: datetime.now(UTC) - timedelta(days=400))
    faults = {
        "another signature": lambda good: good[:-1] + bytes([good[-1] ^ 1]),
        "another key": lambda good: authority.issue(signing_request(), member_key())[1].membership,
        "ended": lambda good: past._issued(past.issue(signing_request(), member_key())[1].certificates[0], good[:32])[
            1
        ],
    }
    invited, folder = invitation(coordinator), tmp_path / "device"
    answer(lambda issued: issued._replace(membership=faults[fault](issued.membership)))
    with pytest.raises(EnrollmentError, match="no usable certificate or membership"):
        Device.enroll(invited, folder)
    past.close()
    assert not list(folder.glob("identity*"))
    answer(lambda issued: issued)
    assert Device.enroll(invited, folder).identity.exists()


def test_an_enrolled_device_can_show_that_it_is_a_member(coordinator, invitation, tmp_path):
    device = Device.enroll(invitation(coordinator), tmp_path / "device")
    trust = Trust(device.trust)
    member = Identity(device.identity, trust).member()
    assert require_membership(member.membership, trust.membership_keys, time.time()) == member.key.public
    ends = int.from_bytes(member.membership[32:40], "little")
    assert ends == certificate_of(device.identity).not_valid_after_utc.timestamp()


@pytest.mark.parametrize("label", [b"LIGHTFR MEMBER KEY", b"LIGHTFR MEMBERSHIP"])
def test_an_identity_without_a_membership_asks_for_another_enrolment(coordinator, invitation, tmp_path, label):
    device = Device.enroll(invitation(coordinator), tmp_path / "device")
    device.identity.write_bytes(device.identity.read_bytes().replace(label + b"-----", b"OTHER-----"))
    with pytest.raises(EnrollmentError, match="has no membership: forget this device and enrol again"):
        Identity(device.identity, Trust(device.trust)).member()


def test_a_server_of_another_authority_is_not_told_the_token(coordinator, invitation, tmp_path, monkeypatch):
    stranger = Authority.init(tmp_path / "stranger", ["localhost"])
    trust = (stranger.folder / "trust.pem").read_text()
    stranger.close()
    sent = []
    monkeypatch.setattr(ssl.SSLSocket, "sendall", lambda self, data, *f: sent.append(data))
    with pytest.raises(ServerNotTrustedError):
        Device.enroll(changed(invitation(coordinator), trust=trust), tmp_path / "device")
    assert sent == []
