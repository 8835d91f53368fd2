"""A published version as the coordinator holds it, and how large its uploads may be."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lightfr.secagg import Block, gate_blocks, round_blocks
from lightfr.v1 import manifest_pb2, model_pb2
from lightfr_harness.server.coordinator.rounds import GATE_REFRESH, TRAINING
from lightfr_harness.server.rules import CatalogueRule, UploadReader

# Around what is uploaded: three ids with their tags, and lengths.
REQUEST_OVERHEAD_BYTES = 200


class Signer(Protocol):
    """What signing needs of the authority."""

    @property
    def manifest_key(self) -> Ed25519PrivateKey:
        """Signs rosters and survivor sets too."""

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
    def of(cls, manifest: bytes, server: CatalogueRule, sign: Callable[[bytes], manifest_pb2.SignedManifest],
           places: int) -> Version:  # fmt: skip
        """The version that the server stands at."""
        parsed = manifest_pb2.Manifest.FromString(manifest)
        return cls(
            manifest,
            parsed,
            hashlib.sha256(manifest).digest(),
            sign(manifest),
            UploadReader(parsed.model, server.open_rows_bitmap()),
            _limit_bytes(server, parsed.model, places),
        )


def blocks_of(server: CatalogueRule, kind: int, devices: int) -> tuple[Block, ...]:
    """What a cohort of so many devices adds up."""
    if kind == GATE_REFRESH:
        return gate_blocks(server.n_items, devices)
    return round_blocks(int(server.upload_rows.sum()), server.code_bits, devices, server.noise)


def _limit_bytes(server: CatalogueRule, model: model_pb2.RoundModel, places: int) -> int:
    """The largest legal upload, of either kind of round, and what stands around it."""
    if model.privacy_mode == model_pb2.PRIVACY_MODE_CLEAR:
        return upload_limit_bytes(model)
    sizes = (sum(b.packed_bytes for b in blocks_of(server, kind, places)) for kind in (TRAINING, GATE_REFRESH))
    return max(sizes) + REQUEST_OVERHEAD_BYTES


def upload_limit_bytes(model: model_pb2.RoundModel) -> int:
    """The largest legal RowUpdate, ternary, and what stands around it."""
    rows = min(model.max_rows or model.item_count, model.item_count)
    return rows * (4 + 2 * model.code_bits // 8) + model.code_bits // 8 + REQUEST_OVERHEAD_BYTES
