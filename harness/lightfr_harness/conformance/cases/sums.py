"""Sums under masks: the version that comes of a round is the one that the same uploads would have made in the clear."""

from __future__ import annotations

import numpy as np

from lightfr.v1 import secure_pb2
from lightfr_harness.conformance import dropouts
from lightfr_harness.conformance.cohort import REVEALED_RECORD_BYTES, owner_of, records_of
from lightfr_harness.conformance.expectations import expect_equal
from lightfr_harness.conformance.masking import ADVERTISE, REVEAL, SHARE, UPLOAD, Peer
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.secure_rounds import SecureRound
from lightfr_harness.conformance.twin import Contribution
from lightfr_harness.conformance.versions import mean_user, require_codes
from lightfr_harness.conformance.world import World

PLACE = "docs/secagg.md#7-unmask"
SECAGG = ("secagg",)


def _require_vector(world: World, current: SecureRound, number: int) -> None:
    current.require_played()
    expected, manifest = world.vectors.rounds[number], current.manifest
    expect_equal("model_version of a round of the vectors", manifest.model_version, number + 2)
    require_codes(world, manifest, expected.codes)
    expect_equal("mean_user", mean_user(manifest), expected.mean_user)


@case(
    "sums.vector-1-without-keys",
    "Two devices that took places and sent no keys are no part of the sum, which moves the codes as known.",
    PLACE,
    kits=SECAGG,
)
def without_keys(world: World) -> None:
    _require_vector(world, world.secure.shared(dropouts.without_keys), 0)


@case(
    "sums.vector-2-without-shares",
    "Two devices that sent keys and no shares leave no mask behind in the sum, which moves the codes as known.",
    PLACE,
    kits=SECAGG,
)
def without_shares(world: World) -> None:
    _require_vector(world, world.secure.shared(dropouts.without_shares), 1)


@case(
    "sums.vector-3-without-uploads",
    "The masks with two devices that shared and did not upload come off by their keys; the codes move as known.",
    PLACE,
    kits=SECAGG,
)
def without_uploads(world: World) -> None:
    _require_vector(world, world.secure.shared(dropouts.without_uploads), 2)


@case("sums.everybody", "With nobody missing, all that is left of the masks must be the sum.", PLACE, kits=SECAGG)
def everybody(world: World) -> None:
    world.secure.fresh().finish_exactly()


@case(
    "sums.rounds-in-a-row",
    "Memory carries over from round to round, so one sum that is off shows in all that follow.",
    "docs/protocol.md#the-server",
    kits=SECAGG,
)
def rounds_in_a_row(world: World) -> None:
    for _ in range(4):
        world.secure.fresh().finish_exactly()


@case(
    "sums.largest",
    "Numbers at the ends of their range must not run over into each other: every device weighs 64 and says the same.",
    "docs/secagg.md#5-mask-and-upload",
    kits=SECAGG,
)
def largest(world: World) -> None:
    same = _extreme(world, 1)
    world.secure.fresh(parts=[same] * world.kit.settings.places).finish_exactly()
    same = _extreme(world, -1)
    world.secure.fresh(parts=[same] * world.kit.settings.places).finish_exactly()


@case(
    "sums.one-missing-at-each-step",
    "Devices vanish at every step of one round, and what is left must still add up.",
    PLACE,
    kits=SECAGG,
)
def one_missing_at_each_step(world: World) -> None:
    current = world.secure.fresh()
    for method, peer in zip((ADVERTISE, SHARE, UPLOAD), current.peers, strict=False):
        current.leave(peer)
        current.walk(method)
    current.finish_exactly()


@case(
    "sums.without-reveals",
    "The sum is that of all survivors, also of the two that did not reveal: the threshold is exactly met.",
    PLACE,
    kits=SECAGG,
)
def without_reveals(world: World) -> None:
    current = world.secure.shared(dropouts.without_reveals)
    expect_equal("threshold of a roster of 6", current.cohort().threshold, 4)
    current.require_played()
    current.require_exact()


@case(
    "sums.without-acknowledgements",
    "Two devices shared and are not included: their masks are in no vector, and none of them must come off.",
    PLACE,
    kits=SECAGG,
)
def without_acknowledgements(world: World) -> None:
    current = world.secure.shared(dropouts.without_acknowledgements)
    current.require_played()
    current.require_exact()


@case(
    "sums.without-signatures",
    "Two devices are included and did not sign: the masks with them are in every vector, and must come off.",
    PLACE,
    kits=SECAGG,
)
def without_signatures(world: World) -> None:
    current = world.secure.shared(dropouts.without_signatures)
    current.require_played()
    current.require_exact()


@case(
    "sums.without-confirmations",
    "Two devices uploaded and said no more: their vectors are in the sum, and their own masks must come off.",
    PLACE,
    kits=SECAGG,
)
def without_confirmations(world: World) -> None:
    current = world.secure.shared(dropouts.without_confirmations)
    current.require_played()
    current.require_exact()


@case(
    "sums.false-shares",
    "One device reveals false shares, and they are corrected: it must not be able to end the rounds of all.",
    PLACE,
    kits=SECAGG,
)
def false_shares(world: World) -> None:
    for place in (0, -1):
        current = world.secure.with_newcomer()
        current.tell_all(REVEAL)
        liar, others = current.peers[-1], current.peers[:-1]
        # Its shares come as the first ones, and in the next round as the last.
        for peer in (liar, *others) if place == 0 else (*others, liar):
            peer.send(REVEAL, _revealed(current, peer, is_false=peer is liar)).message(secure_pb2.RevealSharesResponse)
        current.finish_exactly()


def _revealed(current: SecureRound, peer: Peer, *, is_false: bool) -> secure_pb2.RevealSharesRequest:
    """What a device reveals; if it is false, with other shares of all seeds but its own."""
    request: secure_pb2.RevealSharesRequest = peer.good(REVEAL)
    if is_false:
        own, records = current.cohort().index_of(peer.peer_id), records_of(request.seeds, REVEALED_RECORD_BYTES)
        request.seeds = b"".join(one if owner_of(one) == own else dropouts.false_share(one) for one in records)
    return request


@case(
    "sums.smallest-cohort",
    "A round with as few devices as the server allows has smaller numbers, and so other bits on the wire.",
    "docs/secagg.md#5-mask-and-upload",
    kits=SECAGG,
)
def smallest_cohort(world: World) -> None:
    current = world.secure.shared(dropouts.few)
    current.require_played()
    # Three devices need 4 and 10 bits, six need 5 and 11.
    expect_equal("devices in the roster", current.cohort().size, 3)
    expect_equal("bytes of a masked vector of 3 devices", len(current.peers[0].good(UPLOAD).masked_vector), 1194)
    current.require_exact()


def _extreme(world: World, sign: int) -> Contribution:
    """As many rows as a device may send, all of one sign, with a user code of that sign."""
    settings = world.kit.settings
    rows = [row for row, is_open in enumerate(world.kit.open_rows) if is_open][: settings.max_rows]
    ones = np.full(settings.code_bits, sign, np.int64)
    return Contribution(dict.fromkeys(rows, ones), ones)
