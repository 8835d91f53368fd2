"""Files that earlier releases wrote are still read, and can be written on."""

import shutil
from pathlib import Path

import pytest

from lightfr.keys import FileKey, PassphraseKey
from lightfr.store import Store

LEGACY = Path(__file__).parents[2] / "legacy"


@pytest.fixture
def folder(tmp_path):
    """A copy, since opening may write; a checkout does not keep the mode of a key file."""
    for name in ("store.lfr", "ring.key", "passphrase.key"):
        shutil.copy(LEGACY / "store-v1" / name, tmp_path / name)
        (tmp_path / name).chmod(0o600)
    return tmp_path


def test_a_store_of_version_1_is_read_and_written_on(folder):
    keys = FileKey(folder / "ring.key")
    expected = [("ünïcode", 0), (-(2**63), 2520), (7, 1260), ("7", 630), ("again", 3)]
    with Store.open(folder, keys) as store:
        assert list(store.ratings.items()) == expected
        assert (store.get("user"), store.get("gone"), store.get("empty")) == (bytes(range(256)), None, b"")
        store.rate([("new", 1)])
    with Store.open(folder, keys) as store:
        assert list(store.ratings.items()) == [*expected, ("new", 1)]


def test_a_passphrase_file_of_version_1_is_read(folder):
    assert PassphraseKey(folder / "passphrase.key", "correct horse").load() == b"a secret of version 1"
