"""After forget() the medium holds no byte of any key, and so nothing that a record could be read with.

The names of the tests say how they looked: "ext4" at the image of a file system, free blocks and journal included,
where this machine can mount one; "files" at the last bytes of every file that the store ever opened.
"""

from pathlib import Path

import pytest

from lightfr import keys as keys_module
from lightfr.keys import FileKey, PassphraseKey
from lightfr.store import Store, discard
from tests.sdk.store.media import can_mount, ext4_image, key_copies, open_files, readable_records
from tests.sdk.store.sessions import rewrite_often

LEGACY = Path(__file__).parents[2] / "legacy" / "store-v1"
MEDIA = {"files": open_files, **({"ext4": ext4_image} if can_mount() else {})}


@pytest.fixture
def fast_medium():
    """Not here: what is flushed, and where to, is what these tests look at."""


@pytest.fixture(params=MEDIA)
def medium(request, monkeypatch):
    """A folder, and a function that returns what the medium holds."""
    with MEDIA[request.param](monkeypatch) as (folder, look):
        yield folder, look


def live(folder, monkeypatch, make_provider=FileKey):
    """Lead a life of 60 changes, with rewrites, a rotation and a reopening; return the store and its keys."""
    rewrite_often(monkeypatch, 2000)
    keys = set()
    for session in range(2):
        store = Store.open(folder / "store", make_provider(folder / "keys" / "key"))
        for level in range(30):
            store.rate([("canary-item", level), (level % 7, level)])
            keys.update(store._ring.keys.values())
            if level == 20 and session == 0:
                store.rotate_key()
        if session == 0:
            store.close()
    assert len(keys) == 2
    return store, keys


def test_a_store_has_one_copy_of_its_key_and_none_of_the_rotated_one(medium, monkeypatch):
    """The way of looking finds what is there."""
    folder, look = medium
    store, keys = live(folder, monkeypatch)
    store.close()
    data = look()
    assert key_copies(data, keys) == 1
    assert readable_records(data, keys) > 1


@pytest.mark.parametrize("discards", [False, True])
def test_forgetting_leaves_no_key_and_no_record(medium, monkeypatch, discards):
    folder, look = medium
    store, keys = live(folder, monkeypatch)
    if discards:
        store.close()
        discard(folder / "store", FileKey(folder / "keys" / "key"))
    else:
        store.forget()
    data = look()
    assert key_copies(data, keys) == 0
    assert readable_records(data, keys) == 0
    assert b"canary-item" not in data


def test_forgetting_leaves_no_key_of_an_earlier_format(medium):
    """It was overwritten when the store was opened, and the same key in its new place when it was forgotten."""
    folder, look = medium
    ring = (LEGACY / "ring.key").read_bytes()
    (folder / "store.lfr").write_bytes((LEGACY / "store.lfr").read_bytes())
    (folder / "ring.key").write_bytes(ring)
    (folder / "ring.key").chmod(0o600)
    store = Store.open(folder, FileKey(folder / "ring.key"))
    store.rate([("canary-item", 1)])
    keys = set(store._ring.keys.values())
    assert key_copies(ring, keys) == 1
    store.forget()
    data = look()
    assert key_copies(data, keys) == 0
    assert readable_records(data, keys) == 0


def test_forgetting_leaves_nothing_that_the_passphrase_opens(medium, monkeypatch):
    folder, look = medium
    sealed = set()

    def provider(path):
        return PassphraseKey(path, "correct horse")

    def saved(self, secret, anchor, save=FileKey.save):
        sealed.add(secret)
        save(self, secret, anchor)

    monkeypatch.setattr(keys_module, "_COST", (2, 8, 1))
    monkeypatch.setattr(FileKey, "save", saved)
    store, keys = live(folder, monkeypatch, provider)
    store.forget()
    data = look()
    assert len(sealed) == 3, "the first ring, that of the rotation, and the last one"
    assert not [secret for secret in sealed if secret[-32:] in data]
    assert key_copies(data, keys) == 0
