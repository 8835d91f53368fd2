"""A published version as a device sees it, and whether it is what the twin says."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lightfr.v1 import manifest_pb2
from lightfr_harness.conformance.expectations import Unexpected, expect, expect_between, expect_equal
from lightfr_harness.conformance.files import read_bitmap, read_part

if TYPE_CHECKING:
    from lightfr_harness.conformance.world import World


def artifacts_of(manifest: manifest_pb2.Manifest) -> list[manifest_pb2.Artifact]:
    """Every file that a device without any needs."""
    bitmaps = [name for name in ("open_rows", "removed_items") if manifest.HasField(name)]
    return [manifest.codes, *manifest.catalogue_parts, *(getattr(manifest, name) for name in bitmaps)]


def open_items(world: World, manifest: manifest_pb2.Manifest) -> list[bool]:
    """The gate, a bit for each item."""
    file, count = world.device(0).artifact(manifest.open_rows), manifest.model.item_count
    return read_bitmap(file, count) if manifest.HasField("open_rows") else [True] * count


@dataclass(frozen=True)
class Published:
    """Items by index, and the rows of the codes."""

    manifest: manifest_pb2.Manifest
    ids: list[str]
    is_open: list[bool]
    has_left: list[bool]
    codes: bytes

    @classmethod
    def of(cls, world: World, manifest: manifest_pb2.Manifest) -> Published:
        """Download all files of a version; raises Unexpected unless they fit each other."""
        device, model = world.device(0), manifest.model
        expect_between("parts of the catalogue", len(manifest.catalogue_parts), 1, 16)
        ids = [one.decode() for part in manifest.catalogue_parts for one in read_part(device.artifact(part))]
        expect_equal("ids in all parts of the catalogue", len(ids), model.item_count)
        expect_equal("different ids in all parts of the catalogue", len(set(ids)), model.item_count)
        is_open, has_left = open_items(world, manifest), [False] * model.item_count
        if manifest.HasField("removed_items"):
            has_left = read_bitmap(device.artifact(manifest.removed_items), model.item_count)
        both = [item for item in range(model.item_count) if is_open[item] and has_left[item]]
        expect(not both, "no open item among those that left", both)
        codes = device.artifact(manifest.codes)
        rows = sum(is_open) + manifest.HasField("open_rows")
        expect_equal("bytes of the codes", len(codes), rows * model.code_bits // 8)
        return cls(manifest, ids, is_open, has_left, codes)

    @property
    def matrix(self) -> bytes:
        """D: the code of every item, that of the closed ones again and again."""
        row_bytes, row, rows = self.manifest.model.code_bits // 8, 0, []
        for is_open in self.is_open:
            place = row if is_open else sum(self.is_open)
            rows.append(self.codes[place * row_bytes : (place + 1) * row_bytes])
            row += is_open
        return b"".join(rows)

    @property
    def present(self) -> set[str]:
        """The ids of the items that have not left."""
        return {item_id for item_id, left in zip(self.ids, self.has_left, strict=True) if not left}


def published_codes(matrix: bytes, is_open: list[bool]) -> bytes:
    """What is published of D: the rows of the open items, and that of the first closed one for all others."""
    row_bytes = len(matrix) // len(is_open)
    items = [*(item for item, it_is in enumerate(is_open) if it_is), is_open.index(False)]
    return b"".join(matrix[item * row_bytes : (item + 1) * row_bytes] for item in items)


def require_twin(world: World, manifest: manifest_pb2.Manifest) -> None:
    """The version must be the twin's: number, codes bit for bit, mean user."""
    expect_equal("model_version", manifest.model_version, world.twin.model_version)
    require_codes(world, manifest, world.twin.codes)
    expect_equal("mean_user", mean_user(manifest), world.twin.mean_user.tolist())


def require_codes(world: World, manifest: manifest_pb2.Manifest, matrix: bytes) -> None:
    """The codes must be what is published of D; says the first row and bit that differ."""
    expected = published_codes(matrix, world.kit.open_rows)
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
