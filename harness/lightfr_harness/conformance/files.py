"""The suite's own readers of the files that devices download: docs/artifacts.md, and nothing else.

They read a file whole, which no device should, and find every fault that a device could meet.
"""

from __future__ import annotations

import struct
import zlib
from itertools import pairwise

from lightfr_harness.conformance.expectations import Unexpected, expect, expect_between, expect_equal

STRINGS = 2
BLOCK, GROUP = 256, 8192
DELTA_HEADER = struct.Struct("<4sB3sIQQQQ")
ZEROS = 2**32 - 1


def inflated(stream: bytes, what: str) -> bytes:
    """The content of a zlib stream with which a file, or a block of one, ends."""
    inflater = zlib.decompressobj()
    try:
        content = inflater.decompress(stream) + inflater.flush()
    except zlib.error as error:
        raise Unexpected(f"a zlib stream in {what}", str(error)) from error
    expect(inflater.eof and not inflater.unused_data, f"{what} to end with its stream", "more or less than it")
    return content


def read_bitmap(file: bytes, item_count: int) -> list[bool]:
    """A bit for each item."""
    content = inflated(file, "a bitmap")
    expect_equal("bytes of an inflated bitmap", len(content), (item_count + 7) // 8)
    bits = [bool(content[bit // 8] >> bit % 8 & 1) for bit in range(8 * len(content))]
    expect(not any(bits[item_count:]), "no bit behind the last item of a bitmap", content[-1:].hex())
    return bits[:item_count]


def read_part(file: bytes) -> list[bytes]:
    """The ids of one part of a catalogue of strings, by number."""
    magic, version, kind, zero, count = struct.unpack_from("<4sBBHQ", file)
    expect_equal("header of a part of the catalogue", (magic, version, kind, zero), (b"LFRC", 2, STRINGS, 0))
    blocks = -(-count // BLOCK)
    offsets = struct.unpack_from(f"<{blocks + 1}I", file, 16)
    expect(not offsets[0] and all(a <= b for a, b in pairwise(offsets)), "offsets that begin at 0 and do not fall", "")
    start = 16 + 4 * (blocks + 1)
    in_order = [
        item_id
        for number, (first, end) in enumerate(pairwise(offsets))
        for item_id in _block(file[start + first : start + end], min(BLOCK, count - number * BLOCK))
    ]
    expect(all(a < b for a, b in pairwise(in_order)), "ids in the order of their bytes, none twice", "another order")
    start += offsets[-1]
    sizes = [(count - 1).bit_length(), (-(-count // GROUP) - 1).bit_length()]
    ends = [start + -(-count * sizes[0] // 8), start + -(-count * sizes[0] // 8) - (-count * sizes[1] // 8)]
    expect_equal("size of a part of the catalogue", len(file), ends[1])
    numbers, groups = _packed(file[start : ends[0]], count, sizes[0]), _packed(file[ends[0] :], count, sizes[1])
    expect_equal("numbers in a part of the catalogue", sorted(numbers), list(range(count)))
    position_of = {number: position for position, number in enumerate(numbers)}
    expect_equal("groups by number", groups, [position_of[number] // GROUP for number in range(count)])
    return [in_order[position_of[number]] for number in range(count)]


def _block(block: bytes, count: int) -> list[bytes]:
    """The ids of a block of strings."""
    ids = [block[1 : 1 + block[0]]]
    rest = block[1 + block[0] :]
    if count == 1:
        expect_equal("bytes behind the only id of a block", len(rest), 0)
        return ids
    content = inflated(rest, "a block of ids")
    text = 2 * (count - 1)
    for shared, further in zip(content[: count - 1], content[count - 1 : text], strict=True):
        expect_between("bytes that an id shares with the one before it", shared, 0, len(ids[-1]))
        ids.append(ids[-1][:shared] + content[text : text + further])
        text += further
    expect_equal("end of a block of ids", text, len(content))
    for item_id in ids:
        expect_between("bytes of an id", len(item_id), 1, 255)
        item_id.decode()
    return ids


def _packed(section: bytes, count: int, bits: int) -> list[int]:
    """Numbers of so many bits, the low bit first."""
    whole = int.from_bytes(section, "little")
    expect(not whole >> count * bits, "no bit behind the last number of a section", "some")
    return [whole >> place * bits & (1 << bits) - 1 for place in range(count)]


def apply_delta(delta: bytes, old: bytes, code_bits: int) -> bytes:
    """The new codes."""
    magic, version, zero, bits, before, after, n_runs, n_changed = DELTA_HEADER.unpack_from(delta)
    expect_equal("header of a delta", (magic, version, zero, bits), (b"LFRD", 2, bytes(3), code_bits))
    row_bytes = code_bits // 8
    expect_equal("rows before", before * row_bytes, len(old))
    expect_between("changed rows", n_changed, 0, after)
    content = inflated(delta[DELTA_HEADER.size :], "a delta")
    expect_equal("size of the inflated stream", len(content), 8 * n_runs + n_changed * (4 + row_bytes))
    new = bytearray()
    for first, count in struct.iter_unpack("<II", content[: 8 * n_runs]):
        expect(count and (first == ZEROS or first + count <= before), "runs of old rows, none empty", (first, count))
        new += bytes(count * row_bytes) if first == ZEROS else old[first * row_bytes : (first + count) * row_bytes]
    expect_equal("rows of all runs", len(new), after * row_bytes)
    gaps, flips = content[8 * n_runs :], content[8 * n_runs + 4 * n_changed :]
    row = -1
    for place in range(n_changed):
        # The gaps come in four planes: all low bytes, then all second bytes, and so on.
        row += 1 + sum(gaps[plane * n_changed + place] << 8 * plane for plane in range(4))
        expect(row < after, "changed rows below the new number", row)
        for byte, flip in enumerate(flips[place * row_bytes :][:row_bytes]):
            new[row * row_bytes + byte] ^= flip
    return bytes(new)
