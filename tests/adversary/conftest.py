import pytest

from lightfr_harness.server.authority import Authority


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    """A real authority; each test makes devices of its own."""
    made = Authority.init(tmp_path_factory.mktemp("authority") / "ca", ["localhost", "127.0.0.1"])
    yield made
    made.close()


@pytest.fixture
def without_quorum(monkeypatch):
    """Devices that believe every signature: what they would be without the agreement."""
    monkeypatch.setattr("lightfr.secagg.session.require_quorum", lambda *_: None)
