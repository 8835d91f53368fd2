"""Writes deltas and bitmaps, good and bad, from docs/artifacts.md."""

import hashlib

from tests.vectors.plain import little, noise, number

# ---- deltas ----

DOCUMENTED = bytes.fromhex(
    "4c465244 02 000000 10000000 0300000000000000 0400000000000000 0300000000000000 0200000000000000"
    "78da6360606060 04e2ff40c0086533416910 5815cac80000 6ddb0503"
)
ZEROS = 2**32 - 1


def adler32(content):
    """The checksum of RFC 1950."""
    a, b = 1, 0
    for byte in content:
        a = (a + byte) % 65521
        b = (b + a) % 65521
    return (b << 16 | a).to_bytes(4, "big")


def stored(content):
    """A zlib stream without compression: one stored block, or several."""
    pieces = [content[at : at + 65535] for at in range(0, len(content), 65535)] or [b""]
    out = b"\x78\x01"
    for place, piece in enumerate(pieces):
        size = len(piece).to_bytes(2, "little")
        out += bytes([place == len(pieces) - 1]) + size + bytes(byte ^ 255 for byte in size) + piece
    return out + adler32(content)


def delta_header(f, old, new, runs, changed, magic=b"LFRD", version=2, zeros=bytes(3)):
    return magic + bytes([version]) + zeros + little([f], 4) + little([old, new, runs, changed], 8)


def delta_content(old, new, size, runs):
    """Runs, gaps in four planes, then the flips; with the number of changed rows."""
    moved = b"".join(
        bytes(count * size) if first == ZEROS else old[first * size : (first + count) * size] for first, count in runs
    )
    flips = bytes(a ^ b for a, b in zip(moved, new, strict=True))
    rows = [i for i in range(len(new) // size) if any(flips[i * size : (i + 1) * size])]
    gaps = little([row - before - 1 for before, row in zip([-1, *rows], rows, strict=False)], 4)
    planes = b"".join(gaps[plane::4] for plane in range(4))
    content = b"".join(little(run, 4) for run in runs) + planes
    return content + b"".join(flips[i * size : (i + 1) * size] for i in rows), len(rows)


def delta(old, new, f, runs):
    content, changed = delta_content(old, new, f // 8, runs)
    return delta_header(f, len(old) * 8 // f, len(new) * 8 // f, len(runs), changed) + stored(content)


def good_delta(name, f, old, new, runs, file=None):
    case = {"name": name, "code_bits": f, "old": old, "runs": [list(run) for run in runs]}
    return {**case, "delta": file or delta(old, new, f, runs), "new": new, "new_sha256": hashlib.sha256(new).digest()}


def far_apart():
    """Changed rows more than 255 and more than 65,535 apart: all but the highest plane of gaps have something."""
    old, changed = bytes(70_000), [0, 1, 300, 69_999]
    new = bytes(0x4D if row in changed else 0 for row in range(len(old)))
    case = {"code_bits": 8, "old_zero_bytes": len(old), "changed_rows": changed, "changed_to": b"\x4d"}
    return {**case, "delta": delta(old, new, 8, [(0, 70_000)]), "new_sha256": hashlib.sha256(new).digest()}


def good_deltas():
    old = noise("delta old", 12)
    first, second, third = old[:4], old[4:8], old[8:]
    joined, changed = noise("delta row", 4), bytes(byte ^ 0x18 for byte in old[4:8])
    return [
        good_delta(
            "documented, with Huffman codes",
            16,
            bytes.fromhex("4db2 00ff 1020"),
            bytes.fromhex("4db2 aa55 01ff 1020"),
            [(0, 1), (ZEROS, 1), (1, 2)],
            DOCUMENTED,
        ),
        good_delta("nothing changed", 24, old, old, [(0, 4)]),
        good_delta("every row changed", 32, old, bytes(byte ^ 0x81 for byte in old), [(0, 3)]),
        good_delta("from nothing", 8, b"", old, [(ZEROS, 12)]),
        good_delta("to nothing", 8, old, b"", []),
        good_delta("rows appended, one of them all zeros", 32, old, old + bytes(4) + joined, [(0, 3), (ZEROS, 2)]),
        good_delta("the last row is cut off", 32, old, first + second, [(0, 2)]),
        good_delta("rows in another order, one of them changed", 32, old, third + first + changed, [(2, 1), (0, 2)]),
        good_delta("a row leaves and another joins", 32, old, first + joined + third, [(0, 1), (ZEROS, 1), (2, 1)]),
        good_delta("a row is there twice", 32, old, first + second + second, [(0, 2), (1, 1)]),
        good_delta("runs that could be one", 32, old, old, [(0, 1), (1, 1), (2, 1)]),
    ]


def bad_deltas():
    """All for the same old codes: 4 rows of 24 bits; a reader is ready to store 30 bytes."""
    old, runs = noise("delta old", 12), [(0, 4), (ZEROS, 1)]
    new = bytearray(old + bytes(3))
    new[4] ^= 0x10
    new[13] = 0xFF
    content, _ = delta_content(old, bytes(new), 3, runs)
    head, stream = delta_header(24, 4, 5, 2, 2), stored(content)
    beyond = little([1, 3], 4)
    beyond = content[:16] + b"".join(beyond[plane::4] for plane in range(4)) + content[24:]

    def with_runs(*other):
        return delta_header(24, 4, 5, len(other), 2) + stored(b"".join(little(run, 4) for run in other) + content[16:])

    files = {
        "nothing in it": b"",
        "cut in its header": head[:43],
        "another magic": delta_header(24, 4, 5, 2, 2, magic=b"LFRC") + stream,
        "another format version": delta_header(24, 4, 5, 2, 2, version=1) + stream,
        "no zeros behind the version": delta_header(24, 4, 5, 2, 2, zeros=b"\0\0\1") + stream,
        "codes of 0 bits": delta_header(0, 4, 5, 2, 2) + stream,
        "codes of 12 bits": delta_header(12, 8, 10, 2, 2) + stream,
        "codes of 1032 bits": delta_header(1032, 4, 5, 2, 2) + stream,
        "more old rows than there may be": delta_header(24, 2**32, 5, 2, 2) + stream,
        "more new rows than there may be": delta_header(24, 4, 2**32, 2, 2) + stream,
        "more runs than rows": delta_header(24, 4, 5, 6, 2) + stream,
        "more changed rows than rows": delta_header(24, 4, 5, 2, 6) + stream,
        "made for old codes of another size": delta_header(24, 5, 5, 2, 2) + stream,
        "larger than the reader is ready to store": delta_header(24, 4, 11, 2, 2) + stream,
        "an empty run": with_runs((0, 4), (0, 0), (ZEROS, 1)),
        "a run beyond the old rows": with_runs((1, 4), (ZEROS, 1)),
        "a run from behind the old rows": with_runs((0, 4), (4, 1)),
        "a run whose end is beyond 32 bits": with_runs((0, 4), (ZEROS - 1, 1)),
        "runs with a row too few": with_runs((0, 4)),
        "runs with a row too many": with_runs((0, 4), (ZEROS, 2)),
        "no runs": with_runs(),
        "a changed row at the number of rows": head + stored(beyond),
        "no stream": head,
        "a stream that is no zlib": head + b"\xff" + stream[1:],
        "a stream with a wrong checksum": head + stream[:-1] + bytes([stream[-1] ^ 1]),
        "a stream without its end": head + stream[:-4],
        "a stream one byte too short": head + stored(content[:-1]),
        "a stream one byte too long": head + stored(content + b"\0"),
        "a byte behind the stream": head + stream + b"\0",
    }
    return {
        "code_bits": 24,
        "old": old,
        "largest_new_bytes": 30,
        "good": {"delta": head + stream, "new_sha256": hashlib.sha256(new).digest()},
        "refused": [{"name": name, "delta": file} for name, file in files.items()],
        "other_old_codes": {"old": noise("other old", 12), "why": "the result has another digest than new_sha256"},
    }


# ---- bitmaps ----


def bitmaps():
    bits = [number(f"bitmap {i}", 3) == 0 for i in range(21)]
    bitmap = bytes(sum(bit << k for k, bit in enumerate(bits[at : at + 8])) for at in range(0, 21, 8))
    stream = stored(bitmap)
    refused = {
        "nothing in it": b"",
        "a stream that is no zlib": b"\xff" + stream[1:],
        "a stream with a wrong checksum": stream[:-1] + bytes([stream[-1] ^ 1]),
        "a stream without its end": stream[:-4],
        "a stream one byte too short": stored(bitmap[:-1]),
        "a stream one byte too long": stored(bitmap + b"\0"),
        "a byte behind the stream": stream + b"\0",
        "a bit behind the last item": stored(bitmap[:-1] + bytes([bitmap[-1] | 0x20])),
    }
    return {
        "item_count": 21,
        "items": [i for i, bit in enumerate(bits) if bit],
        "bitmap": bitmap,
        "good": [
            {"name": "stored", "file": stream},
            {"name": "with Huffman codes", "file": bytes.fromhex("78daf35cc40e00022900f3")},
        ],
        "refused": [{"name": name, "file": file} for name, file in refused.items()],
    }


def vectors():
    return {
        "deltas.json": {"good": good_deltas(), "far_apart": far_apart(), "bad": bad_deltas()},
        "delta.bin": DOCUMENTED,
        "bitmaps.json": bitmaps(),
    }
