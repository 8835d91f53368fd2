"""The server's part of secure aggregation: masked uploads in, their sum out. docs/secagg.md gives every byte.

Everything about one device that this module learns is a vector under masks, and either the seed of its self-mask or its
mask key, never both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lightfr.errors import InvalidInputError, LightFRError
from lightfr.secagg import RevealedShares, Roster, shamir
from lightfr.secagg.agreement import Agreement, pair_mask_key, public_key, self_mask_key
from lightfr.secagg.roster import ID_BYTES, bitmap_of, members, roster_message, survivors_message
from lightfr.secagg.vector import Block, Vector
from lightfr_harness.server.rules.uploads import UploadError

_RECORD_BYTES = ID_BYTES + shamir.SHARE_BYTES


class SecureSumError(LightFRError):
    """The masks of a round cannot be taken off: it ends without a result, and nothing was unmasked."""


def sign_roster(key: Ed25519PrivateKey, roster: Roster) -> bytes:
    """The server's signature of a roster."""
    return key.sign(roster_message(roster.digest))


class MaskedSum:
    """One round: add() uploads, close() it, reveal() what the devices then tell, take the masks off in finish()."""

    def __init__(self, roster: Roster, included: bytes, blocks: Sequence[Block]) -> None:
        """Begin with the devices that delivered their shares, as a bitmap of roster indices."""
        self._roster = roster
        self._included = members(included, roster.size)
        self._sum = Vector(blocks)
        self._uploaded: set[int] = set()
        self._survivors: frozenset[int] | None = None
        self._answered: set[int] = set()
        # Owner's roster index -> holder's x -> share.
        self._shares: dict[int, dict[int, bytes]] = {}

    def add(self, peer_id: bytes, packed: bytes) -> None:
        """Count the upload of one device; raises UploadError and counts nothing unless it is what the round needs."""
        index = self._index(peer_id)
        _require(self._survivors is None, "the survivors of the round are settled")
        _require(index in self._included, "the device delivered no shares")
        _require(index not in self._uploaded, "the device has uploaded already")
        try:
            self._sum.add_packed(packed)
        except InvalidInputError as error:
            raise UploadError(f"upload refused: {error}") from error
        self._uploaded.add(index)

    def close(self, key: Ed25519PrivateKey) -> tuple[bytes, bytes]:
        """Settle who survived; return the bitmap and its signature, for the survivors. No upload counts later."""
        self._survivors = frozenset(self._uploaded)
        size, digest = self._roster.size, self._roster.digest
        survivors = bitmap_of(self._survivors, size)
        return survivors, key.sign(survivors_message(digest, bitmap_of(self._included, size), survivors))

    def reveal(self, shares: RevealedShares) -> None:
        """Keep what one survivor reveals; raises UploadError and keeps nothing unless it is what it was asked for."""
        holder, alive = self._index(shares.sender), self._survivors or frozenset()
        _require(holder in alive, "the device is not a survivor")
        _require(holder not in self._answered, "the device has revealed its shares already")
        neighbours = self._included.intersection(self._roster.neighbours(holder))
        self_masks, mask_keys = self._read(shares.self_masks), self._read(shares.mask_keys)
        _require(
            self_masks.keys() == (neighbours & alive) | {holder}, "it must have one self-mask share for each survivor"
        )
        _require(mask_keys.keys() == neighbours - alive, "it must have one mask-key share for each dropped device")
        for owner, share in (self_masks | mask_keys).items():
            self._shares.setdefault(owner, {})[holder + 1] = share
        self._answered.add(holder)

    def finish(self) -> dict[str, npt.NDArray[np.int64]]:
        """Reconstruct every secret, then take off the masks; return the sums by block.

        Raises SecureSumError, before any mask is off, when a secret lacks shares or does not fit the roster.
        """
        if self._survivors is None or not self._survivors:
            raise SecureSumError("no device uploaded, or the round is not closed: there is nothing to unmask")
        seeds = {index: self._secret(index) for index in sorted(self._survivors)}
        mask_keys = {index: self._mask_key(index) for index in sorted(self._dropped())}
        self._subtract_self_masks(seeds)
        self._subtract_pair_masks(mask_keys)
        self._shares.clear()  # masks come off once: another call finds too few shares
        return {block.name: _numbers(block, self._sum) for block in self._sum.blocks}

    def _dropped(self) -> Iterator[int]:
        """Included devices that did not upload, but whose masks are in the upload of a neighbour."""
        alive = self._survivors or frozenset()
        return (i for i in self._included - alive if not alive.isdisjoint(self._roster.neighbours(i)))

    def _secret(self, owner: int) -> bytes:
        shares, threshold = self._shares.get(owner, {}), self._roster.threshold
        if len(shares) < threshold:
            raise SecureSumError(
                f"{len(shares)} shares of a secret arrived, {threshold} are needed: the round ends without a sum"
            )
        try:
            return _join(list(shares.items()), threshold)
        except InvalidInputError as error:
            raise SecureSumError(f"the round ends without a sum: {error}") from error

    def _mask_key(self, owner: int) -> bytes:
        private_key = self._secret(owner)
        if public_key(private_key) != self._roster.entry(owner).mask_key:
            raise SecureSumError("a reconstructed mask key is not the one advertised: the round ends without a sum")
        return private_key

    def _subtract_self_masks(self, seeds: Mapping[int, bytes]) -> None:
        for index, seed in seeds.items():
            key = self_mask_key(seed, self._roster.round_id, self._roster.entry(index).peer_id)
            self._sum.mask(key, subtract=True)

    def _subtract_pair_masks(self, mask_keys: Mapping[int, bytes]) -> None:
        """A survivor added its mask with a dropped device when its own id is the smaller one, else subtracted it."""
        alive = self._survivors or frozenset()
        for dropped, private_key in mask_keys.items():
            agreement, gone = Agreement(private_key), self._roster.entry(dropped)
            for index in alive.intersection(self._roster.neighbours(dropped)):
                peer = self._roster.entry(index)
                shared = agreement.with_peer(peer.mask_key)
                key = pair_mask_key(shared, self._roster.round_id, gone.peer_id, peer.peer_id)
                self._sum.mask(key, subtract=index < dropped)

    def _index(self, peer_id: bytes) -> int:
        try:
            return self._roster.index_of(peer_id)
        except LightFRError as error:
            raise UploadError("upload refused: the device is not in the roster") from error

    def _read(self, field: bytes) -> dict[int, bytes]:
        """Owner's roster index to share."""
        records = [field[at : at + _RECORD_BYTES] for at in range(0, len(field), _RECORD_BYTES)]
        _require(all(shamir.is_share(record[ID_BYTES:]) for record in records), "a share is not a number of the field")
        ids = [record[:ID_BYTES] for record in records]
        _require(all(one < other for one, other in pairwise(ids)), "its records must be sorted by ascending id")
        return {self._index(record[:ID_BYTES]): record[ID_BYTES:] for record in records}


def _join(shares: list[tuple[int, bytes]], threshold: int) -> bytes:
    """The secret, from the first and again from the last shares: a majority each, so that a false one is noticed."""
    secret = shamir.join(dict(shares[:threshold]))
    if len(shares) > threshold and shamir.join(dict(shares[-threshold:])) != secret:
        raise InvalidInputError(f"{len(shares)} shares do not belong to one secret")
    return secret


def _numbers(block: Block, total: Vector) -> npt.NDArray[np.int64]:
    """The low bits of the sums, as the signed or unsigned numbers they stand for."""
    values = np.frombuffer(total[block.name], f"<i{total[block.name].itemsize}").astype(np.int64)
    values &= (1 << block.bits) - 1
    if block.signed:
        values -= (values >> (block.bits - 1)) << block.bits
    return values


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise UploadError(f"upload refused: {reason}")
