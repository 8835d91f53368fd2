"""A device's part of one round of secure aggregation: four steps, each done once and refused when something is off."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lightfr.cohorts import DEFAULT_MINIMUM_COHORT, require_minimum_cohort
from lightfr.errors import CohortTooSmallError, PrivacyError
from lightfr.secagg import shamir
from lightfr.secagg.agreement import (
    KEY_BYTES,
    NONCE_BYTES,
    Agreement,
    pair_mask_key,
    public_key,
    seal,
    self_mask_key,
    share_key,
    unseal,
)
from lightfr.secagg.roster import (
    ENTRY_BYTES,
    ID_BYTES,
    RosterEntry,
    members,
    require_bytes,
    require_signature,
    roster_message,
    survivors_message,
)
from lightfr.secagg.state import SessionState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from lightfr.secagg.roster import Roster
    from lightfr.secagg.vector import Vector

_INDEX_BYTES = 4
_SHARES_BYTES = 2 * shamir.SHARE_BYTES


@dataclass(frozen=True)
class SealedShare:
    """Shares of the sender's two secrets that only the receiver can read.

    `sender` and `receiver` are ids of the roster, 16 bytes each. `sealed` is a nonce (12 bytes), AES-256-GCM of the
    share of the self-mask seed and the share of the mask key (33 bytes each), and the tag (16 bytes): 94 bytes.
    """

    sender: bytes
    receiver: bytes
    sealed: bytes


@dataclass(frozen=True)
class RevealedShares:
    """What a device tells the server at the end: for a neighbour its id (16 bytes) and a share (33), by ascending id.

    `self_masks` are shares of the seeds of neighbours that uploaded, and of the sender's own; `mask_keys` are shares of
    the mask keys of included neighbours that did not upload.
    """

    sender: bytes
    self_masks: bytes
    mask_keys: bytes


@dataclass(frozen=True)
class _Neighbour:
    index: int
    entry: RosterEntry


class DeviceSession:
    """One round: advertise(), share(), mask(), unmask(), in this order.

    A refused step reveals nothing and changes nothing: it may be tried again with better input, or the round left.
    After each step store to_bytes() BEFORE the result is sent, and never go back to older bytes: a mask used for two
    vectors, or two answers about the survivors, would give the user's vector away.
    """

    def __init__(
        self,
        round_id: bytes,
        peer_id: bytes,
        server_key: bytes,
        *,
        minimum_cohort: int = DEFAULT_MINIMUM_COHORT,
        random: Callable[[int], bytes] = os.urandom,
    ) -> None:
        """Begin a round. `server_key` is the raw Ed25519 key that signs rosters; lower `minimum_cohort` in tests only.

        `random` is a cryptographic source; docs/secagg.md says in which order it is read.
        """
        require_bytes("round_id", round_id, ID_BYTES)
        require_bytes("peer_id", peer_id, ID_BYTES)
        require_bytes("server_key", server_key, KEY_BYTES)
        require_minimum_cohort(minimum_cohort)
        self._state = SessionState(round_id, peer_id, server_key, minimum_cohort)
        self._random = random

    def __repr__(self) -> str:
        return f"<DeviceSession before step '{self._state.next_step}'>"

    def to_bytes(self) -> bytes:
        """Return the session, to go on in another process. SECRET: keep it in the encrypted store and nowhere else."""
        return self._state.to_bytes()

    @classmethod
    def from_bytes(cls, stored: bytes, *, random: Callable[[int], bytes] = os.urandom) -> DeviceSession:
        """Go on with a stored session, always the newest one."""
        session = cls.__new__(cls)
        session._state = SessionState.from_bytes(stored)
        session._random = random
        return session

    @property
    def peer_id(self) -> bytes:
        """What the roster calls this device."""
        return self._state.peer_id

    @property
    def cohort(self) -> int:
        """Devices in the roster; 0 before the roster is known."""
        return self._state.cohort

    def neighbours(self) -> dict[int, bytes]:
        """Return the ids of this device's neighbours by roster index; empty before the roster is known."""
        return {neighbour.index: neighbour.entry.peer_id for neighbour in self._neighbours()}

    def advertise(self) -> RosterEntry:
        """Make fresh keys and return the public ones, for the roster."""
        state = self._begin("advertise")
        mask_private, share_private, seed = (self._random(KEY_BYTES) for _ in range(3))
        self._state = replace(
            state, next_step="share", mask_private=mask_private, share_private=share_private, seed=seed
        )
        return RosterEntry(state.peer_id, public_key(mask_private), public_key(share_private))

    def share(self, roster: Roster, signature: bytes) -> list[SealedShare]:
        """Check the signed roster; return both secrets in shares, one sealed message for each neighbour."""
        state = self._begin("share")
        if roster.round_id != state.round_id:
            raise PrivacyError("the roster is of another round: leave the round")
        if roster.size < state.minimum_cohort:
            raise CohortTooSmallError("the roster", roster.size, state.minimum_cohort)
        require_signature("roster", state.server_key, signature, roster_message(roster.digest))
        own_index = roster.index_of(state.peer_id)
        own_entry = RosterEntry(state.peer_id, public_key(state.mask_private), public_key(state.share_private))
        if roster.entry(own_index) != own_entry:
            raise PrivacyError("the roster has other keys for this device than it advertised: leave the round")
        neighbours = [_Neighbour(i, roster.entry(i)) for i in roster.neighbours(own_index)]
        own_share, sealed = self._split_and_seal(own_index, neighbours, roster)
        self._state = replace(
            state,
            next_step="mask",
            own_share=own_share,
            roster_digest=roster.digest,
            cohort=roster.size,
            threshold=roster.threshold,
            own_index=own_index,
            neighbours=b"".join(_index_bytes(n.index) + n.entry.to_bytes() for n in neighbours),
        )
        return sealed

    def mask(self, vector: Vector, inbox: Sequence[SealedShare], included: bytes) -> bytes:
        """Open the shares of the neighbours that are included, mask the vector IN PLACE and return it packed.

        `included` is the bitmap of the devices that delivered their shares; `inbox` holds what the neighbours among
        them sent here.
        """
        state = self._begin("mask")
        present = self._require_members("the included set", included)
        peers = [n for n in self._neighbours() if n.index in present]
        held = self._open(inbox, peers)
        agreement = Agreement(state.mask_private)
        pair_keys = [
            pair_mask_key(agreement.with_peer(peer.entry.mask_key), state.round_id, state.peer_id, peer.entry.peer_id)
            for peer in peers
        ]
        # Nothing can be refused from here on, so the vector is masked wholly or not at all.
        vector.mask(self_mask_key(state.seed, state.round_id, state.peer_id), subtract=False)
        for peer, key in zip(peers, pair_keys, strict=True):
            vector.mask(key, subtract=peer.entry.peer_id < state.peer_id)
        # The device's own secrets have done their work: whoever reads the device later finds none.
        self._state = replace(
            state, next_step="unmask", mask_private=b"", share_private=b"", seed=b"", held=held, included=included
        )
        return vector.pack()

    def unmask(self, survivors: bytes, signature: bytes) -> RevealedShares:
        """Check the signed set of devices that uploaded; return one share, never two, of each included neighbour."""
        state = self._begin("unmask")
        message = survivors_message(state.roster_digest, state.included, survivors)
        require_signature("survivor set", state.server_key, signature, message)
        alive = self._require_members("the survivor set", survivors)
        if not alive <= members(state.included, state.cohort):
            raise PrivacyError("a survivor was not among the included devices: leave the round")
        held = dict(_records(state.held, _SHARES_BYTES))
        self_masks, mask_keys = [state.peer_id + state.own_share], []
        for peer in self._neighbours():
            shares = held.get(peer.index)
            if shares is None:
                continue
            if peer.index in alive:
                self_masks.append(peer.entry.peer_id + shares[: shamir.SHARE_BYTES])
            else:
                mask_keys.append(peer.entry.peer_id + shares[shamir.SHARE_BYTES :])
        self._state = replace(state, next_step="done", own_share=b"", held=b"", neighbours=b"")
        return RevealedShares(state.peer_id, b"".join(sorted(self_masks)), b"".join(mask_keys))

    def _begin(self, step: str) -> SessionState:
        if self._state.next_step != step:
            raise PrivacyError(
                f"step '{step}' was asked for where '{self._state.next_step}' is next: each is done once and in order"
            )
        return self._state

    def _require_members(self, what: str, bitmap: bytes) -> frozenset[int]:
        """Return the set, unless it is too small, lacks this device, or has too few holders of its shares."""
        state = self._state
        present = members(bitmap, state.cohort)
        if state.own_index not in present:
            raise PrivacyError(f"{what} lacks this device: leave the round")
        if len(present) < state.minimum_cohort:
            raise CohortTooSmallError(what, len(present), state.minimum_cohort)
        n_holders = 1 + sum(n.index in present for n in self._neighbours())
        if n_holders < state.threshold:
            raise CohortTooSmallError(f"{what}, among this device and its neighbours,", n_holders, state.threshold)
        return present

    def _neighbours(self) -> Iterator[_Neighbour]:
        for index, entry in _records(self._state.neighbours, ENTRY_BYTES):
            yield _Neighbour(index, RosterEntry.from_bytes(entry))

    def _split_and_seal(
        self, own_index: int, neighbours: Sequence[_Neighbour], roster: Roster
    ) -> tuple[bytes, list[SealedShare]]:
        """Return the own share of the seed, and for each neighbour its shares of the seed and of the mask key."""
        state, agreement = self._state, Agreement(self._state.share_private)
        holders = [n.index + 1 for n in neighbours]
        own_share, *seeds = shamir.split(state.seed, [own_index + 1, *holders], roster.threshold, self._random)
        keys = shamir.split(state.mask_private, holders, roster.threshold, self._random)
        sealed = []
        for neighbour, seed, mask_key in zip(neighbours, seeds, keys, strict=True):
            receiver = neighbour.entry.peer_id
            shared = agreement.with_peer(neighbour.entry.share_key)
            key = share_key(shared, state.round_id, roster.digest, state.peer_id, receiver)
            sealed.append(SealedShare(state.peer_id, receiver, seal(key, self._random(NONCE_BYTES), seed + mask_key)))
        return own_share, sealed

    def _open(self, inbox: Sequence[SealedShare], peers: Sequence[_Neighbour]) -> bytes:
        """Return the shares of these peers, 70 bytes each; raises PrivacyError unless each has sent its own."""
        by_sender = {message.sender: message for message in inbox}
        if len(inbox) != len(peers) or by_sender.keys() != {peer.entry.peer_id for peer in peers}:
            raise PrivacyError(
                f"{len(inbox)} sealed shares are not one from each of {len(peers)} included neighbours: leave the round"
            )
        state, agreement = self._state, Agreement(self._state.share_private)
        held = []
        for peer in peers:
            sender = peer.entry
            shared = agreement.with_peer(sender.share_key)
            key = share_key(shared, state.round_id, state.roster_digest, sender.peer_id, state.peer_id)
            shares = unseal(key, by_sender[sender.peer_id].sealed, _SHARES_BYTES)
            if not (shamir.is_share(shares[: shamir.SHARE_BYTES]) and shamir.is_share(shares[shamir.SHARE_BYTES :])):
                raise PrivacyError("a share is not a number of the field: leave the round")
            held.append(_index_bytes(peer.index) + shares)
        return b"".join(held)


def _index_bytes(index: int) -> bytes:
    return index.to_bytes(_INDEX_BYTES, "little")


def _records(stored: bytes, content_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Yield (roster index, content) of records that lie one behind the other."""
    record_bytes = _INDEX_BYTES + content_bytes
    for at in range(0, len(stored), record_bytes):
        content = at + _INDEX_BYTES
        yield int.from_bytes(stored[at:content], "little"), stored[content : content + content_bytes]
