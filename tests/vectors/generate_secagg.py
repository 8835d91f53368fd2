"""Writes what secure aggregation is made of: keys, seals, shares, masks. From docs/secagg.md alone.

Slow and plain on purpose: Python integers and the primitives of `cryptography`, nothing of lightfr.
"""

from math import prod

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tests.vectors.plain import chosen, noise

P = 2**256 + 297


class Tape:
    """A random source that can be replayed: it remembers what it gave."""

    def __init__(self, label):
        self.label, self.given = label, b""

    def __call__(self, n):
        self.given = noise(self.label, len(self.given) + n)
        return self.given[-n:]


def hkdf(secret, salt, info):
    return HKDF(algorithm=hashes.SHA256(), length=32, salt=salt or None, info=info).derive(secret)


def public(private):
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def agreed(private, peer_public):
    return X25519PrivateKey.from_private_bytes(private).exchange(X25519PublicKey.from_public_bytes(peer_public))


def pair_key(shared, round_id, a, b):
    return hkdf(shared, round_id, b"lightfr pair mask v1" + min(a, b) + max(a, b))


def self_key(seed, round_id, own):
    return hkdf(seed, round_id, b"lightfr self mask v1" + own)


def sealing_key(shared, round_id, digest, sender, receiver):
    return hkdf(shared, b"", b"lightfr share v1" + round_id + digest + sender + receiver)


def mask_numbers(key, blocks):
    """The mask of each block as a list of numbers, from one key stream."""
    total = sum(count * (2 if bits <= 16 else 4) for _, count, bits in blocks)
    stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update(bytes(total))
    masks = []
    for _, count, bits in blocks:
        size = 2 if bits <= 16 else 4
        masks.append([int.from_bytes(stream[i * size : (i + 1) * size], "little") for i in range(count)])
        stream = stream[count * size :]
    return masks


def packed(vector, blocks):
    """Each block as one large number, whose bits are those of its values."""
    out = b""
    for values, (_, count, bits) in zip(vector, blocks, strict=True):
        number = sum((value % 2**bits) << (i * bits) for i, value in enumerate(values))
        out += number.to_bytes((count * bits + 7) // 8, "little")
    return out


def field_element(random):
    while True:
        element = int.from_bytes(random(33), "little") % 2**257
        if element < P:
            return element


def split(secret, holders, threshold, random):
    coefficients = [int.from_bytes(secret, "little")] + [field_element(random) for _ in range(threshold - 1)]
    return [sum(c * x**power for power, c in enumerate(coefficients)) % P for x in holders]


def share_bytes(share):
    return share.to_bytes(33, "little")


def key_cases():
    """RFC 5869, test case 1 (its output begins with these 32 bytes), then the three derivations."""
    rfc = {
        "secret": b"\x0b" * 22,
        "salt": bytes(range(13)),
        "info": bytes(range(0xF0, 0xFA)),
        "key": bytes.fromhex("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"),
    }
    round_id, one, other, digest = (noise(f"keys {i}", n) for i, n in enumerate((16, 16, 16, 32)))
    a, b = noise("private a", 32), noise("private b", 32)
    shared = agreed(a, public(b))
    return {
        "hkdf": rfc,
        "private_key": a,
        "public_key": public(a),
        "peer_key": public(b),
        "shared": shared,
        "round_id": round_id,
        "roster_digest": digest,
        "peer_ids": [one, other],
        "pair_mask_key": pair_key(shared, round_id, one, other),
        "self_mask_seed": a,
        "self_mask_key": self_key(a, round_id, one),
        "share_key_one_to_other": sealing_key(shared, round_id, digest, one, other),
        "share_key_other_to_one": sealing_key(shared, round_id, digest, other, one),
    }


def sealing_case():
    key, nonce, plain = noise("seal key", 32), noise("seal nonce", 12), noise("seal plain", 66)
    return {"key": key, "nonce": nonce, "plain": plain, "sealed": nonce + AESGCM(key).encrypt(nonce, plain, None)}


def shamir_cases():
    cases = []
    for number, (threshold, holders) in enumerate([(1, [1]), (2, [1, 2, 3]), (3, [2, 5, 8192, 7]), (33, range(1, 65))]):
        secret = b"\xff" * 32 if number == 1 else noise(f"secret {number}", 32)
        tape = Tape(f"coefficients {number}")
        shares = split(secret, list(holders), threshold, tape)
        case = {"secret": secret, "threshold": threshold, "holders": list(holders), "random": tape.given}
        cases.append({**case, "shares": [share_bytes(s) for s in shares]})
    return cases


BLOCKS = [["rows", 21, 4], ["counts", 5, 16], ["products", 7, 17], ["weight", 1, 32]]


def mask_case():
    """Values at the ends of their ranges, a mask added and subtracted, all of it packed."""
    key = noise("mask key", 32)
    vector = [
        [
            noise(f"value {name}", count)[i] % 3 - 1 if bits < 16 else (-1) ** i * (2 ** (bits - 1) - 1)
            for i in range(count)
        ]
        for name, count, bits in BLOCKS
    ]
    masks = mask_numbers(key, BLOCKS)
    plus = [[v + m for v, m in zip(vs, ms, strict=True)] for vs, ms in zip(vector, masks, strict=True)]
    minus = [[v - m for v, m in zip(vs, ms, strict=True)] for vs, ms in zip(vector, masks, strict=True)]
    return {
        "blocks": BLOCKS,
        "key": key,
        "vector": vector,
        "mask": masks,
        "packed_plain": packed(vector, BLOCKS),
        "packed_plus": packed(plus, BLOCKS),
        "packed_minus": packed(minus, BLOCKS),
    }


def make_agree(points, values, threshold, places):
    """Choose the false values at two places so that the first and the last `threshold` give the same wrong secret."""

    def weight(part, x):
        others = [other for other in part if other != x]
        return prod(others) * pow(prod(other - x for other in others), -1, P) % P

    parts, two = (points[:threshold], points[-threshold:]), [points[place] for place in places]
    by_x = dict(zip(points, values, strict=True))
    rest = [sum(weight(part, x) * by_x[x] for x in part if x not in two) for part in parts]
    (a, b), (c, d) = [[weight(part, x) for x in two] for part in parts]
    # Two equations in two unknowns: both parts give 7.
    e, f = [7 - r for r in rest]
    inverse = pow(a * d - b * c, -1, P)
    for place, value in zip(places, ((e * d - f * b) * inverse % P, (a * f - c * e) * inverse % P), strict=True):
        values[place] = value


def correction_case(name, threshold, n, wrong=(), *, secret=None, agreeing=False, is_found=True):
    """Shares in the order in which they came; those at the places `wrong` are false. `false` has their x."""
    label = f"correction {name}"
    points = chosen(label, range(1, 200), n)[::-1]
    constant = int.from_bytes(noise(label, 32), "little") if secret is None else secret
    tape = Tape(f"{label} coefficients")
    coefficients = [constant] + [field_element(tape) for _ in range(threshold - 1)]
    values = [sum(c * x**power for power, c in enumerate(coefficients)) % P for x in points]
    for place in wrong:
        values[place] = field_element(Tape(f"{label} {place}"))
    if agreeing:
        make_agree(points, values, threshold, wrong)
    return {
        "name": name,
        "threshold": threshold,
        "holders": points,
        "shares": [share_bytes(value) for value in values],
        "secret": constant.to_bytes(32, "little") if is_found else b"",
        "false": sorted(points[place] for place in wrong) if is_found else [],
    }


def correction_cases():
    return [
        correction_case("all shares are true", 3, 5),
        correction_case("exactly as many as are needed", 7, 7),
        correction_case("one more than needed", 3, 4),
        correction_case("the first is false", 3, 5, [0]),
        correction_case("the last is false", 3, 5, [4]),
        correction_case("one in the middle is false", 3, 5, [2]),
        correction_case("as many false as can be corrected", 3, 8, [0, 7]),
        correction_case("one share is enough, and the first is false", 1, 3, [0]),
        correction_case("a usual cohort with 21 false shares", 39, 81, range(0, 42, 2)),
        correction_case("one that neither the first nor the last have", 39, 81, [40]),
        correction_case("two that make the first and the last agree on another secret", 6, 10, [4, 5], agreeing=True),
        correction_case("one share too many is false", 3, 5, [0, 4], is_found=False),
        correction_case("one of just one more than needed is false", 3, 4, [3], is_found=False),
        correction_case("22 of a usual cohort are false", 39, 81, range(0, 44, 2), is_found=False),
        correction_case("too few shares", 5, 4, is_found=False),
        correction_case("the secret has 257 bits", 3, 5, secret=2**256 + 5, is_found=False),
    ]


def vectors():
    """File name to content."""
    return {
        "secagg_keys.json": key_cases(),
        "secagg_sealing.json": sealing_case(),
        "secagg_shamir.json": shamir_cases(),
        "secagg_correction.json": correction_cases(),
        "secagg_mask.json": mask_case(),
    }
