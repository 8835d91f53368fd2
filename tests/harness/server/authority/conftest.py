import os
import shutil

import pytest

from lightfr_harness.server.authority import Authority
from tests.postgres import WANTED

HOSTS = ["localhost", "127.0.0.1"]


@pytest.fixture(scope="session")
def fresh_folder(tmp_path_factory):
    """Made once, since each file waits for the disk."""
    folder = tmp_path_factory.mktemp("fresh") / "authority"
    Authority.init(folder, HOSTS).close()
    return folder


@pytest.fixture
def authority(fresh_folder, tmp_path, request):
    """On SQLite, and on PostgreSQL with `make test-postgres`."""
    folder = tmp_path / "authority"
    if WANTED in os.environ:
        made = Authority.init(folder, HOSTS, database=request.getfixturevalue("postgres").database())
    else:
        made = Authority.open(shutil.copytree(fresh_folder, folder))
    yield made
    made.close()
