"""Writes the files that devices download, good and bad, from docs/artifacts.md and proto/lightfr/v1/manifest.proto."""

import hashlib

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.vectors.plain import little, message, nested, noise, varint

# ---- deltas ----

DOCUMENTED = bytes.fromhex(
    "4c465244 01 000000 10000000 0300000000000000 0500000000000000 0200000000000000"
    "78016264028881012006068018180062645815 0a180001db0104"
)


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
    for number, piece in enumerate(pieces):
        size = len(piece).to_bytes(2, "little")
        out += bytes([number == len(pieces) - 1]) + size + bytes(byte ^ 255 for byte in size) + piece
    return out + adler32(content)


def delta_header(f, old, new, changed, magic=b"LFRD", version=1, zeros=bytes(3)):
    return magic + bytes([version]) + zeros + little([f], 4) + little([old, new, changed], 8)


def delta_content(old, new, size):
    """Gaps in four planes, then the flips; with the number of changed rows."""
    padded = old + bytes(len(new) - len(old))
    flips = bytes(a ^ b for a, b in zip(padded, new, strict=True))
    rows = [i for i in range(len(new) // size) if any(flips[i * size : (i + 1) * size])]
    gaps = little([row - before - 1 for before, row in zip([-1, *rows], rows, strict=False)], 4)
    planes = b"".join(gaps[plane::4] for plane in range(4))
    return planes + b"".join(flips[i * size : (i + 1) * size] for i in rows), len(rows)


def delta(old, new, f):
    content, changed = delta_content(old, new, f // 8)
    return delta_header(f, len(old) * 8 // f, len(new) * 8 // f, changed) + stored(content)


def good_delta(name, f, old, new, file=None):
    case = {"name": name, "code_bits": f, "old": old, "delta": file or delta(old, new, f), "new": new}
    return {**case, "new_sha256": hashlib.sha256(new).digest()}


def far_apart():
    """Changed rows more than 255 and more than 65,535 apart: all but the highest plane of gaps have something."""
    old, changed = bytes(70_000), [0, 1, 300, 69_999]
    new = bytes(0x4D if row in changed else 0 for row in range(len(old)))
    case = {"code_bits": 8, "old_zero_bytes": len(old), "changed_rows": changed, "changed_to": b"\x4d"}
    return {**case, "delta": delta(old, new, 8), "new_sha256": hashlib.sha256(new).digest()}


def good_deltas():
    old = noise("delta old", 12)
    return [
        good_delta(
            "documented, with Huffman codes",
            16,
            bytes.fromhex("4db2 00ff 1020"),
            bytes.fromhex("4db2 01ff 1020 0000 aa55"),
            DOCUMENTED,
        ),
        good_delta("nothing changed", 24, old, old),
        good_delta("every row changed", 32, old, bytes(byte ^ 0x81 for byte in old)),
        good_delta("from nothing", 8, b"", old),
        good_delta("rows appended, one of them all zeros", 32, old, old + bytes(4) + noise("delta row", 4)),
    ]


def bad_deltas():
    """All for the same old codes: 4 rows of 24 bits; a reader is ready to store 30 bytes."""
    old = noise("delta old", 12)
    new = bytearray(old + bytes(3))
    new[4] ^= 0x10
    new[13] = 0xFF
    content, _ = delta_content(old, bytes(new), 3)
    head, stream = delta_header(24, 4, 5, 2), stored(content)
    beyond = little([1, 3], 4)
    beyond = b"".join(beyond[plane::4] for plane in range(4)) + content[8:]
    files = {
        "nothing in it": b"",
        "cut in its header": head[:35],
        "another magic": delta_header(24, 4, 5, 2, magic=b"LFRC") + stream,
        "another format version": delta_header(24, 4, 5, 2, version=2) + stream,
        "no zeros behind the version": delta_header(24, 4, 5, 2, zeros=b"\0\0\1") + stream,
        "codes of 0 bits": delta_header(0, 4, 5, 2) + stream,
        "codes of 12 bits": delta_header(12, 8, 10, 2) + stream,
        "codes of 1032 bits": delta_header(1032, 4, 5, 2) + stream,
        "fewer items than before": delta_header(24, 4, 3, 2) + stream,
        "more items than there may be": delta_header(24, 4, 2**32, 2) + stream,
        "more changed rows than items": delta_header(24, 4, 5, 6) + stream,
        "made for old codes of another size": delta_header(24, 5, 5, 2) + stream,
        "larger than the reader is ready to store": delta_header(24, 4, 11, 2) + stream,
        "a changed row at the number of items": head + stored(beyond),
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


# ---- catalogues ----


def catalogue_header(kind, m, magic=b"LFRC", version=1, zeros=bytes(2)):
    return magic + bytes([version, kind]) + zeros + little([m], 8)


def order_of(keys):
    return little(sorted(range(len(keys)), key=lambda row: keys[row]), 4)


def integer_catalogue(ids):
    return catalogue_header(1, len(ids)) + little(ids, 8, signed=True) + order_of(ids)


def text_catalogue(texts, order=None, offsets=None):
    """`texts` are bytes, so that bad ones can be written."""
    ends = [sum(map(len, texts[:i])) for i in range(len(texts) + 1)]
    return (
        catalogue_header(2, len(texts)) + little(offsets or ends, 4) + (order or order_of(texts)) + b"".join(texts)
    )  # fmt: skip


INTEGERS = [7, -1, 300, 2**63 - 1, -(2**63), 0]
TEXTS = ["b", "é", "ab", "b b", "a", "日本", "e\u0301", "x" * 255]


def good_catalogues():
    texts = [text.encode() for text in TEXTS]
    return [
        {"name": "integers", "file": "catalogue_int.bin", "ids": [str(i) for i in INTEGERS], "missing": ["1", "-2"]},
        {"name": "strings", "file": "catalogue_str.bin", "ids": TEXTS, "missing": ["c", "ba"]},
    ], {"catalogue_int.bin": integer_catalogue(INTEGERS), "catalogue_str.bin": text_catalogue(texts)}


def bad_catalogues():
    """For 3 items. Some faults show when the file is opened, others when a look-up meets them."""
    good = integer_catalogue([7, -1, 300])
    text = text_catalogue([b"b", b"cc", b"a"])
    opened = {
        "nothing in it": b"",
        "cut in its header": good[:15],
        "another magic": catalogue_header(1, 3, magic=b"LFRD") + good[16:],
        "another format version": catalogue_header(1, 3, version=2) + good[16:],
        "an unknown kind of ids": catalogue_header(3, 3) + good[16:],
        "no zeros behind the kind": catalogue_header(1, 3, zeros=b"\1\0") + good[16:],
        "no items": catalogue_header(1, 0),
        "more items than there may be": catalogue_header(1, 2**32) + good[16:],
        "another number of items than the codes": integer_catalogue([7, -1]),
        "a byte missing": good[:-1],
        "a byte too many": good + b"\0",
        "text shorter than its offsets say": text[:-1],
        "text longer than its offsets say": text + b"a",
    }
    met = [
        ("an order with rows beyond the items", text_catalogue([b"b", b"c", b"a"], little([9] * 3, 4)), "row_of", "b"),
        ("an empty id", text_catalogue([b"b", b"", b"a"]), "id_of", 1),
        ("an id of 256 bytes", text_catalogue([b"b", b"x" * 256, b"a"]), "id_of", 1),
        ("offsets that go backwards", text_catalogue([b"b", b"cc", b"a"], offsets=[0, 3, 1, 4]), "id_of", 1),
        ("an offset beyond the text", text_catalogue([b"b", b"cc", b"a"], offsets=[0, 1, 99, 4]), "id_of", 1),
        ("an id that is no UTF-8", text_catalogue([b"b", b"\xc3\x28", b"a"]), "id_of", 1),
    ]  # fmt: skip
    refused = [{"name": name, "file": file, "at": "open"} for name, file in opened.items()]
    return refused + [{"name": name, "file": file, "at": at, "asked": asked} for name, file, at, asked in met]


# ---- manifests ----

CONTEXT = b"lightfr manifest v1\n"


def artifact(label, size):
    return message((1, hashlib.sha256(label.encode()).digest()), (2, size))


def model(code_bits=64, item_count=100):
    """RoundModel: objective CATALOGUE, kind TERNARY, 64 rows, mode SECAGG, with a mean user."""
    mean = little([k % 513 - 256 for k in range(0, 7 * code_bits, 7)], 2, signed=True)
    fields = [(1, code_bits), (2, item_count), (3, 1), (4, 1), (5, mean), (6, 64), (8, 2)]
    return message(*fields)


def prior(steps):
    """Prior, from (first row, popularity) pairs; one behind the other, packed."""
    return message((1, b"".join(varint(first) for first, _ in steps)), (2, b"".join(varint(p) for _, p in steps)))


def ranking(by=1, fourths=0, recency=1, refine=0):
    """Ranking: by codes, popularity or chance; recency off, weak or strong."""
    return message((1, by), (2, fourths), (3, recency), (4, refine))


STEPS = prior([(0, 1023), (5, 80), (6, 80), (99, 0)])
RANKINGS = [ranking(2, recency=0), ranking(1, 64, 2), ranking(1, 1024, 3, 1), ranking(1, 0, 0)]
CANDIDATES = [ranking(1, fourths, recency) for recency in (1, 2, 3) for fourths in (0, 8)] + [ranking(2), ranking(3)]


def said(steps=STEPS, rankings=RANKINGS, candidates=CANDIDATES):
    """What a manifest says about ranking."""
    told = [nested(11, one) for one in rankings] + [nested(12, one) for one in candidates]
    return nested(10, steps) + b"".join(told)


def ranking_faults():
    """The same manifest with one fault in what it says about ranking."""
    many = [(i, 64 - i) for i in range(65)]
    return {
        "a prior without steps": said(prior([])),
        "a prior of 65 steps": said(prior([(i, 0) for i, _ in many])),
        "a prior with fewer popularities than rows": said(message((1, b"\0\5"), (2, b"\x09"))),
        "a prior that does not begin at row 0": said(prior([(1, 5)])),
        "a prior that begins twice at a row": said(prior([(0, 5), (7, 4), (7, 3)])),
        "a prior that begins behind the last row": said(prior([(0, 5), (100, 4)])),
        "a prior that rises": said(prior([(0, 5), (7, 6)])),
        "a popularity above 1,023": said(prior([(0, 1024)])),
        "three rankings": said(rankings=RANKINGS[:3]),
        "five rankings": said(rankings=[*RANKINGS, ranking()]),
        "a ranking by chance": said(rankings=[*RANKINGS[:3], ranking(3)]),
        "a ranking by nothing": said(rankings=[*RANKINGS[:3], ranking(0)]),
        "a candidate by something unknown": said(candidates=[ranking(4)]),
        "a candidate of an unknown recency": said(candidates=[ranking(recency=4)]),
        "a prior above 1,024 fourths": said(candidates=[ranking(fourths=1025)]),
        "32 candidates": said(candidates=[ranking()] * 32),
    }


def manifest(wire=1, version=9, shape=None, codes=None, deltas=1, delta_digest=None, catalogue=None, open_rows=None):
    older = delta_digest or hashlib.sha256(b"older codes").digest()
    way = nested(6, message((1, older)) + nested(2, artifact("delta", 120)))
    return (
        message((1, wire), (2, version), (3, 1_800_000_000))
        + nested(4, shape or model())
        + nested(5, codes or artifact("codes", 800))
        + way * deltas
        + nested(7, catalogue or artifact("catalogue", 1216))
        + nested(8, open_rows or artifact("open rows", 13))
    )


BAD_ADDRESSES = {
    "not encrypted": "http://cache.example:8446",
    "without a port": "https://cache.example",
    "followed by a path": "https://cache.example:8446/",
    "in capitals": "https://Cache.example:8446",
    "without a host": "https://:8446",
}


def manifest_file():
    """One good manifest, and the same with one fault each."""
    key, other = (Ed25519PrivateKey.from_private_bytes(noise(f"manifest key {i}", 32)) for i in range(2))
    public = key.public_key().public_bytes_raw()
    key_id, good = hashlib.sha256(public).digest()[:8], manifest() + said()

    def signed(content, context=CONTEXT, by=key, name=key_id, signature=None):
        return message((1, content), (2, signature or by.sign(context + content)), (3, name))

    signature = key.sign(CONTEXT + good)
    short, large = message((1, bytes(31)), (2, 800)), message((1, bytes(32)), (2, 2**40 + 1))
    refused = {
        "one bit of the signature is wrong": signed(good, signature=bytes([signature[0] ^ 1]) + signature[1:]),
        "one bit of the manifest is wrong": signed(bytes([*good[:-1], good[-1] ^ 1]), signature=signature),
        "the context is not signed": signed(good, context=b""),
        "the context is that of rosters": signed(good, context=b"lightfr roster v1\n"),
        "the context lacks its newline": signed(good, context=CONTEXT[:-1]),
        "another key signed it": signed(good, by=other),
        "its key id is unknown": signed(good, name=bytes(8)),
        "its key id is missing": signed(good, name=b""),
        "its signature is missing": message((1, good), (3, key_id)),
        "no manifest in it": message((2, key.sign(CONTEXT)), (3, key_id)),
        "the manifest does not parse": signed(b"\xff\xff"),
        "the envelope does not parse": b"\x0a\xff",
        "wire version 2": signed(manifest(wire=2)),
        "model version 0": signed(manifest(version=0)),
        "codes of 12 bits": signed(manifest(shape=model(12, 100), codes=artifact("codes", 150))),
        "codes of 0 bits": signed(manifest(shape=model(0, 100))),
        "no items": signed(manifest(shape=model(64, 0))),
        "codes of another size than the model's": signed(manifest(codes=artifact("codes", 801))),
        "open rows of another size than the model's": signed(manifest(open_rows=artifact("open rows", 12))),
        **{
            f"the address of artifacts is {name}": signed(manifest() + message((9, address.encode())))
            for name, address in BAD_ADDRESSES.items()
        },
        **{name: signed(manifest() + told) for name, told in ranking_faults().items()},
        "17 deltas": signed(manifest(deltas=17)),
        "a digest of 31 bytes": signed(manifest(catalogue=short)),
        "a delta from a digest of 33 bytes": signed(manifest(delta_digest=bytes(33))),
        "an artifact above 2^40 bytes": signed(manifest(catalogue=large)),
    }
    return {
        "private_key": noise("manifest key 0", 32),
        "public_key": public,
        "key_id": key_id,
        "context": CONTEXT,
        "manifest": good,
        "manifest_sha256": hashlib.sha256(good).digest(),
        "signature": signature,
        "signed_manifest": signed(good),
        "also_good": {"it says nothing about ranking": signed(manifest())},
        "refused": [{"name": name, "signed_manifest": content} for name, content in refused.items()],
    }


def vectors():
    catalogues, files = good_catalogues()
    manifests = manifest_file()
    return {
        "deltas.json": {"good": good_deltas(), "far_apart": far_apart(), "bad": bad_deltas()},
        "delta.bin": DOCUMENTED,
        "catalogue.json": {"good": catalogues, "item_count": 3, "refused": bad_catalogues()},
        **files,
        "manifest.json": manifests,
        "manifest.bin": manifests["signed_manifest"],
    }
