"""The signed manifest, at version 1 where it matters."""

from __future__ import annotations

import hashlib
import time
from itertools import pairwise
from math import log

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import manifest_pb2, model_pb2
from lightfr_harness.conformance.expectations import Unexpected, expect, expect_between, expect_equal
from lightfr_harness.conformance.registry import COMMON_KITS, USUAL_KITS, case
from lightfr_harness.conformance.versions import artifacts_of, published_codes
from lightfr_harness.conformance.world import World
from lightfr_harness.server.rules import PRIVACY_MODES

PLACE, EVALUATION = "docs/protocol.md#manifest", "docs/protocol.md#evaluation"
SIGNED_LIMIT_BYTES = 65_664
DAY_SECONDS = 86_400


def _signed(world: World) -> manifest_pb2.SignedManifest:
    signed = world.signed_manifest()
    if signed is None:
        raise Unexpected("a signed manifest for a device that holds none", "an answer without one")
    return signed


@case("manifest.signature", "Devices use nothing that the manifest key did not sign.", PLACE)
def signature(world: World) -> None:
    signed = _signed(world)
    expect_equal("size of the signature", len(signed.signature), 64)
    world.require_signature(signed)


@case("manifest.same-bytes", "A signature holds for bytes: every device must get the very same ones.", PLACE)
def same_bytes(world: World) -> None:
    first, second = world.signed_manifest(world.device(0)), world.signed_manifest(world.device(1))
    expect_equal("signed manifest of a second device", second, first)


@case("manifest.size", "Devices read no larger manifest than the document says.", "docs/protocol.md#limits")
def size(world: World) -> None:
    answer = world.device(0).call("GetManifest", pb.GetManifestRequest(capabilities=world.capabilities))
    answer.message(pb.GetManifestResponse)
    expect_between("size of the answer in bytes", len(answer.body), 1, SIGNED_LIMIT_BYTES)


@case("manifest.first-version", "Version 1 publishes exactly the codes that the server was given.", PLACE)
def first_version(world: World) -> None:
    if world.twin.model_version != 1:
        raise Unexpected("a server at version 1: run this case on a fresh one", f"version {world.twin.model_version}")
    manifest = world.manifest()
    expect_equal("model_version", manifest.model_version, 1)
    codes = published_codes(world.kit.codes, world.kit.open_rows)
    expect_equal("SHA-256 of the first codes", manifest.codes.sha256, hashlib.sha256(codes).digest())
    expect_equal("mean_user before the first round", manifest.model.mean_user, b"")
    expect_equal("deltas of the first version", len(manifest.codes_deltas), 0)


@case(
    "manifest.model", "Devices compute by these numbers: a wrong one makes every upload wrong.", PLACE, kits=COMMON_KITS
)
def model(world: World) -> None:
    settings, got = world.kit.settings, world.manifest().model
    expected = {
        "code_bits": settings.code_bits,
        "item_count": settings.item_count,
        "objective": model_pb2.Objective.Value(f"OBJECTIVE_{settings.objective.upper()}"),
        "upload_kind": world.upload_kind,
        "max_rows": settings.max_rows,
        "balance": settings.balance,
        "privacy_mode": PRIVACY_MODES[settings.privacy],
    }
    for name, value in expected.items():
        expect_equal(name, getattr(got, name), value)
    expect(not got.HasField("noise"), "no noise in this mode", got.noise)


@case(
    "manifest.rankings",
    "Devices refuse a manifest whose prior, rankings or candidates are not what they can be.",
    "proto/lightfr/v1/manifest.proto#Manifest",
    kits=(*USUAL_KITS, "evaluation"),
)
def rankings(world: World) -> None:
    manifest = world.manifest()
    if manifest.HasField("prior"):
        firsts, popularities = list(manifest.prior.first_items), list(manifest.prior.popularities)
        expect_between("steps of the prior", len(firsts), 1, 64)
        expect_equal("popularities of the prior", len(popularities), len(firsts))
        ascends = firsts[0] == 0 and all(a < b for a, b in pairwise([*firsts, manifest.model.item_count]))
        expect(ascends, "steps that ascend from item 0 and end below item_count", firsts)
        expect(all(a >= b for a, b in pairwise([1023, *popularities])), "at most 1,023, never rising", popularities)
    expect(len(manifest.rankings) in (0, 4), "four rankings or none", len(manifest.rankings))
    expect_between("candidates", len(manifest.candidates), 0, 31)
    for one in (*manifest.rankings, *manifest.candidates):
        expect_between("by", one.by, 1, 3)
        expect_between("recency", one.recency, 0, 3)
        expect_between("prior_fourths", one.prior_fourths, 0, 1024)
    expect(all(one.by != manifest_pb2.RANK_BY_CHANCE for one in manifest.rankings), "no ranking by chance", "one")


@case("manifest.prior", "Devices weigh popularity by it: 16 ln(1 + count), if it is there at all.", EVALUATION)
def prior(world: World) -> None:
    manifest = world.manifest()
    if not manifest.HasField("prior"):
        return
    told = manifest.prior
    lasts = [*told.first_items[1:], world.kit.settings.item_count]
    by_item = [
        popularity
        for first, last, popularity in zip(told.first_items, lasts, told.popularities, strict=True)
        for _ in range(first, last)
    ]
    for item, (popularity, count) in enumerate(zip(by_item, world.kit.counts, strict=True)):
        wanted = round(16 * log(1 + count))
        expect_equal(f"popularity of item {item}, which {count} devices rate", popularity, wanted)


@case("manifest.created", "People see by it how old a model is.", "proto/lightfr/v1/manifest.proto#Manifest")
def created(world: World) -> None:
    now = int(time.time())
    made = world.manifest().created_unix_seconds
    expect_between("created_unix_seconds, within a day of now,", made, now - DAY_SECONDS, now + DAY_SECONDS)


@case("manifest.sizes", "A device reserves space by these sizes before it downloads.", PLACE)
def sizes(world: World) -> None:
    manifest, rows = world.manifest(), sum(world.kit.open_rows) + 1
    expect_equal("codes.size_bytes", manifest.codes.size_bytes, rows * world.kit.settings.code_bits // 8)
    expect_between("parts of the catalogue", len(manifest.catalogue_parts), 1, 16)
    for artifact in artifacts_of(manifest):
        expect_equal("bytes in the SHA-256 of an artifact", len(artifact.sha256), 32)


@case("manifest.known", "A device that holds the newest version must not download it again.", PLACE)
def known(world: World) -> None:
    version = world.manifest().model_version
    request = pb.GetManifestRequest(capabilities=world.capabilities, known_model_version=version)
    answer = world.device(0).call("GetManifest", request)
    answer.message(pb.GetManifestResponse)
    expect_equal("size of the answer to who holds the newest version", len(answer.body), 0)


@case("manifest.known-newer", "A device from before a restore of the server must learn where the server stands.", PLACE)
def known_newer(world: World) -> None:
    for version in (world.manifest().model_version + 1, 2**64 - 1):
        expect(world.signed_manifest(known=version), "the manifest for another known_model_version", "none")
