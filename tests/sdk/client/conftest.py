"""A real coordinator in its own process, and devices that enrol with it."""

import json

import pytest

from lightfr import Client, FileKey, enroll
from lightfr_harness.coordinator.child import CoordinatorProcess

ITEMS = [f"item {number}" for number in range(300)]


@pytest.fixture(scope="session")
def start_coordinator(authority, tmp_path_factory):
    """Start coordinators that live until the tests end; keyword arguments are options of `serve`."""
    started = []

    def start(items=ITEMS, **options):
        folder = tmp_path_factory.mktemp("coordinator")
        (folder / "items.tsv").write_text("".join(f"{item}\n" for item in items))
        how = {"privacy": "clear", **options}
        coordinator = CoordinatorProcess(folder / "data", authority.folder, folder / "items.tsv", **how)
        started.append(coordinator.start())
        return coordinator

    yield start
    for coordinator in started:
        coordinator.__exit__(None, None, None)


@pytest.fixture(scope="session")
def coordinator(start_coordinator):
    """One for all tests that only sync, rate and recommend."""
    return start_coordinator(goal=1000)


@pytest.fixture
def enrolled(authority, tmp_path):
    """Enrol a new device with a coordinator."""
    count = 0

    def make(coordinator, name=None):
        nonlocal count
        count += 1
        folder = tmp_path / (name or f"device{count}")
        folder.mkdir()
        invited = authority.invite(coordinator.addresses["server"], coordinator.addresses["enrollment"], 600)
        (folder / "invitation.json").write_text(json.dumps(invited))
        return enroll(folder / "invitation.json", folder)

    return make


@pytest.fixture
def open_client(enrolled):
    """Open clients, closed at the end; `device` opens the same device again."""
    opened = []

    def make(coordinator, device=None, **options):
        device = device or enrolled(coordinator)
        folder = device.identity.parent
        how = {"server": device.server, "identity": device.identity, "trust": device.trust, **options}
        client = Client.open(folder / "data", key=FileKey(folder / "key"), **how)
        opened.append(client)
        client.device = device
        return client

    yield make
    for client in opened:
        client.close()
