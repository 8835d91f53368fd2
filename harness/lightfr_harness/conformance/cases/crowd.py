"""A cohort of seventy, in which not everybody is everybody's neighbour."""

from __future__ import annotations

import os

from lightfr_harness.conformance.cohort import (
    ID_BYTES,
    SEALED_BYTES,
    SHARE_BYTES,
    Cohort,
    records_of,
    sealed_by_receiver,
)
from lightfr_harness.conformance.dropouts import RECORD_BYTES
from lightfr_harness.conformance.expectations import expect, expect_equal
from lightfr_harness.conformance.masking import ADVERTISE, REVEAL, SHARE, UPLOAD, Peer
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.rounds import random_update
from lightfr_harness.conformance.twin import Contribution
from lightfr_harness.conformance.versions import mean_user
from lightfr_harness.conformance.world import World

CROWD = ("crowd",)
PHASES = "docs/protocol.md#a-round-with-secure-aggregation"
STEP_2 = "docs/secagg.md#2-share"
STEP_3 = "docs/secagg.md#3-mask-and-upload"
STEP_4 = "docs/secagg.md#4-unmask"
# How many stay away at each step of the round with dropouts, from the first device on.
NO_SHARES, NO_UPLOAD, NO_REVEAL = 7, 5, 6
# Rows of each of the seventy. The weights add up to 4096: wherever just one of 36 and 60 counts as negative, the mean
# user is exactly halfway between two numbers, which smaller cohorts cannot have.
ROW_COUNTS = [64] * 57 + [32] * 11 + [36, 60]


def everybody(world: World) -> None:
    """Nobody drops out. The first device first tries things with those who are not its neighbours."""
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
        request.self_masks = b"".join(records)
        current.noted[fault] = first.send(REVEAL, request)
    current.finish()


def dropouts(world: World) -> None:
    """Some stay away at each step but the first."""
    current = world.secure.fresh()
    for method, count in ((SHARE, NO_SHARES), (UPLOAD, NO_UPLOAD), (REVEAL, NO_REVEAL)):
        current.tell_all(method)
        current.leave(*current.active[:count])
    current.finish()


def _spoiled_shares(cohort: Cohort, peer: Peer) -> dict[str, list[bytes]]:
    """Sealed shares for others than the neighbours."""
    good = records_of(peer.good(SHARE).sealed_shares, 4 + SEALED_BYTES)
    own = cohort.index_of(peer.peer_id)
    far = [_sealed(index) for index in _far(cohort, own)]
    return {"shares for all": _by_index([*good, *far]), "a stranger for a neighbour": _by_index([*good[1:], far[0]])}


def _spoiled_seeds(cohort: Cohort, peer: Peer) -> dict[str, list[bytes]]:
    """Shares of the seeds of others than the neighbours."""
    good = records_of(peer.good(REVEAL).self_masks, RECORD_BYTES)
    far = [cohort.ids[index] + bytes(SHARE_BYTES) for index in _far(cohort, cohort.index_of(peer.peer_id))]
    near = [record for record in good if record[:ID_BYTES] != peer.peer_id]
    return {
        "seeds of all": sorted([*good, *far]),
        "the seed of a stranger": sorted([*(one for one in good if one != near[0]), far[0]]),
    }


def _far(cohort: Cohort, own: int) -> list[int]:
    """Who is neither this device nor a neighbour."""
    return sorted(set(range(cohort.size)) - {own, *cohort.neighbours(own)})


def _sealed(index: int) -> bytes:
    return index.to_bytes(4, "little") + os.urandom(SEALED_BYTES)


def _by_index(records: list[bytes]) -> list[bytes]:
    return sorted(records, key=lambda record: int.from_bytes(record[:4], "little"))


@case(
    "crowd.degree",
    "From 66 devices on each has 64 neighbours, and 33 of the holders give a secret back.",
    STEP_2,
    kits=CROWD,
)
def degree(world: World) -> None:
    cohort = world.secure.shared(everybody).cohort()
    expect_equal("devices", cohort.size, 70)
    cohort.require_usual()


@case("crowd.roster", "One roster for all, in order and signed, also when it is long.", STEP_2, kits=CROWD)
def roster(world: World) -> None:
    current = world.secure.shared(everybody)
    current.cohort().require_entries(peer.entry for peer in current.peers)
    current.cohort().require_signed(world.manifest_key)
    for peer in current.peers:
        expect_equal("the roster", peer.told["share"], current.peers[0].told["share"])


@case("crowd.ring", "Shares go to the neighbours on the ring, whose order nobody can choose.", STEP_2, kits=CROWD)
def ring(world: World) -> None:
    current = world.secure.shared(everybody)
    cohort = current.cohort()
    expect_equal("devices whose shares for their neighbours were accepted", len(current.that_did(SHARE)), 70)
    for peer in current.peers:
        expect_equal(
            "receivers of a device's accepted shares",
            sorted(sealed_by_receiver(peer.good(SHARE))),
            cohort.neighbours(cohort.index_of(peer.peer_id)),
        )


@case("crowd.no-neighbour", "Shares for who is no neighbour would let a server choose the holders.", PHASES, kits=CROWD)
def no_neighbour(world: World) -> None:
    noted = world.secure.shared(everybody).noted
    noted["a stranger for a neighbour"].refusal("UPLOAD_INVALID")
    noted["shares for all"].refusal("UPLOAD_INVALID")


@case("crowd.inbox", "Each gets what its included neighbours sealed for it, and nothing else.", STEP_3, kits=CROWD)
def inbox(world: World) -> None:
    for play in (everybody, dropouts):
        current = world.secure.shared(play)
        cohort, sharing = current.cohort(), current.that_did(SHARE)
        sent = {cohort.index_of(peer.peer_id): sealed_by_receiver(peer.good(SHARE)) for peer in sharing}
        for peer in sharing:
            cohort.require_inbox(peer.told["upload"], cohort.index_of(peer.peer_id), sent)


@case("crowd.bits", "More devices, larger sums: 8 and 14 bits a number.", STEP_3, kits=CROWD)
def bits(world: World) -> None:
    current = world.secure.shared(everybody)
    size = 72 * 32 + 32 * 14 // 8 + 2
    expect_equal("bytes of an accepted vector", len(current.peers[0].good(UPLOAD).masked_vector), size)


@case("crowd.sum", "Masks between neighbours only must cancel as well.", STEP_4, kits=CROWD)
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
    "crowd.reveal-no-neighbour", "A share that the device cannot hold must not be counted as one.", STEP_4, kits=CROWD
)
def reveal_no_neighbour(world: World) -> None:
    noted = world.secure.shared(everybody).noted
    noted["the seed of a stranger"].refusal("UPLOAD_INVALID")
    noted["seeds of all"].refusal("UPLOAD_INVALID")


@case(
    "crowd.sum-with-dropouts",
    "Seven, five and six stay away at three steps, and the sum is still exact.",
    STEP_4,
    kits=CROWD,
)
def sum_with_dropouts(world: World) -> None:
    current = world.secure.shared(dropouts)
    counts = [len(current.that_did(method)) for method in (ADVERTISE, SHARE, UPLOAD, REVEAL)]
    expect_equal("devices at each step", counts, [70, 63, 58, 52])
    current.require_played()
    current.require_exact()


@case("crowd.included", "Nine bytes of bits, and none behind the seventieth.", STEP_3, kits=CROWD)
def included(world: World) -> None:
    for play in (everybody, dropouts):
        current = world.secure.shared(play)
        expected = current.cohort().bitmap([peer.peer_id for peer in current.that_did(SHARE)])
        for peer in current.that_did(SHARE):
            expect_equal("included", peer.told["upload"].included, expected)


@case("crowd.survivors", "Nine bytes of bits, signed with the included set, the same for all.", STEP_4, kits=CROWD)
def survivors(world: World) -> None:
    for play in (everybody, dropouts):
        current = world.secure.shared(play)
        expected = current.cohort().bitmap([peer.peer_id for peer in current.that_did(UPLOAD)])
        for peer in current.that_did(REVEAL):
            told = peer.told["reveal"]
            expect_equal("survivors", told.survivors, expected)
            current.cohort().require_survivors_signed(world.manifest_key, peer.told["upload"].included, told)


@case(
    "crowd.limits",
    "The limit of a step is that of the neighbours that a device can have, not of the crowd.",
    "docs/protocol.md#limits",
    kits=CROWD,
)
def limits(world: World) -> None:
    device = world.device(0)
    for method, limit in ((SHARE, 1024 + 98 * 64), (REVEAL, 1024 + 49 * 65)):
        detail = device.call(method, bytes(limit + 1)).refusal("TOO_LARGE")
        expect_equal(f"limit_bytes of {method}", detail.limit_bytes, limit)


@case(
    "crowd.too-few", "39 devices have shares enough, but the server promised a sum of at least 40.", PHASES, kits=CROWD
)
def too_few(world: World) -> None:
    current = world.secure.fresh()
    current.walk(ADVERTISE)
    current.leave(*current.peers[world.kit.settings.minimum - 1 :])
    current.walk(SHARE)
    current.require_nothing_came_of_it()
