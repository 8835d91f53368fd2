"""Step 7 of secure aggregation: the shares that take the masks off, and those that must not be given."""

from __future__ import annotations

from lightfr.v1 import secure_pb2
from lightfr_harness.conformance import dropouts
from lightfr_harness.conformance.cohort import (
    INDEX_BYTES,
    PRIME,
    REVEALED_RECORD_BYTES,
    SHARE_BYTES,
    owner_of,
    records_of,
)
from lightfr_harness.conformance.dropouts import false_share
from lightfr_harness.conformance.expectations import expect_equal
from lightfr_harness.conformance.masking import METHODS, REVEAL
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.secure_rounds import SecureRound
from lightfr_harness.conformance.world import World

SECAGG = ("secagg",)
PHASES = "docs/protocol.md#a-round-with-secure-aggregation"
STEP_7 = "docs/secagg.md#7-unmask"


def _begun(world: World) -> tuple[SecureRound, list[bytes]]:
    """A round in which shares are to be revealed, and the good seed records of its first device."""
    current = world.secure.fresh()
    current.tell_all(REVEAL)
    return current, records_of(current.peers[0].good(REVEAL).seeds, REVEALED_RECORD_BYTES)


def _require_refused(current: SecureRound, *spoiled: list[bytes]) -> None:
    """Each is refused, and the good ones are accepted afterwards."""
    peer = current.peers[0]
    for records in spoiled:
        request = peer.good(REVEAL)
        request.seeds = b"".join(records)
        peer.send(REVEAL, request).refusal("UPLOAD_INVALID")
    current.walk(REVEAL)


@case(
    "reveal.too-early", "Shares before the survivors are settled could take the wrong masks off.", PHASES, kits=SECAGG
)
def too_early(world: World) -> None:
    current = world.secure.fresh()
    peer = current.peers[0]
    for method in METHODS[:-1]:
        current.take_step(peer, method)
        peer.send(REVEAL, dropouts.one_of_each(peer)[REVEAL]).refusal("UPLOAD_INVALID")
        current.walk(method)
    current.walk(REVEAL)


@case(
    "reveal.same-bytes-again",
    "An answer that was lost is asked for again, also when the masks are off already.",
    PHASES,
    kits=SECAGG,
)
def same_bytes_again(world: World) -> None:
    current, _ = _begun(world)
    current.peers[0].deliver(REVEAL)
    current.peers[0].deliver(REVEAL)
    current.finish()
    current.peers[0].deliver(REVEAL)
    current.peers[-1].deliver(REVEAL)


@case("reveal.other-bytes", "A device answers once: two answers about one set are one too many.", PHASES, kits=SECAGG)
def other_bytes(world: World) -> None:
    current, records = _begun(world)
    peer, other = current.peers[0], current.peers[0].good(REVEAL)
    peer.deliver(REVEAL)
    other.seeds = b"".join([*records[:-1], false_share(records[-1])])
    peer.send(REVEAL, other).refusal("UPLOAD_CONFLICT")
    current.finish_exactly()
    peer.send(REVEAL, other).refusal("UPLOAD_CONFLICT")


@case("reveal.missing", "An answer is taken whole or not at all.", STEP_7, kits=SECAGG)
def missing(world: World) -> None:
    current, records = _begun(world)
    own = current.cohort().index_of(current.peers[0].peer_id)
    without_own = [record for record in records if owner_of(record) != own]
    _require_refused(current, without_own, records[1:], records[:-1], [])


@case(
    "reveal.extra",
    "A share of who is not in the round, or twice of one who is, has nothing to be used for.",
    STEP_7,
    kits=SECAGG,
)
def extra(world: World) -> None:
    current, records = _begun(world)
    stranger = len(current.peers).to_bytes(INDEX_BYTES, "little") + bytes(SHARE_BYTES)
    _require_refused(current, [*records, stranger], [records[0], *records], [*records[:-1], stranger])


@case("reveal.order", "By ascending index, so that one set of shares has one spelling.", PHASES, kits=SECAGG)
def order(world: World) -> None:
    current, records = _begun(world)
    _require_refused(current, records[::-1], [records[1], records[0], *records[2:]])


@case("reveal.length", "What is no whole number of records ends in the middle of a share.", STEP_7, kits=SECAGG)
def length(world: World) -> None:
    current, records = _begun(world)
    _require_refused(current, [*records, b"\0"], [*records[:-1], records[-1][:-1]], [records[0][1:], *records[1:]])


@case("reveal.not-in-field", "A share is a number below p; larger ones would have two spellings.", STEP_7, kits=SECAGG)
def not_in_field(world: World) -> None:
    current, records = _begun(world)
    beyond = [records[0][:INDEX_BYTES] + number.to_bytes(SHARE_BYTES, "little") for number in (PRIME, 2**264 - 1)]
    _require_refused(current, *([one, *records[1:]] for one in beyond))


@case(
    "reveal.key-of-survivor",
    "Of a survivor only the seed is asked for: with its mask key too its vector would lie open.",
    STEP_7,
    kits=SECAGG,
)
def key_of_survivor(world: World) -> None:
    current, records = _begun(world)
    peer = current.peers[0]
    for seeds in (records, records[1:]):
        request = peer.good(REVEAL)
        request.seeds, request.mask_keys = b"".join(seeds), records[0]
        peer.send(REVEAL, request).refusal("UPLOAD_INVALID")
    current.walk(REVEAL)


@case(
    "reveal.both-kinds",
    "Seed and mask key of one device take all of its masks off: a server must not even take them.",
    STEP_7,
    kits=SECAGG,
)
def both_kinds(world: World) -> None:
    noted = world.secure.shared(dropouts.without_uploads).noted
    noted["both kinds of a dropped device"].refusal("UPLOAD_INVALID")
    noted["both kinds of a survivor"].refusal("UPLOAD_INVALID")


@case("reveal.missing-key", "Without the mask keys of those who dropped out their masks stay on.", STEP_7, kits=SECAGG)
def missing_key(world: World) -> None:
    noted = world.secure.shared(dropouts.without_uploads).noted
    noted["no key of a dropped device"].refusal("UPLOAD_INVALID")
    noted["no keys"].refusal("UPLOAD_INVALID")


@case(
    "reveal.swapped-kinds", "Seeds of survivors and keys of the others: never the other way round.", STEP_7, kits=SECAGG
)
def swapped_kinds(world: World) -> None:
    world.secure.shared(dropouts.without_uploads).noted["keys in the place of seeds"].refusal("UPLOAD_INVALID")


@case("reveal.key-order", "Mask keys too go by ascending index.", PHASES, kits=SECAGG)
def key_order(world: World) -> None:
    world.secure.shared(dropouts.without_uploads).noted["keys in descending order"].refusal("UPLOAD_INVALID")


@case(
    "reveal.key-not-in-field",
    "A share of a mask key is a number below p, as one of a seed is.",
    STEP_7,
    kits=SECAGG,
)
def key_not_in_field(world: World) -> None:
    noted = world.secure.shared(dropouts.without_uploads).noted
    noted["a key that is no number of the field"].refusal("UPLOAD_INVALID")


@case("reveal.key-length", "Mask keys too are whole records, one for each device.", STEP_7, kits=SECAGG)
def key_length(world: World) -> None:
    noted = world.secure.shared(dropouts.without_uploads).noted
    noted["a key twice"].refusal("UPLOAD_INVALID")
    noted["a byte behind the keys"].refusal("UPLOAD_INVALID")


@case(
    "reveal.no-survivor", "Who did not upload is not asked, and must not be able to bend the sum.", PHASES, kits=SECAGG
)
def no_survivor(world: World) -> None:
    world.secure.shared(dropouts.without_uploads).noted[REVEAL].refusal("ROUND_CLOSED")


@case("reveal.not-confirmed", "Who did not sign the survivor set has not agreed to it.", PHASES, kits=SECAGG)
def not_confirmed(world: World) -> None:
    world.secure.shared(dropouts.without_confirmations).noted["next"].refusal("ROUND_CLOSED")


@case(
    "reveal.after-the-end",
    "The masks are off: a share that comes now is of no use but to who should not have it.",
    PHASES,
    kits=SECAGG,
)
def after_the_end(world: World) -> None:
    current = world.secure.shared(dropouts.without_reveals)
    current.noted["late"].refusal("ROUND_CLOSED")
    step = current.noted["question"].message(secure_pb2.GetStepResponse)
    expect_equal("GetStep of a survivor after the round", step.WhichOneof("step"), "done")
