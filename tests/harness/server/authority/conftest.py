import shutil

import pytest

from lightfr_harness.server.authority import Authority


@pytest.fixture(scope="session")
def fresh_folder(tmp_path_factory):
    """Made once, since each file waits for the disk."""
    folder = tmp_path_factory.mktemp("fresh") / "authority"
    Authority.init(folder, ["localhost", "127.0.0.1"]).close()
    return folder


@pytest.fixture
def authority(fresh_folder, tmp_path):
    made = Authority.open(shutil.copytree(fresh_folder, tmp_path / "authority"))
    yield made
    made.close()
