"""The server's part of secure aggregation: masked uploads in, their sum out. docs/secagg.md gives every byte.

Devices are named by their roster indices. Everything about one device that this module learns is a vector under masks,
and either the seed of its self-mask or its mask key, never both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from lightfr.errors import InvalidInputError, LightFRError
from lightfr.secagg import RevealedShares, Roster, shamir
from lightfr.secagg.agreement import Agreement, pair_mask_key, public_key, self_mask_key
from lightfr.secagg.vector import Block, Vector
from lightfr_harness.server.rules.shares import secret_of
from lightfr_harness.server.rules.uploads import UploadError

_INDEX_BYTES = 4
_RECORD_BYTES = _INDEX_BYTES + shamir.SHARE_BYTES

# Owner to the holders that it sent shares to.
Holders = Mapping[int, Sequence[int]]


class SecureSumError(LightFRError):
    """The masks of a round cannot be taken off: it ends without a result, and nothing was unmasked."""


class MissingSharesError(SecureSumError):
    """Too few devices were left at the end. Nobody need have lied."""


@dataclass(frozen=True)
class Included:
    """Who goes on after the shares were acknowledged, and who is out because its shares or complaints do not fit."""

    devices: frozenset[int]
    faulty: frozenset[int]


def settle_included(roster: Roster, holders: Holders, unopened: Mapping[int, frozenset[int]]) -> Included:
    """Choose who goes on: those who shared and acknowledged, and whose secrets can be found again.

    `unopened` has for each device that acknowledged the senders whose shares it could not open. A device that
    complains about more than half of its senders, and two at least, is taken to lie, and is not believed.
    """
    sent_to: dict[int, int] = dict.fromkeys(range(roster.size), 0)
    for receivers in holders.values():
        for receiver in receivers:
            sent_to[receiver] += 1
    liars = {holder for holder, bad in unopened.items() if len(bad) >= 2 and 2 * len(bad) > sent_to[holder]}
    believed = {holder: bad for holder, bad in unopened.items() if holder not in liars}
    spare = (roster.holders + 1 - roster.threshold) // 2
    devices, faulty = set(), set(liars)
    for owner in believed.keys() & holders.keys():
        complaints = sum(owner in believed.get(holder, ()) for holder in holders[owner])
        opened = 1 + sum(holder in believed for holder in holders[owner]) - complaints
        if complaints > spare:
            faulty.add(owner)
        elif opened >= roster.threshold:
            devices.add(owner)
    return Included(frozenset(devices), frozenset(faulty))


class MaskedSum:
    """One round: add() uploads, close() it, reveal() what the devices then tell, take the masks off in finish()."""

    def __init__(
        self,
        roster: Roster,
        blocks: Sequence[Block],
        included: frozenset[int],
        holders: Holders,
        unopened: Mapping[int, frozenset[int]],
    ) -> None:
        """Begin with the included devices, who sent shares to whom, and which of these did not open."""
        self._roster, self._included = roster, included
        self._sum = Vector(blocks)
        self._uploaded: set[int] = set()
        self._survivors: frozenset[int] | None = None
        self._answered: set[int] = set()
        # Holder to the included owners whose shares it has, its own among them.
        self._held: dict[int, set[int]] = {index: {index} for index in included}
        for owner in included:
            for holder in included.intersection(holders[owner]):
                if owner not in unopened[holder]:
                    self._held[holder].add(owner)
        # Owner to holder's x to share.
        self._shares: dict[int, dict[int, bytes]] = {}
        # Of each holder: how many of its shares have gone into secrets, and how many of these were false.
        self._judged: Counter[int] = Counter()
        self._false: Counter[int] = Counter()
        # Owners of secrets that could not be put together.
        self._unreadable: set[int] = set()

    def require_upload(self, index: int, packed: bytes) -> None:
        """Raise UploadError unless this is what the round needs of one device."""
        is_late = self._survivors is not None and index not in self._survivors
        _require(not is_late, "the survivors of the round are settled")
        _require(index in self._included, "the device is not included")
        _require(index not in self._uploaded, "the device has uploaded already")
        try:
            self._sum.require_packed(packed)
        except InvalidInputError as error:
            raise UploadError(f"upload refused: {error}") from error

    def add(self, index: int, packed: bytes) -> None:
        """Count the upload of one device; raises UploadError and counts nothing unless it is what the round needs."""
        self.require_upload(index, packed)
        self._sum.add_packed(packed)
        self._uploaded.add(index)

    def close(self, survivors: frozenset[int] | None = None) -> frozenset[int]:
        """Settle who survived: who was added, or these, of which some may be added later. No other upload counts."""
        self._survivors = frozenset(self._uploaded) if survivors is None else survivors
        return self._survivors

    def reveal(self, holder: int, shares: RevealedShares) -> None:
        """Keep what one survivor reveals; raises UploadError and keeps nothing unless it is what it was asked for."""
        self.keep_revealed(holder, self.require_revealed(holder, shares))

    def keep_revealed(self, holder: int, shares: Mapping[int, bytes]) -> None:
        """Keep what was found to be what the survivor was asked for: owner to share."""
        for owner, share in shares.items():
            self._shares.setdefault(owner, {})[holder + 1] = share
        self._answered.add(holder)

    def require_revealed(self, holder: int, shares: RevealedShares) -> dict[int, bytes]:
        """Owner to share in what one survivor reveals; raises UploadError unless it is what it was asked for."""
        alive = self._survivors or frozenset()
        _require(holder in alive, "the device is not a survivor")
        _require(holder not in self._answered, "the device has revealed its shares already")
        held, seeds, mask_keys = self._held[holder], _read(shares.seeds), _read(shares.mask_keys)
        _require(seeds.keys() == held & alive, "it must have one share for each survivor that it holds one of")
        _require(mask_keys.keys() == held - alive, "it must have one share for each dropped device it holds one of")
        return seeds | mask_keys

    def finish(self) -> dict[str, npt.NDArray[np.int64]]:
        """Reconstruct every secret, then take off the masks; return the sums by block.

        Raises SecureSumError, before any mask is off, when a secret lacks shares or does not fit the roster.
        """
        if not self._survivors or self._survivors != self._uploaded:
            raise SecureSumError("no device uploaded, or the round is not closed: there is nothing to unmask")
        dropped = sorted(self._dropped())
        secrets = self._secrets([*sorted(self._survivors), *dropped])
        seeds = {index: secrets[index] for index in self._survivors}
        mask_keys = {index: self._checked_mask_key(index, secrets[index]) for index in dropped}
        self._subtract_self_masks(seeds)
        self._subtract_pair_masks(mask_keys)
        self._shares.clear()  # masks come off once: another call finds too few shares
        return {block.name: _numbers(block, self._sum) for block in self._sum.blocks}

    def faulty(self) -> frozenset[int]:
        """Who revealed, or dealt, false shares, as far as finish() has found out.

        Of a single false share nobody can say whether its holder lied or its owner dealt badly, and some who lie
        together could have anybody blamed for a few. So a holder is blamed for more than half of its shares, and an
        owner when its secret cannot be put together.
        """
        return self._lying_holders() | self._unreadable

    def _lying_holders(self) -> frozenset[int]:
        return frozenset(holder for holder, false in self._false.items() if 2 * false > self._judged[holder])

    def _dropped(self) -> Iterator[int]:
        """Included devices that did not upload, but whose masks are in the upload of a neighbour."""
        alive = self._survivors or frozenset()
        return (i for i in self._included - alive if not alive.isdisjoint(self._roster.neighbours(i)))

    def _secrets(self, owners: Sequence[int]) -> dict[int, bytes]:
        """Owner to secret. The shares of a holder that is found to lie do not count where too many are false."""
        threshold, fewest = self._roster.threshold, min(len(self._shares.get(owner, ())) for owner in owners)
        if fewest < threshold:
            raise MissingSharesError(
                f"{fewest} shares of a secret arrived, {threshold} are needed: the round ends without a sum"
            )
        found: dict[int, bytes] = {}
        self._read_secrets(owners, found)
        liars = self._lying_holders()
        self._unreadable = {owner for owner in owners if owner not in found}
        self._read_secrets(sorted(self._unreadable), found, without=liars)
        self._unreadable -= found.keys()
        if self._unreadable:
            raise SecureSumError("the round ends without a sum: too many shares of a secret are false")
        return found

    def _read_secrets(self, owners: Sequence[int], found: dict[int, bytes], without: Set[int] = frozenset()) -> None:
        for owner in owners:
            shares = {x: share for x, share in self._shares[owner].items() if x - 1 not in without}
            if len(shares) < self._roster.threshold:
                continue
            try:
                found[owner], false = secret_of(shares, self._roster.threshold)
            except InvalidInputError:
                continue
            self._judged.update(x - 1 for x in shares)
            self._false.update(x - 1 for x in false)

    def _checked_mask_key(self, owner: int, private_key: bytes) -> bytes:
        if public_key(private_key) != self._roster.entry(owner).mask_key:
            self._unreadable.add(owner)
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


def _read(field: bytes) -> dict[int, bytes]:
    """Owner's roster index to share."""
    _require(len(field) % _RECORD_BYTES == 0, "its records must be whole")
    records = [field[at : at + _RECORD_BYTES] for at in range(0, len(field), _RECORD_BYTES)]
    owners = [int.from_bytes(record[:_INDEX_BYTES], "little") for record in records]
    _require(all(one < other for one, other in pairwise(owners)), "its records must be sorted by ascending index")
    shares = [record[_INDEX_BYTES:] for record in records]
    _require(all(map(shamir.is_share, shares)), "a share is not a number of the field")
    return dict(zip(owners, shares, strict=True))


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
