import errno
import os
import struct

import pytest

from lightfr import errors, keys
from lightfr.keys import CallbackKey, FileKey, PassphraseKey
from tests.sdk.store.faults import CrashError, Files


@pytest.fixture
def path(tmp_path):
    return tmp_path / "key"


@pytest.fixture(autouse=True)
def cheap_scrypt(monkeypatch):
    """What is tried here does not depend on the cost; the legacy file has the real one."""
    monkeypatch.setattr(keys, "_COST", (2, 8, 1))


def callback_key(_):
    kept = []
    return CallbackKey(lambda: kept[-1] if kept else None, kept.append, kept.clear)


def passphrase_key(path):
    return PassphraseKey(path, "correct horse")


@pytest.mark.parametrize("make", [FileKey, callback_key, passphrase_key])
def test_a_provider_keeps_the_last_secret_until_it_is_destroyed(make, path):
    provider = make(path)
    assert provider.load() is None
    provider.save(b"first")
    provider.save(b"second")
    assert provider.load() == b"second"
    provider.destroy()
    assert provider.load() is None
    provider.destroy()
    provider.save(b"third")
    assert provider.load() == b"third"


@pytest.mark.parametrize("make", [FileKey, passphrase_key])
def test_a_key_file_is_the_owners_alone_whatever_the_umask(make, path):
    old = os.umask(0)
    try:
        make(path).save(b"secret")
    finally:
        os.umask(old)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["key"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o666])
def test_a_key_file_that_others_may_use_is_refused(path, mode):
    FileKey(path).save(b"secret")
    path.chmod(mode)
    with pytest.raises(errors.StoreKeyError, match=f"mode {mode:o}"):
        FileKey(path).load()


def test_a_key_file_too_large_to_be_one_is_refused(path):
    FileKey(path).save(bytes(64 * 1024 + 1))
    with pytest.raises(errors.StoreKeyError, match="65536"):
        FileKey(path).load()


@pytest.mark.parametrize("make", [FileKey, passphrase_key])
def test_saving_a_key_makes_its_folder_for_the_owner_alone(make, tmp_path):
    provider = make(tmp_path / "new" / "folder" / "key")
    assert provider.load() is None
    provider.destroy()
    provider.save(b"secret")
    assert provider.load() == b"secret"
    assert (tmp_path / "new" / "folder").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("make", [FileKey, passphrase_key])
def test_a_key_whose_folder_cannot_be_made_is_an_error_that_names_the_file(make, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(errors.LightFRError, match=f"the key file {tmp_path / 'file' / 'key'}"):
        make(tmp_path / "file" / "key").save(b"secret")


@pytest.mark.parametrize("make", [FileKey, passphrase_key])
def test_every_error_of_a_key_file_names_it(make, path):
    for content, mode in ((b"secret", 0o644), (bytes(64 * 1024 + 1), 0o600)):
        path.write_bytes(content)
        path.chmod(mode)
        with pytest.raises(errors.StoreKeyError, match=f"the key file {path} "):
            make(path).load()


@pytest.mark.parametrize("make", [FileKey, passphrase_key])
@pytest.mark.parametrize("fault", ["refuse", "short", "late", "lasting", "crash", "torn"])
def test_a_save_that_fails_leaves_the_old_secret_or_the_new_one(make, fault, path, monkeypatch):
    provider = make(path)
    files = Files(monkeypatch)
    provider.save(b"old")
    for at in range(1, 7):
        files.arm(at, fault, errno.ENOSPC)
        with pytest.raises((errors.StoreWriteError, CrashError)):
            provider.save(b"new")
        files.end_program()
        assert make(path).load() in (b"old", b"new")
        provider.save(b"old")
        assert make(path).load() == b"old"
    files.arm(7, fault, errno.ENOSPC)
    provider.save(b"new")


def test_destroying_removes_what_an_interrupted_save_left(path, monkeypatch):
    files = Files(monkeypatch)
    files.arm(4, "crash")
    with pytest.raises(CrashError):
        FileKey(path).save(b"secret")
    files.end_program()
    assert [entry.name for entry in path.parent.iterdir()] == ["key.new"]
    FileKey(path).destroy()
    assert list(path.parent.iterdir()) == []


def test_a_wrong_passphrase_is_refused(path):
    passphrase_key(path).save(b"secret")
    with pytest.raises(errors.StoreKeyError, match="passphrase is wrong"):
        PassphraseKey(path, "wrong horse").load()
    with pytest.raises(errors.InvalidInputError, match="empty"):
        PassphraseKey(path, "")


def test_a_passphrase_is_the_same_however_its_letters_are_composed(path):
    PassphraseKey(path, "caf\u00e9").save(b"secret")
    assert PassphraseKey(path, "cafe\u0301").load() == b"secret"


def test_a_changed_passphrase_opens_and_the_old_one_does_not(path):
    provider = passphrase_key(path)
    provider.save(b"secret")
    provider.change_passphrase("battery staple")
    assert provider.load() == b"secret"
    provider.save(b"newer")
    assert PassphraseKey(path, "battery staple").load() == b"newer"
    with pytest.raises(errors.StoreKeyError):
        passphrase_key(path).load()


def test_a_change_of_passphrase_that_fails_leaves_one_of_the_two(path, monkeypatch):
    files = Files(monkeypatch)
    for fault in ("refuse", "short", "late", "lasting", "crash", "torn"):
        for at in range(1, 9):
            passphrase_key(path).save(b"secret")
            provider = passphrase_key(path)
            files.arm(at, fault, errno.EIO)
            with pytest.raises((errors.StoreError, CrashError)):
                provider.change_passphrase("battery staple")
            files.end_program()
            assert b"secret" in [opened(path, word) for word in ("correct horse", "battery staple")]
            FileKey(path).destroy()


def opened(path, passphrase):
    try:
        return PassphraseKey(path, passphrase).load()
    except errors.StoreKeyError:
        return None


def test_every_changed_or_missing_byte_of_a_sealed_file_is_refused(path):
    passphrase_key(path).save(b"secret")
    data = path.read_bytes()
    changes = [data[:length] for length in range(len(data))]
    changes += [data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :] for at in range(len(data))]
    for changed in changes:
        path.write_bytes(changed)
        with pytest.raises(errors.StoreError):
            passphrase_key(path).load()


@pytest.mark.parametrize(
    "cost", [(2**30, 8, 1), (2**14, 2**20, 1), (2**14, 8, 2**20), (3, 8, 1), (1, 8, 1), (2, 0, 1), (2, 8, 0)]
)
def test_a_file_that_asks_for_an_absurd_cost_is_refused_before_it_is_paid(path, cost):
    passphrase_key(path).save(b"secret")
    data = bytearray(path.read_bytes())
    struct.pack_into("<III", data, 10, *cost)
    path.write_bytes(data)
    with pytest.raises(errors.StoreKeyError, match="cost"):
        passphrase_key(path)


def test_a_file_of_a_higher_cost_than_todays_is_read(path, monkeypatch):
    monkeypatch.setattr(keys, "_COST", (16, 8, 2))
    passphrase_key(path).save(b"secret")
    monkeypatch.undo()
    assert passphrase_key(path).load() == b"secret"


def test_the_cost_of_a_new_file_is_16_mib(path, monkeypatch):
    monkeypatch.undo()
    passphrase_key(path).save(b"secret")
    n, r, p = struct.unpack_from("<III", path.read_bytes(), 10)
    assert (128 * n * r, p) == (16 * 2**20, 1)


def test_a_key_file_replaced_behind_the_providers_back_is_noticed(path):
    provider = passphrase_key(path)
    passphrase_key(path).save(b"of another salt")
    with pytest.raises(errors.StoreKeyError, match="replaced"):
        provider.load()


def test_a_newer_sealed_file_asks_for_an_upgrade(path):
    passphrase_key(path).save(b"secret")
    data = bytearray(path.read_bytes())
    data[8:10] = struct.pack("<H", 2)
    path.write_bytes(data)
    with pytest.raises(errors.StoreVersionError, match="upgrade"):
        passphrase_key(path)


@pytest.mark.parametrize("name", ["load", "save", "destroy"])
def test_a_keystore_that_fails_is_named(name):
    def fail(*_):
        raise RuntimeError("locked")

    calls = {"load": lambda: None, "save": lambda secret: None, "destroy": lambda: None, name: fail}
    provider = CallbackKey(**calls)
    with pytest.raises(errors.StoreKeyError, match=f"{name} failed with RuntimeError"):
        provider.save(b"") if name == "save" else getattr(provider, name)()
