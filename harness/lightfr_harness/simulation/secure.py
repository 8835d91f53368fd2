"""A round of secure aggregation in one process: the SDK's own participants against the coordinator's own cohort.

Every message is really encoded and decoded, so that their bytes can be counted.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from google.protobuf.message import Message

from lightfr._wire import secure
from lightfr._wire.coordinator import TRAINING, Assignment
from lightfr.errors import PrivacyError
from lightfr.membership import MEMBERSHIP_CONTEXT, Member, MemberKey
from lightfr.rounds import RoundParticipant, Trusted
from lightfr.secagg import Roster, Vector, blocks_of, round_vector
from lightfr.secagg.agreement import Agreement
from lightfr.secagg.roster import ID_BYTES
from lightfr.secagg.vector import Block
from lightfr.secagg.work import Work
from lightfr.training import PublishedModel, RowUpdate
from lightfr.v1 import coordinator_pb2, secure_pb2
from lightfr_harness.server.coordinator.cohort import Cohort
from lightfr_harness.server.coordinator.deliveries import RoundFacts
from lightfr_harness.server.coordinator.phases import (
    ACKNOWLEDGING,
    ADVERTISING,
    CONFIRMING,
    INCLUDING,
    PHASES,
    REVEALING,
    SHARING,
    UPLOADING,
)
from lightfr_harness.server.rules.secagg import SecureSumError

# Simulated cohorts may be small: nobody's data is in them.
_MINIMUM_COHORT = 2
_NO_LIMIT_BYTES = 2**40
_REQUESTS: dict[int, type[Message]] = {
    ADVERTISING: secure_pb2.AdvertiseKeysRequest,
    SHARING: secure_pb2.ShareKeysRequest,
    ACKNOWLEDGING: secure_pb2.AcknowledgeSharesRequest,
    INCLUDING: secure_pb2.SignIncludedRequest,
    UPLOADING: coordinator_pb2.UploadRequest,
    CONFIRMING: secure_pb2.SignSurvivorsRequest,
    REVEALING: secure_pb2.RevealSharesRequest,
}

Absent = npt.NDArray[np.bool_]


def simulated_member(authority: Ed25519PrivateKey) -> Member:
    """A device that this authority vouches for until the end of time."""
    key = MemberKey.new()
    statement = key.public + b"\xff" * 8
    return Member(key, statement + authority.sign(MEMBERSHIP_CONTEXT + statement))


class SharedWork(Work):
    """What the devices of one simulated cohort compute, each of it once. For one round: it remembers secrets."""

    def __init__(self) -> None:
        self._signed: dict[tuple[bytes, bytes, bytes], bool] = {}
        self._rosters: dict[tuple[Any, ...], Roster] = {}
        self._in_common: dict[frozenset[bytes], bytes] = {}

    def is_signed(self, key: bytes, signature: bytes, message: bytes) -> bool:
        asked = key, signature, message
        if asked not in self._signed:
            self._signed[asked] = super().is_signed(*asked)
        return self._signed[asked]

    def agreement(self, private_key: bytes) -> Agreement:
        return _SharedAgreement(private_key, self._in_common)

    def roster(self, *told: Any) -> Roster:
        if told not in self._rosters:
            self._rosters[told] = super().roster(*told)
        return self._rosters[told]


class _SharedAgreement(Agreement):
    """An agreement is the same for both sides: the second one finds what the first one computed, and takes it away."""

    def __init__(self, private_key: bytes, in_common: dict[frozenset[bytes], bytes]) -> None:
        super().__init__(private_key)
        self._in_common, self._public_key = in_common, self._key.public_key().public_bytes_raw()

    def with_peer(self, peer_key: bytes) -> bytes:
        pair = frozenset((self._public_key, peer_key))
        shared = self._in_common.pop(pair, None)
        if shared is None:
            shared = self._in_common[pair] = super().with_peer(peer_key)
        return shared


class SecureRound:
    """run() the phases in order, then finish(). Each phase may lose devices of the cohort.

    Devices are numbered as their parts are: each makes its vector for a cohort of some size. `blocks` says what they
    are made of. A device that refuses what it is told leaves, as one that drops out does.
    """

    def __init__(
        self, parts: Sequence[Callable[[int], Vector]], blocks: Callable[[int], tuple[Block, ...]], kind: int = TRAINING
    ) -> None:
        self._parts, self._kind = parts, kind
        self._key, self._authority = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
        self._round_id, self._names = os.urandom(ID_BYTES), [str(i) for i in range(len(parts))]
        self._peers = {name: os.urandom(ID_BYTES) for name in self._names}
        keys = [self._authority.public_key().public_bytes_raw()]
        facts = RoundFacts(self._round_id, bytes(32), kind, keys, lambda: 0.0)
        self._cohort = Cohort(facts, len(parts), self._peers, blocks)
        self._membership_keys, self._work = keys, SharedWork()
        self._participants: dict[int, RoundParticipant] = {}
        self._present = list(range(len(parts)))
        self._up_bytes = self._down_bytes = 0
        self._seconds = {"devices": 0.0, "server": 0.0}

    @classmethod
    def of_updates(
        cls, model: PublishedModel, updates: Sequence[RowUpdate], noise_bytes: Callable[[int], bytes]
    ) -> SecureRound:
        """A training round of devices with these updates."""

        def part(update: RowUpdate) -> Callable[[int], Vector]:
            return lambda cohort: round_vector(model, update, cohort, noise_bytes)

        return cls([part(update) for update in updates], lambda size: blocks_of(model, size))

    def cost(self) -> tuple[int, int, float, float]:
        """Bytes up, bytes down, CPU seconds of the devices and of the server, so far."""
        return self._up_bytes, self._down_bytes, self._seconds["devices"], self._seconds["server"]

    @property
    def survivors(self) -> int:
        """How many devices uploaded."""
        return len(self._cohort.delivered[UPLOADING])

    def run(self, absent: Callable[[int], Absent], received: list[bytes] | None = None) -> None:
        """Walk through all phases; `absent` says which devices leave before they deliver in a phase.

        `received` gets each masked vector as it arrives, for who wants to look at them: they are large. Raises
        SecureSumError when too few are left to go on.
        """
        for phase in PHASES:
            gone = absent(phase)
            self._present = [i for i in self._present if not gone[i]]
            self._present = [i for i in self._present if self._deliver(phase, i, received)]
            with self._timed("server"):
                if phase == REVEALING:
                    return
                if not self._cohort.has_enough(_MINIMUM_COHORT):
                    raise SecureSumError(f"{len(self._present)} devices are too few to go on")
                self._cohort.advance(self._key)
                self._present = [i for i in self._present if not self._cohort.has_missed(self._names[i])]

    def finish(self) -> dict[str, npt.NDArray[np.int64]]:
        """Take the masks off; raises SecureSumError when too many devices are gone to do it."""
        with self._timed("server"):
            return self._cohort.finish()

    def _deliver(self, phase: int, i: int, received: list[bytes] | None) -> bool:
        """One device's part of a phase; False when it leaves."""
        with self._timed("server"):
            step = None if phase == ADVERTISING else self._cohort.step_for(self._names[i])
        with self._timed("devices"):
            self._down_bytes += len(step or b"")
            try:
                request = self._begun(i) if step is None else self._answered(i, step)
            except PrivacyError:
                return False
        with self._timed("server"):
            self._up_bytes += len(request)
            message = _REQUESTS[phase].FromString(request)
            self._cohort.take(phase, self._names[i], b"", message)
        if received is not None and isinstance(message, coordinator_pb2.UploadRequest):
            received.append(message.masked_vector)
        return True

    def _begun(self, i: int) -> bytes:
        peer_id, member = self._peers[self._names[i]], simulated_member(self._authority)
        place = Assignment(self._round_id, 0, bytes(32), _NO_LIMIT_BYTES, 1.0, peer_id, self._kind)
        trusted = Trusted(self._key.public_key().public_bytes_raw(), self._membership_keys, member, now=0.0)
        self._participants[i] = RoundParticipant.begin(place, trusted, _MINIMUM_COHORT, work=self._work)
        return self._participants[i].outgoing.request

    def _answered(self, i: int, body: bytes) -> bytes:
        self._participants[i].answer(secure.decode_step(body), lambda _, cohort: self._parts[i](cohort))
        return self._participants[i].outgoing.request

    @contextmanager
    def _timed(self, party: str) -> Iterator[None]:
        started = time.process_time()
        yield
        self._seconds[party] += time.process_time() - started
