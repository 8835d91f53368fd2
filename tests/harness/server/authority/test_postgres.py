"""An authority that remembers in PostgreSQL; the other tests run on it too with `make test-postgres`."""

import shutil
import stat
from contextlib import closing

import pytest

from lightfr_harness.server.authority import Authority, AuthorityError, TokenError
from lightfr_harness.server.authority.errors import RegistryError
from tests.certificates import member_key, signing_request
from tests.harness.server.authority.conftest import HOSTS
from tests.harness.server.authority.test_authority import revoked_by
from tests.postgres import Postgres

psycopg = pytest.importorskip("psycopg", reason="PostgreSQL is tried by `make test-postgres`")
SERVER, ENROLLMENT = "https://localhost:8443", "https://localhost:8444"


@pytest.fixture
def address(postgres):
    return postgres.database()


@pytest.fixture
def made(address, tmp_path):
    with closing(Authority.init(tmp_path / "authority", HOSTS, database=address)) as authority:
        yield authority


def test_the_folder_keeps_the_keys_and_the_data_base_all_else(made, address):
    made.issue(signing_request(), member_key())
    assert stat.S_IMODE((made.folder / "database").stat().st_mode) == 0o600
    assert not (made.folder / "authority.sqlite").exists()
    keys = [made.folder / name for name in ("authority.key", "membership.key", "server.key")]
    secrets = [b"".join(path.read_bytes().splitlines()[1:-1])[-32:] for path in keys]
    with psycopg.connect(address, options="-c search_path=lightfr_authority") as connection:
        tables = [
            name
            for (name,) in connection.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = %s", ["lightfr_authority"]
            )
        ]
        assert set(tables) == {"devices", "tokens", "revocations", "member_keys", "renewals"}
        stored = repr([connection.execute(f"TABLE {name}").fetchall() for name in tables]).encode()
    assert not [secret for secret in secrets if secret in stored]


def test_a_copy_of_the_folder_elsewhere_is_the_same_authority(made, tmp_path):
    token = made.invite(SERVER, ENROLLMENT, 60)["token"]
    with closing(Authority.open(shutil.copytree(made.folder, tmp_path / "copy"))) as other:
        other.enroll(token, signing_request(), member_key())
        with pytest.raises(TokenError, match="spent"):
            made.enroll(token, signing_request(), member_key())
        (device,) = made.devices()
        made.revoke(device.device_id)
        other.refresh()
        assert revoked_by(other.coordinator) == {int(device.device_id, 16)}


def test_a_data_base_has_one_authority_and_a_refused_one_leaves_nothing(made, address, tmp_path):
    with pytest.raises(AuthorityError, match="holds an authority already"):
        Authority.init(tmp_path / "second", HOSTS, database=address)
    assert not (tmp_path / "second").exists()


def test_a_folder_that_cannot_be_made_leaves_the_data_base_as_it_was(address, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("keep")
    with pytest.raises(AuthorityError, match="does not exist yet"):
        Authority.init(tmp_path / "mine", HOSTS, database=address)
    Authority.init(tmp_path / "authority", HOSTS, database=address).close()


def test_an_empty_data_base_is_not_taken_for_an_authority_that_knows_nobody(made, postgres):
    (made.folder / "database").write_text(postgres.database())
    with pytest.raises(AuthorityError, match="no authority that this role may read"):
        Authority.open(made.folder)


def test_the_role_of_replicas_reads_nothing_of_the_authority(made, address):
    with psycopg.connect(address, autocommit=True) as owner:
        owner.execute("DROP ROLE IF EXISTS replica")
        owner.execute("CREATE ROLE replica LOGIN")
    as_replica = address.replace("user=postgres", "user=replica")
    assert as_replica != address
    with psycopg.connect(as_replica) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("SELECT * FROM lightfr_authority.devices")
    (made.folder / "database").write_text(as_replica)
    with pytest.raises(AuthorityError, match="no authority that this role may read"):
        Authority.open(made.folder)


def test_it_goes_on_when_the_data_base_was_away(tmp_path, postgres):
    own = Postgres(fsync="off").start()
    try:
        with closing(Authority.init(tmp_path / "authority", HOSTS, database=own.database())) as authority:
            own.kill()
            with pytest.raises(RegistryError, match="Try again"):
                authority.issue(signing_request(), member_key())
            own.start()
            authority.issue(signing_request(), member_key())
            assert len(authority.devices()) == 1
    finally:
        own.close()
