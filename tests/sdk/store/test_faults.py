"""Every file operation of a store's life fails once, or is the last one: nothing acknowledged is lost, nor torn."""

import errno
import shutil

import pytest

from lightfr import _files
from lightfr.errors import StoreClosedError, StoreError, StoreWriteError
from lightfr.keys import FileKey
from tests.sdk.store.faults import CrashError, Files
from tests.sdk.store.sessions import Session, content, require_settled, rewrite_often


@pytest.fixture
def files(monkeypatch):
    rewrite_often(monkeypatch)
    return Files(monkeypatch)


def every_operation(files, tmp_path):
    """Yield a session in an empty folder for each operation that the script makes, the number of it set."""
    count = count_operations(files, tmp_path)
    for at in range(1, count + 1):
        base = tmp_path / f"{at}"
        base.mkdir()
        yield at, Session(base)
        files.end_program()
        shutil.rmtree(base)


def count_operations(files, tmp_path):
    (tmp_path / "healthy").mkdir()
    session = Session(tmp_path / "healthy")
    files.arm(0, "refuse")
    session.run()
    log = list(files.log)
    # The key file and the log, a new one at the start, after the large value and for the rotation, are renamed.
    assert log.count("replace") > 13
    session.close()
    with session.open() as store:
        assert store._log.header.first_sequence > 8
        assert content(store) == session.before
    return len(log)


def require_whole(session, *allowed):
    """Reopen, compare, write, and compare once more."""
    with session.open() as store:
        found = content(store)
        assert found in allowed
        require_settled(store)
        store.rate([("new", 5)])
    with session.open() as store:
        assert content(store) == found.rate([("new", 5)])


@pytest.mark.parametrize(
    ("fault", "number", "goes_on"),
    [
        ("refuse", errno.ENOSPC, True),
        ("refuse", errno.EIO, False),
        ("short", errno.ENOSPC, False),
        ("late", errno.EIO, True),
        ("late", errno.EIO, False),
        ("lasting", errno.ENOSPC, False),
    ],
)
def test_a_refused_operation_loses_nothing_and_tears_nothing(files, tmp_path, fault, number, goes_on):
    for at, session in every_operation(files, tmp_path):
        files.arm(at, fault, number)
        raised = None
        try:
            session.run()
        except StoreError as error:
            raised = error
        files.heal()
        if isinstance(raised, StoreWriteError):
            assert raised.errno == number
            assert raised.step
        before = session.before if raised else session.after
        allowed = go_on(session, before) if goes_on else (before, session.after)
        session.close()
        require_whole(session, *allowed)


def go_on(session, before):
    """Say what reopening may find. A store that says it is usable is: its memory, and the next change, are kept."""
    if session.store is None:
        return before, session.after
    try:
        assert content(session.store) == before
        session.store.rate([("next", 6)])
    except StoreClosedError:
        return before, session.after
    return (before.rate([("next", 6)]),)


def test_a_store_whose_record_was_taken_back_goes_on_without_reopening(files, tmp_path):
    with store_with_one_rating(tmp_path) as store:
        for name in ("write", "fsync"):
            files.arm(1 if name == "write" else 2, "refuse", errno.ENOSPC)
            with pytest.raises(StoreWriteError, match="No space left"):
                store.rate([("b", 2)])
            assert files.log[-1] == "truncate"
            assert store.ratings == {"a": 1}


def store_with_one_rating(tmp_path):
    session = Session(tmp_path)
    store = session.open()
    store.rate([("a", 1)])
    return store


def test_a_store_that_cannot_take_a_record_back_refuses_until_it_is_opened_anew(files, tmp_path):
    store = store_with_one_rating(tmp_path)
    files.arm(2, "lasting", errno.EIO)
    with pytest.raises(StoreWriteError):
        store.rate([("b", 2)])
    files.heal()
    for use in (lambda: store.ratings, lambda: store.get("x"), lambda: store.rate([("c", 3)]), store.rotate_key):
        with pytest.raises(StoreClosedError, match="open it anew"):
            use()
    store.close()
    with Session(tmp_path).open() as store:
        assert store.ratings == {"a": 1, "b": 2}  # whole, though never acknowledged


def test_a_failed_rewrite_is_not_the_fault_of_the_change_before_it(files, tmp_path):
    with store_with_one_rating(tmp_path) as store:
        # write and fsync of the record, six operations of the anchor, a look at the key, then those of the new log.
        files.arm(11, "lasting", errno.ENOSPC)
        store.put("large", bytes(2000))
        assert files.count == 11
        files.heal()
        store.put("small", b"1")
        assert store._log.header.first_sequence == 1
        store.put("large", bytes(4000))
        assert store._log.header.first_sequence > 1
    assert Session(tmp_path).open().get("small") == b"1"
    files.end_program()


@pytest.mark.parametrize("fault", ["crash", "torn"])
@pytest.mark.parametrize("has_power_loss", [False, True])
def test_the_program_may_end_at_any_operation(files, tmp_path, fault, has_power_loss):
    for at, session in every_operation(files, tmp_path):
        assert crash(files, at, session.run, fault)
        if has_power_loss:
            files.lose_power(session.folder.parent)
        require_whole(session, session.before, session.after)


def test_the_program_may_end_again_while_it_recovers(files, tmp_path):
    """The operations of the first reopening after each crash are crashed in turn as well."""
    for at, session in every_operation(files, tmp_path):
        crash(files, at, session.run)
        again = 1
        while crash(files, again, session.open):
            again += 1
        require_whole(session, session.before, session.after)


def test_what_a_store_shows_after_a_crash_outlasts_a_loss_of_power(files, tmp_path):
    for at, session in every_operation(files, tmp_path):
        crash(files, at, session.run)
        shown = content(session.open())
        files.end_program()
        files.lose_power(session.folder.parent)
        require_whole(session, shown)


def crash(files, at, run, fault="crash"):
    """Run a program until it ends at an operation; say whether it got there."""
    files.arm(at, fault)
    try:
        run()
    except CrashError:
        return True
    finally:
        files.end_program()
    return False


def test_short_writes_are_continued(tmp_path, monkeypatch):
    whole = _files.write
    monkeypatch.setattr(_files, "write", lambda file, data, offset: whole(file, data[:7], offset))
    session = Session(tmp_path)
    session.run()
    with session.open() as store:
        assert content(store) == session.before


def test_forgetting_destroys_the_key_first_and_can_be_called_again(files, tmp_path):
    store = store_with_one_rating(tmp_path)
    files.arm(10, "refuse", errno.EIO)  # nine operations remove the key and the anchor
    with pytest.raises(StoreWriteError, match="remove its files"):
        store.forget()
    assert not (tmp_path / "keys" / "key").exists()
    assert (tmp_path / "store" / "store.lfr").exists()
    with pytest.raises(StoreClosedError):
        store.rate([("b", 1)])
    files.heal()
    store.forget()
    assert not (tmp_path / "store" / "store.lfr").exists()
    with Session(tmp_path).open() as store:
        assert store.ratings == {}


def test_a_crash_while_forgetting_never_leaves_a_key_without_saying_so(files, tmp_path):
    for at in range(1, 20):
        base = tmp_path / f"{at}"
        base.mkdir()
        store = store_with_one_rating(base)
        if not crash(files, at, store.forget):
            break
        key_was_there = FileKey(base / "keys" / "key").load() is not None
        assert (base / "store" / "store.lfr").exists() or not key_was_there
    assert at == 14
