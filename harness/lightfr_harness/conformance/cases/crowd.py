"""A cohort of 130, in which not everybody is everybody's neighbour."""

from __future__ import annotations

import os

from lightfr_harness.conformance.cohort import (
    INDEX_BYTES,
    REVEALED_RECORD_BYTES,
    SEALED_BYTES,
    SEALED_RECORD_BYTES,
    SHARE_BYTES,
    Cohort,
    owner_of,
    records_of,
    sealed_by_receiver,
)
from lightfr_harness.conformance.expectations import expect, expect_equal
from lightfr_harness.conformance.masking import ACKNOWLEDGE, REVEAL, SHARE, SIGN_INCLUDED, UPLOAD, Peer
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.rounds import random_update
from lightfr_harness.conformance.twin import Contribution
from lightfr_harness.conformance.versions import mean_user
from lightfr_harness.conformance.world import World

CROWD = ("crowd",)
PHASES = "docs/protocol.md#a-round-with-secure-aggregation"
STEP_2 = "docs/secagg.md#2-share"
STEP_3 = "docs/secagg.md#3-acknowledge"
STEP_4 = "docs/secagg.md#4-sign-the-included"
STEP_5 = "docs/secagg.md#5-mask-and-upload"
STEP_6 = "docs/secagg.md#6-sign-the-survivors"
STEP_7 = "docs/secagg.md#7-unmask"
SIZE = 130
# In the round with dropouts: whose shares nobody can open, and who stays away from two steps, from the first device on.
SPOILED, NO_UPLOAD, NO_REVEAL = 7, 5, 6
# Rows of each of the 130. The weights add up to 8192: wherever just one of 40 and 56 counts as negative, the mean user
# is exactly halfway between two numbers, which smaller cohorts cannot have.
ROW_COUNTS = [64] * 125 + [32] * 3 + [40, 56]


def everybody(world: World) -> None:
    """Nobody drops out. The first device first tries things with those who do not hold its shares."""
    kit, settings = world.kit, world.kit.settings
    updates = [random_update(kit.open_rows, settings.code_bits, settings.max_rows, rows) for rows in ROW_COUNTS]
    current = world.secure.fresh(parts=[Contribution.of(update) for update in updates])
    current.tell_all(SHARE)
    first = current.peers[0]
    for fault, records in _spoiled_shares(current.cohort(), first).items():
        request = first.good(SHARE)
        request.sealed_shares = b"".join(records)
        current.noted[fault] = first.send(SHARE, request)
    current.tell_all(REVEAL)
    for fault, records in _spoiled_seeds(current.cohort(), first).items():
        request = first.good(REVEAL)
        request.seeds = b"".join(records)
        current.noted[fault] = first.send(REVEAL, request)
    current.finish()


def dropouts(world: World) -> None:
    """Some are left out, and some stay away at two steps."""
    current = world.secure.fresh()
    for peer in current.peers[:SPOILED]:
        current.spoil_shares(peer, current.peers)
    current.walk(ACKNOWLEDGE)
    current.leave(*current.peers[:SPOILED])
    for method, count in ((UPLOAD, NO_UPLOAD), (REVEAL, NO_REVEAL)):
        current.tell_all(method)
        current.leave(*current.active[:count])
    current.finish()


def _spoiled_shares(cohort: Cohort, peer: Peer) -> dict[str, list[bytes]]:
    """Sealed shares for another number of holders than the roster says."""
    good = records_of(peer.good(SHARE).sealed_shares, SEALED_RECORD_BYTES)
    others = _others(cohort, peer, good)
    sealed = [index.to_bytes(INDEX_BYTES, "little") + os.urandom(SEALED_BYTES) for index in others]
    return {
        "shares for all": sorted([*good, *sealed], key=owner_of),
        "a holder too many": sorted([*good, sealed[0]], key=owner_of),
        "a holder too few": good[:-1],
    }


def _spoiled_seeds(cohort: Cohort, peer: Peer) -> dict[str, list[bytes]]:
    """Shares of the seeds of others than those who chose this device."""
    good = records_of(peer.good(REVEAL).seeds, REVEALED_RECORD_BYTES)
    others = _others(cohort, peer, good)
    invented = [index.to_bytes(INDEX_BYTES, "little") + bytes(SHARE_BYTES) for index in others]
    held = next(one for one in good if owner_of(one) != cohort.index_of(peer.peer_id))
    return {
        "seeds of all": sorted([*good, *invented], key=owner_of),
        "the seed of a stranger": sorted([*(one for one in good if one != held), invented[0]], key=owner_of),
        "a seed too few": [one for one in good if one != held],
    }


def _others(cohort: Cohort, peer: Peer, records: list[bytes]) -> list[int]:
    """Who is neither this device nor in one of the records."""
    return sorted(set(range(cohort.size)) - {cohort.index_of(peer.peer_id), *map(owner_of, records)})


@case(
    "crowd.numbers",
    "From 130 devices on each has up to 64 neighbours and 80 holders, and 39 shares give a secret back.",
    STEP_2,
    kits=CROWD,
)
def numbers(world: World) -> None:
    cohort = world.secure.shared(everybody).cohort()
    expect_equal("devices", cohort.size, SIZE)
    cohort.require_usual()


@case("crowd.roster", "One roster for all, in order and signed, also when it is long.", STEP_2, kits=CROWD)
def roster(world: World) -> None:
    current = world.secure.shared(everybody)
    current.cohort().require_entries(peer.entry for peer in current.peers)
    current.cohort().require_signed(world.manifest_key)
    for peer in current.peers:
        expect_equal("the roster", peer.told["share"], current.peers[0].told["share"])


@case(
    "crowd.holders",
    "A device chooses its holders itself, any 80 of the others: a server that asks for its neighbours chooses them.",
    STEP_2,
    kits=CROWD,
)
def holders(world: World) -> None:
    current = world.secure.shared(everybody)
    cohort = current.cohort()
    expect_equal("devices whose shares for 80 holders were accepted", len(current.that_did(SHARE)), SIZE)
    chosen = [sealed_by_receiver(peer.good(SHARE)).keys() for peer in current.peers]
    beside = [set(cohort.neighbours(cohort.index_of(peer.peer_id))) for peer in current.peers]
    expect(any(one - two for one, two in zip(chosen, beside, strict=True)), "holders that are no neighbours", "none")


@case("crowd.number-of-holders", "Too few holders lose a secret, too many give it away.", PHASES, kits=CROWD)
def number_of_holders(world: World) -> None:
    noted = world.secure.shared(everybody).noted
    for fault in ("shares for all", "a holder too many", "a holder too few"):
        noted[fault].refusal("UPLOAD_INVALID")


@case("crowd.inbox", "Each gets what was sealed for it, and nothing else.", STEP_3, kits=CROWD)
def inbox(world: World) -> None:
    current = world.secure.shared(everybody)
    cohort = current.cohort()
    sent = {cohort.index_of(peer.peer_id): sealed_by_receiver(peer.good(SHARE)) for peer in current.peers}
    for peer in current.peers:
        cohort.require_inbox(peer.told["acknowledge"], cohort.index_of(peer.peer_id), sent)


@case("crowd.bits", "More devices, larger sums: 9 and 15 bits a number.", STEP_5, kits=CROWD)
def bits(world: World) -> None:
    current = world.secure.shared(everybody)
    size = 72 * 32 * 9 // 8 + 32 * 15 // 8 + 2
    expect_equal("bytes of an accepted vector", len(current.peers[0].good(UPLOAD).masked_vector), size)


@case("crowd.sum", "Masks between neighbours only must cancel as well.", STEP_7, kits=CROWD)
def sum_of_everybody(world: World) -> None:
    current = world.secure.shared(everybody)
    current.require_played()
    current.require_exact()


@case(
    "crowd.mean-user",
    "A mean user halfway between two numbers is rounded up, a negative one too.",
    "docs/protocol.md#the-server",
    kits=CROWD,
)
def halves_of_the_mean_user(world: World) -> None:
    current = world.secure.shared(everybody)
    current.require_played()
    weight = sum(ROW_COUNTS)
    sums = sum(rows * peer.contribution.user for rows, peer in zip(ROW_COUNTS, current.peers, strict=True))
    halves = [int(one) for one in sums if 512 * one % (2 * weight) == weight]  # type: ignore[union-attr]
    expect(halves and min(halves) < 0, "negative halves among the means", "none: run it again")
    expected = [(512 * int(one) + weight) // (2 * weight) for one in sums]  # type: ignore[union-attr]
    expect_equal("mean_user", mean_user(current.manifest), expected)


@case(
    "crowd.reveal-what-is-held",
    "A share that the device cannot hold must not be counted as one, and one that it holds must not be missing.",
    STEP_7,
    kits=CROWD,
)
def reveal_what_is_held(world: World) -> None:
    noted = world.secure.shared(everybody).noted
    for fault in ("the seed of a stranger", "seeds of all", "a seed too few"):
        noted[fault].refusal("UPLOAD_INVALID")


@case(
    "crowd.sum-with-dropouts",
    "Seven are left out, eleven stay away at two steps, and the sum is still exact: the graph is that of all devices.",
    STEP_7,
    kits=CROWD,
)
def sum_with_dropouts(world: World) -> None:
    current = world.secure.shared(dropouts)
    counts = [len(current.that_did(method)) for method in (SHARE, SIGN_INCLUDED, UPLOAD, REVEAL)]
    left = [SIZE, SIZE - SPOILED, SIZE - SPOILED - NO_UPLOAD, SIZE - SPOILED - NO_UPLOAD - NO_REVEAL]
    expect_equal("devices at each step", counts, left)
    current.require_played()
    current.require_exact()


@case(
    "crowd.included", "Seventeen bytes of bits, none behind the last device, signed by the server.", STEP_4, kits=CROWD
)
def included(world: World) -> None:
    for play in (everybody, dropouts):
        current = world.secure.shared(play)
        cohort, signed = current.cohort(), current.that_did(SIGN_INCLUDED)
        left_out = SPOILED if play is dropouts else 0
        expected = cohort.bitmap([peer.peer_id for peer in current.peers[left_out:]])
        for peer in signed:
            expect_equal("included", peer.told["included"].included, expected)
            expect_equal("what devices are told", peer.told["included"], signed[0].told["included"])
        cohort.require_included_signed(world.manifest_key, signed[0].told["included"])


@case("crowd.survivors", "Seventeen bytes of bits, signed with the included set, the same for all.", STEP_6, kits=CROWD)
def survivors(world: World) -> None:
    for play in (everybody, dropouts):
        current = world.secure.shared(play)
        cohort, uploaded = current.cohort(), current.that_did(UPLOAD)
        expected, first = cohort.bitmap([peer.peer_id for peer in uploaded]), uploaded[0].told
        for peer in uploaded:
            expect_equal("survivors", peer.told["survivors"].survivors, expected)
            expect_equal("what devices are told", peer.told["survivors"], first["survivors"])
        cohort.require_survivors_signed(world.manifest_key, first["included"].included, first["survivors"])


@case("crowd.quorum", "91 of 130 must have signed a set before anybody acts on it.", STEP_5, kits=CROWD)
def quorum(world: World) -> None:
    for play in (everybody, dropouts):
        current = world.secure.shared(play)
        cohort, told = current.cohort(), current.that_did(REVEAL)[0].told
        expect_equal("quorum of the roster", cohort.quorum, 91)
        included, alive = told["included"].included, told["survivors"].survivors
        cohort.require_signers(told["upload"], included, cohort.included_message(included))
        cohort.require_signers(told["reveal"], alive, cohort.survivors_message(included, alive))


@case(
    "crowd.limits",
    "The limit of a step is that of the most that a device can have to say.",
    "docs/protocol.md#limits",
    kits=CROWD,
)
def limits(world: World) -> None:
    # A roster of 129, the largest that is complete, has 128 holders.
    for method, limit in ((SHARE, 1024 + 98 * 128), (ACKNOWLEDGE, 1024 + 17), (REVEAL, 1024 + 37 * SIZE)):
        detail = world.device(0).call(method, bytes(limit + 1)).refusal("TOO_LARGE")
        expect_equal(f"limit_bytes of {method}", detail.limit_bytes, limit)


@case("crowd.too-few", "99 devices are a quorum, but the server promised a sum of at least 100.", PHASES, kits=CROWD)
def too_few(world: World) -> None:
    current = world.secure.fresh()
    current.tell_all(SHARE)
    current.leave(*current.peers[world.kit.settings.minimum - 1 :])
    current.walk(SHARE)
    current.require_nothing_came_of_it()
