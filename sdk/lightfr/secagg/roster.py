"""Who is in a round, who is whose neighbour, and which sets of devices the server vouches for."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from lightfr.cohorts import MAX_DEVICES, MIN_DEVICES
from lightfr.errors import BufferSizeError, PrivacyError

if TYPE_CHECKING:
    from collections.abc import Iterable

ID_BYTES = 16
PUBLIC_KEY_BYTES = 32
ENTRY_BYTES = ID_BYTES + 2 * PUBLIC_KEY_BYTES

# Neighbours of a device. Fewer than the default would let few colluding devices isolate one, more than the most would
# cost it too much; smaller cohorts are complete.
DEFAULT_DEGREE = 64
MAX_DEGREE = 256

_ROSTER_LABEL = b"lightfr roster v1\n"
_SURVIVORS_LABEL = b"lightfr survivors v1\n"


@dataclass(frozen=True)
class RosterEntry:
    """What a device advertises: its id in this round (16 bytes) and two X25519 public keys (32 bytes each)."""

    peer_id: bytes
    mask_key: bytes
    share_key: bytes

    def to_bytes(self) -> bytes:
        """Return id, mask key and share key, 80 bytes."""
        return self.peer_id + self.mask_key + self.share_key

    @classmethod
    def from_bytes(cls, entry: bytes) -> RosterEntry:
        """Take 80 bytes apart."""
        require_bytes("a roster entry", entry, ENTRY_BYTES)
        keys = entry[ID_BYTES:]
        return cls(entry[:ID_BYTES], keys[:PUBLIC_KEY_BYTES], keys[PUBLIC_KEY_BYTES:])


@dataclass(frozen=True)
class Roster:
    """The cohort of a round. `entries` are 80 bytes for each device, by strictly ascending id.

    Any instance follows the rules of docs/secagg.md; PrivacyError comes of anything else.
    """

    round_id: bytes
    degree: int
    threshold: int
    entries: bytes

    def __post_init__(self) -> None:
        require_bytes("round_id", self.round_id, ID_BYTES)
        _require(len(self.entries) % ENTRY_BYTES == 0, f"its entries are not a multiple of {ENTRY_BYTES} bytes")
        _require(MIN_DEVICES <= self.size <= MAX_DEVICES, f"it has {self.size} devices, not 2 to {MAX_DEVICES}")
        self._require_graph()
        self._require_distinct()

    @classmethod
    def of(cls, round_id: bytes, entries: Iterable[RosterEntry]) -> Roster:
        """Put entries in order and choose the usual degree and threshold."""
        ordered = sorted(entry.to_bytes() for entry in entries)
        degree = min(DEFAULT_DEGREE, len(ordered) - 1)
        return cls(round_id, degree, least_threshold(degree), b"".join(ordered))

    def _require_graph(self) -> None:
        others = self.size - 1
        complete = self.degree == others <= MAX_DEGREE
        regular = DEFAULT_DEGREE <= self.degree <= min(MAX_DEGREE, others) and self.degree % 2 == 0
        _require(complete or regular, f"{self.degree} neighbours do not fit {self.size} devices")
        least, most = least_threshold(self.degree), self.degree + 1
        _require(least <= self.threshold <= most, f"its threshold {self.threshold} is not {least} to {most}")

    def _require_distinct(self) -> None:
        ids = self._ids
        _require(all(a < b for a, b in pairwise(ids)), "its ids are not strictly ascending")
        starts = range(ID_BYTES, len(self.entries), ENTRY_BYTES)
        keys = {self.entries[at : at + PUBLIC_KEY_BYTES] for at in starts}
        keys |= {self.entries[at + PUBLIC_KEY_BYTES : at + 2 * PUBLIC_KEY_BYTES] for at in starts}
        _require(len(keys) == 2 * self.size, "a key appears twice in it")

    @property
    def size(self) -> int:
        """Number of devices."""
        return len(self.entries) // ENTRY_BYTES

    @cached_property
    def _ids(self) -> list[bytes]:
        return [self.entries[at : at + ID_BYTES] for at in range(0, len(self.entries), ENTRY_BYTES)]

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of round id, size, degree and threshold (uint32, little-endian), and the entries."""
        numbers = b"".join(n.to_bytes(4, "little") for n in (self.size, self.degree, self.threshold))
        return hashlib.sha256(self.round_id + numbers + self.entries).digest()

    def entry(self, index: int) -> RosterEntry:
        """Return the entry at an index."""
        return RosterEntry.from_bytes(self.entries[index * ENTRY_BYTES : (index + 1) * ENTRY_BYTES])

    def index_of(self, peer_id: bytes) -> int:
        """Return the index of a device; raises PrivacyError when it is not there."""
        index = bisect_left(self._ids, peer_id)
        _require(index < self.size and self._ids[index] == peer_id, "a device is missing in it")
        return index

    @cached_property
    def _ring(self) -> list[int]:
        """Indices by SHA-256(digest, index): nobody can choose a place without knowing every key of the cohort."""
        places = [hashlib.sha256(self.digest + i.to_bytes(4, "little")).digest() for i in range(self.size)]
        return sorted(range(self.size), key=places.__getitem__)

    @cached_property
    def _places(self) -> dict[int, int]:
        return {index: place for place, index in enumerate(self._ring)}

    def neighbours(self, index: int) -> list[int]:
        """Return the indices of a device's neighbours, ascending: half the degree on each side of the ring, or all."""
        if self.degree == self.size - 1:
            return [i for i in range(self.size) if i != index]
        place, half = self._places[index], self.degree // 2
        steps = (*range(-half, 0), *range(1, half + 1))
        return sorted(self._ring[(place + step) % self.size] for step in steps)


def least_threshold(degree: int) -> int:
    """Return the smallest majority of a device and its neighbours, who then never give up both of its secrets."""
    return (degree + 1) // 2 + 1


def bitmap_of(indices: Iterable[int], size: int) -> bytes:
    """Return a set of devices as bits: roster index i is bit (i mod 8) of byte (i div 8)."""
    return sum(1 << i for i in set(indices)).to_bytes((size + 7) // 8, "little")


def members(bitmap: bytes, size: int) -> frozenset[int]:
    """Return the indices of a bitmap; raises PrivacyError when it does not belong to a roster of this size."""
    bits = int.from_bytes(bitmap, "little")
    _require(len(bitmap) == (size + 7) // 8 and not bits >> size, f"a set of devices is not of {size} bits")
    return frozenset(i for i in range(size) if bits >> i & 1)


def roster_message(digest: bytes) -> bytes:
    """Return what the server signs of a roster."""
    return _ROSTER_LABEL + digest


def survivors_message(digest: bytes, included: bytes, survivors: bytes) -> bytes:
    """Return what the server signs at the end: the roster, who was included and who uploaded, as bitmaps."""
    return _SURVIVORS_LABEL + digest + included + survivors


def require_signature(what: str, server_key: bytes, signature: bytes, message: bytes) -> None:
    """Raise PrivacyError unless the server's raw Ed25519 key signed the message."""
    try:
        Ed25519PublicKey.from_public_bytes(server_key).verify(signature, message)
    except InvalidSignature as error:
        raise PrivacyError(f"the server's signature of the {what} does not fit: leave the round") from error


def require_bytes(what: str, value: bytes, expected_bytes: int) -> None:
    """Raise BufferSizeError unless the value has this length."""
    if len(value) != expected_bytes:
        raise BufferSizeError(what, len(value), expected_bytes)


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise PrivacyError(f"the roster is refused: {reason}; leave the round")
