"""Ways from older codes to the newest, and what stays available."""

from __future__ import annotations

import hashlib

from lightfr.v1 import manifest_pb2
from lightfr_harness.conformance.expectations import expect, expect_between, expect_equal
from lightfr_harness.conformance.files import DELTA_HEADER, apply_delta
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.versions import artifacts_of
from lightfr_harness.conformance.world import World

DELTA = "docs/artifacts.md#delta"
PLACE = "docs/protocol.md#manifest"
CLEAR = ("clear",)


def _walk(world: World, rounds: int) -> dict[bytes, bytes]:
    """Some rounds; the codes of their versions by digest, oldest first.

    All devices say the same in all rounds, so that the codes settle, few rows change, and a delta is worth it.
    """
    seen: dict[bytes, bytes] = {}
    update = None
    for _ in range(rounds):
        current = world.fresh_round()
        update = update or current.random_update(world.kit.settings.max_rows)
        for device in world.devices(world.kit.settings.goal):
            current.upload(device, current.request(update))
        artifact = current.finish().codes
        seen.pop(artifact.sha256, None)
        seen[artifact.sha256] = world.device(0).artifact(artifact)
    return seen


def _known_deltas(manifest: manifest_pb2.Manifest, seen: dict[bytes, bytes]) -> list[manifest_pb2.CodesDelta]:
    return [delta for delta in manifest.codes_deltas if delta.from_sha256 in seen]


@case("deltas.apply", "A device that follows a delta must hold exactly the new codes.", DELTA, kits=CLEAR)
def apply(world: World) -> None:
    seen = _walk(world, 6)
    manifest = world.manifest()
    for delta in _known_deltas(manifest, seen):
        content = world.device(0).artifact(delta.artifact)
        new = apply_delta(content, seen[delta.from_sha256], world.kit.settings.code_bits)
        expect_equal("SHA-256 of the codes after a delta", hashlib.sha256(new).digest(), manifest.codes.sha256)


@case("deltas.worth-it", "A delta larger than the codes would be a detour.", PLACE, kits=CLEAR)
def worth_it(world: World) -> None:
    _walk(world, 4)
    manifest = world.manifest()
    expect_between("number of deltas", len(manifest.codes_deltas), 0, 16)
    for delta in manifest.codes_deltas:
        expect_between("size of a delta", delta.artifact.size_bytes, DELTA_HEADER.size, manifest.codes.size_bytes - 1)
        expect(delta.from_sha256 != manifest.codes.sha256, "deltas from other codes", "one from the newest to itself")


@case("deltas.newest-first", "A device takes the first delta that it can use.", PLACE, kits=CLEAR)
def newest_first(world: World) -> None:
    seen = list(_walk(world, 6))
    known = [delta.from_sha256 for delta in _known_deltas(world.manifest(), dict.fromkeys(seen, b""))]
    expect_equal("order of the deltas", known, sorted(known, key=seen.index, reverse=True))


@case("deltas.older-artifacts", "A device in the middle of a download must be able to end it.", PLACE, kits=CLEAR)
def older_artifacts(world: World) -> None:
    before = world.manifest()
    _walk(world, 2)
    for artifact in artifacts_of(before):
        world.device(0).artifact(artifact)
