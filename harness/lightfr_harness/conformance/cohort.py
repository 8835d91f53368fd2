"""What a server must say about a cohort, by the formulas of docs/secagg.md and nothing else: plain and slow."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Collection, Iterable, Mapping

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import secure_pb2
from lightfr_harness.conformance.expectations import Unexpected, expect, expect_equal

ID_BYTES = 16
KEY_BYTES = 32
ENTRY_BYTES = 112
VOUCHER_BYTES = 136
SIGNATURE_BYTES = 64
INDEX_BYTES = 4
SEALED_BYTES = 94
SHARE_BYTES = 33
SEALED_RECORD_BYTES = INDEX_BYTES + SEALED_BYTES
REVEALED_RECORD_BYTES = INDEX_BYTES + SHARE_BYTES
LARGEST_COMPLETE = 129
# Neighbours, holders and threshold of a cohort that is larger.
USUAL_NUMBERS = (64, 80, 39)
# The field of the shares: the smallest prime above 2^256.
PRIME = 2**256 + 297

Entry = tuple[bytes, bytes]


class Cohort:
    """A roster as the server sent it, taken apart."""

    def __init__(self, assignment: pb.Assignment, step: secure_pb2.ShareStep) -> None:
        self.step, self.entries = step, records_of(step.entries, ENTRY_BYTES)
        expect(len(step.entries) % ENTRY_BYTES == 0, f"roster entries of {ENTRY_BYTES} bytes", len(step.entries))
        self.ids = [entry[:ID_BYTES] for entry in self.entries]
        self.member_keys = [entry[-KEY_BYTES:] for entry in self.entries]
        self.size, self.threshold = len(self.ids), step.threshold
        # No kind is TRAINING.
        kind = assignment.kind or pb.ROUND_KIND_TRAINING
        numbers = struct.pack("<5I", kind, self.size, step.degree, step.holders, step.threshold)
        about = assignment.round_id + assignment.manifest_sha256
        self.digest = hashlib.sha256(about + numbers + step.entries).digest()

    @property
    def quorum(self) -> int:
        return max(self.size // 2 + 1, 7 * self.size // 10)

    def index_of(self, peer_id: bytes) -> int:
        expect(peer_id in self.ids, "every device that advertised in the roster", "a roster without one of them")
        return self.ids.index(peer_id)

    def neighbours(self, index: int) -> list[int]:
        """Everybody, or those beside it in half as many cycles as the degree says; ascending."""
        if self.step.degree == self.size - 1:
            return [other for other in range(self.size) if other != index]
        beside = set()
        for cycle in self._cycles():
            place = cycle.index(index)
            beside |= {cycle[place - 1], cycle[(place + 1) % self.size]}
        return sorted(beside)

    def _cycles(self) -> Iterable[list[int]]:
        key = hashlib.sha256(b"lightfr graph v1\n" + self.digest).digest()
        count = self.step.degree // 2
        stream = Cipher(AES(key), CTR(bytes(16))).encryptor().update(bytes(8 * self.size * count))
        for numbers in struct.iter_unpack(f"<{self.size}Q", stream):
            yield sorted(range(self.size), key=lambda index, order=numbers: (order[index], index))  # type: ignore[misc]

    def bitmap(self, peer_ids: Collection[bytes]) -> bytes:
        """Index i is bit (i mod 8) of byte (i div 8)."""
        return self.bits(index for index, peer_id in enumerate(self.ids) if peer_id in peer_ids)

    def bits(self, indices: Iterable[int]) -> bytes:
        bits = bytearray((self.size + 7) // 8)
        for index in indices:
            bits[index // 8] |= 1 << index % 8
        return bytes(bits)

    def require_entries(self, advertised: Iterable[Entry]) -> None:
        """Those that advertised, as they did, by ascending id: entries and vouchers."""
        ordered = sorted(advertised)
        entries, vouchers = (b"".join(one[part] for one in ordered) for part in (0, 1))
        expect_equal("roster entries, by ascending peer id", self.step.entries, entries)
        expect_equal("vouchers, in the order of the entries", self.step.vouchers, vouchers)

    def require_usual(self) -> None:
        """The numbers that a kit asks for."""
        step, others = self.step, self.size - 1
        is_complete = self.size <= LARGEST_COMPLETE
        usual = (others, others, self.size // 2 + 1) if is_complete else USUAL_NUMBERS
        got = (step.degree, step.holders, step.threshold)
        expect_equal(f"degree, holders and threshold for {self.size} devices", got, usual)

    def require_signed(self, key: Ed25519PublicKey) -> None:
        _require_signature(key, self.step.signature, b"lightfr roster v1\n" + self.digest, "a roster")

    def included_message(self, included: bytes) -> bytes:
        return b"lightfr included v1\n" + self.digest + included

    def survivors_message(self, included: bytes, survivors: bytes) -> bytes:
        return b"lightfr survivors v1\n" + self.digest + included + survivors

    def require_included_signed(self, key: Ed25519PublicKey, step: secure_pb2.IncludedStep) -> None:
        _require_signature(key, step.signature, self.included_message(step.included), "an included set")

    def require_survivors_signed(self, key: Ed25519PublicKey, included: bytes, step: secure_pb2.SurvivorsStep) -> None:
        message = self.survivors_message(included, step.survivors)
        _require_signature(key, step.signature, message, "a survivor set")

    def require_signers(
        self, step: secure_pb2.UploadStep | secure_pb2.RevealStep, allowed: bytes, message: bytes
    ) -> None:
        """A quorum, all of them in the set, each with its own signature of the message."""
        expect_equal("size of the bitmap of signers", len(step.signers), (self.size + 7) // 8)
        bits, within = (int.from_bytes(field, "little") for field in (step.signers, allowed))
        expect(bits | within == within, "signers that are all in the set that they signed", "others too")
        signers = [index for index in range(self.size) if bits >> index & 1]
        expect(len(signers) >= self.quorum, f"at least {self.quorum} signers of {self.size} devices", len(signers))
        signatures = records_of(step.signatures, SIGNATURE_BYTES)
        expect_equal("bytes of the signatures", len(step.signatures), SIGNATURE_BYTES * len(signers))
        for index, signature in zip(signers, signatures, strict=True):
            key = Ed25519PublicKey.from_public_bytes(self.member_keys[index])
            _require_signature(key, signature, message, f"a set that device {index} of the roster")

    def require_inbox(
        self, step: secure_pb2.AcknowledgeStep, receiver: int, sent: Mapping[int, Mapping[int, bytes]]
    ) -> None:
        """What each device that shared has sealed for this one, by index; `sent` is by sender and receiver."""
        senders = [sender for sender in sorted(sent) if receiver in sent[sender]]
        expected = b"".join(struct.pack("<I", sender) + sent[sender][receiver] for sender in senders)
        expect_equal(f"sealed shares for device {receiver} of the roster", step.sealed_shares, expected)


def _require_signature(key: Ed25519PublicKey, signature: bytes, message: bytes, what: str) -> None:
    try:
        key.verify(signature, message)
    except InvalidSignature as error:
        raise Unexpected(f"{what} signed over its exact bytes", "another signature") from error


def sealed_by_receiver(request: secure_pb2.ShareKeysRequest) -> dict[int, bytes]:
    """Take the records of a ShareKeys apart."""
    records = records_of(request.sealed_shares, SEALED_RECORD_BYTES)
    return {int.from_bytes(record[:INDEX_BYTES], "little"): record[INDEX_BYTES:] for record in records}


def records_of(field: bytes, size: int) -> list[bytes]:
    """A field of records of one size as a list."""
    return [field[at : at + size] for at in range(0, len(field), size)]


def owner_of(record: bytes) -> int:
    """The roster index with which a record begins."""
    return int.from_bytes(record[:INDEX_BYTES], "little")
