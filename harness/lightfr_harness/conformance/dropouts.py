"""Rounds in which devices stay away and come too late. Each takes a deadline, so several cases look at one of them.

Those but the first carry the uploads of the vectors, in the order of the vectors.
"""

from __future__ import annotations

import os

from google.protobuf.message import Message

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import secure_pb2, update_pb2
from lightfr_harness.conformance.client import Answer
from lightfr_harness.conformance.cohort import ID_BYTES, SEALED_BYTES, SHARE_BYTES, records_of
from lightfr_harness.conformance.masking import ADVERTISE, REVEAL, SHARE, UPLOAD, Peer
from lightfr_harness.conformance.secure_rounds import SecureRound
from lightfr_harness.conformance.twin import Contribution
from lightfr_harness.conformance.world import World

# Devices with the uploads of a vector; those behind them are the ones that stay away.
REAL = 4
RECORD_BYTES = ID_BYTES + SHARE_BYTES


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


def without_keys(world: World) -> None:
    """Two devices take places and advertise too late."""
    current = _begun(world, 0)
    late = current.peers[REAL]
    current.leave(*current.peers[REAL:])
    current.tell_all(SHARE)
    current.noted["keys"] = late.send(ADVERTISE, late.good(ADVERTISE))
    current.noted["shares"] = late.send(SHARE, any_shares(late, len(current.active)))
    current.noted["question"] = late.question()
    current.noted["check-in"] = _check_in(world, late)
    current.finish()


def without_shares(world: World) -> None:
    """Two devices advertise and share too late."""
    world.secure.shared(without_keys)
    current = _begun(world, 1)
    current.tell_all(SHARE)
    late = current.peers[REAL]
    current.leave(*current.peers[REAL:])
    current.tell_all(UPLOAD)
    current.noted["shares"] = late.send(SHARE, late.good(SHARE))
    size = len(current.active[0].good(UPLOAD).masked_vector)
    current.noted["upload"] = late.send(UPLOAD, any_upload(late, size))
    current.noted["question"] = late.question()
    current.noted["check-in"] = _check_in(world, late)
    current.finish()


def without_uploads(world: World) -> None:
    """Two devices share and upload too late. A survivor first reveals what it must not, in several ways."""
    world.secure.shared(without_shares)
    current = _begun(world, 2)
    current.tell_all(UPLOAD)
    late = current.peers[REAL]
    current.leave(*current.peers[REAL:])
    current.tell_all(REVEAL)
    current.noted["upload"] = late.send(UPLOAD, late.good(UPLOAD))
    own = late.peer_id + bytes(SHARE_BYTES)
    request = secure_pb2.RevealSharesRequest(round_id=late.round_id, self_masks=own)
    current.noted["reveal"] = late.send(REVEAL, request)
    current.noted["question"] = late.question()
    for fault, spoiled in spoiled_keys(current.peers[0]).items():
        current.noted[fault] = current.peers[0].send(REVEAL, spoiled)
    current.finish()
    for method, anything in one_of_each(late).items():
        current.noted[f"{method} after the end"] = late.device.call(method, anything)
    for method in (ADVERTISE, SHARE):
        survivor = current.peers[0]
        current.noted[f"{method} of a survivor after the end"] = survivor.device.call(method, survivor.good(method))


def spoiled_keys(peer: Peer) -> dict[str, secure_pb2.RevealSharesRequest]:
    """What a survivor must not reveal where devices dropped out, named by the fault."""
    good = peer.good(REVEAL)
    seeds, keys = (sorted(records_of(field, RECORD_BYTES)) for field in (good.self_masks, good.mask_keys))

    def request(self_masks: list[bytes], mask_keys: list[bytes]) -> secure_pb2.RevealSharesRequest:
        return secure_pb2.RevealSharesRequest(
            round_id=peer.round_id, self_masks=b"".join(self_masks), mask_keys=b"".join(mask_keys)
        )

    return {
        "both kinds of a dropped device": request(sorted([*seeds, keys[0]]), keys),
        "both kinds of a survivor": request(seeds, sorted([*keys, seeds[0]])),
        "no key of a dropped device": request(seeds, keys[1:]),
        "no keys": request(seeds, []),
        "keys in the place of seeds": request(keys, seeds),
        "keys in descending order": request(seeds, keys[::-1]),
    }


def false_share(record: bytes) -> bytes:
    """Another share of the field for the same device. Far from the true one: X25519 does not look at all bits."""
    changed = bytearray(record)
    changed[ID_BYTES + SHARE_BYTES // 2] ^= 1
    return bytes(changed)


def one_of_each(peer: Peer) -> dict[str, Message]:
    """A well-formed request for each method of a round of six devices, of no use but for the keys."""
    return {
        ADVERTISE: peer.good(ADVERTISE),
        SHARE: any_shares(peer, 6),
        UPLOAD: any_upload(peer, 1486),
        REVEAL: secure_pb2.RevealSharesRequest(round_id=peer.round_id, self_masks=peer.peer_id + bytes(SHARE_BYTES)),
        "GetStep": secure_pb2.GetStepRequest(round_id=peer.round_id),
    }


def any_shares(peer: Peer, count: int) -> secure_pb2.ShareKeysRequest:
    records = b"".join(index.to_bytes(4, "little") + os.urandom(SEALED_BYTES) for index in range(1, count))
    return secure_pb2.ShareKeysRequest(round_id=peer.round_id, sealed_shares=records)


def any_upload(peer: Peer, size: int) -> pb.UploadRequest:
    return pb.UploadRequest(
        round_id=peer.round_id,
        manifest_sha256=peer.assignment.manifest_sha256,
        upload_id=os.urandom(16),
        masked_vector=bytes(size),
    )


def _check_in(world: World, peer: Peer) -> Answer:
    return peer.device.call("CheckIn", pb.CheckInRequest(capabilities=world.capabilities))
