"""Item ids, levels, values, keys and passphrases show in no repr, message or traceback."""

import errno
import traceback

import pytest

from lightfr import _slots, errors
from lightfr.keys import CallbackKey, PassphraseKey
from lightfr.store import Store
from lightfr.store._ring import KeyRing
from tests.sdk.store.faults import Files

CANARY, LEVEL, VALUE, PASSPHRASE = "canary-item", 1789, b"canary-value", "canary-passphrase"


def shown(error):
    """Everything that an error, and whatever hangs on it, says of itself."""
    text = "".join(traceback.format_exception(error))
    while error is not None:
        text += repr(error) + str(error) + repr(error.args) + repr(vars(error))
        error = error.__cause__ or error.__context__
    return text


def require_silent(text, secret=None):
    words = [CANARY, str(LEVEL), VALUE.decode(), "canary"]
    if secret is not None:
        words += [key.hex() for key in KeyRing.decode(*secret).keys.values()]
        words += [repr(key) for key in KeyRing.decode(*secret).keys.values()]
    for word in words:
        assert word not in text


@pytest.fixture
def store(tmp_path, keys):
    with Store.open(tmp_path / "store", keys) as store:
        store.rate([(CANARY, LEVEL)])
        store.put("name", VALUE)
        yield store


def test_reprs_are_silent(store, keys, tmp_path):
    inner = [
        _slots.newest((tmp_path / "key").read_bytes()),
        store._ring,
        store._log,
        store._log.header,
        store._state,
        store._log._cipher,
        *store._state.snapshot(),
    ]
    providers = [
        keys,
        PassphraseKey(tmp_path / "sealed", PASSPHRASE),
        CallbackKey(keys.load, keys.save, keys.destroy),
        keys.load(),
    ]
    for thing in (store, *inner, *providers):
        require_silent(repr(thing) + str(thing), keys.load())


def test_a_passphrase_is_not_kept(tmp_path):
    provider = PassphraseKey(tmp_path / "sealed", PASSPHRASE)
    provider.change_passphrase(PASSPHRASE + "2")
    assert "canary" not in repr(vars(provider))


@pytest.mark.parametrize(
    "rated", [[(CANARY, 1.5)], [(CANARY * 99, LEVEL)], [(CANARY + "\ud800", LEVEL)], [(CANARY, -LEVEL)]]
)
def test_refused_ratings_are_not_repeated(store, keys, rated):
    with pytest.raises(errors.InvalidInputError) as caught:
        store.rate(rated)
    require_silent(shown(caught.value), keys.load())


def test_failed_writes_are_silent_at_every_operation(store, keys, monkeypatch):
    files = Files(monkeypatch)
    secret = keys.load()
    for at in range(1, 9):
        files.arm(at, "refuse", errno.EIO)
        with pytest.raises(errors.StoreError) as caught:
            store.rate([(CANARY, LEVEL)])
        files.heal()
        require_silent(shown(caught.value), secret)


def test_errors_of_opening_are_silent(tmp_path, keys):
    with Store.open(tmp_path / "store", keys) as store:
        store.rate([(CANARY, LEVEL)])
    kept, path = keys.load(), tmp_path / "store" / "store.lfr"
    secret = kept.secret
    data = path.read_bytes()
    for changed_secret in (
        secret,
        secret[:-1],
        secret.replace(b'"keys"', b'"canary"'),
        secret.replace(b"version", b"x"),
    ):
        keys.save(changed_secret, kept.anchor)
        path.write_bytes(data[:-1])
        with pytest.raises(errors.StoreError) as caught:
            Store.open(tmp_path / "store", keys)
        require_silent(shown(caught.value), kept)


def test_a_wrong_passphrase_is_not_repeated(tmp_path):
    PassphraseKey(tmp_path / "sealed", "right").save(b"secret", b"anchor")
    for passphrase in (PASSPHRASE, PASSPHRASE + "\ud800"):
        with pytest.raises(errors.StoreKeyError) as caught:
            PassphraseKey(tmp_path / "sealed", passphrase).load()
        require_silent(shown(caught.value))
