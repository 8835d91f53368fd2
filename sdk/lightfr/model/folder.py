"""The model on this device: public files, named by their digests, and the signed manifest that says which count."""

from __future__ import annotations

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
        with _files.step("make the folder of the models"):
            _files.require_folder(path)

    def load(self) -> LoadedModel | None:
        """Open the version in use; None: nothing was ever synced."""
        current = self._path / _CURRENT
        return LoadedModel(Manifest(current.read_bytes(), self._trust), self._path) if current.exists() else None

    def load_or_begin_anew(self) -> LoadedModel | None:
        """Open the version in use; files that are damaged or not trusted any more go: a sync brings new ones."""
        try:
            return self.load()
        except (ArtifactFileError, ProtocolError):
            self._remove_files()
            return None

    def fetch(self, channel: Channel, signed: bytes, old: Manifest | None) -> LoadedModel:
        """Check a signed manifest, complete what it names, and make it the version in use."""
        manifest = Manifest(signed, self._trust)
        if old is not None and manifest.model_version <= old.model_version:
            raise ManifestError(f"a manifest was refused: version {manifest.model_version} after {old.model_version}")
        with Sources(channel, manifest.message.artifacts_address) as sources:
            sources.download(manifest.message.catalogue, self._path)
            self._fetch_codes(sources, manifest, old)
        loaded = LoadedModel(manifest, self._path)
        try:
            with _files.step("switch to the new model"):
                _files.save(self._path / _CURRENT, signed)
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
            return sources.download(manifest.message.open_rows, self._path).read_bytes()

    def remove(self) -> None:
        """Delete every file; the folder must not be in use any more."""
        self._remove_files()
        with _files.step("remove the models"):
            self._path.rmdir()

    def _remove_files(self) -> None:
        with _files.step("remove the models"):
            for file in self._path.iterdir():
                _files.remove(file)

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
        sources.download(codes, self._path)

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
