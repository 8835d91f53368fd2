"""A round of secure aggregation in one process: the SDK's own participants, messages really encoded and decoded."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lightfr._wire import secure
from lightfr._wire.coordinator import Assignment
from lightfr.rounds import RoundParticipant
from lightfr.secagg import RevealedShares, Roster, RosterEntry, Vector, blocks_of, round_vector
from lightfr.secagg.roster import ID_BYTES, bitmap_of
from lightfr.training import PublishedModel, RowUpdate
from lightfr.v1 import coordinator_pb2, secure_pb2
from lightfr_harness.server.rules.secagg import MaskedSum, sign_roster

# Simulated cohorts may be small: nobody's data is in them.
_MINIMUM_COHORT = 2
_NO_LIMIT_BYTES = 2**40

Absent = npt.NDArray[np.bool_]


class SecureRound:
    """advertise(), share(), upload(), reveal() and finish(), in this order; each may lose devices of the cohort.

    Devices are numbered as the updates are; `absent` says which do not take this step, and so none later.
    """

    def __init__(
        self, model: PublishedModel, updates: Sequence[RowUpdate], noise_bytes: Callable[[int], bytes]
    ) -> None:
        self._model, self._updates, self._noise_bytes = model, updates, noise_bytes
        self._key, self._round_id = Ed25519PrivateKey.generate(), os.urandom(ID_BYTES)
        self._ids = [os.urandom(ID_BYTES) for _ in updates]
        self._participants: dict[int, RoundParticipant] = {}
        self._present = list(range(len(updates)))
        self._up_bytes = self._down_bytes = 0
        self._seconds = {"devices": 0.0, "server": 0.0}

    def cost(self) -> tuple[int, int, float, float]:
        """Bytes up, bytes down, CPU seconds of the devices and of the server, so far."""
        return self._up_bytes, self._down_bytes, self._seconds["devices"], self._seconds["server"]

    def advertise(self, absent: Absent) -> None:
        """Devices send their keys; the server makes and signs the roster."""
        server_key = self._key.public_key().public_bytes_raw()
        with self._step("devices"):
            for i in self._stay(absent):
                place = Assignment(self._round_id, 0, bytes(32), _NO_LIMIT_BYTES, 1.0, self._ids[i], False)
                self._participants[i] = RoundParticipant.begin(place, server_key, _MINIMUM_COHORT)
        with self._step("server"):
            entries = []
            for i in self._present:
                request = secure_pb2.AdvertiseKeysRequest.FromString(self._sent(i))
                entries.append(RosterEntry(self._ids[i], request.mask_public_key, request.share_public_key))
            self._roster = Roster.of(self._round_id, entries)
            self._index = {i: self._roster.index_of(self._ids[i]) for i in self._present}
            self._signature = sign_roster(self._key, self._roster)

    def share(self, absent: Absent) -> None:
        """Devices check the roster and seal shares; the server passes them on."""
        roster = self._roster
        step = secure_pb2.ShareStep(
            entries=roster.entries, degree=roster.degree, threshold=roster.threshold, signature=self._signature
        )
        with self._step("devices"):
            # One copy for all, as the devices share the model too: each roster of its own would cost what it holds.
            due = self._received(secure_pb2.GetStepResponse(share=step), len(self._present))
            for i in self._stay(absent):
                self._participants[i].answer(due, self._vector_of(i))
        with self._step("server"):
            self._included = bitmap_of((self._index[i] for i in self._present), roster.size)
            self._mail: dict[int, list[tuple[int, bytes]]] = {index: [] for index in range(roster.size)}
            # Senders by ascending index, so that each receiver's mail is in this order too.
            for i in sorted(self._present, key=self._index.__getitem__):
                request = secure_pb2.ShareKeysRequest.FromString(self._sent(i))
                for receiver, sealed in secure.sealed_records(request.sealed_shares):
                    self._mail[receiver].append((self._index[i], sealed))
            self._total = MaskedSum(roster, self._included, blocks_of(self._model, roster.size))

    def upload(self, absent: Absent, received: list[bytes] | None = None) -> None:
        """Devices mask their vectors; the server adds them up and settles who survived.

        `received` gets each masked vector as it arrives, for who wants to look at them: they are large.
        """
        for i in self._stay(absent):
            mail = secure.encode_sealed_records(self._mail[self._index[i]])
            step = secure_pb2.UploadStep(included=self._included, sealed_shares=mail)
            with self._step("devices"):
                due = self._received(secure_pb2.GetStepResponse(upload=step), 1)
                self._participants[i].answer(due, self._vector_of(i))
            with self._step("server"):
                masked = coordinator_pb2.UploadRequest.FromString(self._sent(i)).masked_vector
                self._total.add(self._ids[i], masked)
            if received is not None:
                received.append(masked)
        with self._step("server"):
            self._survivors, self._survivors_signature = self._total.close(self._key)

    def reveal(self, absent: Absent) -> None:
        """Devices check the survivors and reveal one share of each neighbour."""
        step = secure_pb2.RevealStep(survivors=self._survivors, signature=self._survivors_signature)
        due = self._received(secure_pb2.GetStepResponse(reveal=step), len(self._present))
        for i in self._stay(absent):
            with self._step("devices"):
                self._participants[i].answer(due, self._vector_of(i))
            with self._step("server"):
                request = secure_pb2.RevealSharesRequest.FromString(self._sent(i))
                self._total.reveal(RevealedShares(self._ids[i], request.self_masks, request.mask_keys))

    def finish(self) -> dict[str, npt.NDArray[np.int64]]:
        """Take the masks off; raises SecureSumError when too many devices are gone to do it."""
        with self._step("server"):
            return self._total.finish()

    def _vector_of(self, i: int) -> Callable[[bool, int], Vector]:
        return lambda _, cohort: round_vector(self._model, self._updates[i], cohort, self._noise_bytes)

    def _stay(self, absent: Absent) -> list[int]:
        self._present = [i for i in self._present if not absent[i]]
        return self._present

    def _sent(self, i: int) -> bytes:
        """What a device sends: its bytes are counted, and nothing but them arrives."""
        request = self._participants[i].outgoing.request
        self._up_bytes += len(request)
        return request

    def _received(self, answer: secure_pb2.GetStepResponse, devices: int) -> secure.Step:
        """What so many devices make of an answer, whose bytes are counted for each of them."""
        body = answer.SerializeToString()
        self._down_bytes += len(body) * devices
        return secure.decode_step(self._round_id, body)

    @contextmanager
    def _step(self, party: str) -> Iterator[None]:
        started = time.process_time()
        yield
        self._seconds[party] += time.process_time() - started
