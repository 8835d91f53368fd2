"""What runs with `make test-interop` only: it needs Node, nginx and curl."""

import pytest

from tests.interop.devices import Cohort
from tests.interop.servers import NodeProcess, make_kit


def pytest_collection_modifyitems(items):
    """Whole runs of the suite first: they take longest, and no process should be left alone with one at the end."""
    items.sort(key=lambda item: item.path.name != "test_node_conformance.py")


@pytest.fixture
def node(tmp_path):
    """Start the coordinator in TypeScript from a new kit; killed at the end."""
    started = []

    def start(kind, **settings):
        kit = make_kit(tmp_path / "kit", kind, **settings)
        server = NodeProcess(kit, tmp_path / "state")
        started.append(server)
        return kit, server.start()

    yield start
    for server in started:
        server.__exit__()


@pytest.fixture
def cohort(tmp_path):
    """Make devices of a server, closed at the end."""
    made = []

    def make(count, kit, server):
        made.append(Cohort(count, kit, server.addresses, tmp_path / f"devices-{len(made)}"))
        return made[-1]

    yield make
    for one in made:
        one.close()
