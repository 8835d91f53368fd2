import pytest

from lightfr_harness.authority import Authority


@pytest.fixture
def authority(tmp_path):
    made = Authority.init(tmp_path / "authority", ["localhost", "127.0.0.1"])
    yield made
    made.close()
