"""The calls of secure aggregation: one method for each step, and what the server says is due next."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lightfr._wire.coordinator import SMALL_ANSWER_BYTES, decode, require, upload
from lightfr.v1 import coordinator_pb2, secure_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lightfr._wire.channel import Channel
    from lightfr.secagg import RevealedShares, VouchedEntry

# The server may hold an answer so long; less than the timeout of a call.
MAX_WAIT_MS = 15_000
# A roster of 8,192 devices with its vouchers. No other step is larger.
_STEP_LIMIT_BYTES = 8192 * (112 + 136) + 4096
_DAY_MS = 86_400_000
_INDEX_BYTES = 4
_SEALED_BYTES = 94


class Wait(NamedTuple):
    """The cohort has not come that far: ask again."""

    seconds: float


class Share(NamedTuple):
    """Step 2 is due: the roster's entries, vouchers and numbers, and the server's signature."""

    entries: bytes
    vouchers: bytes
    degree: int
    holders: int
    threshold: int
    signature: bytes


class Acknowledge(NamedTuple):
    """Step 3 is due: what others sealed for this device, by roster index."""

    sealed: list[tuple[int, bytes]]


class Included(NamedTuple):
    """Step 4 is due: who goes on, signed by the server."""

    included: bytes
    signature: bytes


class Upload(NamedTuple):
    """Step 5 is due: who signed the included set, and their signatures."""

    signers: bytes
    signatures: bytes


class Survivors(NamedTuple):
    """Step 6 is due: who uploaded, signed by the server."""

    survivors: bytes
    signature: bytes


class Reveal(NamedTuple):
    """Step 7 is due: who signed the survivor set, and their signatures."""

    signers: bytes
    signatures: bytes


class Done(NamedTuple):
    """This device has nothing left to do."""


Step = Wait | Share | Acknowledge | Included | Upload | Survivors | Reveal | Done


def encode_keys(round_id: bytes, vouched: VouchedEntry) -> bytes:
    """Serialise step 1."""
    return secure_pb2.AdvertiseKeysRequest(
        round_id=round_id,
        mask_public_key=vouched.entry.mask_key,
        share_public_key=vouched.entry.share_key,
        membership=vouched.membership,
        signature=vouched.signature,
    ).SerializeToString()


def encode_shares(round_id: bytes, sealed: Iterable[tuple[int, bytes]]) -> bytes:
    """Serialise step 2."""
    records = encode_sealed_records(sealed)
    return secure_pb2.ShareKeysRequest(round_id=round_id, sealed_shares=records).SerializeToString()


def encode_acknowledgement(round_id: bytes, unopened: bytes) -> bytes:
    """Serialise step 3."""
    return secure_pb2.AcknowledgeSharesRequest(round_id=round_id, unopened=unopened).SerializeToString()


def encode_signed_included(round_id: bytes, signature: bytes) -> bytes:
    """Serialise step 4."""
    return secure_pb2.SignIncludedRequest(round_id=round_id, signature=signature).SerializeToString()


def encode_masked(round_id: bytes, manifest_sha256: bytes, upload_id: bytes, masked: bytes) -> bytes:
    """Serialise step 5."""
    return coordinator_pb2.UploadRequest(
        round_id=round_id, manifest_sha256=manifest_sha256, upload_id=upload_id, masked_vector=masked
    ).SerializeToString()


def encode_signed_survivors(round_id: bytes, signature: bytes) -> bytes:
    """Serialise step 6."""
    return secure_pb2.SignSurvivorsRequest(round_id=round_id, signature=signature).SerializeToString()


def encode_revealed(round_id: bytes, revealed: RevealedShares) -> bytes:
    """Serialise step 7."""
    return secure_pb2.RevealSharesRequest(
        round_id=round_id, seeds=revealed.seeds, mask_keys=revealed.mask_keys
    ).SerializeToString()


def send(channel: Channel, method: str, request: bytes) -> None:
    """Send a serialised step; returns when the server says that it is durable."""
    if method == "Upload":
        upload(channel, request)
    else:
        channel.call(f"CoordinatorService/{method}", request, SMALL_ANSWER_BYTES)


def next_step(channel: Channel, round_id: bytes) -> Step:
    """Ask what is due; the server may take its time to answer."""
    request = secure_pb2.GetStepRequest(round_id=round_id, max_wait_ms=MAX_WAIT_MS).SerializeToString()
    return decode_step(channel.call("CoordinatorService/GetStep", request, _STEP_LIMIT_BYTES))


def decode_step(body: bytes) -> Step:
    """Parse and check a serialised GetStepResponse."""
    answer = decode(secure_pb2.GetStepResponse, body)
    match answer.WhichOneof("step"):
        case "wait_ms":
            require(1 <= answer.wait_ms <= _DAY_MS, "a wait is out of range")
            return Wait(answer.wait_ms / 1000)
        case "share":
            share = answer.share
            return Share(share.entries, share.vouchers, share.degree, share.holders, share.threshold, share.signature)
        case "acknowledge":
            return Acknowledge(sealed_records(answer.acknowledge.sealed_shares))
        case "included":
            return Included(answer.included.included, answer.included.signature)
        case "upload":
            return Upload(answer.upload.signers, answer.upload.signatures)
        case "survivors":
            return Survivors(answer.survivors.survivors, answer.survivors.signature)
        case "reveal":
            return Reveal(answer.reveal.signers, answer.reveal.signatures)
        case kind:
            require(kind == "done", "this release does not know the step")
            return Done()


def sealed_records(field: bytes) -> list[tuple[int, bytes]]:
    """Take sealed shares apart: the roster index of the other device, and the sealed bytes, of each record."""
    size = _INDEX_BYTES + _SEALED_BYTES
    require(len(field) % size == 0, "the sealed shares are not whole records")
    parts = (field[at : at + size] for at in range(0, len(field), size))
    return [(int.from_bytes(part[:_INDEX_BYTES], "little"), part[_INDEX_BYTES:]) for part in parts]


def encode_sealed_records(records: Iterable[tuple[int, bytes]]) -> bytes:
    """Put records together as sealed_records takes them apart."""
    return b"".join(index.to_bytes(_INDEX_BYTES, "little") + sealed for index, sealed in records)
