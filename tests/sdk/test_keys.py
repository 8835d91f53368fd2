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
    provider.save(b"first", b"anchor")
    provider.save(b"second", b"anchor")
    assert provider.load() == (b"second", b"anchor")
    provider.save(b"second", b"moved")
    assert provider.load() == (b"second", b"moved")
    provider.destroy()
    assert provider.load() is None
    provider.destroy()
    provider.save(b"third", b"anchor")
    assert provider.load().secret == b"third"


@pytest.mark.parametrize("make", [FileKey, passphrase_key])
def test_a_key_file_is_the_owners_alone_whatever_the_umask(make, path):
    old = os.umask(0)
    try:
        make(path).save(b"secret", b"anchor")
    finally:
        os.umask(old)
    modes = {entry.name: entry.stat().st_mode & 0o777 for entry in path.parent.iterdir()}
    assert modes == {"key": 0o600, "key.anchor": 0o600}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o666])
def test_a_key_file_that_others_may_use_is_refused(path, mode):
    FileKey(path).save(b"secret", b"anchor")
    path.chmod(mode)
    with pytest.raises(errors.StoreKeyError, match=f"mode {mode:o}"):
        FileKey(path).load()


def test_a_key_file_too_large_to_be_one_is_refused(path):
    path.write_bytes(bytes(64 * 1024 + 1))
    path.chmod(0o600)
    with pytest.raises(errors.StoreKeyError, match="65536"):
        FileKey(path).load()


def test_a_secret_too_large_for_its_slot_is_refused(path):
    with pytest.raises(errors.InvalidInputError, match="at most 4044 fit"):
        FileKey(path).save(bytes(4045), b"anchor")
    FileKey(path).save(bytes(4044), b"anchor")
    assert FileKey(path).load().secret == bytes(4044)


@pytest.mark.parametrize("make", [FileKey, passphrase_key])
def test_saving_a_key_makes_its_folder_for_the_owner_alone(make, tmp_path):
    provider = make(tmp_path / "new" / "folder" / "key")
    assert provider.load() is None
    provider.destroy()
    provider.save(b"secret", b"anchor")
    assert provider.load().secret == b"secret"
    assert (tmp_path / "new" / "folder").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("make", [FileKey, passphrase_key])
def test_a_key_whose_folder_cannot_be_made_is_an_error_that_names_the_file(make, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(errors.LightFRError, match=f"the key file {tmp_path / 'file' / 'key'}"):
        make(tmp_path / "file" / "key").save(b"secret", b"anchor")


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
    provider.save(b"old", b"anchor")
    files.arm(0, fault)
    provider.save(b"new", b"moved")
    operations = files.count
    assert operations > 10
    provider.save(b"old", b"anchor")
    for at in range(1, operations + 1):
        files.arm(at, fault, errno.ENOSPC)
        with pytest.raises((errors.StoreError, CrashError)):
            provider.save(b"new", b"moved")
        files.end_program()
        # The anchor goes first: a new secret beside an old anchor is never seen.
        assert make(path).load() in ((b"old", b"anchor"), (b"old", b"moved"), (b"new", b"moved"))
        provider.save(b"old", b"anchor")
        assert make(path).load() == (b"old", b"anchor")
    files.arm(operations + 1, fault, errno.ENOSPC)
    provider.save(b"new", b"moved")


@pytest.mark.parametrize("make", [FileKey, passphrase_key])
def test_the_secret_is_written_once_while_the_anchor_moves(make, path):
    provider = make(path)
    provider.save(b"secret", b"1")
    content, status = path.read_bytes(), path.stat()
    for anchor in (b"2", b"3"):
        provider.save(b"secret", anchor)
        assert make(path).load() == (b"secret", anchor)
    assert path.read_bytes() == content
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (status.st_ino, status.st_mtime_ns)


def test_a_new_secret_takes_the_place_of_the_old_one_in_the_same_file(path):
    FileKey(path).save(b"the first secret", b"")
    inode = path.stat().st_ino
    for secret in (b"the second secret", b"the third secret"):
        FileKey(path).save(secret, b"")
        assert path.stat().st_ino == inode
        assert path.read_bytes().count(b" secret") == 1
        assert secret in path.read_bytes()


def test_loading_finishes_a_save_that_was_interrupted_before_the_old_secret_was_overwritten(path, monkeypatch):
    FileKey(path).save(b"old secret", b"")
    files = Files(monkeypatch)
    files.arm(0, "crash")
    FileKey(path).save(b"new secret", b"")
    last_write = len(files.log) - files.log[::-1].index("write")
    FileKey(path).save(b"old secret", b"")
    files.arm(last_write, "crash")
    with pytest.raises(CrashError):
        FileKey(path).save(b"new secret", b"")
    files.end_program()
    assert b"old secret" in path.read_bytes()
    assert FileKey(path).load().secret == b"new secret"
    assert b"old secret" not in path.read_bytes()


def test_a_key_file_of_the_first_format_is_read_and_then_overwritten(path):
    path.write_bytes(b"a secret and nothing else")
    path.chmod(0o600)
    with path.open("rb") as old:
        assert FileKey(path).load() == (b"a secret and nothing else", b"")
        FileKey(path).save(b"new", b"anchor")
        assert not any(old.read())
    assert FileKey(path).load() == (b"new", b"anchor")


@pytest.mark.parametrize("at", [0, 31, 32, 40, 52, 4095])
def test_a_damaged_key_file_is_refused_by_name(path, at):
    FileKey(path).save(b"secret", b"anchor")
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    with pytest.raises(errors.StoreKeyError, match=f"{path} is damaged"):
        FileKey(path).load()


def test_a_key_file_that_was_overwritten_but_not_removed_holds_nothing(path, monkeypatch):
    FileKey(path).save(b"secret", b"anchor")
    files = Files(monkeypatch)
    files.arm(4, "crash")  # opened, overwritten, flushed
    with pytest.raises(CrashError):
        FileKey(path).destroy()
    files.end_program()
    assert not any(path.read_bytes())
    assert FileKey(path).load() is None
    FileKey(path).save(b"another", b"anchor")
    assert FileKey(path).load().secret == b"another"


def test_destroying_removes_what_an_interrupted_save_left(path, monkeypatch):
    files = Files(monkeypatch)
    files.arm(0, "crash")
    FileKey(path).save(b"secret", b"anchor")
    last_rename = len(files.log) - files.log[::-1].index("replace")
    FileKey(path).destroy()
    files.arm(last_rename, "crash")
    with pytest.raises(CrashError):
        FileKey(path).save(b"secret", b"anchor")
    files.end_program()
    assert {entry.name for entry in path.parent.iterdir()} == {"key.new", "key.anchor"}
    with (path.parent / "key.new").open("rb") as left:
        FileKey(path).destroy()
        assert not any(left.read())
    assert list(path.parent.iterdir()) == []


def test_a_wrong_passphrase_is_refused(path):
    passphrase_key(path).save(b"secret", b"anchor")
    with pytest.raises(errors.StoreKeyError, match="passphrase is wrong"):
        PassphraseKey(path, "wrong horse").load()
    with pytest.raises(errors.InvalidInputError, match="empty"):
        PassphraseKey(path, "")


def test_a_passphrase_is_the_same_however_its_letters_are_composed(path):
    PassphraseKey(path, "caf\u00e9").save(b"secret", b"anchor")
    assert PassphraseKey(path, "cafe\u0301").load().secret == b"secret"


def test_a_changed_passphrase_opens_and_the_old_one_does_not(path):
    provider = passphrase_key(path)
    provider.save(b"secret", b"anchor")
    provider.change_passphrase("battery staple")
    assert provider.load().secret == b"secret"
    provider.save(b"newer", b"anchor")
    assert PassphraseKey(path, "battery staple").load().secret == b"newer"
    with pytest.raises(errors.StoreKeyError):
        passphrase_key(path).load()


def test_a_change_of_passphrase_that_fails_leaves_one_of_the_two(path, monkeypatch):
    files = Files(monkeypatch)
    for fault in ("refuse", "short", "late", "lasting", "crash", "torn"):
        for at in range(1, 13):
            passphrase_key(path).save(b"secret", b"anchor")
            provider = passphrase_key(path)
            files.arm(at, fault, errno.EIO)
            with pytest.raises((errors.StoreError, CrashError)):
                provider.change_passphrase("battery staple")
            files.end_program()
            assert b"secret" in [opened(path, word) for word in ("correct horse", "battery staple")]
            FileKey(path).destroy()


def opened(path, passphrase):
    try:
        return PassphraseKey(path, passphrase).load().secret
    except errors.StoreKeyError:
        return None


def test_every_changed_or_missing_byte_of_a_sealed_file_is_refused(path):
    passphrase_key(path).save(b"secret", b"anchor")
    data = FileKey(path).load().secret
    changes = [data[:length] for length in range(len(data))]
    changes += [data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :] for at in range(len(data))]
    for changed in changes:
        FileKey(path).save(changed, b"anchor")
        with pytest.raises(errors.StoreError):
            passphrase_key(path).load()


@pytest.mark.parametrize(
    "cost", [(2**30, 8, 1), (2**14, 2**20, 1), (2**14, 8, 2**20), (3, 8, 1), (1, 8, 1), (2, 0, 1), (2, 8, 0)]
)
def test_a_file_that_asks_for_an_absurd_cost_is_refused_before_it_is_paid(path, cost):
    passphrase_key(path).save(b"secret", b"anchor")
    data = bytearray(FileKey(path).load().secret)
    struct.pack_into("<III", data, 10, *cost)
    FileKey(path).save(bytes(data), b"anchor")
    with pytest.raises(errors.StoreKeyError, match="cost"):
        passphrase_key(path)


def test_a_file_of_a_higher_cost_than_todays_is_read(path, monkeypatch):
    monkeypatch.setattr(keys, "_COST", (16, 8, 2))
    passphrase_key(path).save(b"secret", b"anchor")
    monkeypatch.undo()
    assert passphrase_key(path).load().secret == b"secret"


def test_the_cost_of_a_new_file_is_16_mib(path, monkeypatch):
    monkeypatch.undo()
    passphrase_key(path).save(b"secret", b"anchor")
    n, r, p = struct.unpack_from("<III", FileKey(path).load().secret, 10)
    assert (128 * n * r, p) == (16 * 2**20, 1)


def test_a_key_file_replaced_behind_the_providers_back_is_noticed(path):
    provider = passphrase_key(path)
    passphrase_key(path).save(b"of another salt", b"anchor")
    with pytest.raises(errors.StoreKeyError, match="replaced"):
        provider.load()


def test_a_newer_sealed_file_asks_for_an_upgrade(path):
    passphrase_key(path).save(b"secret", b"anchor")
    data = bytearray(FileKey(path).load().secret)
    data[8:10] = struct.pack("<H", 2)
    FileKey(path).save(bytes(data), b"anchor")
    with pytest.raises(errors.StoreVersionError, match="upgrade"):
        passphrase_key(path)


@pytest.mark.parametrize("name", ["load", "save", "destroy"])
def test_a_keystore_that_fails_is_named(name):
    def fail(*_):
        raise RuntimeError("locked")

    calls = {"load": lambda: None, "save": lambda secret: None, "destroy": lambda: None, name: fail}
    provider = CallbackKey(**calls)
    with pytest.raises(errors.StoreKeyError, match=f"{name} failed with RuntimeError"):
        provider.save(b"", b"") if name == "save" else getattr(provider, name)()


def test_an_error_of_the_store_from_a_keystore_stays_what_it_is():
    def fail():
        raise errors.StoreRolledBackError(3, 5)

    with pytest.raises(errors.StoreRolledBackError):
        CallbackKey(fail, lambda secret: None, lambda: None).load()
