"""Wire versions and capabilities."""

from __future__ import annotations

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import manifest_pb2
from lightfr_harness.conformance.client import Answer
from lightfr_harness.conformance.expectations import expect, expect_equal
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.world import World

PLACE = "docs/protocol.md#versions"


def _ask(world: World, method: str = "GetManifest", **changes: list[int]) -> Answer:
    """GetManifest or CheckIn with other capabilities."""
    capabilities = world.capabilities
    for name, values in changes.items():
        del getattr(capabilities, name)[:]
        getattr(capabilities, name).extend(values)
    kind = pb.GetManifestRequest if method == "GetManifest" else pb.CheckInRequest
    return world.device(0).call(method, kind(capabilities=capabilities))


def _require_wire_version_1(answer: Answer) -> None:
    signed = answer.message(pb.GetManifestResponse).signed_manifest
    expect_equal("wire_version", manifest_pb2.Manifest.FromString(signed.manifest).wire_version, 1)


@case("version.none-in-common", "A device of the future must learn that it is too new, and for what.", PLACE)
def none_in_common(world: World) -> None:
    for method in ("GetManifest", "CheckIn"):
        detail = _ask(world, method, wire_versions=[2, 2**32 - 1]).refusal("WIRE_VERSION")
        expect_equal(f"wire_versions of the server, after {method}", list(detail.wire_versions), [1])


@case("version.highest-in-common", "The server picks what both speak, whatever else the device speaks.", PLACE)
def highest_in_common(world: World) -> None:
    _require_wire_version_1(_ask(world, wire_versions=[7, 1, 2**32 - 1]))


@case("version.none-given", "A device that speaks no version is at fault.", PLACE)
def none_given(world: World) -> None:
    for method in ("GetManifest", "CheckIn"):
        _ask(world, method, wire_versions=[]).refusal("MALFORMED")


@case("version.sixteen", "A device may list 16 versions.", PLACE)
def sixteen(world: World) -> None:
    _require_wire_version_1(_ask(world, wire_versions=list(range(1, 17))))


@case("version.seventeen", "Lists are bounded, so that a request stays small to handle.", PLACE)
def seventeen(world: World) -> None:
    for method in ("GetManifest", "CheckIn"):
        _ask(world, method, wire_versions=list(range(1, 18))).refusal("MALFORMED")


@case(
    "version.seventeen-of-the-others",
    "Kinds and modes are bounded like versions.",
    "proto/lightfr/v1/coordinator.proto#Capabilities",
)
def seventeen_of_the_others(world: World) -> None:
    _ask(world, upload_kinds=[1] * 17).refusal("MALFORMED")
    _ask(world, privacy_modes=[1] * 17).refusal("MALFORMED")


@case("version.unknown-kinds", "A newer device knows kinds and modes that this server does not.", PLACE)
def unknown_kinds(world: World) -> None:
    _require_wire_version_1(_ask(world, upload_kinds=[1, 99], privacy_modes=[1, 2, 3, 98]))


@case(
    "version.unpacked-lists",
    "Protobuf writers may send a list number by number, and some do.",
    "proto/lightfr/v1/coordinator.proto#Capabilities",
)
def unpacked_lists(world: World) -> None:
    # capabilities { wire_versions: 9, wire_versions: 1 }, each with a tag of its own.
    _require_wire_version_1(world.device(0).call("GetManifest", b"\x0a\x04\x08\x09\x08\x01"))


@case("version.only-recommending", "A device that takes no part in training gets the model all the same.", PLACE)
def only_recommending(world: World) -> None:
    answer = _ask(world, upload_kinds=[], privacy_modes=[]).message(pb.GetManifestResponse)
    expect(answer.HasField("signed_manifest"), "a manifest for a device without kinds and modes", "none")
