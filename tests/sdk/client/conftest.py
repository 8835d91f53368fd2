"""Devices of a real coordinator, and of a scripted server."""

import pytest

from lightfr import Client, Device, FileKey
from lightfr._wire import channel as channels
from tests.certificates import client_pem, credentials_of
from tests.sdk.client.publisher import Publisher, random_codes
from tests.sdk.wire.servers import ScriptedServer


@pytest.fixture
def enrolled(invitation, tmp_path):
    """Enrol a new device with a coordinator."""
    count = 0

    def make(coordinator):
        nonlocal count
        count += 1
        return Device.enroll(invitation(coordinator), tmp_path / f"device{count}")

    return make


@pytest.fixture
def open_client(enrolled):
    """Open clients, closed at the end; `device` opens the same device again."""
    opened = []

    def make(coordinator, device=None, **options):
        device = device or enrolled(coordinator)
        folder = device.identity.parent
        how = {"server": device.server, "identity": device.identity, "trust": device.trust, "allow_clear_uploads": True}
        client = Client.open(folder / "data", key=FileKey(folder / "key"), **{**how, **options})
        opened.append(client)
        client.device = device
        return client

    yield make
    for client in opened:
        client.close()


@pytest.fixture
def synced(coordinator, open_client):
    """A client with a model and a few ratings."""
    client = open_client(coordinator)
    client.sync()
    client.rate_many([("item 3", 5), ("item 1", 2.5), ("item 2", 1)])
    return client


@pytest.fixture
def impatient(monkeypatch):
    """Pauses between tries are too short to be noticed."""
    monkeypatch.setattr(channels, "_FIRST_PAUSE", 0.001)


@pytest.fixture
def publisher(authority, tmp_path, impatient):
    """A scripted server; `publisher.server` remembers what was asked."""
    made = Publisher(authority, tmp_path)
    with ScriptedServer(credentials_of(authority).context(), made) as made.server:
        yield made


@pytest.fixture
def open_device(authority, publisher, tmp_path):
    """Open the one device of the scripted server, again and again; closed at the end."""
    identity, opened = client_pem(authority, tmp_path), []

    def make(server=None, **options):
        how = {"server": server or publisher.server.url, "identity": identity, "trust": authority.folder / "trust.pem"}
        options = {"key": FileKey(tmp_path / "key"), "allow_clear_uploads": True, **options}
        opened.append(Client.open(tmp_path / "device", **{**how, **options}))
        return opened[-1]

    yield make
    for client in opened:
        client.close()


@pytest.fixture
def codes():
    """Those of version 1."""
    return random_codes(1)


@pytest.fixture
def device(publisher, open_device, codes):
    """A device that holds version 1."""
    publisher.publish(1, codes)
    client = open_device()
    client.sync()
    client.rate("item 1", 5)
    publisher.server.requests.clear()
    return client
