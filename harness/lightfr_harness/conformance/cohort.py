"""What a server must say about a cohort, by the formulas of docs/secagg.md and nothing else: plain and slow."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Collection, Iterable, Mapping

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from lightfr.v1 import secure_pb2
from lightfr_harness.conformance.expectations import Unexpected, expect, expect_equal

ID_BYTES = 16
ENTRY_BYTES = 80
SEALED_BYTES = 94
SHARE_BYTES = 33
LARGEST_COMPLETE = 65
USUAL_DEGREE = 64
# The field of the shares: the smallest prime above 2^256.
PRIME = 2**256 + 297


class Cohort:
    """A roster as the server sent it, taken apart."""

    def __init__(self, round_id: bytes, step: secure_pb2.ShareStep) -> None:
        entries = step.entries
        expect(len(entries) % ENTRY_BYTES == 0, f"roster entries of {ENTRY_BYTES} bytes each", f"{len(entries)} bytes")
        self.step = step
        self.entries = [entries[at : at + ENTRY_BYTES] for at in range(0, len(entries), ENTRY_BYTES)]
        self.ids = [entry[:ID_BYTES] for entry in self.entries]
        self.size, self.degree, self.threshold = len(self.ids), step.degree, step.threshold
        numbers = struct.pack("<III", self.size, self.degree, self.threshold)
        self.digest = hashlib.sha256(round_id + numbers + entries).digest()

    def index_of(self, peer_id: bytes) -> int:
        expect(peer_id in self.ids, "every device that advertised in the roster", "a roster without one of them")
        return self.ids.index(peer_id)

    def neighbours(self, index: int) -> list[int]:
        """Everybody, or half the degree on each side of the ring; ascending."""
        if self.degree == self.size - 1:
            return [other for other in range(self.size) if other != index]
        ring = sorted(range(self.size), key=lambda i: hashlib.sha256(self.digest + struct.pack("<I", i)).digest())
        place = ring.index(index)
        sides = [*range(-(self.degree // 2), 0), *range(1, self.degree // 2 + 1)]
        return sorted(ring[(place + step) % self.size] for step in sides)

    def bitmap(self, peer_ids: Collection[bytes]) -> bytes:
        """Index i is bit (i mod 8) of byte (i div 8)."""
        bits = bytearray((self.size + 7) // 8)
        for index, peer_id in enumerate(self.ids):
            if peer_id in peer_ids:
                bits[index // 8] |= 1 << index % 8
        return bytes(bits)

    def require_entries(self, advertised: Iterable[bytes]) -> None:
        """Those that advertised, as they did, by ascending id."""
        expect_equal("roster entries, by ascending peer id", b"".join(self.entries), b"".join(sorted(advertised)))

    def require_usual(self) -> None:
        """The degree and the threshold that a kit asks for."""
        degree = self.size - 1 if self.size <= LARGEST_COMPLETE else USUAL_DEGREE
        expect_equal(f"degree for {self.size} devices", self.degree, degree)
        expect_equal(f"threshold for {degree} neighbours", self.threshold, (degree + 1) // 2 + 1)

    def require_signed(self, key: Ed25519PublicKey) -> None:
        _require_signature(key, self.step.signature, b"lightfr roster v1\n" + self.digest, "a roster")

    def require_survivors_signed(self, key: Ed25519PublicKey, included: bytes, step: secure_pb2.RevealStep) -> None:
        message = b"lightfr survivors v1\n" + self.digest + included + step.survivors
        _require_signature(key, step.signature, message, "a survivor set")

    def require_inbox(
        self, step: secure_pb2.UploadStep, receiver: int, sent: Mapping[int, Mapping[int, bytes]]
    ) -> None:
        """What each neighbour that shared has sealed for this one, by index; `sent` is by sender and receiver."""
        senders = [sender for sender in self.neighbours(receiver) if sender in sent]
        expected = b"".join(struct.pack("<I", sender) + sent[sender][receiver] for sender in senders)
        expect_equal(f"sealed shares for device {receiver} of the roster", step.sealed_shares, expected)


def _require_signature(key: Ed25519PublicKey, signature: bytes, message: bytes, what: str) -> None:
    try:
        key.verify(signature, message)
    except InvalidSignature as error:
        raise Unexpected(f"{what} signed with the manifest key over its exact bytes", "another signature") from error


def sealed_by_receiver(request: secure_pb2.ShareKeysRequest) -> dict[int, bytes]:
    """Take the records of a ShareKeys apart."""
    size, records = 4 + SEALED_BYTES, request.sealed_shares
    parts = (records[at : at + size] for at in range(0, len(records), size))
    return {int.from_bytes(part[:4], "little"): part[4:] for part in parts}


def records_of(field: bytes, size: int) -> list[bytes]:
    """A field of records of one size as a list."""
    return [field[at : at + size] for at in range(0, len(field), size)]
