"""A real coordinator in its own process, and invitations to it."""

import json
from contextlib import ExitStack, contextmanager

import pytest

from lightfr_harness.server.authority import Authority
from tests.sdk.client.publisher import COORDINATED_ITEMS
from tests.warm import CoordinatorProcess


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    made = Authority.init(tmp_path_factory.mktemp("authority") / "ca", ["localhost", "127.0.0.1"])
    yield made
    made.close()


@contextmanager
def coordinators_of(authority, tmp_path_factory):
    """Yield what starts coordinators, whose keyword arguments are options of `serve`; all are stopped at the end."""
    with ExitStack() as started:

        def start(items=COORDINATED_ITEMS, **options):
            folder = tmp_path_factory.mktemp("coordinator")
            (folder / "items.tsv").write_text("".join(f"{item}\n" for item in items))
            how = {"privacy": "clear", **options}
            return started.enter_context(
                CoordinatorProcess(folder / "data", authority.folder, folder / "items.tsv", **how)
            )

        yield start


@pytest.fixture
def start_coordinator(authority, tmp_path_factory):
    """Coordinators that live as long as the test: idle ones would take time from all that follow."""
    with coordinators_of(authority, tmp_path_factory) as start:
        yield start


@pytest.fixture(scope="module")
def start_shared_coordinator(authority, tmp_path_factory):
    """Coordinators that live as long as the tests of a file."""
    with coordinators_of(authority, tmp_path_factory) as start:
        yield start


@pytest.fixture(scope="session")
def coordinator(authority, tmp_path_factory):
    """One for all tests that only sync, rate and recommend."""
    with coordinators_of(authority, tmp_path_factory) as start:
        # No round ends while the tests run, so that there is one version.
        yield start(goal=1000, deadline_seconds=36_000)


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
