import pytest

from lightfr.keys import FileKey


@pytest.fixture
def keys(tmp_path):
    return FileKey(tmp_path / "key")
