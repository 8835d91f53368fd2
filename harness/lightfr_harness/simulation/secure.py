"""A round of secure aggregation in one process: the SDK's own sessions, messages really encoded and decoded."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from google.protobuf.message import Message

from lightfr.secagg import DeviceSession, RevealedShares, Roster, RosterEntry, SealedShare, blocks_of, round_vector
from lightfr.secagg.roster import ID_BYTES, bitmap_of
from lightfr.training import PublishedModel, RowUpdate
from lightfr.v1 import coordinator_pb2, secure_pb2
from lightfr_harness.server.rules.secagg import MaskedSum, sign_roster

_INDEX_BYTES = 4
_SEALED_BYTES = 94
# Simulated cohorts may be small: nobody's data is in them.
_MINIMUM_COHORT = 2

Request = TypeVar("Request", bound=Message)
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
        server_key = self._key.public_key().public_bytes_raw()
        self._ids = [os.urandom(ID_BYTES) for _ in updates]
        self._sessions = [
            DeviceSession(self._round_id, peer_id, server_key, minimum_cohort=_MINIMUM_COHORT) for peer_id in self._ids
        ]
        self._present = list(range(len(updates)))
        self._up_bytes = self._down_bytes = 0
        self._seconds = {"devices": 0.0, "server": 0.0}

    def cost(self) -> tuple[int, int, float, float]:
        """Bytes up, bytes down, CPU seconds of the devices and of the server, so far."""
        return self._up_bytes, self._down_bytes, self._seconds["devices"], self._seconds["server"]

    def advertise(self, absent: Absent) -> None:
        """Devices send their keys; the server makes and signs the roster."""
        with self._step("devices"):
            requests = {i: self._sent(self._advertised(i)) for i in self._stay(absent)}
        with self._step("server"):
            entries = [
                RosterEntry(self._ids[i], request.mask_public_key, request.share_public_key)
                for i, request in requests.items()
            ]
            self._roster = Roster.of(self._round_id, entries)
            self._index = {i: self._roster.index_of(self._ids[i]) for i in requests}
            self._signature = sign_roster(self._key, self._roster)

    def share(self, absent: Absent) -> None:
        """Devices check the roster and seal shares; the server passes them on."""
        roster = self._roster
        step = secure_pb2.ShareStep(
            entries=roster.entries, degree=roster.degree, threshold=roster.threshold, signature=self._signature
        )
        self._received(secure_pb2.GetStepResponse(share=step), len(self._present))
        with self._step("devices"):
            requests = {i: self._sent(self._shared(i)) for i in self._stay(absent)}
        with self._step("server"):
            self._included = bitmap_of((self._index[i] for i in requests), roster.size)
            self._mail: dict[int, list[bytes]] = {index: [] for index in range(roster.size)}
            # Senders by ascending index, so that each receiver's mail is in this order too.
            for i in sorted(requests, key=self._index.__getitem__):
                for receiver, sealed in _mail(requests[i].sealed_shares):
                    self._mail[receiver].append(_index_bytes(self._index[i]) + sealed)
            self._total = MaskedSum(roster, self._included, blocks_of(self._model, roster.size))

    def upload(self, absent: Absent, received: list[bytes] | None = None) -> None:
        """Devices mask their vectors; the server adds them up and settles who survived.

        `received` gets each masked vector as it arrives, for who wants to look at them: they are large.
        """
        for i in self._stay(absent):
            with self._step("devices"):
                request = self._sent(self._masked(i))
            with self._step("server"):
                self._total.add(self._ids[i], request.masked_vector)
            if received is not None:
                received.append(request.masked_vector)
        with self._step("server"):
            self._survivors, self._survivors_signature = self._total.close(self._key)

    def reveal(self, absent: Absent) -> None:
        """Devices check the survivors and reveal one share of each neighbour."""
        step = secure_pb2.RevealStep(survivors=self._survivors, signature=self._survivors_signature)
        self._received(secure_pb2.GetStepResponse(reveal=step), len(self._present))
        for i in self._stay(absent):
            with self._step("devices"):
                request = self._sent(self._revealed(i))
            with self._step("server"):
                self._total.reveal(RevealedShares(self._ids[i], request.self_masks, request.mask_keys))

    def finish(self) -> dict[str, npt.NDArray[np.int64]]:
        """Take the masks off; raises SecureSumError when too many devices are gone to do it."""
        with self._step("server"):
            return self._total.finish()

    def _advertised(self, i: int) -> secure_pb2.AdvertiseKeysRequest:
        entry = self._sessions[i].advertise()
        return secure_pb2.AdvertiseKeysRequest(
            round_id=self._round_id, mask_public_key=entry.mask_key, share_public_key=entry.share_key
        )

    def _shared(self, i: int) -> secure_pb2.ShareKeysRequest:
        messages = self._sessions[i].share(self._roster, self._signature)
        sealed = b"".join(_index_bytes(self._roster.index_of(m.receiver)) + m.sealed for m in messages)
        return secure_pb2.ShareKeysRequest(round_id=self._round_id, sealed_shares=sealed)

    def _masked(self, i: int) -> coordinator_pb2.UploadRequest:
        mail = b"".join(self._mail[self._index[i]])
        step = secure_pb2.UploadStep(included=self._included, sealed_shares=mail)
        self._received(secure_pb2.GetStepResponse(upload=step), 1)
        inbox = [
            SealedShare(self._roster.entry(sender).peer_id, self._ids[i], sealed)
            for sender, sealed in _mail(step.sealed_shares)
        ]
        vector = round_vector(self._model, self._updates[i], self._roster.size, self._noise_bytes)
        return coordinator_pb2.UploadRequest(
            round_id=self._round_id,
            manifest_sha256=bytes(32),
            upload_id=self._ids[i],
            masked_vector=self._sessions[i].mask(vector, inbox, step.included),
        )

    def _revealed(self, i: int) -> secure_pb2.RevealSharesRequest:
        shares = self._sessions[i].unmask(self._survivors, self._survivors_signature)
        return secure_pb2.RevealSharesRequest(
            round_id=self._round_id, self_masks=shares.self_masks, mask_keys=shares.mask_keys
        )

    def _stay(self, absent: Absent) -> list[int]:
        self._present = [i for i in self._present if not absent[i]]
        return self._present

    def _sent(self, request: Request) -> Request:
        """What the server makes of a request: the bytes are counted, and nothing but them arrives."""
        body = request.SerializeToString()
        self._up_bytes += len(body)
        return type(request).FromString(body)

    def _received(self, answer: secure_pb2.GetStepResponse, devices: int) -> None:
        self._down_bytes += answer.ByteSize() * devices

    @contextmanager
    def _step(self, party: str) -> Iterator[None]:
        started = time.process_time()
        yield
        self._seconds[party] += time.process_time() - started


def _index_bytes(index: int) -> bytes:
    return index.to_bytes(_INDEX_BYTES, "little")


def _mail(field: bytes) -> Iterator[tuple[int, bytes]]:
    """Roster index and sealed bytes of each record."""
    record_bytes = _INDEX_BYTES + _SEALED_BYTES
    for at in range(0, len(field), record_bytes):
        record = field[at : at + record_bytes]
        yield int.from_bytes(record[:_INDEX_BYTES], "little"), record[_INDEX_BYTES:]
