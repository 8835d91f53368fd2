"""The store that an app holds open."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from lightfr import _arguments, _files
from lightfr._secret import secret
from lightfr.errors import InvalidInputError, StoreClosedError
from lightfr.model.catalogue import require_item_id
from lightfr.store._log import MAX_CHANGE_BYTES, Header, write_temporary
from lightfr.store._opening import Opened, open_or_create
from lightfr.store._state import Change, require_level, require_name, require_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType
    from typing import Self

    from lightfr.keys import KeyProvider
    from lightfr.store._ring import KeyRing
    from lightfr.store._state import ItemId

_LOG_NAME = "store.lfr"
_LOCK_NAME = "store.lock"

# The log is rewritten when it has grown to three times its last snapshot: on average a constant cost for each change.
_GROWTH = 3
_MIN_REWRITE_BYTES = 64 * 1024


@secret
class Store:
    """Ratings and named values on the medium, sealed. Threads may share one; processes may not."""

    def __init__(self, folder: Path, keys: KeyProvider, lock_file: int, opened: Opened) -> None:
        """Use Store.open."""
        self._path = folder / _LOG_NAME
        self._keys = keys
        self._lock_file = lock_file
        self._lock = threading.Lock()
        self._log, self._ring, self._state = opened.log, opened.ring, opened.state
        self._is_closed = False
        # False while the files may differ from the memory; stays so when a failed write could not be taken back.
        self._is_whole = True
        self._plan_rewrite(opened.snapshot_bytes)

    @classmethod
    def open(cls, folder: str | os.PathLike[str], keys: KeyProvider) -> Store:
        """Open the store in a folder, and make both where absent. Raises a StoreError that says what to do."""
        place = Path(os.path.abspath(folder))
        with _files.step("open its files"):
            _files.require_folder(place)
            lock_file = _files.lock(place / _LOCK_NAME)
            try:
                return cls(place, keys, lock_file, open_or_create(place / _LOG_NAME, keys))
            except BaseException:
                os.close(lock_file)
                raise

    @property
    def ratings(self) -> dict[ItemId, int]:
        """A copy of the levels by item id, oldest first."""
        with self._lock:
            self._require_usable()
            return dict(self._state.ratings)

    def rate(self, rated: Iterable[tuple[ItemId, int]]) -> None:
        """Keep levels, 0 .. 2520, as the newest ratings of their items: all of them or, on an error, none."""
        change = Change(rated=[(require_item_id(item_id), require_level(level)) for item_id, level in rated])
        with self._lock:
            self._require_usable()
            if change.rated:
                self._commit(change)

    def unrate(self, item_id: ItemId) -> bool:
        """Forget a rating; say whether there was one."""
        require_item_id(item_id)
        with self._lock:
            self._require_usable()
            if item_id not in self._state.ratings:
                return False
            self._commit(Change(unrated=[item_id]))
            return True

    def put(self, name: str, value: bytes) -> None:
        """Keep a named value."""
        self.update({name: value})

    def get(self, name: str) -> bytes | None:
        """Return a named value, or None."""
        require_name(name)
        with self._lock:
            self._require_usable()
            return self._state.values.get(name)

    def delete(self, name: str) -> None:
        """Forget a named value, if there is one."""
        self.update({name: None})

    def update(self, values: Mapping[str, bytes | None]) -> None:
        """Keep several named values, None forgetting one: all of them or, on an error, none."""
        wanted = {require_name(name): require_value(value) for name, value in values.items()}
        with self._lock:
            self._require_usable()
            kept = self._state.values
            change = Change(values={name: value for name, value in wanted.items() if value is not None or name in kept})
            if change.values:
                self._commit(change)

    def rotate_key(self) -> None:
        """Seal everything under a new key and drop the old one."""
        with self._lock:
            self._require_usable()
            ring, key_id = self._ring.with_new_key()
            with _files.step("save the key ring"):
                self._keys.save(ring.encode(), ring.encode_anchor())
            self._rewrite(ring, key_id)

    def require_open(self) -> None:
        """Raise StoreClosedError if nothing can be read or kept any more."""
        with self._lock:
            self._require_usable()

    def close(self) -> None:
        """Let the files go. Closing twice is fine."""
        with self._lock:
            self._release()

    def forget(self) -> None:
        """Destroy the key, then remove the log, then close. Should it raise, call it again, or `discard`."""
        with self._lock:
            if self._is_closed:
                raise StoreClosedError("the store is closed: forget it with lightfr.store.discard(folder, keys)")
            # From here on no change may be acknowledged: saving its anchor would bring the key back.
            self._is_whole = False
            _erase(self._path, self._keys)
            self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Store, {'closed' if self._is_closed else 'open'}>"

    def _require_usable(self) -> None:
        # Under the lock: while a change is being written, the files differ from the memory.
        if self._is_closed:
            raise StoreClosedError("the store is closed: open it anew")
        if not self._is_whole:
            raise StoreClosedError("a write failed and could not be taken back: close the store and open it anew")

    def _commit(self, change: Change) -> None:
        self._write(change)
        # What was written is let go of by now: a rewrite needs as much memory once more.
        if self._log.length_bytes >= self._rewrite_at_bytes:
            self._compact()

    def _write(self, change: Change) -> None:
        plaintext = change.encode()
        if len(plaintext) > MAX_CHANGE_BYTES:
            raise InvalidInputError(f"a change takes {len(plaintext)} bytes, at most {MAX_CHANGE_BYTES} fit: split it")
        record = self._log.seal(plaintext)
        ring = self._ring.settled(self._log.header.key_id, self._log.next_sequence)
        self._is_whole = False
        self._append(record)
        self._anchor(ring)
        self._log.step_past(len(record))
        self._ring = ring
        self._state.apply(change)
        self._is_whole = True

    def _append(self, record: bytes) -> None:
        try:
            with _files.step("write a record"):
                _files.write_all(self._log.file, record, self._log.length_bytes)
            with _files.step("flush a record"):
                _files.fsync(self._log.file)
        except BaseException:
            self._cut_off()
            raise

    def _anchor(self, ring: KeyRing) -> None:
        try:
            with _files.step("save the key ring"):
                self._keys.save(ring.encode(), ring.encode_anchor())
        except BaseException:
            # A save that failed may have happened all the same, and a log behind its ring would be refused. So the
            # record goes only after the old anchor is back; if that fails too, reopening finds the record and keeps it.
            with suppress(Exception):
                self._keys.save(self._ring.encode(), self._ring.encode_anchor())
                self._cut_off()
            raise

    def _cut_off(self) -> None:
        with suppress(OSError):
            _files.truncate(self._log.file, self._log.length_bytes)
            self._is_whole = True

    def _compact(self) -> None:
        """Rewrite the log. The change before it is safe whatever happens, so a failure waits for the next occasion."""
        self._rewrite_at_bytes = 2 * self._log.length_bytes
        with suppress(Exception):
            self._rewrite(self._ring, self._log.header.key_id)

    def _rewrite(self, ring: KeyRing, key_id: bytes) -> None:
        """Put a snapshot in the place of the log, under a key of the ring; then drop the ring's other keys."""
        header = Header(ring.store_id, key_id, self._log.next_sequence)
        with _files.step("rewrite the log"):
            plaintexts = (change.encode() for change in self._state.snapshot())
            log = write_temporary(self._path, header, ring.keys[key_id], plaintexts)
        # From the rename on, only reopening can tell which of the two logs the medium has.
        self._is_whole = False
        try:
            with _files.step("put the rewritten log in place"):
                _files.install_temporary(self._path)
            settled = ring.settled(key_id, log.last_sequence)
            with _files.step("save the key ring"):
                self._keys.save(settled.encode(), settled.encode_anchor())
        except BaseException:
            os.close(log.file)
            raise
        os.close(self._log.file)
        self._log, self._ring = log, settled
        self._is_whole = True
        self._plan_rewrite(log.length_bytes)

    def _plan_rewrite(self, snapshot_bytes: int) -> None:
        self._rewrite_at_bytes = max(_MIN_REWRITE_BYTES, _GROWTH * snapshot_bytes)

    def _release(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            os.close(self._log.file)
            os.close(self._lock_file)


def discard(folder: str | os.PathLike[str], keys: KeyProvider) -> None:
    """Destroy the key, then remove the files, without reading either: the way out when a store cannot be opened."""
    place = _arguments.path("folder", folder)
    keys = _arguments.key_provider(keys)
    if not place.is_dir():
        keys.destroy()
        return
    with _files.step("be locked"):
        lock_file = _files.lock(place / _LOCK_NAME)
    try:
        _erase(place / _LOG_NAME, keys)
    finally:
        os.close(lock_file)


def _erase(path: Path, keys: KeyProvider) -> None:
    """Destroy the key, then remove the files; the caller holds the lock, whose file goes last."""
    with _files.step("destroy its key"):
        keys.destroy()
    with _files.step("remove its files"):
        _files.remove(_files.temporary_of(path))
        _files.remove(path)
        _files.fsync_folder(path.parent)
        _files.remove(path.with_name(_LOCK_NAME))
