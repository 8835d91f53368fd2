"""From a folder and a key ring to an open log and its state, or to the error that says why not.

The order of writes decides what a crash may leave. The ring of a new store is saved before its log is made, and the
anchor after the record it counts; so a log is never without its ring, nor behind it, unless somebody made it so.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from lightfr import _files
from lightfr._secret import secret
from lightfr.errors import StoreCorruptError, StoreKeyError, StoreRolledBackError
from lightfr.store._log import Header, Log, write_temporary
from lightfr.store._ring import KeyRing
from lightfr.store._state import Change, State

if TYPE_CHECKING:
    from pathlib import Path

    from lightfr.keys import KeyProvider


@secret
class Opened:
    """A log that is read to its end, its ring and what it says. The snapshot is what a rewrite has put at its start."""

    __slots__ = ("log", "ring", "snapshot_bytes", "state")

    def __init__(self, log: Log, ring: KeyRing, state: State, snapshot_bytes: int) -> None:
        self.log, self.ring, self.state, self.snapshot_bytes = log, ring, state, snapshot_bytes


def open_or_create(path: Path, keys: KeyProvider) -> Opened:
    """Open the log at `path`, or make it where neither log nor ring says that there was one."""
    kept = keys.load()
    _files.remove(_files.temporary_of(path))
    ring = None if kept is None else KeyRing.decode(*kept)
    if kept is not None and ring is not None and kept[0] != ring.encode():
        # The ring of an earlier version, which had the anchor inside.
        keys.save(ring.encode(), ring.encode_anchor())
    if not path.exists():
        return _create(path, ring or KeyRing.new(), keys)
    if ring is None:
        raise StoreKeyError(
            "the key of this store is gone, so its content cannot be read by anyone: "
            "give the right keys, or start anew with lightfr.store.discard(folder, keys)"
        )
    return _open(path, ring, keys)


def _create(path: Path, ring: KeyRing, keys: KeyProvider) -> Opened:
    if ring.anchor > 0:
        raise StoreRolledBackError(0, ring.anchor)
    # A ring of no record is there already when the last program ended in here; it may not have been flushed.
    keys.save(ring.encode(), ring.encode_anchor())
    key_id, key = next(iter(ring.keys.items()))
    log = write_temporary(path, Header(ring.store_id, key_id, first_sequence=1), key, ())
    try:
        _files.install_temporary(path)
    except BaseException:
        os.close(log.file)
        raise
    return Opened(log, ring, State(), log.length_bytes)


def _open(path: Path, ring: KeyRing, keys: KeyProvider) -> Opened:
    file = _files.open_file(path, _files.CHANGE)
    try:
        opened = _read(file, ring)
        _settle(path, opened, keys)
    except BaseException:
        os.close(file)
        raise
    return opened


def _read(file: int, ring: KeyRing) -> Opened:
    header = _require_header(file, ring)
    opened = Opened(Log(file, header, ring.keys[header.key_id]), ring, State(), 0)
    # A log that does not start with record 1 was rewritten: its snapshot was on the medium before it got its name. That
    # the snapshot must be whole, whatever the anchor, also means that no other first_sequence passes.
    is_unfinished = header.first_sequence > 1
    while (plaintext := opened.log.read()) is not None:
        is_snapshot = is_unfinished
        is_unfinished = _apply(opened, plaintext)
        if is_snapshot:
            opened.snapshot_bytes = opened.log.length_bytes
    _require_end(opened, is_unfinished)
    return opened


def _require_header(file: int, ring: KeyRing) -> Header:
    header = Header.read(file)
    if header.store_id != ring.store_id or header.key_id not in ring.keys:
        raise StoreKeyError("the keys are those of another store, or the store's header was changed")
    return header


def _apply(opened: Opened, plaintext: bytes) -> bool:
    change = Change.decode(plaintext)
    if change is None:
        raise StoreCorruptError(f"record {opened.log.last_sequence} of the store is whole but makes no sense")
    opened.state.apply(change)
    return change.unfinished


def _require_end(opened: Opened, is_unfinished: bool) -> None:
    log, anchor = opened.log, opened.ring.anchor
    is_torn = os.fstat(log.file).st_size > log.length_bytes
    if is_torn and (log.next_sequence <= anchor or is_unfinished):
        raise StoreCorruptError(f"record {log.next_sequence} of the store is damaged: put a backup back, or discard it")
    if log.last_sequence < anchor:
        raise StoreRolledBackError(log.last_sequence, anchor)
    if is_unfinished:
        raise StoreCorruptError(f"the store ends with record {log.last_sequence}, in the midst of a snapshot")


def _settle(path: Path, opened: Opened, keys: KeyProvider) -> None:
    """Finish what the last program left: a torn end, an unflushed rename, a record without its anchor, a rotation."""
    log = opened.log
    if os.fstat(log.file).st_size > log.length_bytes:
        _files.truncate(log.file, log.length_bytes)
    _files.fsync_folder(path.parent)
    if log.last_sequence > opened.ring.anchor or len(opened.ring.keys) > 1:
        _files.fsync(log.file)
        opened.ring = opened.ring.settled(log.header.key_id, log.last_sequence)
        keys.save(opened.ring.encode(), opened.ring.encode_anchor())
