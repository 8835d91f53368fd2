"""Locks that stand for files which their holder may remove."""

import errno
import fcntl
import os

import pytest

from lightfr import _files
from lightfr.errors import StoreLockedError


def test_a_lock_is_held_by_one(tmp_path):
    held = _files.lock(tmp_path / "lock")
    with pytest.raises(StoreLockedError):
        _files.lock(tmp_path / "lock")
    os.close(held)
    os.close(_files.lock(tmp_path / "lock"))


@pytest.mark.parametrize("is_made_anew", [False, True])
def test_a_lock_file_that_was_removed_while_it_was_being_locked_is_not_taken_for_the_lock(
    tmp_path, monkeypatch, is_made_anew
):
    path, flock, calls = tmp_path / "lock", fcntl.flock, []

    def removed_first(file, how):
        calls.append(file)
        if len(calls) == 1:
            path.unlink()
            if is_made_anew:
                path.touch()
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", removed_first)
    held = _files.lock(path)
    assert len(calls) == 2
    assert os.path.samestat(os.fstat(held), path.stat())
    with pytest.raises(StoreLockedError):
        _files.lock(path)
    os.close(held)


def test_a_lock_that_cannot_be_taken_leaves_no_file_open(tmp_path, monkeypatch):
    def refuse(file, how):
        raise PermissionError

    monkeypatch.setattr(fcntl, "flock", refuse)
    before = os.listdir("/proc/self/fd")
    with pytest.raises(PermissionError):
        _files.lock(tmp_path / "lock")
    assert os.listdir("/proc/self/fd") == before


def test_a_folder_that_is_missing_cannot_be_removed_for_being_empty(tmp_path):
    with pytest.raises(FileNotFoundError):
        _files.remove_folder_if_empty(tmp_path / "absent")


def test_a_saved_secret_overwrites_the_old_one_and_what_a_crash_has_left(tmp_path):
    path, left = tmp_path / "secret", tmp_path / "secret.new"
    path.write_bytes(b"old secret")
    left.write_bytes(b"half a secret")
    with path.open("rb") as old, left.open("rb") as half:
        _files.save_secret(path, b"new secret")
        assert not any(old.read())
        assert not any(half.read())
    assert path.read_bytes() == b"new secret"
    assert list(tmp_path.iterdir()) == [path]


def test_a_save_that_fails_overwrites_what_it_has_written(tmp_path, monkeypatch):
    path, seen = tmp_path / "secret", []

    def refuse(source, target):
        seen.append(source.open("rb"))
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(_files, "replace", refuse)
    with pytest.raises(OSError, match="Input/output"):
        _files.save(path, b"new secret")
    with seen[0] as written:
        assert written.read() == bytes(len(b"new secret"))
    assert list(tmp_path.iterdir()) == []
