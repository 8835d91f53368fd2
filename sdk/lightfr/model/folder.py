"""The model on this device: public files, named by their digests, and the signed manifest that says which count.

Opening checks the manifest's signature and the sizes of the files, which costs the same however large they are. The
first sync or round of a process reads them whole and compares their digests; so does a later one when a file's size,
inode or time of change is another. A file that is damaged goes, and is fetched again.
"""

from __future__ import annotations

import errno
import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING

from lightfr import _files
from lightfr._wire.downloads import Sources, install, part_of
from lightfr.codes import ItemCodes, ItemSet
from lightfr.errors import ArtifactError, ArtifactFileError, ManifestError, ProtocolError
from lightfr.model.bitmaps import read_bitmap
from lightfr.model.catalogue import Catalogue
from lightfr.model.manifest import Manifest
from lightfr.open_rows import OpenRows
from lightfr.training.model import PublishedModel

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import Literal

    from lightfr._wire.channel import Channel
    from lightfr.device import Trust
    from lightfr.v1 import manifest_pb2

_CURRENT = "current"


class LoadedModel:
    """One version, memory-mapped: the codes, the item ids, which items are open or have left, and what a fit needs."""

    def __init__(self, manifest: Manifest, folder: Path) -> None:
        message = manifest.message
        n_items = message.model.item_count
        self.manifest = manifest
        parts = [folder / part.sha256.hex() for part in message.catalogue_parts]
        # First, since its size justifies the number of items: a small bitmap may inflate to any number of them.
        self.catalogue = Catalogue.open(parts, n_items)
        try:
            open_rows = _bitmap(folder, message, "open_rows")
            # Items that left: to whoever looks an id up they are unknown.
            self._removed = _bitmap(folder, message, "removed_items")
            _require_possible(open_rows, self._removed, n_items)
            self.codes = ItemCodes.open(
                folder / message.codes.sha256.hex(),
                message.model.code_bits,
                n_items=n_items,
                open_rows=None if open_rows is None else OpenRows(open_rows, n_items),
            )
            self.published = PublishedModel(self.codes, message.model, self.left_out() if self._removed else None)
        except BaseException:
            self.close()
            raise

    def index_of(self, item_id: str | int) -> int | None:
        """Find the index of an item; None when the catalogue lacks the id, or its item left."""
        index = self.catalogue.index_of(item_id)
        removed = self._removed
        return None if index is not None and removed and removed[index >> 3] >> (index & 7) & 1 else index

    def indices_of(self, item_ids: Iterable[str | int]) -> list[int]:
        """Return the indices of the items that the catalogue has."""
        return [index for index in map(self.index_of, item_ids) if index is not None]

    def left_out(self, item_indices: Iterable[int] = ()) -> ItemSet:
        """Return these items and those that left: what is not to be recommended."""
        return ItemSet(self.codes.n_items, item_indices, bitmap=self._removed)

    def close(self) -> None:
        """Unmap the files."""
        self.catalogue.close()
        if hasattr(self, "codes"):
            self.codes.close()


def _bitmap(folder: Path, message: manifest_pb2.Manifest, field: Literal["open_rows", "removed_items"]) -> bytes | None:
    if not message.HasField(field):
        return None
    artifact: manifest_pb2.Artifact = getattr(message, field)
    return read_bitmap(folder / artifact.sha256.hex(), message.model.item_count)


def _require_possible(open_rows: bytes | None, removed: bytes | None, n_items: int) -> None:
    """Raise ArtifactFileError where an item that left is open, or too many have left."""
    left = int.from_bytes(removed or b"", "little")
    if left & int.from_bytes(open_rows or b"", "little"):
        raise ArtifactFileError("the model is refused: an item that left the catalogue is open")
    if 2 * left.bit_count() > n_items:
        raise ArtifactFileError("the model is refused: more than half of its items have left")


class ModelFolder:
    """Where models are kept. `current` is replaced in one step, so a reader finds the old version or the new one."""

    def __init__(self, path: Path, trust: Trust) -> None:
        self._path = path
        self._trust = trust
        # The manifest of the version in use, also while its files are damaged: no sync goes back behind it.
        self._held: Manifest | None = None
        # What the system said of each file when its digest was last found right.
        self._checked: dict[str, tuple[int, int, int]] = {}
        with _files.step("make the folder of the models"):
            _files.require_folder(path)

    def load(self) -> LoadedModel | None:
        """Open the version in use; None: nothing was ever synced."""
        try:
            signed = (self._path / _CURRENT).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(error) from error
        self._held = Manifest(signed, self._trust)
        return LoadedModel(self._held, self._path)

    def load_or_begin_anew(self) -> LoadedModel | None:
        """Open the version in use; files that are damaged or not trusted any more go: a sync brings new ones.

        Raises ArtifactFileError for files that cannot be read now: they may be whole, and needed offline.
        """
        try:
            return self.load()
        except ArtifactFileError:
            if self._held is None:
                raise
            self.drop_damaged()
        except ProtocolError:
            _remove_files(self._path)
        return None

    def drop_damaged(self) -> bool:
        """Check the files of the version in use, remove the first damaged one, and say whether one is missing now."""
        if self._held is None:
            return False
        return not all(self._keep_if_whole(file) for file in self._held.files)

    def fetch(self, channel: Channel, signed: bytes) -> LoadedModel:
        """Check a signed manifest, complete what it names, and make it the version in use.

        It must be newer than the version in use, or the same manifest once more, which mends damaged files.
        """
        manifest, old = Manifest(signed, self._trust), self._held
        if old is not None and manifest.model_version <= old.model_version and manifest.sha256 != old.sha256:
            raise ManifestError(f"a manifest was refused: version {manifest.model_version} after {old.model_version}")
        # Where versions come faster than downloads end, each would leave a part of a file behind.
        self._sweep(old, beside=manifest)
        with Sources(channel, manifest.message.artifacts_address) as sources:
            for file in manifest.files_beside_codes:
                self._download(sources, file)
            self._fetch_codes(sources, manifest, old)
        loaded = self._checked_model(manifest, old)
        try:
            with _files.step("switch to the new model"):
                _files.save(self._path / _CURRENT, signed)
            self._held = manifest
            self._sweep(manifest)
        except BaseException:
            loaded.close()
            raise
        return loaded

    def _checked_model(self, manifest: Manifest, old: Manifest | None) -> LoadedModel:
        """Open a version whose files are here, and check all of it; if it is refused, its files go."""
        try:
            loaded = LoadedModel(manifest, self._path)
            try:
                loaded.catalogue.check()
            except BaseException:
                loaded.close()
                raise
        except (ArtifactFileError, ProtocolError):
            self._sweep(old)
            raise
        return loaded

    def remove(self) -> None:
        """Delete every file; the folder must not be in use any more."""
        remove_models(self._path)

    def _download(self, sources: Sources, artifact: manifest_pb2.Artifact) -> Path:
        """Return the artifact's file, fetched if it is missing or damaged."""
        self._keep_if_whole(artifact)
        path = sources.download(artifact, self._path)
        # A download is kept only if its digest is right.
        self._checked[path.name] = _stamp(path)
        return path

    def _keep_if_whole(self, artifact: manifest_pb2.Artifact) -> bool:
        """Say whether the artifact's file is here and whole, reading it if it changed since; remove a damaged one.

        A system that is locked or short of descriptors keeps files from us that are whole: ArtifactFileError.
        """
        path = self._path / artifact.sha256.hex()
        try:
            stamp = _stamp(path)
            if self._checked.get(path.name) == stamp:
                return True
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            return False
        except OSError as error:
            if error.errno != errno.EIO:
                raise _unreadable(error) from error
            digest = ""  # the medium does not give it back
        if digest == path.name:
            self._checked[path.name] = stamp
            return True
        with _files.step("remove a damaged file of the model"):
            _files.remove(path)
        return False

    def _fetch_codes(self, sources: Sources, manifest: Manifest, old: Manifest | None) -> None:
        """Take the delta where there is one; should it not lead to the codes, take the codes."""
        codes = manifest.message.codes
        final = self._path / codes.sha256.hex()
        delta = None if old is None or final.exists() else manifest.delta_from(old.message.codes.sha256)
        if old is not None and delta is not None:
            try:
                changes, base = sources.download(delta, self._path), self._path / old.message.codes.sha256.hex()
                self._patch(changes, base, final, codes.size_bytes)
            except (ArtifactError, ArtifactFileError) as error:
                import logging

                logging.getLogger("lightfr.model").warning(
                    "a delta could not be used (%s): the whole codes are fetched instead", type(error).__name__
                )
        self._download(sources, codes)

    def _patch(self, changes: Path, base: Path, final: Path, size_bytes: int) -> None:
        from lightfr.model.deltas import apply_delta

        patched = final.with_suffix(".patched")
        with _files.step("write the new codes"), patched.open("wb") as file:
            digest = apply_delta(changes, base, file, max_bytes=size_bytes)
        if digest != final.name:
            raise ArtifactError("delta refused: it does not lead to the codes of the signed manifest")
        install(patched, final)

    def _sweep(self, manifest: Manifest | None, *, beside: Manifest | None = None) -> None:
        """Remove what the version in use does not name, but for what was downloaded of the version `beside` it.

        Mapped files live on until they are closed. A file that cannot be removed now waits for the next sweep.
        """
        named = {_CURRENT, *(file.sha256.hex() for file in (manifest.files if manifest else ()))}
        if beside is not None:
            deltas = [delta.artifact for delta in beside.message.codes_deltas]
            new = {file.sha256.hex() for file in (*beside.files, *deltas)}
            named |= new | {part_of(name) for name in new}
        for file in self._path.iterdir():
            if file.name not in named:
                with suppress(OSError):
                    _files.remove(file)


def remove_models(path: Path) -> None:
    """Delete a folder of models, if there is one; a folder that somebody else has put into it stays."""
    if path.is_dir():
        _remove_files(path)
        with _files.step("remove the models"):
            _files.remove_folder_if_empty(path)


def _remove_files(path: Path) -> None:
    with _files.step("remove the models"):
        for file in path.iterdir():
            if not file.is_dir():
                _files.remove(file)


def _unreadable(error: OSError) -> ArtifactFileError:
    return ArtifactFileError(f"a file of the model cannot be read now ({error.strerror}): try again later")


def _stamp(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns
