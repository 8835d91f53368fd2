"""Locks that stand for files which their holder may remove."""

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
