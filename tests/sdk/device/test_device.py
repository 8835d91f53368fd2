"""The device object: loaded without an invitation, asked who it is, forgotten without a trace."""

import errno
import subprocess
import sys
from inspect import signature

import pytest
from cryptography import x509

from lightfr import Client, Device, DeviceStatus, FileKey, RatingScale, _files
from lightfr.errors import EnrollmentError, InvalidInputError, StoreWriteError
from tests.sdk.store.faults import CrashError, Files

SECRET = b"-----BEGIN PRIVATE KEY-----\nsecret\n"
FILES = ["identity.pem", "identity.new", "enrolling.pem", "renewing.pem", "trust.pem", "server", "enrollment"]


@pytest.fixture
def device(coordinator, invitation, tmp_path):
    return Device.enroll(invitation(coordinator), tmp_path / "device")


def test_a_device_says_who_it_is(device, coordinator):
    certificate = x509.load_pem_x509_certificate(device.identity.read_bytes())
    (name,) = certificate.subject
    assert device.status() == DeviceStatus(name.value, certificate.not_valid_after_utc, coordinator.addresses["server"])


def test_a_loaded_device_opens_clients_with_their_options(device, tmp_path):
    loaded = Device.load(str(device.folder))
    assert loaded == device
    key = FileKey(tmp_path / "key")
    with loaded.client(tmp_path / "user", key=key, scale=RatingScale(0, 10), minimum_cohort=300) as client:
        assert client.sync()
        client.rate("item 3", 9.5)
    with pytest.raises(InvalidInputError, match="made with ratings from 0 to 10"):
        loaded.client(tmp_path / "user", key=key, scale=RatingScale(0, 9))
    with pytest.raises(InvalidInputError):
        loaded.client(tmp_path / "user", key=key, minimum_cohort=1)


def test_a_device_stays_where_it_is_when_the_app_changes_its_working_directory(device, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    loaded = Device.load("device")
    monkeypatch.chdir("/")
    assert loaded.status() == device.status()
    loaded.forget()
    assert not device.folder.exists()


def test_a_device_opens_clients_as_client_open_does():
    own, opened = (signature(call).parameters for call in (Device.client, Client.open))
    known = {"server", "identity", "trust"}
    options = {name: p.default for name, p in opened.items() if p.kind is p.KEYWORD_ONLY and name not in known}
    assert {name: p.default for name, p in own.items() if p.kind is p.KEYWORD_ONLY} == options


def test_loading_a_device_loads_no_parser_of_certificates(device):
    code = "import sys, lightfr; print(lightfr.Device.load(sys.argv[1]).status().server); print(*sys.modules)"
    command = [sys.executable, "-c", code, str(device.folder)]
    server, loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert server == device.server
    assert "cryptography.x509" not in loaded.split()


def test_a_folder_without_a_device_cannot_be_loaded(tmp_path):
    with pytest.raises(EnrollmentError, match=f"no identity in {tmp_path}: enrol with an invitation first"):
        Device.load(tmp_path)


@pytest.mark.parametrize("content", [b"", bytes(500), b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END", SECRET])
def test_a_damaged_identity_is_named_when_loading_and_when_enrolling(
    device, invitation, coordinator, tmp_path, content
):
    device.identity.write_bytes(content)
    with pytest.raises(EnrollmentError, match=f"{device.identity} is not .* forget this device and enrol again"):
        Device.load(device.folder)
    with pytest.raises(EnrollmentError, match="forget this device and enrol again"):
        Device.enroll(invitation(coordinator), device.folder)
    device.forget()
    Device.enroll(invitation(coordinator), device.folder)


@pytest.mark.parametrize("content", [None, b"", b"http://localhost:1", b"\xff\xfe", b"https://"])
def test_a_server_file_without_an_address_is_named(device, content):
    (device.folder / "server").unlink()
    if content is not None:
        (device.folder / "server").write_bytes(content)
    with pytest.raises(EnrollmentError, match=f"{device.folder / 'server'} does not hold .* https://host:port"):
        Device.load(device.folder)


def test_forgetting_removes_whatever_an_interruption_may_have_left(device):
    for name in FILES:
        for leftover in (device.folder / name, device.folder / f"{name}.new"):
            if not leftover.exists():
                leftover.write_bytes(SECRET)
    device.forget()
    assert not device.folder.exists()
    device.forget()


def test_forgetting_leaves_the_files_of_others(device):
    (device.folder / "notes.txt").write_text("mine")
    device.forget()
    assert [file.name for file in device.folder.iterdir()] == ["notes.txt"]


def test_forgetting_overwrites_private_keys_before_it_removes_them(device):
    other_name = device.folder.parent / "hard link"
    other_name.hardlink_to(device.identity)
    device.forget()
    assert set(other_name.read_bytes()) == {0}


def test_a_forgotten_device_does_not_come_back_with_a_loss_of_power(tmp_path, monkeypatch):
    files = Files(monkeypatch)
    for name in ("notes.txt", *FILES):
        _files.save(tmp_path / name, SECRET)
    Device(tmp_path, "https://localhost:1").forget()
    files.lose_power(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("fault", ["refuse", "crash"])
def test_forgetting_that_was_interrupted_is_finished_by_repeating_it(tmp_path, monkeypatch, fault):
    files = Files(monkeypatch)

    def populated(folder):
        folder.mkdir()
        for name in FILES:
            (folder / name).write_bytes(SECRET)
        return Device(folder, "https://localhost:1")

    files.arm(0, fault)
    populated(tmp_path / "healthy").forget()
    count = files.count
    assert count > 20
    for at in range(1, count + 1):
        device = populated(tmp_path / f"{at}")
        files.arm(at, fault, errno.EIO)
        with pytest.raises((StoreWriteError, CrashError)):
            device.forget()
        files.heal()
        device.forget()
        assert not device.folder.exists()
