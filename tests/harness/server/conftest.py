import os

import pytest

from tests.postgres import WANTED, Postgres


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL of these tests; `make test-postgres` wants it, `make test` does without."""
    if WANTED not in os.environ:
        pytest.skip("PostgreSQL is tried by `make test-postgres`")
    made = Postgres(fsync="off").start()
    yield made
    made.close()
