"""Writes v1/secagg_*.json: known answers of secure aggregation, from docs/secagg.md alone.

Slow and plain on purpose: Python integers and the primitives of `cryptography`, nothing of lightfr.
"""

import hashlib

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tests.vectors.plain import noise

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


def roster_digest(round_id, degree, threshold, entries):
    numbers = [len(entries), degree, threshold]
    return hashlib.sha256(round_id + b"".join(n.to_bytes(4, "little") for n in numbers) + b"".join(entries)).digest()


def ring(digest, n):
    return sorted(range(n), key=lambda i: hashlib.sha256(digest + i.to_bytes(4, "little")).digest())


def bitmap(indices, n):
    bits = ["1" if i in indices else "0" for i in range((n + 7) // 8 * 8)]
    return bytes(int("".join(reversed(bits[at : at + 8])), 2) for at in range(0, len(bits), 8))


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


def roster_case(n, degree):
    """A roster of n devices; neighbours of the first and last entry by walking the ring."""
    entries = sorted(noise(f"entry {n} {i}", 80) for i in range(n))
    round_id, threshold = noise(f"round {n}", 16), (degree + 1) // 2 + 1
    digest = roster_digest(round_id, degree, threshold, entries)
    order = ring(digest, n)
    steps = [s for s in range(-(degree // 2), degree // 2 + 1) if s] if degree < n - 1 else range(1, n)
    near = {str(i): sorted(order[(order.index(i) + s) % n] for s in steps) for i in (0, n - 1)}
    case = {"round_id": round_id, "degree": degree, "threshold": threshold, "entries": b"".join(entries)}
    return {**case, "digest": digest, "ring": order, "neighbours": near}


class RoundDevice:
    """One device of the whole round, step by step as docs/secagg.md says."""

    def __init__(self, number, round_id):
        self.tape, self.round_id = Tape(f"device {number}"), round_id
        self.peer_id = noise(f"peer {number}", 16)
        self.mask_private, self.share_private, self.seed = self.tape(32), self.tape(32), self.tape(32)
        self.entry = self.peer_id + public(self.mask_private) + public(self.share_private)

    def share(self, devices, digest, threshold):
        own = devices.index(self)
        others = [i for i in range(len(devices)) if i != own]
        seeds = split(self.seed, [i + 1 for i in [own, *others]], threshold, self.tape)
        keys = split(self.mask_private, [i + 1 for i in others], threshold, self.tape)
        self.seed_shares = dict(zip([own, *others], map(share_bytes, seeds), strict=True))
        self.key_shares = dict(zip(others, map(share_bytes, keys), strict=True))
        self.sealed = {}
        for i in others:
            shared = agreed(self.share_private, public(devices[i].share_private))
            key = sealing_key(shared, self.round_id, digest, self.peer_id, devices[i].peer_id)
            nonce = self.tape(12)
            self.sealed[i] = nonce + AESGCM(key).encrypt(nonce, self.seed_shares[i] + self.key_shares[i], None)

    def upload(self, devices, blocks):
        total = [list(values) for values in self.vector]
        masks = [(1, self_key(self.seed, self.round_id, self.peer_id))]
        for peer in devices:
            if peer is not self:
                shared = agreed(self.mask_private, public(peer.mask_private))
                sign = 1 if self.peer_id < peer.peer_id else -1
                masks.append((sign, pair_key(shared, self.round_id, self.peer_id, peer.peer_id)))
        for sign, key in masks:
            for values, mask in zip(total, mask_numbers(key, blocks), strict=True):
                values[:] = [v + sign * m for v, m in zip(values, mask, strict=True)]
        return packed(total, blocks)


N, THRESHOLD, ROUND_ID = 5, 3, noise("whole round", 16)
ROUND_BLOCKS = [["rows", 2 * 8, 4], ["products", 28, 10], ["user_sum", 8, 10], ["weight", 1, 10]]


def cohort():
    """Five devices that have shared, and the digest of their roster."""
    devices = sorted((RoundDevice(i, ROUND_ID) for i in range(N)), key=lambda device: device.peer_id)
    digest = roster_digest(ROUND_ID, N - 1, THRESHOLD, [d.entry for d in devices])
    for number, device in enumerate(devices):
        device.share(devices, digest, THRESHOLD)
        bits = [1 if byte & 1 else -1 for byte in noise(f"code {number}", 8)]
        rows = [byte % 3 - 1 for byte in noise(f"rows {number}", 16)]
        products = [64 * bits[j] * bits[k] for j in range(8) for k in range(j + 1, 8)]
        device.vector = [rows, products, [64 * bit for bit in bits], [64]]
    return devices, digest


def whole_round():
    """Five devices: one drops before the upload, another after it, and the sum of the other four comes out."""
    n, threshold, round_id, blocks = N, THRESHOLD, ROUND_ID, ROUND_BLOCKS
    server = Ed25519PrivateKey.from_private_bytes(noise("server", 32))
    devices, digest = cohort()
    dropped, silent, everyone = 1, 3, range(n)
    alive = [i for i in everyone if i != dropped]
    included, survivors = bitmap(everyone, n), bitmap(alive, n)
    told = b"lightfr survivors v1\n" + digest + included + survivors
    revealing = [i for i in alive if i != silent]
    return {
        "blocks": blocks,
        "round_id": round_id,
        "server_private_key": noise("server", 32),
        "server_key": server.public_key().public_bytes_raw(),
        "degree": n - 1,
        "threshold": threshold,
        "entries": b"".join(d.entry for d in devices),
        "roster_digest": digest,
        "roster_signature": server.sign(b"lightfr roster v1\n" + digest),
        "included": included,
        "survivors": survivors,
        "survivors_signature": server.sign(told),
        "devices": [
            {
                "peer_id": device.peer_id,
                "random": device.tape.given,
                "vector": device.vector,
                "sealed": {str(i): sealed for i, sealed in device.sealed.items()},
                "upload": device.upload(devices, blocks) if i in alive else b"",
                "self_masks": self_masks(devices, alive, i) if i in revealing else b"",
                "mask_keys": devices[dropped].peer_id + devices[dropped].key_shares[i] if i in revealing else b"",
            }
            for i, device in enumerate(devices)
        ],
        "sum": [[sum(v) for v in zip(*(devices[i].vector[b] for i in alive), strict=True)] for b in range(len(blocks))],
    }


def self_masks(devices, alive, holder):
    return b"".join(devices[i].peer_id + devices[i].seed_shares[holder] for i in alive)


def vectors():
    """File name to content."""
    return {
        "secagg_keys.json": key_cases(),
        "secagg_sealing.json": sealing_case(),
        "secagg_shamir.json": shamir_cases(),
        "secagg_mask.json": mask_case(),
        "secagg_roster.json": [roster_case(3, 2), roster_case(66, 64), roster_case(70, 64)],
        "secagg_round.json": whole_round(),
    }
