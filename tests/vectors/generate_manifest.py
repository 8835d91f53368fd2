"""Writes manifests, good and bad, from proto/lightfr/v1/manifest.proto."""

import hashlib

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.vectors.plain import little, message, nested, noise, varint

CONTEXT = b"lightfr manifest v1\n"


def artifact(label, size):
    return message((1, hashlib.sha256(label.encode()).digest()), (2, size))


def model(code_bits=64, item_count=100):
    """RoundModel: objective CATALOGUE, kind TERNARY, 64 rows, mode SECAGG, with a mean user."""
    mean = little([k % 513 - 256 for k in range(0, 7 * code_bits, 7)], 2, signed=True)
    fields = [(1, code_bits), (2, item_count), (3, 1), (4, 1), (5, mean), (6, 64), (8, 2)]
    return message(*fields)


def prior(steps):
    """Prior, from (first item, popularity) pairs; one behind the other, packed."""
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
        "a prior with fewer popularities than items": said(message((1, b"\0\5"), (2, b"\x09"))),
        "a prior that does not begin at item 0": said(prior([(1, 5)])),
        "a prior that begins twice at an item": said(prior([(0, 5), (7, 4), (7, 3)])),
        "a prior that begins behind the last item": said(prior([(0, 5), (100, 4)])),
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


def manifest(
    wire=1, version=9, shape=None, codes=None, deltas=1, delta_digest=None, parts=None, bitmaps=None, told=b""
):
    """Of 100 items 17 are open: their rows and the one of all others have 144 bytes."""
    older = delta_digest or hashlib.sha256(b"older codes").digest()
    way = nested(6, message((1, older)) + nested(2, artifact("delta", 120)))
    parts = [artifact("catalogue", 500), artifact("its second part", 90)] if parts is None else parts
    bitmaps = {8: artifact("open rows", 15), 13: artifact("removed items", 12)} if bitmaps is None else bitmaps
    open_rows, removed = (nested(tag, bitmaps[tag]) if tag in bitmaps else b"" for tag in (8, 13))
    return (
        message((1, wire), (2, version), (3, 1_800_000_000))
        + nested(4, shape or model())
        + nested(5, codes or artifact("codes", 144))
        + way * deltas
        + b"".join(nested(7, part) for part in parts)
        + open_rows
        + told
        + removed
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
    key_id, good = hashlib.sha256(public).digest()[:8], manifest(told=said())

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
        "codes that are no whole rows": signed(manifest(codes=artifact("codes", 145))),
        "codes without a row": signed(manifest(codes=artifact("codes", 0))),
        "codes with two rows more than items": signed(manifest(codes=artifact("codes", 816))),
        "codes of another size than the model's, and no open rows": signed(manifest(bitmaps={})),
        "no part of a catalogue": signed(manifest(parts=[])),
        "17 parts of a catalogue": signed(manifest(parts=[artifact("catalogue", 60)] * 17)),
        **{
            f"the address of artifacts is {name}": signed(manifest(told=message((9, address.encode()))))
            for name, address in BAD_ADDRESSES.items()
        },
        **{name: signed(manifest(told=told)) for name, told in ranking_faults().items()},
        "17 deltas": signed(manifest(deltas=17)),
        "a digest of 31 bytes": signed(manifest(parts=[short])),
        "a delta from a digest of 33 bytes": signed(manifest(delta_digest=bytes(33))),
        "an artifact above 2^40 bytes": signed(manifest(parts=[large])),
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
        "also_good": {
            "it says nothing about ranking": signed(manifest()),
            "every item is open": signed(manifest(codes=artifact("codes", 800), bitmaps={})),
            "every item is open, as a bitmap says": signed(manifest(codes=artifact("codes", 808))),
            "16 parts of a catalogue": signed(manifest(parts=[artifact("catalogue", 60)] * 16)),
        },
        "refused": [{"name": name, "signed_manifest": content} for name, content in refused.items()],
    }


def vectors():
    manifests = manifest_file()
    return {"manifest.json": manifests, "manifest.bin": manifests["signed_manifest"]}
