"""A scripted life of a store, and what it should hold after each step."""

from dataclasses import dataclass, field

from lightfr import _files
from lightfr.keys import FileKey
from lightfr.store import Store, _store
from lightfr.store._ring import KeyRing

# Small enough that the script's one large value makes the store rewrite its log.
REWRITE_BYTES = 1500


@dataclass
class Model:
    ratings: list = field(default_factory=list)
    values: dict = field(default_factory=dict)

    def rate(self, rated):
        ratings = dict(self.ratings)
        for item_id, level in rated:
            ratings.pop(item_id, None)
            ratings[item_id] = level
        return Model(list(ratings.items()), self.values)

    def unrate(self, item_id):
        return Model([pair for pair in self.ratings if pair[0] != item_id], self.values)

    def update(self, values):
        merged = {**self.values, **values}
        return Model(self.ratings, {name: value for name, value in merged.items() if value is not None})


def content(store):
    return Model(list(store.ratings.items()), dict(store._state.values))


def require_settled(store):
    """The key ring on the medium knows the last record and no other key; the log has nothing after it."""
    ring = KeyRing.decode(*store._keys.load())
    assert ring.anchor == store._log.last_sequence
    assert list(ring.keys) == [store._log.header.key_id]
    assert store._path.stat().st_size == store._log.length_bytes


class Session:
    """Runs the script; `before` and `after` are the contents on either side of the step under way."""

    def __init__(self, base):
        self.folder, self.key = base / "store", base / "keys" / "key"
        if not self.key.parent.exists():
            self.key.parent.mkdir()
            _files.fsync_folder(base)
        self.store = None
        self.before = self.after = Model()

    def open(self):
        self.store = Store.open(self.folder, FileKey(self.key))
        return self.store

    def close(self):
        if self.store is not None:
            self.store.close()
        self.store = None

    def run(self):
        for step in SCRIPT:
            self.after = step(self)
            self.before = self.after

    def rate(self, *rated):
        self.after = self.before.rate(rated)
        self.store.rate(rated)

    def update(self, **values):
        self.after = self.before.update(values)
        self.store.update(values)

    def unrate(self, item_id):
        self.after = self.before.unrate(item_id)
        self.store.unrate(item_id)


def _step(do):
    def step(session):
        do(session)
        return session.after

    return step


SCRIPT = [
    _step(step)
    for step in (
        lambda session: session.open(),
        lambda session: session.rate(("a", 10)),
        lambda session: session.rate(("b", 20), (7, 30), ("a", 40)),
        lambda session: session.unrate("b"),
        lambda session: session.update(user=b"code"),
        lambda session: session.update(user=None, pending=b"upload", other=b""),
        lambda session: session.update(large=bytes(REWRITE_BYTES)),
        lambda session: session.rate(("c", 2520)),
        lambda session: session.store.rotate_key(),
        lambda session: session.rate((7, 0)),
        lambda session: session.close(),
        lambda session: session.open(),
        lambda session: session.rate(("d", 1)),
        lambda session: session.close(),
    )
]


def rewrite_often(monkeypatch, at_bytes=REWRITE_BYTES):
    monkeypatch.setattr(_store, "_MIN_REWRITE_BYTES", at_bytes)
