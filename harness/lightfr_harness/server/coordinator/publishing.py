"""What devices download: content-addressed files, deltas of codes, manifests. And the state, which they never see.

`Publisher` writes a version, `Version` is one as the coordinator holds it.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lightfr._files import fsync_folder
from lightfr.errors import LightFRError
from lightfr.model.bitmaps import read_bitmap
from lightfr.secagg import Block, evaluation_blocks, gate_blocks, round_blocks
from lightfr.v1 import manifest_pb2, model_pb2
from lightfr_harness.server.artifacts import make_bitmap, make_delta, write_catalogue
from lightfr_harness.server.coordinator.folder import (
    UNFINISHED,
    CrashPoint,
    FolderError,
    keep_only,
    no_crash,
    write_atomically,
)
from lightfr_harness.server.coordinator.plan import EVALUATION, GATE_REFRESH, TRAINING
from lightfr_harness.server.rules import AggregationRule, UploadReader

WIRE_VERSION = 1
# Around what is uploaded: three ids with their tags, and lengths.
REQUEST_OVERHEAD_BYTES = 200
# Of one element of an upload in the clear.
BITS_OF_KIND = {
    model_pb2.UPLOAD_KIND_TERNARY: 2,
    model_pb2.UPLOAD_KIND_EXACT: 32,
    model_pb2.UPLOAD_KIND_CODES: 1,
}
# A device that missed more versions than this fetches the codes whole.
DELTAS_FROM_VERSIONS = 8
# Versions that can be gone back to, besides those that were evaluated.
REMEMBERED_STATES = 4


class Publisher:
    """The files of a folder: `artifacts/<sha256>`, and `states/<version>.npz` which devices never see."""

    def __init__(self, folder: Path, artifacts_address: str = "", crash_point: CrashPoint = no_crash) -> None:
        """Name this address to devices, as manifest.proto says, in every version made from now on."""
        self.folder, self._artifacts_address, self._crash_point = folder, artifacts_address, crash_point
        self.artifacts = folder / "artifacts"
        self.states = folder / "states"
        # Held by whoever removes artifacts, and by whoever adds one beside the thread that publishes.
        self.lock = threading.Lock()
        for made in (self.artifacts, self.states):
            made.mkdir(parents=True, exist_ok=True)

    def put(self, content: bytes) -> manifest_pb2.Artifact:
        """Keep a file under its digest; `publish` makes it durable."""
        digest = hashlib.sha256(content)
        path = self.artifacts / digest.hexdigest()
        if not path.exists():
            write_atomically(path, lambda file: file.write(content), self._crash_point)
        return manifest_pb2.Artifact(sha256=digest.digest(), size_bytes=len(content))

    def put_copy(self, path: Path, pieces: Sequence[bytes]) -> None:
        """Keep a file that lies elsewhere too, beside the thread that publishes."""
        with self.lock:
            write_atomically(path, lambda file: file.writelines(pieces), self._crash_point)

    def put_catalogue(self, ids: Sequence[str] | Sequence[int]) -> manifest_pb2.Artifact:
        """Keep one part of a catalogue, in the format that devices read."""
        unnamed = self.artifacts / f"{UNFINISHED}{secrets.token_hex(4)}-catalogue"
        write_catalogue(unnamed, ids)
        with unnamed.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256")
        size = unnamed.stat().st_size
        unnamed.replace(self.artifacts / digest.hexdigest())
        return manifest_pb2.Artifact(sha256=digest.digest(), size_bytes=size)

    def publish(
        self,
        rule: AggregationRule,
        version: int,
        created: float,
        catalogue_parts: Sequence[manifest_pb2.Artifact],
        older: Sequence[manifest_pb2.Manifest] = (),
        about_ranking: Mapping[str, Any] | None = None,
        public_counts: npt.NDArray[np.int64] | None = None,
    ) -> bytes:
        """Write everything of a version, durably; its manifest, serialised. `older` ones, newest first, get deltas.

        `about_ranking` are the fields of the manifest that say how devices rank. Public counts are kept with the state.
        """
        state: dict[str, Any] = rule.state()
        if public_counts is not None:
            state["public_counts"] = public_counts
        write_atomically(self.states / f"{version}.npz", lambda file: np.savez(file, **state), self._crash_point)
        manifest = manifest_pb2.Manifest(
            wire_version=WIRE_VERSION,
            model_version=version,
            created_unix_seconds=int(created),
            model=rule.model(),
            codes=self.put(rule.codes.tobytes()),
            catalogue_parts=catalogue_parts,
            artifacts_address=self._artifacts_address,
            **(about_ranking or {}),
        )
        if rule.has_shared_row:
            manifest.open_rows.CopyFrom(self.put(make_bitmap(rule.open_rows)))
        if rule.removed.any():
            manifest.removed_items.CopyFrom(self.put(make_bitmap(rule.removed)))
        manifest.codes_deltas.extend(self._deltas(manifest, older))
        for folder in (self.artifacts, self.states):
            fsync_folder(folder)
        self._crash_point("version is written")
        return manifest.SerializeToString()

    def _deltas(
        self, target: manifest_pb2.Manifest, older: Sequence[manifest_pb2.Manifest]
    ) -> list[manifest_pb2.CodesDelta]:
        """From the codes of older versions, as far as they spare a device bytes.

        A delta is right whichever rows it takes for the same. Those of items that were numbered anew are seldom small.
        """
        deltas: dict[bytes, manifest_pb2.CodesDelta] = {}
        codes, items = self._codes(target), self._items(target)
        for manifest in older[:DELTAS_FROM_VERSIONS]:
            source = manifest.codes.sha256
            if source in deltas or source == target.codes.sha256:
                continue
            content = make_delta(self._codes(manifest), codes, _old_rows(self._items(manifest), items))
            if len(content) < target.codes.size_bytes:
                deltas[source] = manifest_pb2.CodesDelta(from_sha256=source, artifact=self.put(content))
        return list(deltas.values())

    def _codes(self, manifest: manifest_pb2.Manifest) -> npt.NDArray[np.uint8]:
        return np.frombuffer(self._read(manifest.codes), np.uint8).reshape(-1, manifest.model.code_bits // 8)

    def _items(self, manifest: manifest_pb2.Manifest) -> npt.NDArray[np.int64]:
        """The item of each row of the codes; -1 is the shared row."""
        if not manifest.HasField("open_rows"):
            return np.arange(manifest.model.item_count)
        return np.append(np.flatnonzero(self._bits(manifest.open_rows, manifest.model.item_count)), -1)

    def _bits(self, bitmap: manifest_pb2.Artifact, n_items: int) -> npt.NDArray[np.bool_]:
        self._read(bitmap)
        packed = np.frombuffer(read_bitmap(self.artifacts / bitmap.sha256.hex(), n_items), np.uint8)
        return np.unpackbits(packed, count=n_items, bitorder="little").astype(np.bool_)

    def _read(self, artifact: manifest_pb2.Artifact) -> bytes:
        name = artifact.sha256.hex()
        try:
            content = (self.artifacts / name).read_bytes()
        except OSError as error:
            raise FolderError(f"artifact {name[:12]}… cannot be read: {error.strerror}") from error
        if hashlib.sha256(content).digest() != artifact.sha256:
            raise FolderError(f"artifact {name[:12]}… was changed")
        return content

    def republish(
        self,
        older: Sequence[manifest_pb2.Manifest],
        version: int,
        number: int,
        created: float,
        state: Path | None = None,
    ) -> bytes:
        """Write a remembered version once more, as the newest, which gets this number: its manifest, serialised.

        `older`: newest first. Its state may lie elsewhere.
        """
        wanted = next((manifest for manifest in older if manifest.model_version == version), None)
        path = state or self.states / f"{version}.npz"
        if wanted is None or not path.exists():
            known = (int(kept.stem) for kept in self.states.glob("[0-9]*.npz"))
            raise not_kept(version, known)
        content = path.read_bytes()
        write_atomically(self.states / f"{number}.npz", lambda file: file.write(content), self._crash_point)
        manifest = manifest_pb2.Manifest()
        manifest.CopyFrom(wanted)
        manifest.model_version, manifest.created_unix_seconds = number, int(created)
        # The model goes back, the cache does not: it may have moved since.
        manifest.artifacts_address = older[0].artifacts_address
        del manifest.codes_deltas[:]
        manifest.codes_deltas.extend(self._deltas(manifest, older))
        for folder in (self.artifacts, self.states):
            fsync_folder(folder)
        self._crash_point("version is written")
        return manifest.SerializeToString()

    def restore(
        self, rule: AggregationRule, manifest: manifest_pb2.Manifest, state: Path | None = None
    ) -> npt.NDArray[np.int64] | None:
        """Take up the state of a version, and check that it is the one whose codes were published.

        Returns the public counts that were kept with it. The state may lie elsewhere.
        """
        try:
            with np.load(state or self.states / f"{manifest.model_version}.npz") as saved:
                parts = dict(saved)
            public_counts: npt.NDArray[np.int64] | None = parts.pop("public_counts", None)
            rule.restore(parts)
        except (OSError, KeyError, ValueError) as error:
            raise FolderError(f"the state of version {manifest.model_version} cannot be read") from error
        if self._read(manifest.codes) != rule.codes.tobytes():
            raise FolderError(f"the state of version {manifest.model_version} is not that of its codes")
        if not self._has_items_of(rule, manifest):
            raise FolderError(f"the state of version {manifest.model_version} is not that of its items")
        return public_counts

    def _has_items_of(self, rule: AggregationRule, manifest: manifest_pb2.Manifest) -> bool:
        """Whether the items that are open and those that left are the same."""
        n_items = manifest.model.item_count
        try:
            removed = self._bits(manifest.removed_items, n_items) if manifest.HasField("removed_items") else False
            items = self._items(manifest)
        except LightFRError as error:
            raise FolderError(f"a bitmap of version {manifest.model_version} cannot be read: {error}") from error
        is_same = rule.n_items == n_items and np.array_equal(rule.published_items(), items)
        return is_same and bool((rule.removed == removed).all())

    def clean(self, manifests: Sequence[bytes], evaluated: Collection[int] = ()) -> None:
        """Remove what no remembered manifest names, and states but the newest ones and those of evaluated versions.

        Newest first.
        """
        artifacts, versions = kept_files(
            [manifest_pb2.Manifest.FromString(manifest) for manifest in manifests], evaluated
        )
        keep_only(self.artifacts, artifacts)
        keep_only(self.states, {f"{version}.npz" for version in versions})


def kept_files(manifests: Sequence[manifest_pb2.Manifest], evaluated: Collection[int]) -> tuple[set[str], set[int]]:
    """Of remembered manifests, newest first: the digests that they name, and the versions whose states are kept."""
    versions = [manifest.model_version for manifest in manifests]
    states = {*versions[:REMEMBERED_STATES], *set(versions).intersection(evaluated)}
    return {digest for manifest in manifests for digest in artifact_kinds(manifest)}, states


def not_kept(version: int, known: Iterable[int]) -> FolderError:
    """Say which versions can be gone back to."""
    return FolderError(f"version {version} is not kept here; choose one of {', '.join(map(str, sorted(known)))}")


def artifact_kinds(manifest: manifest_pb2.Manifest) -> dict[str, str]:
    """Everything that a manifest names: what each digest, in hexadecimal, is the content of."""
    kinds = {delta.artifact.sha256.hex(): "delta" for delta in manifest.codes_deltas}
    for name in ("open_rows", "removed_items"):
        if manifest.HasField(name):
            kinds[getattr(manifest, name).sha256.hex()] = name
    kinds |= {part.sha256.hex(): "catalogue" for part in manifest.catalogue_parts}
    return {**kinds, manifest.codes.sha256.hex(): "codes"}


def _old_rows(old_items: npt.NDArray[np.int64], new_items: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The old row of the item with the number of each new row, or -1 if none had one. Shared rows have the item -1."""
    old_row = np.full(max(old_items.max(initial=0), new_items.max(initial=0)) + 2, -1)
    # -1 is also the last place.
    old_row[old_items] = np.arange(len(old_items))
    return old_row[new_items]


class Signer(Protocol):
    """What signing needs of the authority."""

    @property
    def manifest_key(self) -> Ed25519PrivateKey:
        """Signs rosters and the sets of secure aggregation too."""

    @property
    def membership_keys(self) -> Sequence[bytes]:
        """Of the authority: raw Ed25519 keys that sign the memberships of devices."""

    def sign(self, manifest: bytes) -> manifest_pb2.SignedManifest:
        """A serialised manifest with its signature."""


@dataclass(frozen=True)
class Version:
    """A published version, with what checking uploads for it needs."""

    serialised: bytes
    manifest: manifest_pb2.Manifest
    sha256: bytes
    signed: manifest_pb2.SignedManifest
    reader: UploadReader
    upload_limit_bytes: int

    @classmethod
    def of(cls, manifest: bytes, rule: AggregationRule, sign: Callable[[bytes], manifest_pb2.SignedManifest],
           places: int) -> Version:  # fmt: skip
        """The version that the rule stands at."""
        parsed = manifest_pb2.Manifest.FromString(manifest)
        return cls(
            manifest,
            parsed,
            hashlib.sha256(manifest).digest(),
            sign(manifest),
            UploadReader(parsed.model, rule.open_rows_bitmap()),
            _limit_bytes(rule, parsed, places),
        )


def blocks_of(rule: AggregationRule, n_candidates: int, kind: int, devices: int) -> tuple[Block, ...]:
    """What a cohort of so many devices adds up, on a version with so many candidates."""
    if kind == GATE_REFRESH:
        return gate_blocks(rule.n_items, devices, rule.noise)
    if kind == EVALUATION:
        return evaluation_blocks(n_candidates, devices, rule.noise)
    return round_blocks(int(rule.open_rows.sum()), rule.code_bits, devices, rule.noise)


def _limit_bytes(rule: AggregationRule, manifest: manifest_pb2.Manifest, places: int) -> int:
    """The largest legal upload, of any kind of round, and what stands around it."""
    if manifest.model.privacy_mode == model_pb2.PRIVACY_MODE_CLEAR:
        return upload_limit_bytes(manifest.model)
    kinds, n_candidates = (TRAINING, GATE_REFRESH, EVALUATION), len(manifest.candidates)
    sizes = (sum(b.packed_bytes for b in blocks_of(rule, n_candidates, kind, places)) for kind in kinds)
    return max(sizes) + REQUEST_OVERHEAD_BYTES


def upload_limit_bytes(model: model_pb2.RoundModel) -> int:
    """The largest legal RowUpdate, and what stands around it."""
    rows = min(model.max_rows or model.item_count, model.item_count)
    row_bytes = model.code_bits * BITS_OF_KIND[model.upload_kind] // 8
    return rows * (4 + row_bytes) + model.code_bits // 8 + REQUEST_OVERHEAD_BYTES
