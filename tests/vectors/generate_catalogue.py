"""Writes catalogues, good and bad, from docs/artifacts.md."""

from itertools import pairwise

from tests.vectors.generate_artifacts import stored
from tests.vectors.plain import little, number


def catalogue_header(kind, m, magic=b"LFRC", version=2, zeros=bytes(2)):
    return magic + bytes([version, kind]) + zeros + little([m], 8)


def bits_of(largest):
    return largest.bit_length()


def narrow(numbers, bits):
    """Numbers of so many bits one behind the other, the low bit first."""
    out, held, n_held = bytearray(), 0, 0
    for value in numbers:
        held |= value << n_held
        n_held += bits
        while n_held >= 8:
            out.append(held & 255)
            held, n_held = held >> 8, n_held - 8
    return bytes(out) + (bytes([held]) if n_held else b"")


def sections(kind, m, blocks, firsts=(), order=None, offsets=None):
    """A file of given blocks; `order` has the numbers by position, whatever they are."""
    order = list(range(m)) if order is None else order
    ends = offsets or [sum(map(len, blocks[:at])) for at in range(len(blocks) + 1)]
    group_of = {value: position // 8192 for position, value in enumerate(order)}
    groups = [group_of.get(value, 0) for value in range(m)]
    directory = catalogue_header(kind, m) + little(ends, 4) + little(firsts, 8, signed=True)
    numbers = narrow(order, bits_of(m - 1)), narrow(groups, bits_of((m - 1) // 8192))
    return directory + b"".join(blocks) + b"".join(numbers)


def integer_block(ids):
    gaps = [after - before - 1 for before, after in pairwise(ids)]
    size = next(size for size in (0, 1, 2, 4, 8) if max(gaps, default=0) < 256**size)
    return little(gaps, size) if size else b""


def integer_catalogue(ids):
    order = sorted(range(len(ids)), key=lambda i: ids[i])
    blocks = [[ids[i] for i in order[at : at + 256]] for at in range(0, len(ids), 256)]
    return sections(1, len(ids), [integer_block(block) for block in blocks], [block[0] for block in blocks], order)


def text_block(first, *others, end=b"", stream=stored):
    """`others` are what an id shares with the one before, and its further bytes: right or not."""
    content = bytes(n for n, _ in others) + bytes(len(rest) for _, rest in others) + b"".join(r for _, r in others)
    return bytes([len(first)]) + first + (stream(content + end) if others or end else b"")


def shared(before, after):
    n = 0
    while n < len(before) and n < len(after) and before[n] == after[n]:
        n += 1
    return n, after[n:]


def text_catalogue(texts):
    ids = [text.encode() for text in texts]
    order = sorted(range(len(ids)), key=lambda i: ids[i])
    blocks = [[ids[i] for i in order[at : at + 256]] for at in range(0, len(ids), 256)]
    packed = [text_block(block[0], *map(shared, block, block[1:])) for block in blocks]
    return sections(2, len(ids), packed, order=order)


INTEGERS = [7, -1, 300, 2**63 - 1, -(2**63), 0]
TEXTS = ["b", "é", "ab", "b b", "a", "日本", "e\u0301", "x" * 255]
MORE_TEXTS = [f"item {number(f'text {i}', 10**6)} {i}" for i in range(300)]
DOCUMENTED_TEXTS = bytes.fromhex(
    "4c465243 02 02 0000 0300000000000000 00000000 12000000 026162 78da636060644a3abc1200036901d2 12"
)
# By position: gaps of every size, and two groups.
STEPS = [1, 200, 60_000, 2**31, 2**40]
MANY = {"item_count": 8500, "steps": STEPS, "multiplier": 3571, "modulus": 8501}


def many_ids():
    """The ids of MANY, by number: that of number i is the id at position ((i + 1) * multiplier mod modulus) - 1."""
    by_position = [0]
    for position in range(MANY["item_count"] - 1):
        by_position.append(by_position[-1] + STEPS[position // 256 % len(STEPS)])
    return [by_position[(i + 1) * MANY["multiplier"] % MANY["modulus"] - 1] for i in range(MANY["item_count"])]


def good_catalogues():
    integers, more = [str(i) for i in INTEGERS], [10**12, 8, -5]
    files = {
        "catalogue_int.bin": integer_catalogue(INTEGERS),
        "catalogue_int_2.bin": integer_catalogue(more),
        "catalogue_int_3.bin": integer_catalogue([9]),
        "catalogue_str.bin": text_catalogue(TEXTS),
        "catalogue_str_2.bin": text_catalogue(MORE_TEXTS),
        "catalogue_documented.bin": DOCUMENTED_TEXTS,
        "catalogue_many.bin": integer_catalogue(many_ids()),
    }
    cases = [
        ("integers", ["catalogue_int"], integers, ["1", "-2", "299"]),
        ("integers in three parts", ["catalogue_int", "catalogue_int_2", "catalogue_int_3"],
         [*integers, *map(str, more), "9"], ["1", "10"]),
        ("strings", ["catalogue_str"], TEXTS, ["c", "ba", "x" * 254]),
        ("strings in two parts, one of two blocks", ["catalogue_str", "catalogue_str_2"],
         TEXTS + MORE_TEXTS, ["item", "item 1", "z"]),
        ("strings, documented, with Huffman codes", ["catalogue_documented"], ["b", "é", "ab"], ["a", "c"]),
    ]  # fmt: skip
    return [
        {
            "name": name,
            "kind": "str" if name.startswith("strings") else "int",
            "files": [f"{file}.bin" for file in parts],
            "ids": ids,
            "missing": missing,
        }
        for name, parts, ids, missing in cases
    ], files


def opened_faults():
    """What a reader sees in headers, sizes and directories: the number of items of the model, and the files."""
    good, text = integer_catalogue([7, -1, 300]), text_catalogue(["b", "cc", "a"])
    begins_late = sections(2, 3, [b"a", text_block(b"a", (0, b"b"), (0, b"c"))], offsets=[1, 20])
    of_three = {
        "nothing in it": [b""],
        "cut in its header": [good[:15]],
        "another magic": [catalogue_header(1, 3, magic=b"LFRD") + good[16:]],
        "another format version": [catalogue_header(1, 3, version=1) + good[16:]],
        "an unknown kind of ids": [catalogue_header(3, 3) + good[16:]],
        "no zeros behind the kind": [catalogue_header(1, 3, zeros=b"\1\0") + good[16:]],
        "no items": [catalogue_header(1, 0)],
        "more items than there may be": [catalogue_header(1, 2**32) + good[16:]],
        "another number of items than the model": [integer_catalogue([7, -1])],
        "parts with another number of items than the model": [good, integer_catalogue([1])],
        "parts of different kinds": [integer_catalogue([7]), text_catalogue(["b", "a"])],
        "cut in its directory": [good[:20]],
        "a byte missing": [good[:-1]],
        "a byte too many": [good + b"\0"],
        "ids shorter than the last offset says": [text[:20] + little([21], 4) + text[24:]],
        "the first offset is not 0": [begins_late],
        "a bit behind the last number": [good[:-1] + bytes([good[-1] | 0x40])],
    }
    for name, files in of_three.items():
        yield name, 3, files
    firsts = [1, 2000, 4000]
    yield "offsets that fall", 600, [sections(1, 600, [bytes(10)] * 3, firsts, offsets=[0, 20, 10, 30])]
    yield "an offset behind the ids", 600, [sections(1, 600, [bytes(10)] * 3, firsts, offsets=[0, 10, 31, 30])]
    yield "first ids that fall", 257, [sections(1, 257, [b"", b""], [1000, 5])]
    yield "first ids that are equal", 257, [sections(1, 257, [b"", b""], [5, 5])]


def met_faults():
    """What a reader sees when a look-up meets it: the number of items, the file, the look-up, what it asks for."""
    good = text_block(b"a", (0, b"b"), (0, b"c"))
    yield "a number that is not below the items", 3, sections(1, 3, [b""], [5], [0, 3, 1]), "index_of", "6"
    yield "a number that no position of its group has", 3, sections(1, 3, [b""], [5], [0, 1, 1]), "id_of", 2
    yield "gaps of 3 bytes", 3, sections(1, 3, [bytes(6)], [5]), "id_of", 1
    yield "gaps that are not of one size", 3, sections(1, 3, [bytes(3)], [5]), "id_of", 1
    yield "gaps of 16 bytes", 3, sections(1, 3, [bytes(32)], [5]), "index_of", "6"
    yield "a gap behind the only id", 1, sections(1, 1, [b"\0"], [5]), "id_of", 0
    yield "ids beyond 64 bits", 3, sections(1, 3, [b""], [2**63 - 2]), "id_of", 2
    yield "ids that reach the next block", 257, sections(1, 257, [b"", b""], [5, 260]), "id_of", 255
    yield "a group beyond the positions", 16_385, broken_group(), "id_of", 16_384
    texts = {
        "an empty block": b"",
        "an empty first id": b"\0" + good[2:],
        "a first id longer than its block": b"\x63" + good[1:],
        "a stream that is no zlib": good[:2] + b"\xff" + good[3:],
        "a stream with a wrong checksum": good[:-1] + bytes([good[-1] ^ 1]),
        "a stream without its end": good[:-4],
        "a byte behind a stream": good + b"\0",
        "no stream": good[:2],
        "a stream with a byte too many": text_block(b"a", (0, b"b"), (0, b"c"), end=b"d"),
        "a stream shorter than its lengths say": text_block(b"a", end=b"\0\0\1\2bc"),
        "an id that shares more than the one before has": text_block(b"a", (2, b"b"), (0, b"c")),
        "an id of 256 bytes": text_block(b"a", (1, b"b" * 255), (0, b"c")),
        "an id twice": text_block(b"a", (1, b""), (0, b"c")),
        "ids that fall": text_block(b"b", (0, b"a"), (0, b"c")),
        "an id that is no UTF-8": text_block(b"a", (0, b"\xc3\x28"), (0, b"\xc4")),
    }
    for name, block in texts.items():
        yield name, 3, sections(2, 3, [block]), "id_of", 1
    yield "a stream behind the only id of a block", 1, sections(2, 1, [b"\1a" + stored(b"")]), "id_of", 0


def broken_group():
    """Three groups, of which the last number names a fourth."""
    blocks = [b""] * 65
    good = sections(1, 16_385, blocks, [256 * at for at in range(65)])
    return good[:-1] + bytes([good[-1] | 3])


def bad_catalogues():
    opened = [{"name": name, "item_count": count, "files": files} for name, count, files in opened_faults()]
    met = [
        {"name": name, "item_count": count, "files": [file], "at": at, "asked": asked}
        for name, count, file, at, asked in met_faults()
    ]
    return [{**case, "at": "open"} for case in opened] + met


def vectors():
    good, files = good_catalogues()
    many = {"name": "integers with gaps of every size", "file": "catalogue_many.bin", **MANY}
    return {"catalogue.json": {"good": good, "many": many, "refused": bad_catalogues()}, **files}
