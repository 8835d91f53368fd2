"""Manifests, checked: signed by a trusted key, of a wire version that we speak, and free of contradictions."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Literal

from google.protobuf.message import DecodeError

from lightfr.errors import ManifestError
from lightfr.model.catalogue_part import BLOCK_IDS, MAX_BLOCK_BYTES
from lightfr.rankings import Rankings
from lightfr.v1 import manifest_pb2

if TYPE_CHECKING:
    from lightfr.device import Trust

WIRE_VERSION = 1
MANIFEST_LIMIT_BYTES = 65_536
# A SignedManifest adds its signature, its key id and the tags around them.
SIGNED_LIMIT_BYTES = MANIFEST_LIMIT_BYTES + 128
_SIGNED_PREFIX = b"lightfr manifest v1\n"
_LARGEST_ARTIFACT_BYTES = 2**40
# Of a part of the catalogue, for each block of ids: what the directory, the numbers and the groups add to the ids is
# less than 2^12. See docs/artifacts.md.
_MOST_BYTES_PER_BLOCK = MAX_BLOCK_BYTES + 2**12
_MOST_DELTAS = 16
_MOST_PARTS = 16
_BITMAPS: tuple[Literal["open_rows", "removed_items"], ...] = ("open_rows", "removed_items")
_LABEL = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_ADDRESS = re.compile(rf"https://(?=[^:]{{1,253}}:){_LABEL}(\.{_LABEL})*:(?P<port>[1-9][0-9]{{0,4}})", re.ASCII)


def is_artifacts_address(text: str) -> bool:
    """Whether manifest.proto takes it for the address of a cache: 'https://host:port' and not a character more."""
    match = _ADDRESS.fullmatch(text)
    return match is not None and int(match["port"]) < 65_536


class Manifest:
    """One version of the model, as its server signed it."""

    def __init__(self, signed: bytes, trust: Trust) -> None:
        """Take a serialised SignedManifest; raises ManifestError unless all of it is in order."""
        self.signed = signed
        try:
            envelope = manifest_pb2.SignedManifest.FromString(signed)
            _require(len(envelope.manifest) <= MANIFEST_LIMIT_BYTES, "it is too long")
            _verify(envelope, trust)
            message = manifest_pb2.Manifest.FromString(envelope.manifest)
        except DecodeError as error:
            raise ManifestError(f"{len(signed)} bytes are not a manifest") from error
        # The raw key that signed it, which signs the rosters of its rounds too.
        self.signing_key = trust.manifest_keys[envelope.key_id]
        self.sha256 = hashlib.sha256(envelope.manifest).digest()
        self.message = message
        _require(
            message.wire_version == WIRE_VERSION, f"its wire version is {message.wire_version}, not {WIRE_VERSION}"
        )
        _require(message.model_version >= 1, "it has no model version")
        address = message.artifacts_address
        _require(not address or is_artifacts_address(address), "artifacts_address is not https://host:port")
        _check_artifacts(self)
        # How popular items are, how to rank, and what evaluations compare.
        self.rankings = Rankings.of(message)

    @property
    def model_version(self) -> int:
        """Number of the version; grows with every new one."""
        return self.message.model_version

    @property
    def files_beside_codes(self) -> list[manifest_pb2.Artifact]:
        """What a device keeps of this version, but for the codes."""
        message = self.message
        optional = [getattr(message, name) for name in _BITMAPS if message.HasField(name)]
        return [*message.catalogue_parts, *optional]

    @property
    def files(self) -> list[manifest_pb2.Artifact]:
        """All that a device keeps of this version."""
        return [self.message.codes, *self.files_beside_codes]

    def delta_from(self, sha256: bytes) -> manifest_pb2.Artifact | None:
        """Return the delta from these older codes, if there is one and it is smaller than the codes."""
        for delta in self.message.codes_deltas:
            if delta.from_sha256 == sha256 and delta.artifact.size_bytes < self.message.codes.size_bytes:
                return delta.artifact
        return None

    def __repr__(self) -> str:
        return f"<Manifest of version {self.model_version}>"


def _verify(envelope: manifest_pb2.SignedManifest, trust: Trust) -> None:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    key = trust.manifest_keys.get(envelope.key_id)
    _require(key is not None, "it is signed by a key that is not trusted")
    try:
        Ed25519PublicKey.from_public_bytes(key or b"").verify(envelope.signature, _SIGNED_PREFIX + envelope.manifest)
    except InvalidSignature as error:
        raise ManifestError("a manifest was refused: its signature is wrong") from error


def _check_artifacts(manifest: Manifest) -> None:
    message, model = manifest.message, manifest.message.model
    _require(8 <= model.code_bits <= 1024 and model.code_bits % 8 == 0, "code_bits is out of range")
    _require(model.item_count >= 1, "it has no items")
    n_rows, rest = divmod(message.codes.size_bytes, model.code_bits // 8)
    # Only the bitmap says how many items are open.
    fits = 1 <= n_rows <= model.item_count + 1 if message.HasField("open_rows") else n_rows == model.item_count
    _require(fits and not rest, "the codes have another size")
    # Without the bitmap every item is open, and none that left may be.
    can_leave = message.HasField("open_rows") or not message.HasField("removed_items")
    _require(can_leave, "items have left, and nothing says which are open")
    _require(1 <= len(message.catalogue_parts) <= _MOST_PARTS, f"its catalogue must have 1 to {_MOST_PARTS} parts")
    _require(len(message.codes_deltas) <= _MOST_DELTAS, f"it has more than {_MOST_DELTAS} deltas")
    artifacts = [*manifest.files, *(delta.artifact for delta in message.codes_deltas)]
    digests = [artifact.sha256 for artifact in artifacts] + [delta.from_sha256 for delta in message.codes_deltas]
    _require(all(len(digest) == 32 for digest in digests), "a digest must be 32 bytes")
    for artifact in artifacts:
        _require(artifact.size_bytes <= _LARGEST_ARTIFACT_BYTES, "an artifact is too large")
    # Before anything is fetched, since the disk would be full before a digest is wrong.
    most_bytes = -(-model.item_count // BLOCK_IDS) * _MOST_BYTES_PER_BLOCK
    for part in message.catalogue_parts:
        _require(part.size_bytes <= most_bytes, f"a part of its catalogue is too large for {model.item_count} items")


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise ManifestError(f"a manifest was refused: {reason}")
