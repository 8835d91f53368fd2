"""The model on this device: public files, named by their digests, and the signed manifest that says which count.

Opening checks the manifest's signature and the sizes of the files, which costs the same however large they are. The
first sync or round of a process reads them whole and compares their digests; so does a later one when a file's size,
inode or time of change is another. A file that is damaged goes, and is fetched again.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING

from lightfr import _files
from lightfr._wire.downloads import Sources, install
from lightfr.codes import ItemCodes
from lightfr.errors import ArtifactError, ArtifactFileError, ManifestError, ProtocolError
from lightfr.model.catalogue import Catalogue
from lightfr.model.manifest import Manifest
from lightfr.training.model import PublishedModel

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from lightfr._wire.channel import Channel
    from lightfr.device import Trust
    from lightfr.v1 import manifest_pb2

_CURRENT = "current"


class LoadedModel:
    """One version, memory-mapped: the codes, the item ids, and what a fit needs."""

    def __init__(self, manifest: Manifest, folder: Path) -> None:
        message = manifest.message
        n_items = message.model.item_count
        self.manifest = manifest
        self.codes = ItemCodes.open(folder / message.codes.sha256.hex(), message.model.code_bits, n_items=n_items)
        try:
            self.catalogue = Catalogue.open(folder / message.catalogue.sha256.hex(), n_items)
            self.published = PublishedModel(self.codes, message.model)
        except BaseException:
            self.close()
            raise

    def rows_of(self, item_ids: Iterable[str | int]) -> list[int]:
        """Return the rows of the items that the catalogue has."""
        rows = map(self.catalogue.row_of, item_ids)
        return [row for row in rows if row is not None]

    def close(self) -> None:
        """Unmap the files."""
        self.codes.close()
        if hasattr(self, "catalogue"):
            self.catalogue.close()


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
        current = self._path / _CURRENT
        if not current.exists():
            return None
        self._held = Manifest(current.read_bytes(), self._trust)
        return LoadedModel(self._held, self._path)

    def load_or_begin_anew(self) -> LoadedModel | None:
        """Open the version in use; files that are damaged or not trusted any more go: a sync brings new ones."""
        try:
            return self.load()
        except ArtifactFileError:
            self.drop_damaged()
        except ProtocolError:
            self._remove_files()
        return None

    def drop_damaged(self) -> bool:
        """Check the files of the version in use, remove the first damaged one, and say whether one is missing now."""
        if self._held is None:
            return False
        files = (self._held.message.codes, self._held.message.catalogue)
        return not all(self._keep_if_whole(file) for file in files)

    def fetch(self, channel: Channel, signed: bytes) -> LoadedModel:
        """Check a signed manifest, complete what it names, and make it the version in use.

        It must be newer than the version in use, or the same manifest once more, which mends damaged files.
        """
        manifest, old = Manifest(signed, self._trust), self._held
        if old is not None and manifest.model_version <= old.model_version and manifest.sha256 != old.sha256:
            raise ManifestError(f"a manifest was refused: version {manifest.model_version} after {old.model_version}")
        with Sources(channel, manifest.message.artifacts_address) as sources:
            self._download(sources, manifest.message.catalogue)
            self._fetch_codes(sources, manifest, old)
        loaded = LoadedModel(manifest, self._path)
        try:
            with _files.step("switch to the new model"):
                _files.save(self._path / _CURRENT, signed)
            self._held = manifest
            self._sweep(manifest)
        except BaseException:
            loaded.close()
            raise
        return loaded

    def open_rows(self, channel: Channel, manifest: Manifest) -> bytes:
        """Return the gate's bitmap, fetched if need be; empty: every row is open."""
        if not manifest.message.HasField("open_rows"):
            return b""
        with Sources(channel, manifest.message.artifacts_address) as sources:
            return self._download(sources, manifest.message.open_rows).read_bytes()

    def remove(self) -> None:
        """Delete every file; the folder must not be in use any more."""
        self._remove_files()
        with _files.step("remove the models"):
            self._path.rmdir()

    def _remove_files(self) -> None:
        with _files.step("remove the models"):
            for file in self._path.iterdir():
                _files.remove(file)

    def _download(self, sources: Sources, artifact: manifest_pb2.Artifact) -> Path:
        """Return the artifact's file, fetched if it is missing or damaged."""
        self._keep_if_whole(artifact)
        path = sources.download(artifact, self._path)
        # A download is kept only if its digest is right.
        self._checked[path.name] = _stamp(path)
        return path

    def _keep_if_whole(self, artifact: manifest_pb2.Artifact) -> bool:
        """Say whether the artifact's file is here and whole, reading it if it changed since; remove a damaged one."""
        path = self._path / artifact.sha256.hex()
        try:
            stamp = _stamp(path)
            if self._checked.get(path.name) == stamp:
                return True
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            return False
        except OSError:  # the medium does not give it back
            digest = ""
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

    def _sweep(self, manifest: Manifest) -> None:
        """Remove what the version in use does not name. Mapped files live on until they are closed.

        A file that cannot be removed now waits for the next sweep.
        """
        message = manifest.message
        named = {artifact.sha256.hex() for artifact in (message.codes, message.catalogue, message.open_rows)}
        for file in self._path.iterdir():
            if file.name not in named | {_CURRENT}:
                with suppress(OSError):
                    _files.remove(file)


def _stamp(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns
