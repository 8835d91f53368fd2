"""A real coordinator in its own process, and invitations to it."""

import json

import pytest

from lightfr_harness.server.authority import Authority
from lightfr_harness.server.coordinator.child import CoordinatorProcess
from tests.sdk.client.publisher import COORDINATED_ITEMS


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    made = Authority.init(tmp_path_factory.mktemp("authority") / "ca", ["localhost", "127.0.0.1"])
    yield made
    made.close()


@pytest.fixture(scope="session")
def start_coordinator(authority, tmp_path_factory):
    """Start coordinators that live until the tests end; keyword arguments are options of `serve`."""
    started = []

    def start(items=COORDINATED_ITEMS, **options):
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
    # No round ends while the tests run, so that there is one version.
    return start_coordinator(goal=1000, deadline_seconds=36_000)


@pytest.fixture
def invitation(authority, tmp_path):
    """Write a new invitation to a coordinator; returns its file."""
    count = 0

    def make(coordinator):
        nonlocal count
        count += 1
        invited = authority.invite(coordinator.addresses["server"], coordinator.addresses["enrollment"], 600)
        path = tmp_path / f"invitation{count}.json"
        path.write_text(json.dumps(invited))
        return path

    return make
