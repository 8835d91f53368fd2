"""The phases of a round of secure aggregation as pure logic: who must deliver what, and what each phase settles.

A device takes part in a phase if it delivered in the one before; so the roster are those who advertised, the survivors
those who uploaded. Between acknowledging and signing, those whose shares do not fit are left out. Nothing here waits,
writes or looks at a clock. docs/secagg.md has the cryptography.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lightfr.errors import PeerKeyError, PrivacyError
from lightfr.secagg import Block, RevealedShares, Roster, RosterEntry, VouchedEntry
from lightfr.secagg.agreement import KEY_BYTES, Agreement
from lightfr.secagg.roster import COMPLETE_SIZE, ENTRY_BYTES
from lightfr.secagg.views import (
    bitmap_of,
    included_message,
    is_signed,
    members,
    quorum,
    roster_message,
    survivors_message,
)
from lightfr.v1 import error_pb2, secure_pb2
from lightfr_harness.server.coordinator.folder import FolderError
from lightfr_harness.server.coordinator.refusals import Refusal
from lightfr_harness.server.rules import UploadError
from lightfr_harness.server.rules.secagg import Included, MaskedSum, settle_included

PHASES = (1, 2, 3, 4, 5, 6, 7)
ADVERTISING, SHARING, ACKNOWLEDGING, INCLUDING, UPLOADING, CONFIRMING, REVEALING = PHASES
PHASE_NAMES = {
    ADVERTISING: "advertising",
    SHARING: "sharing",
    ACKNOWLEDGING: "acknowledging",
    INCLUDING: "including",
    UPLOADING: "uploading",
    CONFIRMING: "confirming",
    REVEALING: "revealing",
}

_INDEX_BYTES = 4
SEALED_RECORD_BYTES = _INDEX_BYTES + 94
REVEALED_RECORD_BYTES = _INDEX_BYTES + 33

BlocksOf = Callable[[int], tuple[Block, ...]]


@dataclass(frozen=True)
class PhaseResult:
    """What the phases so far have fixed. Durable before anybody hears of it, and never anything else for this round."""

    phase: int = ADVERTISING
    entries: bytes = b""
    vouchers: bytes = b""
    degree: int = 0
    holders: int = 0
    threshold: int = 0
    roster_signature: bytes = b""
    included: bytes = b""
    included_signature: bytes = b""
    included_signers: bytes = b""
    survivors: bytes = b""
    survivors_signature: bytes = b""
    survivors_signers: bytes = b""


@dataclass(frozen=True)
class RoundFacts:
    """What a round is about, and whom its devices must show to be: the authority's keys, and the time now."""

    round_id: bytes
    manifest_sha256: bytes
    kind: int
    membership_keys: Sequence[bytes]
    now: Callable[[], float]


class Cohort:
    """One round. `peers` are the devices that have a place, with their peer ids; it grows while devices check in."""

    def __init__(self, facts: RoundFacts, places: int, peers: Mapping[str, bytes], blocks_of: BlocksOf) -> None:
        self._facts, self._places, self._peers, self._blocks_of = facts, places, peers, blocks_of
        self.settled = PhaseResult()
        # Phase to device to digest of what it delivered, as far as this process knows.
        self.delivered: dict[int, dict[str, bytes]] = {phase: {} for phase in PHASES}
        # Phase to devices whose deliveries are in here; of others only the digest is known so far.
        self.taken: dict[int, set[str]] = {phase: set() for phase in PHASES}
        # How many deliveries of this phase are stored, as last heard: other processes may have taken some.
        self.heard = 0
        # While what this phase settles is being written: it takes no more.
        self.is_closing = False
        # Devices whose stored keys are not new, which two processes took at the same time.
        self.left_out: set[str] = set()
        # Devices whose deliveries did not fit together, and how.
        self.faults: dict[str, str] = {}
        # Devices that delivered something that was refused, and nothing better since.
        self.refused: set[str] = set()
        self._entries: dict[str, VouchedEntry] = {}
        self._owners: dict[bytes, str] = {}
        # By roster index: what was shared, complained about, and signed.
        self._sealed: dict[int, bytes] = {}
        self._holders: dict[int, list[int]] = {}
        self._senders: dict[int, set[int]] = {}
        self._unopened: dict[int, frozenset[int]] = {}
        self._signatures: dict[int, dict[int, bytes]] = {INCLUDING: {}, CONFIRMING: {}}
        self._told = ADVERTISING, secure_pb2.GetStepResponse()
        # Agrees with every key that comes, to find points of low order. What it agrees on is dropped.
        self._probe = Agreement(os.urandom(KEY_BYTES))

    @property
    def phase(self) -> int:
        return self.settled.phase

    def expected(self, phase: int) -> int:
        """How many devices may deliver in a phase that has begun."""
        if phase == ADVERTISING:
            return self._places
        return len(self._included) if phase == INCLUDING else len(self.delivered[phase - 1])

    def is_complete(self) -> bool:
        """Whether everybody has delivered in this phase."""
        return max(len(self.delivered[self.phase]), self.heard) >= self.expected(self.phase)

    def has_enough(self, minimum: int) -> bool:
        """Whether the round can go on with those who delivered in this phase."""
        if self.phase == ADVERTISING:
            return len(self.delivered[ADVERTISING]) >= max(minimum, 2)
        n = len(self._settlement.devices) if self.phase == ACKNOWLEDGING else len(self.delivered[self.phase])
        return n >= max(minimum, quorum(self.roster.size))

    def has_missed(self, device: str) -> bool:
        """Whether the device did not deliver in a phase that is over, or was left out."""
        if any(device not in self.delivered[phase] for phase in PHASES if phase < self.phase):
            return True
        return self.phase >= INCLUDING and self._index(device) not in self._included

    # What devices deliver. Each raises Refusal and changes nothing unless it is what the phase needs.

    def require_turn(self, phase: int, device: str) -> None:
        """Refuse what a device with a place may not deliver now."""
        if phase > self.phase:
            raise _invalid(f"the round is still {PHASE_NAMES[self.phase]}")
        if phase < self.phase or self.is_closing or self.has_missed(device):
            raise Refusal(error_pb2.ERROR_REASON_ROUND_CLOSED, "this device is too late for this step of the round")

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
        """Two keys that nobody else has, signed by a member of the authority."""
        member_key = request.membership[:KEY_BYTES]
        keys = {request.mask_public_key, request.share_public_key, member_key}
        is_new = all(self._owners.get(key, device) == device for key in keys)
        _require(len(keys) == 3 and is_new, "a key is not new")
        entry = RosterEntry(self._peers[device], request.mask_public_key, request.share_public_key, member_key)
        vouched = VouchedEntry(entry, request.membership, request.signature)
        try:
            self._probe.with_peer(request.mask_public_key)
            self._probe.with_peer(request.share_public_key)
            vouched.require_member(self._facts.membership_keys, self._facts.now())
            vouched.require_own_keys(self._facts.round_id)
        except PeerKeyError as error:
            raise _invalid("a key is a point of low order") from error
        except PrivacyError as error:
            raise _invalid("the membership or the signature of the keys does not fit") from error
        # From here on, for the next one may come before this is durable.
        self._owners |= dict.fromkeys(keys, device)
        return vouched

    def _keep_keys(self, device: str, vouched: VouchedEntry) -> None:
        self._entries[device] = vouched

    def _check_shares(self, device: str, request: secure_pb2.ShareKeysRequest) -> tuple[bytes, list[int]]:
        """One sealed share for each of as many other devices as the roster says."""
        index, records = self._index(device), request.sealed_shares
        _require(len(records) == SEALED_RECORD_BYTES * self.roster.holders, "it must have one sealed share per holder")
        starts = range(0, len(records), SEALED_RECORD_BYTES)
        receivers = [int.from_bytes(records[at : at + _INDEX_BYTES], "little") for at in starts]
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
            raise _invalid("unopened must have a bit for each device of the roster") from error
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

    # What phases settle.

    def settlement(self, key: Ed25519PrivateKey) -> PhaseResult:
        """What the end of this phase settles with those who delivered; to be made durable, then adopted."""
        return replace(self.settled, phase=self.phase + 1, **self._settle(key))

    def advance(self, key: Ed25519PrivateKey) -> None:
        """Settle this phase and begin the next one, where nothing need be durable."""
        self.adopt(self.settlement(key))

    def adopt(self, settled: PhaseResult) -> None:
        """Begin the next phase as it is stored."""
        if self.phase == UPLOADING:
            self._sum.close(members(settled.survivors, self.roster.size))
        self.settled = settled
        self.heard, self.is_closing = 0, False

    def _settle(self, key: Ed25519PrivateKey) -> dict[str, Any]:
        """The fields of a PhaseResult that the end of this phase fixes."""
        settled = self.settled
        if self.phase == ADVERTISING:
            facts, entries = self._facts, sorted(self._entries.values(), key=lambda one: one.entry.peer_id)
            roster = Roster.of(facts.round_id, facts.manifest_sha256, facts.kind, [one.entry for one in entries])
            return {
                "entries": roster.entries,
                "vouchers": b"".join(one.voucher() for one in entries),
                "degree": roster.degree,
                "holders": roster.holders,
                "threshold": roster.threshold,
                "roster_signature": key.sign(roster_message(roster.digest)),
            }
        size, digest = self.roster.size, self.roster.digest
        if self.phase == ACKNOWLEDGING:
            settlement = self._settlement
            for index in settlement.faulty:
                self.faults[self._device(index)] = "its shares did not open, or it said so of most others"
            included = bitmap_of(settlement.devices, size)
            return {"included": included, "included_signature": key.sign(included_message(digest, included))}
        if self.phase == INCLUDING:
            return {"included_signers": self._quorum(INCLUDING)}
        if self.phase == UPLOADING:
            survivors = bitmap_of((self._index(device) for device in self.delivered[UPLOADING]), size)
            message = survivors_message(digest, settled.included, survivors)
            return {"survivors": survivors, "survivors_signature": key.sign(message)}
        return {"survivors_signers": self._quorum(CONFIRMING)} if self.phase == CONFIRMING else {}

    def _quorum(self, phase: int) -> bytes:
        """As many signers as a device asks for: more would only be more to download."""
        size = self.roster.size
        return bitmap_of(sorted(self._signatures[phase])[: quorum(size)], size)

    def resume(self, settled: PhaseResult, key: Ed25519PrivateKey) -> None:
        """After what was delivered in this phase has been taken again: go on to the next one as it was settled.

        Raises FolderError when that would not be what devices were told.
        """
        computed = self._settle(key)
        told = {name: getattr(settled, name) for name in computed}
        numbers = ("degree", "holders", "threshold")
        sets = [name for name in computed if not name.endswith("signature") and name not in numbers]
        if any(computed[name] != told[name] for name in sets):
            raise FolderError(f"what the phase {PHASE_NAMES[self.phase]} settled is not made of what is stored")
        self.adopt(replace(self.settled, phase=self.phase + 1, **told))

    def keep_listed(self, entries: bytes) -> None:
        """Take keys only if they are in the roster: of those that two processes took at the same time, one is."""
        starts = range(0, len(entries), ENTRY_BYTES)
        listed = [RosterEntry.from_bytes(entries[at : at + ENTRY_BYTES]) for at in starts]
        devices = {peer_id: device for device, peer_id in self._peers.items()}
        self._owners = {
            key: devices.get(entry.peer_id, "")
            for entry in listed
            for key in (entry.mask_key, entry.share_key, entry.member_key)
        }
        for device in self._entries.keys() - {devices.get(entry.peer_id) for entry in listed}:
            self.leave_out(device)

    def leave_out(self, device: str) -> None:
        """Go on without a device that delivered keys which are not new."""
        self.left_out.add(device)
        self._entries.pop(device, None)
        self.delivered[ADVERTISING].pop(device, None)

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

    @property
    def _settlement(self) -> Included:
        return settle_included(self.roster, self._holders, self._unopened)

    @cached_property
    def _included(self) -> frozenset[int]:
        """From the phase INCLUDING on."""
        return members(self.settled.included, self.roster.size)

    @cached_property
    def _sum(self) -> MaskedSum:
        blocks = self._blocks_of(self.roster.size)
        return MaskedSum(self.roster, blocks, self._included, self._holders, self._unopened)

    def finish(self) -> dict[str, npt.NDArray[np.int64]]:
        """The sums by block; raises SecureSumError, before any mask is off, when too little was revealed."""
        try:
            return self._sum.finish()
        finally:
            for index in self._sum.faulty():
                self.faults[self._device(index)] = "its shares were false"

    def _index(self, device: str) -> int:
        return self.roster.index_of(self._peers[device])

    def _device(self, index: int) -> str:
        peer_id = self.roster.entry(index).peer_id
        return next(device for device, known in self._peers.items() if known == peer_id)

    # What devices are told.

    def step_for(self, device: str) -> secure_pb2.GetStepResponse | None:
        """What the device must do now; None: wait. Raises Refusal when it is out of the round."""
        if self.has_missed(device):
            raise Refusal(error_pb2.ERROR_REASON_ROUND_CLOSED, "the round has gone on without this device")
        if self.phase == ADVERTISING or device in self.delivered[self.phase]:
            return None
        if self.phase == ACKNOWLEDGING:
            inbox = self._inboxes[self._index(device)]
            return secure_pb2.GetStepResponse(acknowledge=secure_pb2.AcknowledgeStep(sealed_shares=inbox))
        return self._common_step()

    def _common_step(self) -> secure_pb2.GetStepResponse:
        """What everybody is told in this phase; made once."""
        if self._told[0] != self.phase:
            self._told = self.phase, self._make_step()
        return self._told[1]

    def _make_step(self) -> secure_pb2.GetStepResponse:
        settled = self.settled
        if self.phase == SHARING:
            share = secure_pb2.ShareStep(
                entries=settled.entries,
                vouchers=settled.vouchers,
                degree=settled.degree,
                holders=settled.holders,
                threshold=settled.threshold,
                signature=settled.roster_signature,
            )
            return secure_pb2.GetStepResponse(share=share)
        if self.phase == INCLUDING:
            included = secure_pb2.IncludedStep(included=settled.included, signature=settled.included_signature)
            return secure_pb2.GetStepResponse(included=included)
        if self.phase == UPLOADING:
            signers = settled.included_signers
            upload = secure_pb2.UploadStep(signers=signers, signatures=self._joined(INCLUDING, signers))
            return secure_pb2.GetStepResponse(upload=upload)
        if self.phase == CONFIRMING:
            survivors = secure_pb2.SurvivorsStep(survivors=settled.survivors, signature=settled.survivors_signature)
            return secure_pb2.GetStepResponse(survivors=survivors)
        signers = settled.survivors_signers
        reveal = secure_pb2.RevealStep(signers=signers, signatures=self._joined(CONFIRMING, signers))
        return secure_pb2.GetStepResponse(reveal=reveal)

    def _joined(self, phase: int, signers: bytes) -> bytes:
        return b"".join(self._signatures[phase][index] for index in sorted(members(signers, self.roster.size)))

    @cached_property
    def _inboxes(self) -> dict[int, bytes]:
        """Receiver to (sender's index, sealed share) of each device that chose it, by ascending index."""
        inboxes: dict[int, list[bytes]] = {index: [] for index in range(self.roster.size)}
        for sender, records in sorted(self._sealed.items()):
            for at in range(0, len(records), SEALED_RECORD_BYTES):
                receiver = int.from_bytes(records[at : at + _INDEX_BYTES], "little")
                sealed = records[at + _INDEX_BYTES : at + SEALED_RECORD_BYTES]
                inboxes[receiver].append(sender.to_bytes(_INDEX_BYTES, "little") + sealed)
        return {index: b"".join(messages) for index, messages in inboxes.items()}


_CHECK: dict[int, Callable[[Cohort, str, Any], Any]] = {
    ADVERTISING: Cohort._check_keys,
    SHARING: Cohort._check_shares,
    ACKNOWLEDGING: Cohort._check_unopened,
    INCLUDING: Cohort._check_included,
    UPLOADING: Cohort._check_upload,
    CONFIRMING: Cohort._check_survivors,
    REVEALING: Cohort._check_revealed,
}
_KEEP: dict[int, Callable[[Cohort, str, Any], None]] = {
    ADVERTISING: Cohort._keep_keys,
    SHARING: Cohort._keep_shares,
    ACKNOWLEDGING: Cohort._keep_unopened,
    INCLUDING: Cohort._keep_included,
    UPLOADING: Cohort._keep_upload,
    CONFIRMING: Cohort._keep_survivors,
    REVEALING: Cohort._keep_revealed,
}

DONE = secure_pb2.GetStepResponse(done=secure_pb2.RoundDone())


def most_holders(places: int) -> int:
    """The most holders that a device can have in a round with so many places, however many come."""
    return min(places, COMPLETE_SIZE) - 1


def _invalid(reason: str) -> Refusal:
    return Refusal(error_pb2.ERROR_REASON_UPLOAD_INVALID, f"upload refused: {reason}")


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise _invalid(reason)
