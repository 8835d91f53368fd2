"""The phases of a round of secure aggregation as pure logic: whose turn it is, what each phase settles and tells.

A device takes part in a phase if it delivered in the one before; so the roster are those who advertised, the survivors
those who uploaded. Between acknowledging and signing, those whose shares do not fit are left out. Nothing here waits,
writes or looks at a clock. docs/secagg.md has the cryptography.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lightfr.secagg import Roster
from lightfr.secagg.roster import COMPLETE_SIZE
from lightfr.secagg.views import bitmap_of, included_message, members, quorum, roster_message, survivors_message
from lightfr.v1 import error_pb2, secure_pb2
from lightfr_harness.server.coordinator.deliveries import (
    INDEX_BYTES,
    SEALED_RECORD_BYTES,
    BlocksOf,
    Deliveries,
    RoundFacts,
    invalid,
)
from lightfr_harness.server.coordinator.folder import FolderError
from lightfr_harness.server.coordinator.phases import (
    ACKNOWLEDGING,
    ADVERTISING,
    CONFIRMING,
    INCLUDING,
    PHASE_NAMES,
    PHASES,
    SHARING,
    UPLOADING,
    PhaseResult,
)
from lightfr_harness.server.coordinator.refusals import Refusal
from lightfr_harness.server.rules.secagg import Included, settle_included

DONE = secure_pb2.GetStepResponse(done=secure_pb2.RoundDone()).SerializeToString()


class Cohort(Deliveries):
    """One round."""

    def __init__(self, facts: RoundFacts, places: int, peers: Mapping[str, bytes], blocks_of: BlocksOf) -> None:
        super().__init__(facts, peers, blocks_of)
        self._places = places
        # While what this phase settles is being written: it takes no more.
        self.is_closing = False
        # How many deliveries of this phase are stored, as last heard: other processes may have taken some.
        self.heard = 0
        # A phase, and what everybody is told in it: a GetStepResponse, serialised once for all.
        self._told = ADVERTISING, b""

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

    def require_turn(self, phase: int, device: str) -> None:
        """Refuse what a device with a place may not deliver now."""
        if phase > self.phase:
            raise invalid(f"the round is still {PHASE_NAMES[self.phase]}")
        if phase < self.phase or self.is_closing or self.has_missed(device):
            raise Refusal(error_pb2.ERROR_REASON_ROUND_CLOSED, "this device is too late for this step of the round")

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

    @property
    def _settlement(self) -> Included:
        return settle_included(self.roster, self._holders, self._unopened)

    def finish(self) -> dict[str, npt.NDArray[np.int64]]:
        """The sums by block; raises SecureSumError, before any mask is off, when too little was revealed."""
        try:
            return self._sum.finish()
        finally:
            for index in self._sum.faulty():
                self.faults[self._device(index)] = "its shares were false"

    # What devices are told.

    def step_for(self, device: str) -> bytes | None:
        """What the device must do now, a GetStepResponse; None: wait. Raises Refusal when it is out of the round."""
        if self.has_missed(device):
            raise Refusal(error_pb2.ERROR_REASON_ROUND_CLOSED, "the round has gone on without this device")
        if self.phase == ADVERTISING or device in self.delivered[self.phase]:
            return None
        if self.phase == ACKNOWLEDGING:
            inbox = self._inboxes[self._index(device)]
            acknowledge = secure_pb2.AcknowledgeStep(sealed_shares=inbox)
            return secure_pb2.GetStepResponse(acknowledge=acknowledge).SerializeToString()
        if self._told[0] != self.phase:
            self._told = self.phase, self._make_step().SerializeToString()
        return self._told[1]

    def _make_step(self) -> secure_pb2.GetStepResponse:
        """What everybody is told in this phase."""
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
                receiver = int.from_bytes(records[at : at + INDEX_BYTES], "little")
                sealed = records[at + INDEX_BYTES : at + SEALED_RECORD_BYTES]
                inboxes[receiver].append(sender.to_bytes(INDEX_BYTES, "little") + sealed)
        return {index: b"".join(messages) for index, messages in inboxes.items()}


def most_holders(places: int) -> int:
    """The most holders that a device can have in a round with so many places, however many come."""
    return min(places, COMPLETE_SIZE) - 1
