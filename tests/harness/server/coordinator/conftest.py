import pytest

from lightfr_harness.server.authority import Authority
from tests.certificates import client_context, client_pem
from tests.harness.server.coordinator.live import Live


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    """One authority for all tests of the coordinator; each of them makes devices of its own."""
    made = Authority.init(tmp_path_factory.mktemp("authority") / "ca", ["localhost", "127.0.0.1"])
    yield made
    made.close()


@pytest.fixture
def live(tmp_path, authority):
    with Live(tmp_path / "folder", authority) as running:
        yield running


@pytest.fixture
def device(authority, tmp_path):
    """The TLS context of a new device."""
    return client_context(authority, client_pem(authority, tmp_path))
