"""What runs with `make test-interop` only: it needs Node, nginx, curl, Prometheus and systemd-analyze."""

import re

import pytest

from tests.interop.devices import Cohort
from tests.interop.servers import NodeProcess, make_kit


def pytest_collection_modifyitems(items):
    """The longest first, so that no process is left alone with one at the end.

    A process gets two tests to begin with: each long one has a short one beside it, lest two long ones are together.
    """
    longest = [item for item in items if re.search("conformance.*(secagg|crowd)", item.nodeid)]
    beside = [item for item in items if item not in longest][: len(longest)]
    pairs = [one for pair in zip(longest, beside, strict=False) for one in pair]
    items[:] = pairs + [item for item in items if item not in pairs]


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
