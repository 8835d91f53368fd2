"""A device's part of one round of secure aggregation: seven steps, each done once and refused when something is off."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from lightfr._secret import secret
from lightfr.cohorts import DEFAULT_MINIMUM_COHORT, require_minimum_cohort
from lightfr.errors import CohortTooSmallError, PrivacyError
from lightfr.membership import MEMBERSHIP_BYTES, Member, MemberKey
from lightfr.secagg import shamir
from lightfr.secagg.agreement import (
    KEY_BYTES,
    NONCE_BYTES,
    pair_mask_key,
    public_key,
    seal,
    self_mask_key,
    share_key,
    unseal,
)
from lightfr.secagg.roster import ID_BYTES, VOUCHER_BYTES, RosterEntry, VouchedEntry, least_neighbours
from lightfr.secagg.state import SessionState
from lightfr.secagg.views import (
    WITNESSES,
    bitmap_of,
    entry_message,
    included_message,
    members,
    require_bytes,
    require_quorum,
    require_signature,
    roster_message,
    survivors_message,
)
from lightfr.secagg.work import OWN_WORK, Work
from lightfr.training.updates import sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from lightfr.secagg.agreement import Agreement
    from lightfr.secagg.roster import Roster
    from lightfr.secagg.vector import Vector

    # (roster index of the other device, sealed bytes)
    SealedRecord = tuple[int, bytes]

_INDEX_BYTES = 4
_SHARES_BYTES = 2 * shamir.SHARE_BYTES
_NEIGHBOUR_BYTES = ID_BYTES + KEY_BYTES
_SENDER_BYTES = ID_BYTES + KEY_BYTES


@dataclass(frozen=True)
class Place:
    """A place in a round, and what is trusted there.

    `round_id` and `peer_id` are the server's names for the round and for this device in it, 16 bytes each.
    `manifest_sha256` and `kind` (a RoundKind) say what the round is about. `server_key` signs rosters and sets,
    `membership_keys` the memberships of devices: raw Ed25519 keys.
    """

    round_id: bytes
    peer_id: bytes
    manifest_sha256: bytes
    kind: int
    server_key: bytes
    membership_keys: Sequence[bytes]


@secret
class RevealedShares(NamedTuple):
    """What a device tells the server at the end: records of an owner's roster index (4 bytes) and a share (33).

    `seeds` are of devices that uploaded, the sender's own included; `mask_keys` of included ones that did not.
    """

    seeds: bytes
    mask_keys: bytes

    def __repr__(self) -> str:
        return "<RevealedShares>"


@secret
class DeviceSession:
    """One round: advertise, share, acknowledge, sign_included, mask, sign_survivors, reveal, in this order.

    A refused step reveals nothing and changes nothing: it may be tried again with better input, or the round left.
    After each step store to_bytes() BEFORE the result is sent, and never go back to older bytes: a mask used for two
    vectors, or two answers about the survivors, would give the user's vector away.
    """

    def __init__(
        self,
        place: Place,
        member: Member,
        *,
        now_unix_seconds: float,
        minimum_cohort: int = DEFAULT_MINIMUM_COHORT,
        random: Callable[[int], bytes] = os.urandom,
        work: Work = OWN_WORK,
    ) -> None:
        """Begin a round now: memberships that have ended are refused. Lower `minimum_cohort` in tests only.

        `random` is a cryptographic source; docs/secagg.md says in which order it is read. `work` is for simulations.
        """
        for name, value, size in (
            ("round_id", place.round_id, ID_BYTES),
            ("peer_id", place.peer_id, ID_BYTES),
            ("server_key", place.server_key, KEY_BYTES),
            ("membership", member.membership, MEMBERSHIP_BYTES),
        ):
            require_bytes(name, value, size)
        require_minimum_cohort(minimum_cohort)
        self._state = SessionState(
            place.round_id, place.peer_id, place.manifest_sha256, place.kind, place.server_key,
            b"".join(place.membership_keys), member.key.private, member.membership, minimum_cohort, now_unix_seconds,
        )  # fmt: skip
        self._random, self._work = random, work

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
        session._random, session._work = random, OWN_WORK
        return session

    @property
    def state(self) -> SessionState:
        """What is known so far; SECRET."""
        return self._state

    @property
    def cohort(self) -> int:
        """Devices in the roster; 0 before the roster is known."""
        return self._state.cohort

    def advertise(self) -> VouchedEntry:
        """Make fresh keys and return the public ones for the roster, signed, with this device's membership."""
        state = self._begin("advertise")
        mask_private, share_private, seed = (self._random(KEY_BYTES) for _ in range(3))
        self._state = replace(
            state, next_step="share", mask_private=mask_private, share_private=share_private, seed=seed
        )
        entry = self._own_entry()
        message = entry_message(state.round_id, entry.peer_id, entry.mask_key, entry.share_key)
        return VouchedEntry(entry, state.membership, MemberKey.from_private(state.member_private).sign(message))

    def share(self, roster: Roster, vouchers: bytes, signature: bytes) -> list[SealedRecord]:
        """Check the signed roster; return both secrets in shares, one sealed message for each holder, by index."""
        state, message = self._begin("share"), roster_message(roster.digest)
        self._require_round(roster)
        require_signature("the server, of the roster,", state.server_key, signature, message, self._work.is_signed)
        own_index = roster.index_of(state.peer_id)
        if roster.entry(own_index) != self._own_entry():
            raise PrivacyError("the roster has other keys for this device than it advertised: leave the round")
        others = [i for i in range(roster.size) if i != own_index]
        holders = sample([*others], roster.holders, self._random)
        witnesses = sample(others, WITNESSES, self._random)
        neighbours = roster.neighbours(own_index)
        self._require_vouched(roster, vouchers, {*neighbours, *holders}, witnesses)
        own_share, sealed = self._split_and_seal(own_index, holders, roster)
        self._state = replace(
            state,
            next_step="acknowledge",
            own_share=own_share,
            roster_digest=roster.digest,
            roster_signature=signature,
            cohort=roster.size,
            threshold=roster.threshold,
            own_index=own_index,
            senders=roster.share_keys(),
            neighbours=_stored((i, roster.entry(i).peer_id + roster.entry(i).mask_key) for i in neighbours),
            holders=_stored((i, b"") for i in holders),
            witnesses=_stored((i, roster.entry(i).member_key) for i in witnesses),
        )
        return sealed

    def acknowledge(self, inbox: Sequence[SealedRecord]) -> bytes:
        """Open the shares that others sent here; return the bitmap of the senders whose shares do not open."""
        state = self._begin("acknowledge")
        senders = [index for index, _ in inbox]
        if senders != sorted(set(senders) - {state.own_index}) or any(i >= state.cohort for i in senders):
            raise PrivacyError("the sealed shares are not by ascending index of other devices: leave the round")
        agreement = self._work.agreement(state.share_private)
        opened = {index: self._open(agreement, index, sealed) for index, sealed in inbox}
        held = _stored((index, shares) for index, shares in opened.items() if shares is not None)
        self._state = replace(state, next_step="sign_included", share_private=b"", senders=b"", held=held)
        return bitmap_of((index for index, shares in opened.items() if shares is None), state.cohort)

    def sign_included(self, included: bytes, signature: bytes) -> bytes:
        """Check the set of devices that go on; return this device's signature of it."""
        state = self._begin("sign_included")
        self._require_members("the included set", included)
        message = included_message(state.roster_digest, included)
        require_signature(
            "the server, of the included set,", state.server_key, signature, message, self._work.is_signed
        )
        self._state = replace(state, next_step="mask", included=included, included_signature=signature)
        return MemberKey.from_private(state.member_private).sign(message)

    def mask(self, vector: Vector, signers: bytes, signatures: bytes) -> bytes:
        """Check that a quorum signed the included set; mask the vector IN PLACE and return it packed."""
        state = self._begin("mask")
        present = members(state.included, state.cohort)
        message = included_message(state.roster_digest, state.included)
        self._require_quorum("the included set", present, signers, signatures, message)
        agreement = self._work.agreement(state.mask_private)
        pair_masks = []
        for _, neighbour in self._neighbours_in(present):
            peer_id, mask_key = neighbour[:ID_BYTES], neighbour[ID_BYTES:]
            shared = agreement.with_peer(mask_key)
            pair_masks.append((peer_id, pair_mask_key(shared, state.round_id, state.peer_id, peer_id)))
        # Nothing can be refused from here on, so the vector is masked wholly or not at all.
        vector.mask(self_mask_key(state.seed, state.round_id, state.peer_id), subtract=False)
        for peer_id, key in pair_masks:
            vector.mask(key, subtract=peer_id < state.peer_id)
        # The device's own secrets have done their work: whoever reads the device later finds none.
        self._state = replace(state, next_step="sign_survivors", mask_private=b"", seed=b"")
        return vector.pack()

    def sign_survivors(self, survivors: bytes, signature: bytes) -> bytes:
        """Check the set of devices that uploaded; return this device's signature of it."""
        state = self._begin("sign_survivors")
        alive = self._require_members("the survivor set", survivors)
        if not alive <= members(state.included, state.cohort):
            raise PrivacyError("a survivor was not among the included devices: leave the round")
        message = survivors_message(state.roster_digest, state.included, survivors)
        require_signature(
            "the server, of the survivor set,", state.server_key, signature, message, self._work.is_signed
        )
        self._state = replace(state, next_step="reveal", survivors=survivors, survivors_signature=signature)
        return MemberKey.from_private(state.member_private).sign(message)

    def reveal(self, signers: bytes, signatures: bytes) -> RevealedShares:
        """Check that a quorum signed the survivor set; return one share, never two, of each owner held."""
        state = self._begin("reveal")
        alive, present = members(state.survivors, state.cohort), members(state.included, state.cohort)
        message = survivors_message(state.roster_digest, state.included, state.survivors)
        self._require_quorum("the survivor set", alive, signers, signatures, message)
        seeds, mask_keys = [(state.own_index, state.own_share)], []
        for index, shares in _records(state.held, _SHARES_BYTES):
            if index in alive:
                seeds.append((index, shares[: shamir.SHARE_BYTES]))
            elif index in present:
                mask_keys.append((index, shares[shamir.SHARE_BYTES :]))
        self._state = replace(
            state, next_step="done", own_share=b"", held=b"", neighbours=b"", holders=b"", witnesses=b"",
            member_private=b"",
        )  # fmt: skip
        return RevealedShares(_stored(sorted(seeds)), _stored(mask_keys))

    def require_next(self, step: str) -> None:
        """Raise PrivacyError unless this step is next."""
        if self._state.next_step != step:
            raise PrivacyError(
                f"step '{step}' was asked for where '{self._state.next_step}' is next: each is done once and in order"
            )

    def _begin(self, step: str) -> SessionState:
        self.require_next(step)
        return self._state

    def _own_entry(self) -> RosterEntry:
        state = self._state
        member_key = state.membership[:KEY_BYTES]
        return RosterEntry(state.peer_id, public_key(state.mask_private), public_key(state.share_private), member_key)

    def _require_round(self, roster: Roster) -> None:
        state = self._state
        if (roster.round_id, roster.manifest_sha256, roster.kind) != (
            state.round_id, state.manifest_sha256, state.kind
        ):  # fmt: skip
            raise PrivacyError("the roster is of another round: leave the round")
        if roster.size < state.minimum_cohort:
            raise CohortTooSmallError("the roster", roster.size, state.minimum_cohort)

    def _require_vouched(self, roster: Roster, vouchers: bytes, confidants: set[int], witnesses: Sequence[int]) -> None:
        """Raise PrivacyError unless the authority vouches for all of these, and the confidants for their own keys.

        What a device must not share with somebody invented are its masks and its secrets, so it checks its neighbours
        and holders; what must not be invented are the signatures that it counts, so it checks the witnesses.
        """
        state = self._state
        if len(vouchers) != VOUCHER_BYTES * roster.size:
            raise PrivacyError(f"{len(vouchers)} bytes do not vouch for {roster.size} devices: leave the round")
        keys = [state.membership_keys[at : at + KEY_BYTES] for at in range(0, len(state.membership_keys), KEY_BYTES)]
        for index in confidants.union(witnesses):
            voucher = vouchers[index * VOUCHER_BYTES : (index + 1) * VOUCHER_BYTES]
            vouched = VouchedEntry.from_voucher(roster.entry(index), voucher)
            vouched.require_member(keys, state.began_unix_seconds, self._work.is_signed)
            if index in confidants:
                vouched.require_own_keys(state.round_id, self._work.is_signed)

    def _require_members(self, what: str, bitmap: bytes) -> frozenset[int]:
        """Return the set, unless it is too small, lacks this device, or leaves it too few neighbours or holders."""
        state = self._state
        present = members(bitmap, state.cohort)
        if state.own_index not in present:
            raise PrivacyError(f"{what} lacks this device: leave the round")
        if len(present) < state.minimum_cohort:
            raise CohortTooSmallError(what, len(present), state.minimum_cohort)
        n_holders = 1 + sum(index in present for index, _ in _records(state.holders, 0))
        if n_holders < state.threshold:
            raise CohortTooSmallError(f"{what}, among this device and its holders,", n_holders, state.threshold)
        n_neighbours = len(state.neighbours) // (_INDEX_BYTES + _NEIGHBOUR_BYTES)
        n_left, needed = len(list(self._neighbours_in(present))), least_neighbours(n_neighbours)
        # In a complete graph everybody is a neighbour, and the quorum asks for more.
        if n_neighbours < state.cohort - 1 and n_left < needed:
            raise CohortTooSmallError(f"{what}, among the neighbours of this device,", n_left, needed)
        return present

    def _neighbours_in(self, present: frozenset[int]) -> Iterator[tuple[int, bytes]]:
        """Yield roster index, and id and mask key, of the neighbours in a set."""
        return (record for record in _records(self._state.neighbours, _NEIGHBOUR_BYTES) if record[0] in present)

    def _require_quorum(
        self, what: str, allowed: frozenset[int], signers: bytes, signatures: bytes, message: bytes
    ) -> None:
        state = self._state
        witnesses = dict(_records(state.witnesses, KEY_BYTES))
        require_quorum(what, state.cohort, allowed, signers, signatures, message, witnesses, self._work.is_signed)

    def _split_and_seal(
        self, own_index: int, holders: Sequence[int], roster: Roster
    ) -> tuple[bytes, list[SealedRecord]]:
        """Return the own share of the seed, and for each holder its shares of the seed and of the mask key."""
        state, agreement = self._state, self._work.agreement(self._state.share_private)
        points = [index + 1 for index in holders]
        own_share, *seeds = shamir.split(state.seed, [own_index + 1, *points], roster.threshold, self._random)
        keys = shamir.split(state.mask_private, points, roster.threshold, self._random)
        sealed = []
        for index, seed, mask_key in zip(holders, seeds, keys, strict=True):
            receiver = roster.entry(index)
            shared = agreement.with_peer(receiver.share_key)
            key = share_key(shared, state.round_id, roster.digest, state.peer_id, receiver.peer_id)
            sealed.append((index, seal(key, self._random(NONCE_BYTES), seed + mask_key)))
        return own_share, sealed

    def _open(self, agreement: Agreement, index: int, sealed: bytes) -> bytes | None:
        """Return the two shares of a sender; None when it did not send this device any that are of use."""
        state = self._state
        sender = state.senders[index * _SENDER_BYTES : (index + 1) * _SENDER_BYTES]
        try:
            shared = agreement.with_peer(sender[ID_BYTES:])
            key = share_key(shared, state.round_id, state.roster_digest, sender[:ID_BYTES], state.peer_id)
            shares = unseal(key, sealed, _SHARES_BYTES)
        except PrivacyError:
            return None
        parts = shares[: shamir.SHARE_BYTES], shares[shamir.SHARE_BYTES :]
        return shares if all(map(shamir.is_share, parts)) else None


def _stored(records: Iterable[tuple[int, bytes]]) -> bytes:
    """Return records of a roster index and a content, one behind the other."""
    return b"".join(index.to_bytes(_INDEX_BYTES, "little") + content for index, content in records)


def _records(stored: bytes, content_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Yield (roster index, content) of records that lie one behind the other."""
    record_bytes = _INDEX_BYTES + content_bytes
    for at in range(0, len(stored), record_bytes):
        content = at + _INDEX_BYTES
        yield int.from_bytes(stored[at:content], "little"), stored[content : content + content_bytes]
