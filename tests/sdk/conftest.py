import pytest

from lightfr_harness.authority import Authority


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    made = Authority.init(tmp_path_factory.mktemp("authority") / "ca", ["localhost", "127.0.0.1"])
    yield made
    made.close()
