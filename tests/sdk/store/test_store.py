import os
import subprocess
import sys
import threading

import pytest

from lightfr import _files, errors
from lightfr.keys import CallbackKey, FileKey
from lightfr.store import Store, _log, _store, discard
from tests.sdk.store.sessions import require_settled, rewrite_often


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "device" / "store"


class Refusing(FileKey):
    """Keeps no key while it refuses."""

    refuses = False

    def save(self, secret, anchor):
        if self.refuses:
            raise OSError("no")
        super().save(secret, anchor)


def test_a_store_shows_whether_it_is_open(folder, keys):
    with Store.open(folder, keys) as store:
        assert repr(store) == "<Store, open>"
    assert repr(store) == "<Store, closed>"


def test_a_key_ring_that_is_refused_once_takes_the_change_back_and_the_next_one_is_kept(folder, tmp_path):
    keys = Refusing(tmp_path / "key")
    with Store.open(folder, keys) as store:
        store.rate([("kept", 1)])

        def refuse_one_save(secret, anchor):
            del keys.save
            raise OSError("no")

        keys.save = refuse_one_save
        with pytest.raises(errors.StoreWriteError):
            store.rate([("refused", 2)])
        store.rate([("kept too", 3)])
    with Store.open(folder, keys) as store:
        assert store.ratings == {"kept": 1, "kept too": 3}


def test_a_rewrite_whose_key_ring_is_refused_leaves_no_file_open(folder, tmp_path, monkeypatch):
    keys = Refusing(tmp_path / "key")
    Store.open(folder, keys).close()
    before = len(os.listdir("/proc/self/fd"))
    with Store.open(folder, keys) as store:
        install = _files.install_temporary

        def install_and_refuse(path):
            install(path)
            keys.refuses = True

        monkeypatch.setattr(_files, "install_temporary", install_and_refuse)
        with pytest.raises(errors.StoreWriteError):
            store.rotate_key()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("name", ["", "x" * 256, 7])
def test_a_name_that_no_value_can_have_is_not_looked_for(folder, keys, name):
    with Store.open(folder, keys) as store, pytest.raises(errors.InvalidInputError):
        store.get(name)


def test_what_was_stored_is_there_after_reopening_oldest_first(folder, keys):
    with Store.open(folder, keys) as store:
        store.rate([("a", 0), (-(2**63), 2520), ("ünïcode", 7)])
        store.rate([("a", 1)])
        store.put("user", b"\x00\xff")
        store.update({"user": None, "pending": b"upload", "empty": b""})
    with Store.open(folder, keys) as store:
        assert list(store.ratings.items()) == [(-(2**63), 2520), ("ünïcode", 7), ("a", 1)]
        assert (store.get("user"), store.get("pending"), store.get("empty")) == (None, b"upload", b"")


def test_a_number_and_its_digits_are_two_items(folder, keys):
    with Store.open(folder, keys) as store:
        store.rate([(1, 10), ("1", 20)])
        assert store.unrate(1) is True
        assert store.unrate(1) is False
        assert store.ratings == {"1": 20}


def test_the_ratings_are_a_copy(folder, keys):
    with Store.open(folder, keys) as store:
        store.ratings["a"] = 1
        assert store.ratings == {}


@pytest.mark.parametrize("item_id", ["", "x" * 256, "é" * 128, "\ud800", True, 1.0, None, 2**63, -(2**63) - 1, b"a"])
def test_an_item_id_outside_its_domain_is_refused_and_nothing_is_written(folder, keys, item_id):
    with Store.open(folder, keys) as store:
        size = store._path.stat().st_size
        with pytest.raises(errors.InvalidInputError):
            store.rate([("good", 1), (item_id, 1)])
        with pytest.raises(errors.InvalidInputError):
            store.unrate(item_id)
        assert store.ratings == {}
        assert store._path.stat().st_size == size


@pytest.mark.parametrize("level", [-2, 2521, True, 1.0, "1", None])
def test_a_level_outside_its_domain_is_refused(folder, keys, level):
    with Store.open(folder, keys) as store:
        with pytest.raises(errors.RatingError):
            store.rate([("good", 1), ("bad", level)])
        assert store.ratings == {}


@pytest.mark.parametrize(("name", "value"), [("", b""), ("x" * 256, b""), (1, b""), ("x", "text"), ("x", bytearray())])
def test_a_named_value_outside_its_domain_is_refused(folder, keys, name, value):
    with Store.open(folder, keys) as store:
        with pytest.raises(errors.InvalidInputError):
            store.update({"good": b"", name: value})
        assert store.get("good") is None


def test_a_change_too_large_for_one_record_is_refused(folder, keys, monkeypatch):
    slack_bytes = _log.MAX_RECORD_BYTES - _log.MAX_CHANGE_BYTES
    monkeypatch.setattr(_store, "MAX_CHANGE_BYTES", 1000)
    monkeypatch.setattr(_log, "MAX_RECORD_BYTES", 1000 + slack_bytes)
    largest = bytes(729)  # 972 characters in base 64, and {"values":{"large_name":""}} around them: exactly 1000
    with Store.open(folder, keys) as store:
        with pytest.raises(errors.InvalidInputError, match="at most 1000 fit"):
            store.put("large_name", largest + bytes(1))
        store.put("large_name", largest)
        store.put("other", largest)
        store.rotate_key()
    with Store.open(folder, keys) as store:
        assert store.get("large_name") == store.get("other") == largest


def test_changes_of_nothing_write_nothing(folder, keys):
    with Store.open(folder, keys) as store:
        size = store._path.stat().st_size
        store.rate([])
        store.update({})
        store.delete("absent")
        assert store._path.stat().st_size == size


def test_a_second_store_is_refused_until_the_first_is_closed(folder, keys):
    with Store.open(folder, keys):
        with pytest.raises(errors.StoreLockedError):
            Store.open(folder, keys)
        with pytest.raises(errors.StoreLockedError):
            discard(folder, keys)
    Store.open(folder, keys).close()


def test_a_second_process_is_refused(folder, keys, tmp_path):
    script = (
        "import sys; from lightfr.store import Store; from lightfr.keys import FileKey; "
        "Store.open(sys.argv[1], FileKey(sys.argv[2]))"
    )
    with Store.open(folder, keys):
        command = [sys.executable, "-c", script, str(folder), str(tmp_path / "key")]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "StoreLockedError" in ended.stderr


def test_use_after_close_is_refused_and_closing_twice_is_fine(folder, keys):
    store = Store.open(folder, keys)
    store.close()
    store.close()
    changes = (lambda: store.rate([("a", 1)]), lambda: store.unrate("a"), lambda: store.put("x", b""), store.rotate_key)
    for use in (lambda: store.ratings, lambda: store.get("x"), *changes, store.require_open, store.forget):
        with pytest.raises(errors.StoreClosedError):
            use()


def test_a_deleted_value_is_gone(folder, keys):
    with Store.open(folder, keys) as store:
        store.put("x", b"value")
        store.delete("x")
        assert store.get("x") is None


def test_a_log_is_rewritten_as_soon_as_it_has_the_size_for_it(folder, keys, monkeypatch):
    with Store.open(folder, keys) as store:
        store.put("x", bytes(300))
        size = store._log.length_bytes
    for at, first in ((size + 1, 1), (size, 2)):
        monkeypatch.setattr(_store, "_MIN_REWRITE_BYTES", at)
        discard(folder, keys)
        with Store.open(folder, keys) as store:
            store.put("x", bytes(300))
            assert store._log.header.first_sequence == first


@pytest.mark.parametrize(("size_bytes", "first"), [(65_535, 1), (65_536, 2)])
def test_a_log_is_not_rewritten_below_64_kib(folder, keys, size_bytes, first):
    with Store.open(folder, keys) as store:
        store.put("x", b"")
        missing = size_bytes - store._log.length_bytes
    discard(folder, keys)
    with Store.open(folder, keys) as store:
        # Three bytes of a value take four of the log, a byte of its name takes one.
        store.put("x" + missing % 4 * "x", bytes(missing // 4 * 3))
        assert store._log.header.first_sequence == first


def test_a_log_is_rewritten_when_it_has_three_times_the_bytes_of_its_snapshot(folder, keys):
    with Store.open(folder, keys) as store:
        store.put("x", bytes(40_000))
        store.rotate_key()
        snapshot = store._log.header.first_sequence
        for _ in range(2):
            store.put("x", bytes(40_000))
            assert store._log.header.first_sequence == snapshot
        # Three records and their header were a little less than three snapshots, each with a header.
        store.put("x", bytes(40_000))
        assert store._log.header.first_sequence > snapshot


def test_files_and_folder_are_the_owners_alone_whatever_the_umask(folder, keys, tmp_path):
    old = os.umask(0)
    try:
        Store.open(folder, keys).close()
    finally:
        os.umask(old)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.name: path.stat().st_mode & 0o777 for path in [*folder.iterdir(), *tmp_path.glob("key*")]} == {
        "store.lfr": 0o600,
        "store.lock": 0o600,
        "key": 0o600,
        "key.anchor": 0o600,
    }


def test_a_log_that_grew_is_rewritten_and_its_sequence_goes_on(folder, keys, monkeypatch):
    rewrite_often(monkeypatch, 5000)
    with Store.open(folder, keys) as store:
        for level in range(300):
            store.rate([("a", level), (level % 7, level)])
            assert store._path.stat().st_size < 5200
        assert store._log.header.first_sequence > 100
        assert store._log.last_sequence > 300
        require_settled(store)
        expected = list(store.ratings.items())
    with Store.open(folder, keys) as store:
        assert list(store.ratings.items()) == expected
        assert len(expected) == 8


def test_a_snapshot_of_many_records_is_read_whole(folder, keys):
    with Store.open(folder, keys) as store:
        # Two records of 10,000, and one of the last.
        store.rate((item_id, item_id % 2521) for item_id in range(20_001))
        store.update({"a": b"1", "b": b"2"})
        store.rotate_key()
        assert store._log.last_sequence - store._log.header.first_sequence + 1 == 5
    with Store.open(folder, keys) as store:
        assert list(store.ratings.items()) == [(item_id, item_id % 2521) for item_id in range(20_001)]
        assert store.get("b") == b"2"


def test_an_emptied_store_is_rewritten_with_one_record(folder, keys):
    with Store.open(folder, keys) as store:
        store.rate([("a", 1)])
        store.unrate("a")
        store.rotate_key()
        assert store._log.last_sequence == 3
    with Store.open(folder, keys) as store:
        assert store.ratings == {}


def test_rotation_leaves_one_new_key_and_a_log_that_the_old_one_does_not_open(folder, keys):
    with Store.open(folder, keys) as store:
        store.rate([("a", 1)])
        old = keys.load()
        store.rotate_key()
        require_settled(store)
        assert old != keys.load()
    new = keys.load()
    keys.save(*old)
    with pytest.raises(errors.StoreKeyError, match="another store"):
        Store.open(folder, keys)
    keys.save(*new)
    with Store.open(folder, keys) as store:
        assert store.ratings == {"a": 1}


def test_a_store_without_its_key_says_so_and_can_be_discarded(folder, keys):
    with Store.open(folder, keys) as store:
        store.rate([("a", 1)])
    keys.destroy()
    with pytest.raises(errors.StoreKeyError, match="discard"):
        Store.open(folder, keys)
    discard(folder, keys)
    with Store.open(folder, keys) as store:
        assert store.ratings == {}


def test_forgetting_removes_key_and_log_and_closes(folder, keys):
    store = Store.open(folder, keys)
    store.rate([("a", 1)])
    store.forget()
    assert keys.load() is None
    assert list(folder.iterdir()) == []
    with pytest.raises(errors.StoreClosedError):
        store.ratings  # noqa: B018 - reading is what is tried


def test_discarding_where_nothing_is_destroys_the_key_alone(folder, keys):
    keys.save(b"secret", b"anchor")
    discard(folder, keys)
    assert keys.load() is None
    assert not folder.exists()


def test_threads_share_a_store(folder, keys, monkeypatch):
    rewrite_often(monkeypatch, 3000)
    with Store.open(folder, keys) as store:
        workers = [threading.Thread(target=rate_twenty, args=(store, start)) for start in (0, 100, 200)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert len(store.ratings) == 60
    with Store.open(folder, keys) as store:
        assert len(store.ratings) == 60


def rate_twenty(store, start):
    for item_id in range(start, start + 20):
        store.rate([(item_id, 1)])
        assert store.ratings[item_id] == 1


def test_a_keystore_that_fails_leaves_the_store_as_it_was(folder):
    kept, is_failing = [], []

    def save(secret):
        if is_failing:
            raise RuntimeError("the keystore is locked")
        kept[:] = [secret]

    keys = CallbackKey(lambda: kept[-1] if kept else None, save, kept.clear)
    with Store.open(folder, keys) as store:
        store.rate([("a", 1)])
        is_failing.append(True)
        with pytest.raises(errors.StoreKeyError, match="save failed with RuntimeError"):
            store.rate([("b", 1)])
    is_failing.clear()
    with Store.open(folder, keys) as store:
        assert store.ratings in ({"a": 1}, {"a": 1, "b": 1})
        store.rate([("c", 1)])


def test_opening_a_settled_store_saves_no_key(folder):
    kept = []
    keys = CallbackKey(lambda: kept[-1] if kept else None, kept.append, kept.clear)
    with Store.open(folder, keys) as store:
        store.rate([("a", 1)])
    saved = len(kept)
    Store.open(folder, keys).close()
    assert len(kept) == saved


def test_a_key_ring_that_lags_behind_opens_the_newer_store(folder, keys):
    """A keystore may lose its last saves, or be restored from a backup; only an older store is refused."""
    with Store.open(folder, keys) as store:
        lagging = keys.load()
        store.rate([("a", 1)])
        store._compact()
        store.rate([("b", 2)])
    keys.save(*lagging)
    with Store.open(folder, keys) as store:
        assert store.ratings == {"a": 1, "b": 2}
        require_settled(store)


def test_left_over_temporary_files_are_removed(folder, keys):
    Store.open(folder, keys).close()
    (folder / "store.lfr.new").write_bytes(b"half")
    Store.open(folder, keys).close()
    assert not (folder / "store.lfr.new").exists()
