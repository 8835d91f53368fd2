"""Whether a published version is what the twin says."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from lightfr.v1 import manifest_pb2
from lightfr_harness.conformance.expectations import Unexpected, expect_equal

if TYPE_CHECKING:
    from lightfr_harness.conformance.world import World


def require_twin(world: World, manifest: manifest_pb2.Manifest) -> None:
    """The version must be the twin's: number, codes bit for bit, mean user."""
    expect_equal("model_version", manifest.model_version, world.twin.model_version)
    require_codes(world, manifest, world.twin.codes)
    expect_equal("mean_user", mean_user(manifest), world.twin.mean_user.tolist())


def require_codes(world: World, manifest: manifest_pb2.Manifest, expected: bytes) -> None:
    """The codes, with the first row and bit that differ."""
    got = world.device(0).artifact(manifest.codes)
    row_bytes = world.kit.settings.code_bits // 8
    if got == expected or len(got) != len(expected):
        return expect_equal("item codes", got, expected)
    flips = [place for place in range(8 * len(got)) if (got[place // 8] ^ expected[place // 8]) >> place % 8 & 1]
    row, bit = divmod(flips[0], 8 * row_bytes)
    said = [codes[row * row_bytes : (row + 1) * row_bytes].hex(" ") for codes in (expected, got)]
    raise Unexpected(
        f"item codes bit for bit, row {row} = {said[0]}",
        f"{said[1]}, bit {bit} first ({len(flips)} of {8 * len(got)} bits differ)",
    )


def mean_user(manifest: manifest_pb2.Manifest) -> list[int]:
    """In units of 1/256; absent is all zeros."""
    raw, bits = manifest.model.mean_user, manifest.model.code_bits
    if not raw:
        return [0] * bits
    expect_equal("size of mean_user in bytes", len(raw), 2 * bits)
    return list(struct.unpack(f"<{bits}h", raw))
