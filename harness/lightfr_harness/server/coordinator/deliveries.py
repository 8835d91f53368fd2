"""What the devices of a cohort deliver in each phase of secure aggregation: what is refused, and what is kept of it.

Nothing here waits, writes or looks at a clock. docs/secagg.md has the cryptography.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lightfr.errors import PeerKeyError, PrivacyError
from lightfr.secagg import Block, RevealedShares, Roster, RosterEntry, VouchedEntry
from lightfr.secagg.agreement import KEY_BYTES, Agreement
from lightfr.secagg.views import included_message, is_signed, members, survivors_message
from lightfr.v1 import error_pb2, secure_pb2
from lightfr_harness.server.coordinator.phases import (
    ACKNOWLEDGING,
    ADVERTISING,
    CONFIRMING,
    INCLUDING,
    PHASES,
    REVEALING,
    SHARING,
    UPLOADING,
    PhaseResult,
)
from lightfr_harness.server.coordinator.refusals import Refusal
from lightfr_harness.server.rules import UploadError
from lightfr_harness.server.rules.secagg import MaskedSum

INDEX_BYTES = 4
SEALED_RECORD_BYTES = INDEX_BYTES + 94
REVEALED_RECORD_BYTES = INDEX_BYTES + 33
NOT_NEW = "a key is not new"

BlocksOf = Callable[[int], tuple[Block, ...]]


@dataclass(frozen=True)
class RoundFacts:
    """What a round is about, and whom its devices must show to be: the authority's keys, and the time now."""

    round_id: bytes
    manifest_sha256: bytes
    kind: int
    membership_keys: Sequence[bytes]
    now: Callable[[], float]


class Deliveries:
    """Of one cohort. `peers` are the devices that have a place, with their peer ids; it grows while they check in.

    A delivery that is not what its phase needs raises Refusal and changes nothing.
    """

    def __init__(self, facts: RoundFacts, peers: Mapping[str, bytes], blocks_of: BlocksOf) -> None:
        self._facts, self._peers, self._blocks_of = facts, peers, blocks_of
        self.settled = PhaseResult()
        # Phase to device to digest of what it delivered, as far as this process knows.
        self.delivered: dict[int, dict[str, bytes]] = {phase: {} for phase in PHASES}
        # Phase to devices whose deliveries are in here; of others only the digest is known so far.
        self.taken: dict[int, set[str]] = {phase: set() for phase in PHASES}
        # Devices whose deliveries did not fit together, and how.
        self.faults: dict[str, str] = {}
        # Devices that delivered something that was refused, and nothing better since.
        self.refused: set[str] = set()
        self._entries: dict[str, VouchedEntry] = {}
        # By roster index: what was shared, complained about, and signed.
        self._sealed: dict[int, bytes] = {}
        self._holders: dict[int, list[int]] = {}
        self._senders: dict[int, set[int]] = {}
        self._unopened: dict[int, frozenset[int]] = {}
        self._signatures: dict[int, dict[int, bytes]] = {INCLUDING: {}, CONFIRMING: {}}
        # Agrees with every key that comes, to find points of low order. What it agrees on is dropped.
        self._probe = Agreement(os.urandom(KEY_BYTES))

    @property
    def phase(self) -> int:
        return self.settled.phase

    def check(self, phase: int, device: str, request: Any) -> Any:
        """Look at what a device delivers in a phase, the phase's message; returns what `keep` takes."""
        self.refused.add(device)
        checked = _CHECK[phase](self, device, request)
        self.refused.remove(device)
        return checked

    def keep(self, phase: int, device: str, digest: bytes, checked: Any) -> None:
        """Take a checked delivery, which is durable. The same again changes nothing."""
        if device not in self.taken[phase]:
            self.taken[phase].add(device)
            _KEEP[phase](self, device, checked)
            self.delivered[phase][device] = digest

    def take(self, phase: int, device: str, digest: bytes, request: Any) -> None:
        """Check and keep what was stored."""
        self.keep(phase, device, digest, self.check(phase, device, request))

    def _check_keys(self, device: str, request: secure_pb2.AdvertiseKeysRequest) -> VouchedEntry:
        """Two keys, signed by a member of the authority. That nobody else has them is for the storage to find."""
        member_key = request.membership[:KEY_BYTES]
        keys = {request.mask_public_key, request.share_public_key, member_key}
        _require(len(keys) == 3, NOT_NEW)
        entry = RosterEntry(self._peers[device], request.mask_public_key, request.share_public_key, member_key)
        vouched = VouchedEntry(entry, request.membership, request.signature)
        try:
            self._probe.with_peer(request.mask_public_key)
            self._probe.with_peer(request.share_public_key)
            vouched.require_member(self._facts.membership_keys, self._facts.now())
            vouched.require_own_keys(self._facts.round_id)
        except PeerKeyError as error:
            raise invalid("a key is a point of low order") from error
        except PrivacyError as error:
            raise invalid("the membership or the signature of the keys does not fit") from error
        return vouched

    def refuse_keys(self, device: str, vouched: VouchedEntry) -> None:
        """A device of the cohort has one of these keys. If it is the member key, the other one lied.

        The authority vouches for it, the device has just signed with it, and nobody else has a mask or share key of
        these bytes but to keep the device out.
        """
        self.refused.add(device)
        for other, known in self._entries.items():
            if vouched.entry.member_key in (known.entry.mask_key, known.entry.share_key):
                self.faults[other] = "it took the member key of another device for its own"

    def _keep_keys(self, device: str, vouched: VouchedEntry) -> None:
        self._entries[device] = vouched

    def _check_shares(self, device: str, request: secure_pb2.ShareKeysRequest) -> tuple[bytes, list[int]]:
        """One sealed share for each of as many other devices as the roster says."""
        index, records = self._index(device), request.sealed_shares
        _require(len(records) == SEALED_RECORD_BYTES * self.roster.holders, "it must have one sealed share per holder")
        starts = range(0, len(records), SEALED_RECORD_BYTES)
        receivers = [int.from_bytes(records[at : at + INDEX_BYTES], "little") for at in starts]
        others = set(receivers) - {index}
        _require(
            receivers == sorted(others) and receivers[-1] < self.roster.size,
            "its holders must be other devices of the roster, by ascending index",
        )
        return records, receivers

    def _keep_shares(self, device: str, checked: tuple[bytes, list[int]]) -> None:
        index = self._index(device)
        self._sealed[index], self._holders[index] = checked
        for receiver in self._holders[index]:
            self._senders.setdefault(receiver, set()).add(index)

    def _check_unopened(self, device: str, request: secure_pb2.AcknowledgeSharesRequest) -> frozenset[int]:
        """The senders whose shares did not open."""
        index = self._index(device)
        try:
            unopened = members(request.unopened, self.roster.size)
        except PrivacyError as error:
            raise invalid("unopened must have a bit for each device of the roster") from error
        _require(unopened <= self._senders.get(index, set()), "it complains about a device that sent it nothing")
        return unopened

    def _keep_unopened(self, device: str, unopened: frozenset[int]) -> None:
        self._unopened[self._index(device)] = unopened

    def _check_signature(self, device: str, signature: bytes, message: bytes) -> bytes:
        member_key = self.roster.entry(self._index(device)).member_key
        _require(is_signed(member_key, signature, message), "the signature does not fit")
        return signature

    def _check_included(self, device: str, request: secure_pb2.SignIncludedRequest) -> bytes:
        message = included_message(self.roster.digest, self.settled.included)
        return self._check_signature(device, request.signature, message)

    def _keep_included(self, device: str, signature: bytes) -> None:
        self._signatures[INCLUDING][self._index(device)] = signature

    def _check_survivors(self, device: str, request: secure_pb2.SignSurvivorsRequest) -> bytes:
        message = survivors_message(self.roster.digest, self.settled.included, self.settled.survivors)
        return self._check_signature(device, request.signature, message)

    def _keep_survivors(self, device: str, signature: bytes) -> None:
        self._signatures[CONFIRMING][self._index(device)] = signature

    def _check_upload(self, device: str, request: Any) -> bytes:
        try:
            self._sum.require_upload(self._index(device), request.masked_vector)
        except UploadError as error:
            raise Refusal(error_pb2.ERROR_REASON_UPLOAD_INVALID, str(error)) from error
        return bytes(request.masked_vector)

    def _keep_upload(self, device: str, masked: bytes) -> None:
        self._sum.add(self._index(device), masked)

    def _check_revealed(self, device: str, request: secure_pb2.RevealSharesRequest) -> dict[int, bytes]:
        revealed = RevealedShares(request.seeds, request.mask_keys)
        try:
            return self._sum.require_revealed(self._index(device), revealed)
        except UploadError as error:
            raise Refusal(error_pb2.ERROR_REASON_UPLOAD_INVALID, str(error)) from error

    def _keep_revealed(self, device: str, shares: dict[int, bytes]) -> None:
        self._sum.keep_revealed(self._index(device), shares)

    @cached_property
    def roster(self) -> Roster:
        """The roster, from the phase SHARING on."""
        settled, facts = self.settled, self._facts
        return Roster(
            facts.round_id,
            facts.manifest_sha256,
            facts.kind,
            settled.degree,
            settled.holders,
            settled.threshold,
            settled.entries,
        )

    @cached_property
    def _included(self) -> frozenset[int]:
        """From the phase INCLUDING on."""
        return members(self.settled.included, self.roster.size)

    @cached_property
    def _sum(self) -> MaskedSum:
        blocks = self._blocks_of(self.roster.size)
        return MaskedSum(self.roster, blocks, self._included, self._holders, self._unopened)

    def _index(self, device: str) -> int:
        return self.roster.index_of(self._peers[device])

    def _device(self, index: int) -> str:
        peer_id = self.roster.entry(index).peer_id
        return next(device for device, known in self._peers.items() if known == peer_id)


_CHECK: dict[int, Callable[[Deliveries, str, Any], Any]] = {
    ADVERTISING: Deliveries._check_keys,
    SHARING: Deliveries._check_shares,
    ACKNOWLEDGING: Deliveries._check_unopened,
    INCLUDING: Deliveries._check_included,
    UPLOADING: Deliveries._check_upload,
    CONFIRMING: Deliveries._check_survivors,
    REVEALING: Deliveries._check_revealed,
}
_KEEP: dict[int, Callable[[Deliveries, str, Any], None]] = {
    ADVERTISING: Deliveries._keep_keys,
    SHARING: Deliveries._keep_shares,
    ACKNOWLEDGING: Deliveries._keep_unopened,
    INCLUDING: Deliveries._keep_included,
    UPLOADING: Deliveries._keep_upload,
    CONFIRMING: Deliveries._keep_survivors,
    REVEALING: Deliveries._keep_revealed,
}


def invalid(reason: str) -> Refusal:
    return Refusal(error_pb2.ERROR_REASON_UPLOAD_INVALID, f"upload refused: {reason}")


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise invalid(reason)
