"""The calls of secure aggregation: one method for each step, and what the server says is due next."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lightfr._wire.coordinator import decode, require, upload
from lightfr.secagg import Roster, RosterEntry, SealedShare
from lightfr.v1 import coordinator_pb2, secure_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lightfr._wire.channel import Channel
    from lightfr.secagg import RevealedShares

# The server may hold an answer so long; less than the timeout of a call.
MAX_WAIT_MS = 15_000
_EMPTY_ANSWER_BYTES = 64
# A roster of 8,192 devices, and as many sealed shares as a device can have neighbours.
_STEP_LIMIT_BYTES = 8192 * 80 + 256 * 98 + 4096
_DAY_MS = 86_400_000
_INDEX_BYTES = 4
_SEALED_BYTES = 94


class Wait(NamedTuple):
    """The cohort has not come that far: ask again."""

    seconds: float


class Share(NamedTuple):
    """Step 2 is due: the roster, signed."""

    roster: Roster
    signature: bytes


class Upload(NamedTuple):
    """Step 3 is due: who is included, and what the neighbours among them sent, by roster index."""

    included: bytes
    sealed: list[tuple[int, bytes]]


class Reveal(NamedTuple):
    """Step 4 is due: who uploaded, signed."""

    survivors: bytes
    signature: bytes


class Done(NamedTuple):
    """This device has nothing left to do."""


Step = Wait | Share | Upload | Reveal | Done


def encode_keys(round_id: bytes, entry: RosterEntry) -> bytes:
    """Serialise step 1."""
    return secure_pb2.AdvertiseKeysRequest(
        round_id=round_id, mask_public_key=entry.mask_key, share_public_key=entry.share_key
    ).SerializeToString()


def encode_shares(roster: Roster, shares: Sequence[SealedShare]) -> bytes:
    """Serialise step 2."""
    records = sorted((roster.index_of(share.receiver), share.sealed) for share in shares)
    return secure_pb2.ShareKeysRequest(
        round_id=roster.round_id, sealed_shares=encode_sealed_records(records)
    ).SerializeToString()


def encode_masked(round_id: bytes, manifest_sha256: bytes, upload_id: bytes, masked: bytes) -> bytes:
    """Serialise step 3."""
    return coordinator_pb2.UploadRequest(
        round_id=round_id, manifest_sha256=manifest_sha256, upload_id=upload_id, masked_vector=masked
    ).SerializeToString()


def encode_revealed(round_id: bytes, revealed: RevealedShares) -> bytes:
    """Serialise step 4."""
    return secure_pb2.RevealSharesRequest(
        round_id=round_id, self_masks=revealed.self_masks, mask_keys=revealed.mask_keys
    ).SerializeToString()


def send(channel: Channel, method: str, request: bytes) -> None:
    """Send a serialised step; returns when the server says that it is durable."""
    if method == "Upload":
        upload(channel, request)
    else:
        channel.call(f"CoordinatorService/{method}", request, _EMPTY_ANSWER_BYTES)


def next_step(channel: Channel, round_id: bytes) -> Step:
    """Ask what is due; the server may take its time to answer."""
    request = secure_pb2.GetStepRequest(round_id=round_id, max_wait_ms=MAX_WAIT_MS).SerializeToString()
    body = channel.call("CoordinatorService/GetStep", request, _STEP_LIMIT_BYTES)
    return decode_step(round_id, body)


def decode_step(round_id: bytes, body: bytes) -> Step:
    """Parse and check a serialised GetStepResponse."""
    answer = decode(secure_pb2.GetStepResponse, body)
    kind = answer.WhichOneof("step")
    require(kind is not None, "this release does not know the step")
    if kind == "share":
        step = answer.share
        return Share(Roster(round_id, step.degree, step.threshold, step.entries), step.signature)
    if kind == "upload":
        return Upload(answer.upload.included, sealed_records(answer.upload.sealed_shares))
    if kind == "reveal":
        return Reveal(answer.reveal.survivors, answer.reveal.signature)
    if kind == "done":
        return Done()
    require(1 <= answer.wait_ms <= _DAY_MS, "a wait is out of range")
    return Wait(answer.wait_ms / 1000)


def inbox(step: Upload, neighbours: Mapping[int, bytes], receiver: bytes) -> list[SealedShare]:
    """Name the senders, which travel as roster indices."""
    require(all(index in neighbours for index, _ in step.sealed), "a sealed share is not from a neighbour")
    return [SealedShare(neighbours[index], receiver, sealed) for index, sealed in step.sealed]


def sealed_records(field: bytes) -> list[tuple[int, bytes]]:
    """Take sealed shares apart: the roster index of the other device, and the sealed bytes, of each record."""
    size = _INDEX_BYTES + _SEALED_BYTES
    require(len(field) % size == 0, "the sealed shares are not whole records")
    parts = (field[at : at + size] for at in range(0, len(field), size))
    return [(int.from_bytes(part[:_INDEX_BYTES], "little"), part[_INDEX_BYTES:]) for part in parts]


def encode_sealed_records(records: Iterable[tuple[int, bytes]]) -> bytes:
    """Put records together as sealed_records takes them apart."""
    return b"".join(index.to_bytes(_INDEX_BYTES, "little") + sealed for index, sealed in records)
