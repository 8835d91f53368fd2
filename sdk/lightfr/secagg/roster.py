"""Who is in a round, what vouches for each, and who is whose neighbour."""

from __future__ import annotations

import hashlib
import struct
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR

from lightfr.cohorts import MAX_DEVICES, MIN_DEVICES
from lightfr.errors import PrivacyError
from lightfr.membership import MEMBERSHIP_BYTES, require_membership
from lightfr.secagg.views import SIGNATURE_BYTES, entry_message, require_bytes, require_signature

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lightfr.membership import IsSigned

ID_BYTES = 16
PUBLIC_KEY_BYTES = 32
_ENTRY = struct.Struct(f"{ID_BYTES}s" + 3 * f"{PUBLIC_KEY_BYTES}s")
ENTRY_BYTES = _ENTRY.size
VOUCHER_BYTES = MEMBERSHIP_BYTES - PUBLIC_KEY_BYTES + SIGNATURE_BYTES
_SHA256_BYTES = 32

# Neighbours of a device, holders of its shares, and how many of these and itself give a secret back. In cohorts up to
# the complete size everybody is everybody's neighbour and holder.
USUAL_DEGREE = 64
USUAL_HOLDERS = 80
USUAL_THRESHOLD = 39
COMPLETE_SIZE = 129
_MOST = 256

_GRAPH_LABEL = b"lightfr graph v1\n"


@dataclass(frozen=True)
class RosterEntry:
    """What a device advertises: its id in this round (16 bytes), two X25519 keys and its member key (32 bytes each)."""

    peer_id: bytes
    mask_key: bytes
    share_key: bytes
    member_key: bytes

    def to_bytes(self) -> bytes:
        """Return id, mask key, share key and member key, 112 bytes."""
        return self.peer_id + self.mask_key + self.share_key + self.member_key

    @classmethod
    def from_bytes(cls, entry: bytes) -> RosterEntry:
        """Take 112 bytes apart."""
        require_bytes("a roster entry", entry, ENTRY_BYTES)
        return cls(*_ENTRY.unpack(entry))


@dataclass(frozen=True)
class VouchedEntry:
    """An entry, the authority's membership of its member key (104 bytes), and the device's signature of the entry."""

    entry: RosterEntry
    membership: bytes
    signature: bytes

    def voucher(self) -> bytes:
        """Return what the roster carries beside the entry: end and signature of the membership, and the signature."""
        return self.membership[PUBLIC_KEY_BYTES:] + self.signature

    @classmethod
    def from_voucher(cls, entry: RosterEntry, voucher: bytes) -> VouchedEntry:
        """Put the membership together again."""
        rest, signature = voucher[:-SIGNATURE_BYTES], voucher[-SIGNATURE_BYTES:]
        return cls(entry, entry.member_key + rest, signature)

    def require_member(self, membership_keys: Sequence[bytes], now: float, check: IsSigned | None = None) -> None:
        """Raise PrivacyError unless the authority vouches for the member key."""
        if require_membership(self.membership, membership_keys, now, check) != self.entry.member_key:
            raise PrivacyError("the authority vouches for another key than an entry of the roster has: leave the round")

    def require_own_keys(self, round_id: bytes, check: IsSigned | None = None) -> None:
        """Raise PrivacyError unless the device itself signed its keys for this round."""
        entry = self.entry
        message = entry_message(round_id, entry.peer_id, entry.mask_key, entry.share_key)
        require_signature("a device of the roster, of its own entry,", entry.member_key, self.signature, message, check)


@dataclass(frozen=True)
class Roster:
    """The cohort of a round. `entries` are 112 bytes for each device, by strictly ascending id.

    `manifest_sha256` and `kind` (a RoundKind) are what the round is about: all devices then agree on that too. Any
    instance follows the rules of docs/secagg.md; PrivacyError comes of anything else.
    """

    round_id: bytes
    manifest_sha256: bytes
    kind: int
    degree: int
    holders: int
    threshold: int
    entries: bytes

    def __post_init__(self) -> None:
        require_bytes("round_id", self.round_id, ID_BYTES)
        require_bytes("manifest_sha256", self.manifest_sha256, _SHA256_BYTES)
        _require(len(self.entries) % ENTRY_BYTES == 0, f"its entries are not a multiple of {ENTRY_BYTES} bytes")
        _require(MIN_DEVICES <= self.size <= MAX_DEVICES, f"it has {self.size} devices, not 2 to {MAX_DEVICES}")
        self._require_graph()
        self._require_distinct()

    @classmethod
    def of(cls, round_id: bytes, manifest_sha256: bytes, kind: int, entries: Iterable[RosterEntry]) -> Roster:
        """Put entries in order and choose the usual numbers."""
        ordered = sorted(entry.to_bytes() for entry in entries)
        return cls(round_id, manifest_sha256, kind, *usual_numbers(len(ordered)), b"".join(ordered))

    def _require_graph(self) -> None:
        others, given = self.size - 1, (self.degree, self.holders, self.threshold)
        if self.size <= COMPLETE_SIZE:
            fits = given == usual_numbers(self.size)
        else:
            fits = (
                USUAL_DEGREE <= self.degree <= min(_MOST, others // 2)
                and self.degree % 2 == 0
                and USUAL_HOLDERS <= self.holders <= min(_MOST, others)
                and least_threshold(self.holders) <= self.threshold <= self.holders
            )
        _require(fits, "its numbers {} neighbours, {} holders, threshold {} do not fit".format(*given))

    def _require_distinct(self) -> None:
        ids = self._ids
        _require(all(a < b for a, b in pairwise(ids)), "its ids are not strictly ascending")
        keys = {
            self.entries[at : at + PUBLIC_KEY_BYTES]
            for first in range(ID_BYTES, ENTRY_BYTES, PUBLIC_KEY_BYTES)
            for at in range(first, len(self.entries), ENTRY_BYTES)
        }
        _require(len(keys) == 3 * self.size, "a key appears twice in it")

    @property
    def size(self) -> int:
        """Number of devices."""
        return len(self.entries) // ENTRY_BYTES

    @property
    def is_complete(self) -> bool:
        """Whether all devices are neighbours of each other."""
        return self.degree == self.size - 1

    @cached_property
    def _ids(self) -> list[bytes]:
        return [self.entries[at : at + ID_BYTES] for at in range(0, len(self.entries), ENTRY_BYTES)]

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of round id, manifest digest, five numbers (uint32 each, little-endian), and the entries."""
        numbers = struct.pack("<5I", self.kind, self.size, self.degree, self.holders, self.threshold)
        return hashlib.sha256(self.round_id + self.manifest_sha256 + numbers + self.entries).digest()

    def entry(self, index: int) -> RosterEntry:
        """Return the entry at an index."""
        return RosterEntry.from_bytes(self.entries[index * ENTRY_BYTES : (index + 1) * ENTRY_BYTES])

    def share_keys(self) -> bytes:
        """Return id and share key of every device, 48 bytes each: whoever opens what others sealed needs them."""
        entries, share = self.entries, ID_BYTES + PUBLIC_KEY_BYTES
        return b"".join(
            entries[at : at + ID_BYTES] + entries[at + share : at + share + PUBLIC_KEY_BYTES]
            for at in range(0, len(entries), ENTRY_BYTES)
        )

    def index_of(self, peer_id: bytes) -> int:
        """Return the index of a device; raises PrivacyError when it is not there."""
        index = bisect_left(self._ids, peer_id)
        _require(index < self.size and self._ids[index] == peer_id, "a device is missing in it")
        return index

    @cached_property
    def _cycles(self) -> list[list[int]]:
        """The indices in degree / 2 orders, each a cycle. They depend on every key of the cohort.

        Not one ring: there, the devices beside a victim could be said to have dropped out, and it would be cut off.
        """
        key = hashlib.sha256(_GRAPH_LABEL + self.digest).digest()
        n, n_cycles = self.size, self.degree // 2
        stream = Cipher(AES(key), CTR(bytes(16))).encryptor().update(bytes(8 * n * n_cycles))
        orders = struct.iter_unpack(f"<{n}Q", stream)
        return [sorted(range(n), key=order.__getitem__) for order in orders]

    def neighbours(self, index: int) -> list[int]:
        """Return the indices of a device's neighbours, ascending: those beside it in the cycles, or all."""
        if self.is_complete:
            return [i for i in range(self.size) if i != index]
        places = ((cycle, cycle.index(index)) for cycle in self._cycles)
        return sorted({cycle[(at + step) % self.size] for cycle, at in places for step in (-1, 1)})


def usual_numbers(size: int) -> tuple[int, int, int]:
    """Return the degree, the number of holders and the threshold that a server chooses for a cohort of this size."""
    if size <= COMPLETE_SIZE:
        return size - 1, size - 1, size // 2 + 1
    return USUAL_DEGREE, USUAL_HOLDERS, USUAL_THRESHOLD


def least_threshold(n_holders: int) -> int:
    """Return the smallest threshold: if a fifth of the cohort colludes, it hardly ever has so many of the holders."""
    return -(-USUAL_THRESHOLD * n_holders // USUAL_HOLDERS)


def least_neighbours(n_neighbours: int) -> int:
    """Return how many neighbours of a device must be left: five eighths, more than can collude around it."""
    return -(-5 * n_neighbours // 8)


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise PrivacyError(f"the roster is refused: {reason}; leave the round")
