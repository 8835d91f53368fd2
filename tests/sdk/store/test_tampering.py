"""Somebody who can write the store's file, but has not its keys, is noticed."""

import os
import struct

import pytest

from lightfr import errors
from lightfr.keys import FileKey
from lightfr.store import Store

HEADER_BYTES = 42


@pytest.fixture
def path(tmp_path, keys):
    """A store of four records, closed."""
    with Store.open(tmp_path / "store", keys) as store:
        for level in range(4):
            store.rate([("item", level)])
    return tmp_path / "store" / "store.lfr"


def records(data):
    found, at = [], HEADER_BYTES
    while at < len(data):
        end = at + 4 + struct.unpack_from("<I", data, at)[0]
        found.append(data[at:end])
        at = end
    return found


def require_refused(path, keys, data, kinds=errors.StoreError):
    """The changed file is refused and not touched."""
    path.write_bytes(data)
    with pytest.raises(kinds) as caught:
        Store.open(path.parent, keys)
    assert path.read_bytes() == data
    return caught.value


def test_an_older_copy_is_refused_and_the_newer_one_still_opens(path, keys):
    old = path.read_bytes()
    with Store.open(path.parent, keys) as store:
        store.rate([("item", 9)])
    new = path.read_bytes()
    error = require_refused(path, keys, old, errors.StoreRolledBackError)
    assert (error.last_sequence, error.anchor) == (4, 5)
    path.write_bytes(new)
    with Store.open(path.parent, keys) as store:
        assert store.ratings == {"item": 9}


@pytest.mark.parametrize("rotates", [False, True])
def test_a_copy_from_before_a_rewrite_is_refused(path, keys, rotates, monkeypatch):
    monkeypatch.setattr("lightfr.store._store._MIN_REWRITE_BYTES", 1)
    old = path.read_bytes()
    with Store.open(path.parent, keys) as store:
        if rotates:
            store.rotate_key()
        else:
            store.rate([("item", 9)])
        assert store._log.header.first_sequence > 1
    require_refused(path, keys, old, errors.StoreKeyError if rotates else errors.StoreRolledBackError)


def test_a_removed_store_is_refused(path, keys):
    path.unlink()
    with pytest.raises(errors.StoreRolledBackError) as caught:
        Store.open(path.parent, keys)
    assert (caught.value.last_sequence, caught.value.anchor) == (0, 4)


def test_a_removed_store_of_one_record_is_refused(tmp_path, keys):
    with Store.open(tmp_path / "store", keys) as store:
        store.rate([("item", 1)])
    (tmp_path / "store" / "store.lfr").unlink()
    with pytest.raises(errors.StoreRolledBackError):
        Store.open(tmp_path / "store", keys)


def test_a_refused_store_leaves_no_file_open(path, keys):
    before = len(os.listdir("/proc/self/fd"))
    require_refused(path, keys, path.read_bytes()[:-1])
    assert len(os.listdir("/proc/self/fd")) == before


def test_every_cut_is_refused(path, keys):
    data = path.read_bytes()
    for length in range(len(data)):
        require_refused(path, keys, data[:length], (errors.StoreRolledBackError, errors.StoreCorruptError))


def test_every_flipped_bit_is_refused(path, keys):
    """In magic, version, ids, first sequence, and in length, nonce, body and tag of every record."""
    data = path.read_bytes()
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 1 << (at % 8)
        require_refused(path, keys, bytes(changed))


@pytest.mark.parametrize("at", range(34, HEADER_BYTES))
@pytest.mark.parametrize("value", [0, 1, 2, 4, 5, 6, 255])
def test_every_other_first_sequence_is_refused(path, keys, at, value):
    changed = bytearray(path.read_bytes())
    if changed[at] != value:
        changed[at] = value
        require_refused(path, keys, bytes(changed), errors.StoreCorruptError)


@pytest.mark.parametrize(
    "order", [(1, 0, 2, 3), (0, 1, 3, 2), (0, 0, 1, 2), (0, 1, 2, 2), (0, 1, 3), (1, 2, 3), (0, 1, 2, 2, 3)]
)
def test_swapped_repeated_and_missing_records_are_refused(path, keys, order):
    data = path.read_bytes()
    parts = records(data)
    require_refused(path, keys, data[:HEADER_BYTES] + b"".join(parts[i] for i in order), errors.StoreCorruptError)


@pytest.mark.parametrize("dropped", [1, 2, 3])
def test_a_log_made_to_start_later_is_refused(path, keys, dropped):
    """The records keep their sequences, but the header is not the one they were sealed with."""
    data = path.read_bytes()
    header = data[:34] + struct.pack("<Q", 1 + dropped)
    require_refused(path, keys, header + b"".join(records(data)[dropped:]), errors.StoreCorruptError)


def test_what_stands_behind_the_last_acknowledged_record_is_cut_off(path, keys):
    data = path.read_bytes()
    for tail in (b"\x00", records(data)[-1], records(data)[0], b"\xff" * 100):
        path.write_bytes(data + tail)
        with Store.open(path.parent, keys) as store:
            assert store.ratings == {"item": 3}
        assert path.read_bytes() == data


def test_a_snapshot_that_was_renamed_but_not_anchored_must_be_whole(path, keys, monkeypatch):
    monkeypatch.setattr("lightfr.store._state._RATINGS_PER_RECORD", 1)
    with Store.open(path.parent, keys) as store:
        store.rate([("a", 1), ("b", 2)])
        before = keys.load()
        store._rewrite(store._ring, store._log.header.key_id)
    keys.save(*before)
    data = path.read_bytes()
    for length in range(HEADER_BYTES, len(data)):
        require_refused(path, keys, data[:length], errors.StoreCorruptError)
    path.write_bytes(data)
    with Store.open(path.parent, keys) as store:
        assert store.ratings == {"item": 3, "a": 1, "b": 2}


def test_a_newer_format_asks_for_an_upgrade(path, keys):
    data = bytearray(path.read_bytes())
    data[8:10] = struct.pack("<H", 2)
    refusal = require_refused(path, keys, bytes(data), errors.StoreVersionError)
    assert str(refusal).startswith("the store has format version 2, this release reads up to 1: upgrade lightfr")


def test_a_newer_key_ring_asks_for_an_upgrade(path, keys):
    secret, anchor = keys.load()
    keys.save(secret.replace(b'"version": 2', b'"version": 3'), anchor)
    refusal = require_refused(path, keys, path.read_bytes(), errors.StoreVersionError)
    assert str(refusal).startswith("the key ring has format version 3, this release reads up to 2: upgrade lightfr")


@pytest.mark.parametrize(
    "secret", [b"", b"{", b"[]", b"\xff", b'{"version": 2}', b'{"version": 1, "keys": {}, "anchor": 0}']
)
def test_a_damaged_key_ring_is_refused(path, keys, secret):
    keys.save(secret, keys.load().anchor)
    require_refused(path, keys, path.read_bytes(), errors.StoreKeyError)


@pytest.mark.parametrize("change", ["none", "empty", "lower", "higher", "mark", "text", "huge", "of another store"])
def test_an_anchor_that_is_missing_or_made_up_is_refused(path, keys, tmp_path, change):
    Store.open(tmp_path / "elsewhere", FileKey(tmp_path / "other")).close()
    secret, anchor = keys.load()
    number, mark = anchor.split()
    made_up = {
        "none": None,
        "empty": b"",
        "lower": b"3 " + mark,
        "higher": b"5 " + mark,
        "mark": number + b" " + mark[:-1] + (b"1" if mark.endswith(b"0") else b"0"),
        "text": "vïer 4".encode(),
        "huge": b"9" * 5000 + b" " + mark,
        "of another store": FileKey(tmp_path / "other").load().anchor,
    }[change]
    if made_up is None:
        (tmp_path / "key.anchor").unlink()
    else:
        keys.save(secret, made_up)
    require_refused(path, keys, path.read_bytes(), errors.StoreKeyError)
    keys.save(secret, anchor)
    Store.open(path.parent, keys).close()


def test_the_keys_of_another_store_are_refused(path, keys, tmp_path):
    other = FileKey(tmp_path / "other")
    Store.open(tmp_path / "elsewhere", other).close()
    require_refused(path, other, path.read_bytes(), errors.StoreKeyError)


def test_nothing_of_the_content_stands_in_the_file(path, keys):
    with Store.open(path.parent, keys) as store:
        store.put("canary-name", b"canary-value")
    for word in (b"item", b"rate", b"canary"):
        assert word not in path.read_bytes()


@pytest.mark.parametrize("nonsense", [b"\xff", b"[]", b'{"rate": [1]}', b'{"values": {"name": "?"}}'])
def test_a_whole_record_that_is_no_change_is_refused_with_its_number(path, keys, nonsense):
    """Only somebody with the keys can write one."""
    with Store.open(path.parent, keys) as store:
        record = store._log.seal(nonsense)
    found = require_refused(path, keys, path.read_bytes() + record, errors.StoreCorruptError)
    assert "whole but makes no sense" in str(found)
