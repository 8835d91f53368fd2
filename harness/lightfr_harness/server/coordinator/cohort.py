"""The phases of a round of secure aggregation as pure logic: who must deliver what, and what each phase settles.

A device takes part in a phase if it delivered in the one before; so the roster are those who advertised, the included
those who shared, the survivors those who uploaded. Nothing here waits, writes or looks at a clock. docs/secagg.md has
the cryptography.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lightfr.errors import PeerKeyError
from lightfr.secagg import Block, RevealedShares, Roster, RosterEntry
from lightfr.secagg.agreement import Agreement
from lightfr.secagg.roster import DEFAULT_DEGREE, bitmap_of
from lightfr.v1 import error_pb2, secure_pb2
from lightfr_harness.server.coordinator.folder import FolderError
from lightfr_harness.server.coordinator.refusals import Refusal
from lightfr_harness.server.rules import UploadError
from lightfr_harness.server.rules.secagg import MaskedSum, sign_roster

ADVERTISING, SHARING, UPLOADING, REVEALING = PHASES = (1, 2, 3, 4)
PHASE_NAMES = {ADVERTISING: "advertising", SHARING: "sharing", UPLOADING: "uploading", REVEALING: "revealing"}

_INDEX_BYTES = 4
SEALED_RECORD_BYTES = _INDEX_BYTES + 94
REVEALED_RECORD_BYTES = 16 + 33

BlocksOf = Callable[[int], tuple[Block, ...]]


@dataclass(frozen=True)
class PhaseResult:
    """What the phases so far have fixed. Durable before anybody hears of it, and never anything else for this round."""

    phase: int = ADVERTISING
    entries: bytes = b""
    degree: int = 0
    threshold: int = 0
    roster_signature: bytes = b""
    included: bytes = b""
    survivors: bytes = b""
    survivors_signature: bytes = b""


class Cohort:
    """One round. `peers` are the devices that have a place, with their peer ids; it grows while devices check in."""

    def __init__(self, round_id: bytes, places: int, peers: Mapping[str, bytes], blocks_of: BlocksOf) -> None:
        self._round_id, self._places, self._peers, self._blocks_of = round_id, places, peers, blocks_of
        self.settled = PhaseResult()
        # Phase to device to digest of what it delivered.
        self.delivered: dict[int, dict[str, bytes]] = {phase: {} for phase in PHASES}
        self._entries: dict[str, RosterEntry] = {}
        self._keys: set[bytes] = set()
        self._shares: dict[int, bytes] = {}

    @property
    def phase(self) -> int:
        return self.settled.phase

    def expected(self, phase: int) -> int:
        """How many devices may deliver in a phase that has begun."""
        return self._places if phase == ADVERTISING else len(self.delivered[phase - 1])

    def is_complete(self) -> bool:
        """Whether everybody has delivered in this phase."""
        return len(self.delivered[self.phase]) >= self.expected(self.phase)

    def has_enough(self, minimum: int) -> bool:
        """Whether the round can go on with those who delivered in this phase."""
        return len(self.delivered[self.phase]) >= max(minimum, self.settled.threshold)

    def has_missed(self, device: str) -> bool:
        """Whether the device did not deliver in a phase that is over."""
        return any(device not in self.delivered[phase] for phase in PHASES if phase < self.phase)

    # What devices deliver. Each raises Refusal and changes nothing unless it is what the phase needs.

    def is_known(self, phase: int, device: str, digest: bytes) -> bool:
        """Whether these bytes are in already; a refusal if others are, or if the device may not deliver now."""
        if device not in self._peers:
            raise Refusal(error_pb2.ERROR_REASON_NOT_ASSIGNED, "this device has no place in the round")
        known = self.delivered[phase].get(device)
        if known == digest:
            return True
        if known is not None:
            raise Refusal(error_pb2.ERROR_REASON_UPLOAD_CONFLICT, "this device delivered other bytes for this step")
        if phase > self.phase:
            raise _invalid(f"the round is still {PHASE_NAMES[self.phase]}")
        if phase < self.phase or self.has_missed(device):
            raise Refusal(error_pb2.ERROR_REASON_ROUND_CLOSED, "this device is too late for this step of the round")
        return False

    def advertise(self, device: str, digest: bytes, request: secure_pb2.AdvertiseKeysRequest) -> None:
        """Take two keys that nobody else has."""
        keys = {request.mask_public_key, request.share_public_key}
        _require(len(keys) == 2 and keys.isdisjoint(self._keys), "a key is not new")
        probe = Agreement(os.urandom(32))
        try:
            for key in keys:
                probe.with_peer(key)
        except PeerKeyError as error:
            raise _invalid("a key is a point of low order") from error
        self._keys |= keys
        self._entries[device] = RosterEntry(self._peers[device], request.mask_public_key, request.share_public_key)
        self.delivered[ADVERTISING][device] = digest

    def share(self, device: str, digest: bytes, request: secure_pb2.ShareKeysRequest) -> None:
        """Take one sealed share for each neighbour."""
        index, records = self._index(device), request.sealed_shares
        starts = range(0, len(records), SEALED_RECORD_BYTES)
        receivers = [int.from_bytes(records[at : at + _INDEX_BYTES], "little") for at in starts]
        _require(
            len(records) == SEALED_RECORD_BYTES * len(receivers) and receivers == self.roster.neighbours(index),
            "it must have one sealed share for each neighbour, by ascending index",
        )
        self._shares[index] = records
        self.delivered[SHARING][device] = digest

    def upload(self, device: str, digest: bytes, masked_vector: bytes) -> None:
        """Add a masked vector."""
        try:
            self._sum.add(self._peers[device], masked_vector)
        except UploadError as error:
            raise Refusal(error_pb2.ERROR_REASON_UPLOAD_INVALID, str(error)) from error
        self.delivered[UPLOADING][device] = digest

    def reveal(self, device: str, digest: bytes, request: secure_pb2.RevealSharesRequest) -> None:
        """Take the shares that one survivor reveals."""
        try:
            self._sum.reveal(RevealedShares(self._peers[device], request.self_masks, request.mask_keys))
        except UploadError as error:
            raise Refusal(error_pb2.ERROR_REASON_UPLOAD_INVALID, str(error)) from error
        self.delivered[REVEALING][device] = digest

    # What phases settle.

    def advance(self, key: Ed25519PrivateKey) -> PhaseResult:
        """End this phase and begin the next one; returns what is to be made durable."""
        if self.phase == ADVERTISING:
            roster = Roster.of(self._round_id, self._entries.values())
            signature = sign_roster(key, roster)
            self.settled = PhaseResult(SHARING, roster.entries, roster.degree, roster.threshold, signature)
        elif self.phase == SHARING:
            included = bitmap_of(self._shares, self.roster.size)
            self.settled = replace(self.settled, phase=UPLOADING, included=included)
        else:
            survivors, signature = self._sum.close(key)
            self.settled = replace(self.settled, phase=REVEALING, survivors=survivors, survivors_signature=signature)
        return self.settled

    def resume(self, settled: PhaseResult, key: Ed25519PrivateKey) -> None:
        """After what was delivered in this phase has been taken again: go on to the next one as it was settled.

        Raises FolderError when that would not be what devices were told.
        """
        if self.phase == ADVERTISING:
            self.settled = replace(settled, phase=SHARING, included=b"", survivors=b"", survivors_signature=b"")
            if settled.entries != b"".join(sorted(entry.to_bytes() for entry in self._entries.values())):
                raise FolderError("the roster is not made of the keys that were advertised")
        elif self.phase == SHARING:
            self.advance(key)
            if self.settled.included != settled.included:
                raise FolderError("the included set is not made of the shares that are stored")
        else:
            self.advance(key)
            if self.settled.survivors != settled.survivors:
                raise FolderError("the survivor set is not made of the uploads that are stored")
            self.settled = replace(settled, phase=REVEALING)

    @cached_property
    def roster(self) -> Roster:
        """The roster, from the phase SHARING on."""
        settled = self.settled
        return Roster(self._round_id, settled.degree, settled.threshold, settled.entries)

    @cached_property
    def _sum(self) -> MaskedSum:
        return MaskedSum(self.roster, self.settled.included, self._blocks_of(self.roster.size))

    def finish(self) -> dict[str, npt.NDArray[np.int64]]:
        """The sums by block; raises SecureSumError, before any mask is off, when too little was revealed."""
        return self._sum.finish()

    def _index(self, device: str) -> int:
        return self.roster.index_of(self._peers[device])

    # What devices are told.

    def step_for(self, device: str) -> secure_pb2.GetStepResponse | None:
        """What the device must do now; None: wait. Raises Refusal when it is out of the round."""
        if device not in self._peers:
            raise Refusal(error_pb2.ERROR_REASON_NOT_ASSIGNED, "this device has no place in the round")
        if self.has_missed(device):
            raise Refusal(error_pb2.ERROR_REASON_ROUND_CLOSED, "the round has gone on without this device")
        if self.phase == ADVERTISING:
            return None
        if device in self.delivered[self.phase]:
            return DONE if self.phase == REVEALING else None
        if self.phase == UPLOADING:
            inbox = self._inboxes[self._index(device)]
            step = secure_pb2.UploadStep(included=self.settled.included, sealed_shares=inbox)
            return secure_pb2.GetStepResponse(upload=step)
        return self._share_step if self.phase == SHARING else self._reveal_step

    @cached_property
    def _share_step(self) -> secure_pb2.GetStepResponse:
        settled = self.settled
        step = secure_pb2.ShareStep(
            entries=settled.entries,
            degree=settled.degree,
            threshold=settled.threshold,
            signature=settled.roster_signature,
        )
        return secure_pb2.GetStepResponse(share=step)

    @cached_property
    def _reveal_step(self) -> secure_pb2.GetStepResponse:
        settled = self.settled
        step = secure_pb2.RevealStep(survivors=settled.survivors, signature=settled.survivors_signature)
        return secure_pb2.GetStepResponse(reveal=step)

    @cached_property
    def _inboxes(self) -> dict[int, bytes]:
        """Receiver to (sender's index, sealed share) of each included neighbour, by ascending index."""
        inboxes: dict[int, list[bytes]] = {index: [] for index in range(self.roster.size)}
        for sender, records in sorted(self._shares.items()):
            for at in range(0, len(records), SEALED_RECORD_BYTES):
                receiver = int.from_bytes(records[at : at + _INDEX_BYTES], "little")
                sealed = records[at + _INDEX_BYTES : at + SEALED_RECORD_BYTES]
                inboxes[receiver].append(sender.to_bytes(_INDEX_BYTES, "little") + sealed)
        return {index: b"".join(messages) for index, messages in inboxes.items()}


DONE = secure_pb2.GetStepResponse(done=secure_pb2.RoundDone())


def most_neighbours(places: int) -> int:
    """Neighbours that a device can have in a round with so many places."""
    return min(places - 1, DEFAULT_DEGREE)


def _invalid(reason: str) -> Refusal:
    return Refusal(error_pb2.ERROR_REASON_UPLOAD_INVALID, f"upload refused: {reason}")


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise _invalid(reason)
