"""Records of the log at the limits of their size."""

import os

import pytest

from lightfr import _files
from lightfr.errors import StoreCorruptError
from lightfr.store import _log
from lightfr.store._opening import open_or_create
from lightfr.store._ring import KeyRing

HEADER, KEY = _log.Header(bytes(16), bytes(8), 1), bytes(32)
AROUND_BYTES = 12 + 16  # nonce and tag


@pytest.mark.parametrize("plaintext", [b"", b"a change"])
def test_no_reader_takes_a_record_above_the_limit_and_every_one_up_to_it(tmp_path, monkeypatch, plaintext):
    file = _log.write_temporary(tmp_path / "log", HEADER, KEY, [plaintext]).file
    try:
        monkeypatch.setattr(_log, "MAX_RECORD_BYTES", AROUND_BYTES + len(plaintext))
        assert _log.Log(file, HEADER, KEY).read() == plaintext
        monkeypatch.setattr(_log, "MAX_RECORD_BYTES", AROUND_BYTES + len(plaintext) - 1)
        assert _log.Log(file, HEADER, KEY).read() is None
    finally:
        os.close(file)


def refuse(_):
    """Stands for a file operation."""
    raise OSError("no")


def test_a_log_that_could_not_be_written_leaves_no_file_behind_and_none_open(tmp_path, monkeypatch):
    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(_files, "fsync", refuse)
    with pytest.raises(OSError, match="no"):
        _log.write_temporary(tmp_path / "log", HEADER, KEY, [b"a change"])
    assert list(tmp_path.iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) == before


class NoKey:
    """Keeps no key, and opens no file."""

    def load(self):
        return None

    def save(self, secret, anchor):
        pass


def test_a_new_store_that_could_not_get_its_name_leaves_no_file_open(tmp_path, monkeypatch):
    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(_files, "install_temporary", refuse)
    with pytest.raises(OSError, match="no"):
        open_or_create(tmp_path / "log", NoKey())
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_log_that_was_rewritten_after_its_first_record_and_lost_its_snapshot_is_damaged(tmp_path, keys):
    """Whatever the anchor says: as an empty store it would have lost what it held."""
    ring = KeyRing.new()._replace(anchor=1)
    keys.save(ring.encode(), ring.encode_anchor())
    ((key_id, key),) = ring.keys.items()
    log = _log.write_temporary(tmp_path / "log", _log.Header(ring.store_id, key_id, 2), key, ())
    os.close(log.file)
    _files.install_temporary(tmp_path / "log")
    with pytest.raises(StoreCorruptError, match="in the midst of a snapshot"):
        open_or_create(tmp_path / "log", keys)


def test_the_limits_belong_to_the_format():
    """A smaller one would refuse what another release has written; a larger one would write what others refuse."""
    assert (_log.MAX_RECORD_BYTES, _log.MAX_CHANGE_BYTES) == (67_108_864, 67_107_840)
