"""Files that earlier releases wrote are still read, and can be written on."""

import shutil
from pathlib import Path

import pytest

from lightfr.keys import FileKey, PassphraseKey
from lightfr.store import Store

LEGACY = Path(__file__).parents[2] / "legacy"


@pytest.fixture(params=["store-v1", "store-v2"])
def folder(tmp_path, request):
    """A copy, since opening may write; a checkout does not keep the mode of a key file."""
    for file in (LEGACY / request.param).glob("*.[lka]*"):
        shutil.copy(file, tmp_path / file.name)
        (tmp_path / file.name).chmod(0o600)
    return tmp_path


def test_a_store_of_an_earlier_version_is_read_and_written_on(folder):
    keys = FileKey(folder / "ring.key")
    expected = [("ünïcode", 0), (-(2**63), 2520), (7, 1260), ("7", 630), ("again", 3)]
    with Store.open(folder, keys) as store:
        assert list(store.ratings.items()) == expected
        assert (store.get("user"), store.get("gone"), store.get("empty")) == (bytes(range(256)), None, b"")
        store.rate([("new", 1)])
    with Store.open(folder, keys) as store:
        assert list(store.ratings.items()) == [*expected, ("new", 1)]


@pytest.mark.parametrize("folder", ["store-v1"], indirect=True)
def test_the_key_file_of_version_1_is_overwritten_when_its_store_is_opened(folder):
    with (folder / "ring.key").open("rb") as old:
        Store.open(folder, FileKey(folder / "ring.key")).close()
        assert not any(old.read())
    Store.open(folder, FileKey(folder / "ring.key")).close()


@pytest.mark.parametrize(
    ("folder", "kept"),
    [("store-v1", (b"a secret of version 1", b"")), ("store-v2", (b"a secret of version 2", b"an anchor"))],
    indirect=["folder"],
)
def test_a_passphrase_file_of_an_earlier_version_is_read(folder, kept):
    assert PassphraseKey(folder / "passphrase.key", "correct horse").load() == kept
