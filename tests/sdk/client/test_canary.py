"""A canary is rated; it must be found nowhere but inside the encrypted store.

Looked at: every file of the device and of the coordinator, everything the device gives to TLS, everything logged, every
repr, and every error with its whole chain.
"""

import contextlib
import errno
import logging
import ssl
import struct
import time
import traceback

import pytest

from lightfr import FileKey, _files
from lightfr.errors import LightFRError
from lightfr.store import Store

# An id that no catalogue has, so that it can stand nowhere for a good reason; and a rating with many digits.
ITEM = "canary-b7f3-Zeisig"
RATING = 3.1415926
LEVEL = round((RATING - 1) / 4 * 2520)


def traces(code: bytes) -> list[bytes]:
    """The forms in which the canary would show itself, `code` being the user code."""
    texts = [ITEM, ITEM.encode().hex(), str(RATING), code.hex()]
    return [ITEM.encode("utf-16-le"), struct.pack("<d", RATING), struct.pack("<f", RATING), *map(str.encode, texts)]


def files_below(*folders):
    found = {}
    for file in (file for folder in folders for file in folder.rglob("*")):
        # The coordinator is alive: a file may be gone again.
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):
            found[file] = file.read_bytes()
    return found


def until_gone(code, *folders):
    """The coordinator keeps an upload until its round is added up, and then overwrites it: that takes a moment."""
    for _ in range(200):
        if not any(code in content for content in files_below(*folders).values()):
            return True
        time.sleep(0.1)
    return False


def told_by(error):
    """All that an error could put into a log."""
    chain = traceback.TracebackException.from_exception(error, capture_locals=False)
    parts = ["".join(chain.format())]
    while error is not None:
        parts += [str(error), repr(error), repr(error.args), repr(vars(error))]
        error = error.__cause__ or error.__context__
    return "\n".join(parts)


@pytest.fixture
def sent(monkeypatch):
    record, sendall = [], ssl.SSLSocket.sendall
    monkeypatch.setattr(
        ssl.SSLSocket, "sendall", lambda self, data, *f: (record.append(bytes(data)), sendall(self, data, *f))[1]
    )
    return record


def fail_at(monkeypatch, name):
    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_files, name, refuse)


def errors_of(client, monkeypatch):
    """Errors of every kind that a call with the canary can end in."""
    calls = [lambda: client.rate(ITEM, 7.7), lambda: client.rate_many([(ITEM, RATING), (ITEM, float("nan"))])]
    calls += [lambda: client.score(ITEM), lambda: client.similar(ITEM), lambda: client.explain(ITEM)]
    calls += [lambda: client.hide(ITEM + "x" * 300), lambda: client.seen(ITEM + "\ud800")]
    calls += [lambda: client.rate(ITEM + "x" * 300, RATING), lambda: client.rate(ITEM + "\ud800", RATING)]
    for name in ("write", "fsync", "replace"):

        def on_a_full_disk(name=name):
            with monkeypatch.context() as patch:
                fail_at(patch, name)
                client.rate(ITEM, RATING)

        calls.append(on_a_full_disk)
    errors = []
    for call in calls:
        with pytest.raises(LightFRError) as caught:
            call()
        errors.append(caught.value)
    return errors


def test_the_canary_is_found_nowhere(start_coordinator, open_client, sent, caplog, capfd, monkeypatch):
    caplog.set_level(logging.DEBUG)
    coordinator = start_coordinator(goal=1, rounds=3)
    client = open_client(coordinator)
    client.rate_many([(f"item {number}", 4) for number in range(30)])
    for verb in (client.like, client.dislike, client.seen, client.hide):
        verb(ITEM)
    client.hide(f"{ITEM} too")
    client.rate(ITEM, RATING)
    client.sync()
    assert client.participate().took_part
    client.recommend(10)
    code = client._store.get("user_code")
    shown = [
        repr(thing)
        for thing in (client, client.status(), client._store, client._user.model, client._user._interactions)
    ]
    uploads = [data for data in sent if code in data]
    client.rate_many([(ITEM, RATING), ("item 3", RATING)])
    client.rotate_key()
    shown += [told_by(error) for error in errors_of(client, monkeypatch)]
    client.close()
    device, server = client.device.identity.parent, coordinator._log.parent
    captured = capfd.readouterr()
    places = {
        **files_below(device, server),
        "sent": b"".join(sent),
        "log": caplog.text.encode(),
        "coordinator's log": coordinator.log.encode(),
        "reprs and errors": "\n".join(shown).encode(),
        "output": (captured.out + captured.err).encode(),
    }
    found = {(str(place), trace) for place, content in places.items() for trace in traces(code) if trace in content}
    assert found == set()
    # The code itself, as bytes: in mode CLEAR it is in the upload, as docs/embedding.md says, and nowhere else.
    assert len(uploads) == 1
    assert until_gone(code, device, server)


def test_the_search_would_find_a_canary_that_is_not_encrypted(tmp_path, monkeypatch):
    """The same search with the cipher taken out finds it, so finding nothing means something."""
    from lightfr.store import _log

    class Open:
        def __init__(self, _key):
            pass

        def encrypt(self, _nonce, data, _associated):
            return data + bytes(16)

    monkeypatch.setattr(_log, "AESGCM", Open)
    store = Store.open(tmp_path / "data", FileKey(tmp_path / "key"))
    store.rate([(ITEM, LEVEL)])
    store.close()
    assert any(trace in content for content in files_below(tmp_path).values() for trace in traces(b"code"))
