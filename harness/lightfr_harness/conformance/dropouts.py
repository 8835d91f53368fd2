"""Rounds in which devices stay away and come too late. Each takes a deadline, so several cases look at one of them.

Three of them carry the uploads of the vectors, in the order of the vectors.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable

from google.protobuf.message import Message

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import secure_pb2, update_pb2
from lightfr_harness.conformance.cohort import (
    INDEX_BYTES,
    PRIME,
    REVEALED_RECORD_BYTES,
    SEALED_BYTES,
    SHARE_BYTES,
    SIGNATURE_BYTES,
    records_of,
)
from lightfr_harness.conformance.masking import (
    ACKNOWLEDGE,
    ADVERTISE,
    METHODS,
    REVEAL,
    SHARE,
    SIGN_INCLUDED,
    SIGN_SURVIVORS,
    UPLOAD,
    Peer,
)
from lightfr_harness.conformance.secure_rounds import SecureRound
from lightfr_harness.conformance.twin import Contribution
from lightfr_harness.conformance.world import World

# Devices that stay; those behind them are the ones that stay away, one of which then comes too late.
REAL = 4
# Bytes of a masked vector in a roster of six: 72 open rows of 32 numbers, then 32 and 1 numbers.
VECTOR_BYTES = 72 * 32 * 5 // 8 + 44 + 2


def _begun(world: World, number: int) -> SecureRound:
    """A round whose first four devices have the uploads of a vector, to be masked."""
    uploads = [update_pb2.RowUpdate.FromString(upload) for upload in world.vectors.rounds[number].uploads]
    return world.secure.fresh(parts=[Contribution.of(upload) for upload in uploads])


def few(world: World) -> None:
    """As few devices as the server allows take places; one more comes when their keys are settled."""
    current = world.secure.fresh(world.kit.settings.minimum)
    current.tell_all(SHARE)
    request = pb.CheckInRequest(capabilities=world.capabilities)
    current.noted["check-in"] = world.device(world.kit.settings.minimum).call("CheckIn", request)
    current.finish()


def _miss(world: World, current: SecureRound, missed: str) -> Peer:
    """All but four stay away from one step; one of them comes with it too late, and then with the one after it."""
    if missed != ADVERTISE:
        current.tell_all(missed)
    late = current.peers[REAL]
    current.leave(*current.peers[REAL:])
    following = METHODS[METHODS.index(missed) + 1]
    current.tell_all(following)
    current.noted["late"] = late.send(missed, late.good(missed))
    current.noted["next"] = late.send(following, one_of_each(late)[following])
    current.noted["question"] = late.question()
    request = pb.CheckInRequest(capabilities=world.capabilities)
    current.noted["check-in"] = late.device.call("CheckIn", request)
    return late


def without_keys(world: World) -> None:
    """Two devices take places and advertise too late."""
    current = _begun(world, 0)
    _miss(world, current, ADVERTISE)
    current.finish()


def without_shares(world: World) -> None:
    """Two devices advertise and share too late."""
    world.secure.shared(without_keys)
    current = _begun(world, 1)
    late = _miss(world, current, SHARE)
    request = current.peers[0].good(ACKNOWLEDGE)
    request.unopened = current.cohort().bitmap([late.peer_id])
    current.noted["a complaint about nothing"] = current.peers[0].send(ACKNOWLEDGE, request)
    current.finish()


def without_uploads(world: World) -> None:
    """Two devices sign and upload too late. A survivor first reveals what it must not, in several ways."""
    world.secure.shared(without_shares)
    current = _begun(world, 2)
    late = _miss(world, current, UPLOAD)
    mismatched = late.good(UPLOAD)
    mismatched.manifest_sha256 = os.urandom(32)
    current.noted["late for another model"] = late.send(UPLOAD, mismatched)
    current.tell_all(REVEAL)
    current.noted[REVEAL] = late.send(REVEAL, one_of_each(late)[REVEAL])
    for fault, spoiled in spoiled_keys(current.peers[0]).items():
        current.noted[fault] = current.peers[0].send(REVEAL, spoiled)
    current.finish()
    for method, anything in one_of_each(late).items():
        if method not in late.delivered:
            current.noted[f"{method} after the end"] = late.device.call(method, anything)
    for method in late.delivered:
        current.noted[f"{method} again after the end"] = late.device.call(method, late.good(method))


def without_acknowledgements(world: World) -> None:
    """Two devices do not acknowledge the shares of others in time."""
    current = world.secure.fresh()
    _miss(world, current, ACKNOWLEDGE)
    current.finish()


def without_signatures(world: World) -> None:
    """Two devices sign the included set too late: they are included, and do not upload."""
    current = world.secure.fresh()
    _miss(world, current, SIGN_INCLUDED)
    current.finish()


def without_confirmations(world: World) -> None:
    """Two devices upload and sign the survivor set too late: their uploads count."""
    current = world.secure.fresh()
    _miss(world, current, SIGN_SURVIVORS)
    current.finish()


def without_reveals(world: World) -> None:
    """Two devices do everything but reveal. They come when the round has ended."""
    current = world.secure.fresh()
    current.tell_all(REVEAL)
    current.leave(*current.peers[REAL:])
    current.finish()
    late = current.peers[REAL]
    current.noted["late"] = late.device.call(REVEAL, late.good(REVEAL))
    current.noted["question"] = late.question()


# The rounds in which a device missed a step and came with the next one, by that step.
MISSED: dict[str, Callable[[World], None]] = {
    ADVERTISE: without_keys,
    SHARE: without_shares,
    ACKNOWLEDGE: without_acknowledgements,
    SIGN_INCLUDED: without_signatures,
    UPLOAD: without_uploads,
    SIGN_SURVIVORS: without_confirmations,
}


def spoiled_keys(peer: Peer) -> dict[str, secure_pb2.RevealSharesRequest]:
    """What a survivor must not reveal where devices dropped out, named by the fault."""
    good = peer.good(REVEAL)
    seeds, keys = (records_of(field, REVEALED_RECORD_BYTES) for field in (good.seeds, good.mask_keys))

    def request(seeds: list[bytes], mask_keys: list[bytes]) -> secure_pb2.RevealSharesRequest:
        return secure_pb2.RevealSharesRequest(
            round_id=peer.round_id, seeds=b"".join(seeds), mask_keys=b"".join(mask_keys)
        )

    return {
        "both kinds of a dropped device": request(sorted([*seeds, keys[0]]), keys),
        "both kinds of a survivor": request(seeds, sorted([*keys, seeds[0]])),
        "no key of a dropped device": request(seeds, keys[1:]),
        "no keys": request(seeds, []),
        "keys in the place of seeds": request(keys, seeds),
        "keys in descending order": request(seeds, keys[::-1]),
        "a key that is no number of the field": request(seeds, [_beyond(keys[0]), *keys[1:]]),
        "a key twice": request(seeds, [keys[0], *keys]),
        "a byte behind the keys": request(seeds, [*keys, b"\0"]),
    }


def _beyond(record: bytes) -> bytes:
    """The smallest number that is no share, for the same device."""
    return record[:INDEX_BYTES] + PRIME.to_bytes(SHARE_BYTES, "little")


def false_share(record: bytes) -> bytes:
    """Another share of the field for the same device.

    It has nothing to do with the true one: shares that were all changed alike could lie on a polynomial again.
    """
    return record[:INDEX_BYTES] + hashlib.sha256(record).digest() + bytes(SHARE_BYTES - 32)


def one_of_each(peer: Peer) -> dict[str, Message]:
    """A well-formed request for each method of a round of six devices, of no use but for the keys."""
    name = {"round_id": peer.round_id}
    signature = os.urandom(SIGNATURE_BYTES)
    return {
        ADVERTISE: peer.good(ADVERTISE),
        SHARE: any_shares(peer, 6),
        ACKNOWLEDGE: secure_pb2.AcknowledgeSharesRequest(unopened=b"\0", **name),
        SIGN_INCLUDED: secure_pb2.SignIncludedRequest(signature=signature, **name),
        UPLOAD: any_upload(peer, VECTOR_BYTES),
        SIGN_SURVIVORS: secure_pb2.SignSurvivorsRequest(signature=signature, **name),
        REVEAL: secure_pb2.RevealSharesRequest(seeds=bytes(REVEALED_RECORD_BYTES), **name),
        "GetStep": secure_pb2.GetStepRequest(round_id=peer.round_id),
    }


def any_shares(peer: Peer, count: int) -> secure_pb2.ShareKeysRequest:
    records = b"".join(index.to_bytes(INDEX_BYTES, "little") + os.urandom(SEALED_BYTES) for index in range(1, count))
    return secure_pb2.ShareKeysRequest(round_id=peer.round_id, sealed_shares=records)


def any_upload(peer: Peer, size: int) -> pb.UploadRequest:
    return pb.UploadRequest(
        round_id=peer.round_id,
        manifest_sha256=peer.assignment.manifest_sha256,
        upload_id=os.urandom(16),
        masked_vector=bytes(size),
    )
