"""Writes v1/enrollment.json: signing requests (PKCS #10, RFC 2986) that a server accepts or refuses.

Curves, signatures and DER are written out with integers, so that nothing is random: a library would draw a new nonce
for each signature. The nonces come of labels, as everything here does: these keys are good for tests alone.
"""

import hashlib

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.vectors.generate_refusals import reason
from tests.vectors.plain import message, noise, number

# p, the order n, and the base point; a is p - 3 in both (SEC 2).
P256 = (
    2**256 - 2**224 + 2**192 + 2**96 - 1,
    0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551,
    (
        0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
        0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
    ),
    "1.2.840.10045.3.1.7",
)
P384 = (
    2**384 - 2**128 - 2**96 + 2**32 - 1,
    0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFC7634D81F4372DDF581A0DB248B0A77AECEC196ACCC52973,
    (
        0xAA87CA22BE8B05378EB1C71EF320AD746E1D3B628BA79B9859F741E082542A385502F25DBF55296C3A545E3872760AB7,
        0x3617DE4A96262C6F5D9E98BF9292DC29F8F41DBD289A147CE9DA3113B5F0B8C00A60B1CE1D7E819D7A431D7C90EA0E5F,
    ),
    "1.3.132.0.34",
)


def added(curve, a, b):
    """The sum of two points; None is the point at infinity."""
    p = curve[0]
    if a is None or b is None:
        return a or b
    if a[0] == b[0] and (a[1] + b[1]) % p == 0:
        return None
    rise, run = (3 * a[0] * a[0] - 3, 2 * a[1]) if a == b else (b[1] - a[1], b[0] - a[0])
    slope = rise * pow(run, -1, p) % p
    x = (slope * slope - a[0] - b[0]) % p
    return x, (slope * (a[0] - x) - a[1]) % p


def times(curve, k, point):
    total = None
    while k:
        if k & 1:
            total = added(curve, total, point)
        point, k = added(curve, point, point), k >> 1
    return total


class EcKey:
    """A private key of a curve, from a label."""

    algorithm = "1.2.840.10045.4.3.2"  # ECDSA with SHA-256

    def __init__(self, label, curve=P256):
        self.label, self.curve = label, curve
        self.private = 1 + number(f"{label} {curve[3]}", curve[1] - 1)
        self.point = times(curve, self.private, curve[2])

    def encoded_point(self):
        size = (self.curve[0].bit_length() + 7) // 8
        return b"\x04" + self.point[0].to_bytes(size, "big") + self.point[1].to_bytes(size, "big")

    def public_info(self):
        kind = sequence(oid("1.2.840.10045.2.1"), oid(self.curve[3]))
        return sequence(kind, bit_string(self.encoded_point()))

    def sign(self, content):
        n = self.curve[1]
        digest = int.from_bytes(hashlib.sha256(content).digest(), "big")
        nonce = 1 + number(f"{self.label} nonce {digest}", n - 1)
        r = times(self.curve, nonce, self.curve[2])[0] % n
        s = pow(nonce, -1, n) * (digest + r * self.private) % n
        return sequence(integer(r), integer(s))

    def algorithm_info(self):
        return sequence(oid(self.algorithm))


class RsaKey(EcKey):
    """1,024 bits: enough to be refused for what it is."""

    algorithm = "1.2.840.113549.1.1.11"  # SHA-256 with RSA

    def __init__(self, label):
        p, q = (next_prime(noise(f"{label} {i}", 64)) for i in range(2))
        self.modulus, self.private = p * q, pow(65537, -1, (p - 1) * (q - 1))

    def public_info(self):
        key = sequence(integer(self.modulus), integer(65537))
        return sequence(sequence(oid("1.2.840.113549.1.1.1"), NULL), bit_string(key))

    def sign(self, content):
        info = sequence(sequence(oid("2.16.840.1.101.3.4.2.1"), NULL), tlv(4, hashlib.sha256(content).digest()))
        padded = b"\0\1" + b"\xff" * (125 - len(info)) + b"\0" + info
        return pow(int.from_bytes(padded, "big"), self.private, self.modulus).to_bytes(128, "big")

    def algorithm_info(self):
        return sequence(oid(self.algorithm), NULL)


class Ed25519Key(EcKey):
    """A key that signs, but of another kind."""

    algorithm = "1.3.101.112"

    def __init__(self, label):
        self.key = Ed25519PrivateKey.from_private_bytes(noise(label, 32))
        self.sign = self.key.sign
        self.public = self.key.public_key().public_bytes_raw()

    def public_info(self):
        return sequence(self.algorithm_info(), bit_string(self.public))


def next_prime(content):
    """The first probable prime from there on, with both high bits set."""
    candidate = int.from_bytes(content, "big") | 3 << 510 | 1
    while not all(is_witness(candidate, base) for base in (2, 3, 5, 7, 11, 13)):
        candidate += 2
    return candidate


def is_witness(candidate, base):
    """Miller and Rabin: whether the base speaks for the candidate being prime."""
    odd, twos = candidate - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    x = pow(base, odd, candidate)
    return x in (1, candidate - 1) or any(pow(x, 2**i, candidate) == candidate - 1 for i in range(1, twos))


# ---- DER ----


def tlv(tag, content):
    if len(content) < 128:
        return bytes([tag, len(content)]) + content
    size = len(content).to_bytes((len(content).bit_length() + 7) // 8, "big")
    return bytes([tag, 128 | len(size)]) + size + content


def sequence(*parts):
    return tlv(0x30, b"".join(parts))


def integer(value):
    return tlv(2, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def bit_string(content):
    return tlv(3, b"\0" + content)


def oid(dotted):
    first, second, *rest = map(int, dotted.split("."))
    out = b""
    for arc in (40 * first + second, *rest):
        digits = [arc & 127]
        while arc := arc >> 7:
            digits.insert(0, arc & 127 | 128)
        out += bytes(digits)
    return tlv(6, out)


NULL = tlv(5, b"")


def common_name(text):
    return sequence(tlv(0x31, sequence(oid("2.5.4.3"), tlv(12, text.encode()))))


def signing_request(key, subject="a subject that is ignored", *, signer=None, public_info=None, said=None):
    """A PKCS #10 request. `said`: another subject than the one that was signed."""
    info = [integer(0), common_name(subject), public_info or key.public_info(), tlv(0xA0, b"")]
    signature = (signer or key).sign(sequence(*info))
    info[1] = common_name(said) if said else info[1]
    return sequence(sequence(*info), key.algorithm_info(), bit_string(signature))


def off_curve(key):
    point = bytearray(key.encoded_point())
    point[-1] ^= 1
    return sequence(sequence(oid("1.2.840.10045.2.1"), oid(P256[3])), bit_string(bytes(point)))


def refused_requests(good, key):
    return {
        "no bytes": b"",
        "no DER": b"not a signing request",
        "cut short": good[:-1],
        "a byte behind it": good + b"\0",
        "its signature is wrong": good[:-1] + bytes([good[-1] ^ 1]),
        "another key signed it": signing_request(key, signer=EcKey("another")),
        "its subject was changed afterwards": signing_request(key, said="another subject, put in later"),
        "a key of P-384": signing_request(EcKey("larger", P384)),
        "an RSA key": signing_request(RsaKey("rsa")),
        "an Ed25519 key": signing_request(Ed25519Key("edwards")),
        "a point that is not on the curve": signing_request(key, public_info=off_curve(key)),
        "more than 4,096 bytes": signing_request(key, "x" * 3900),
    }


def enroll(token, signing_request, member_key):
    return message((1, token), (2, signing_request), (3, member_key))


def vectors():
    key, token = EcKey("device"), b"0123456789abcdef"
    good, member_key = signing_request(key), Ed25519Key("enrolled member").public
    signing_requests = refused_requests(good, key)
    member_keys = {
        "a member key of 31 bytes": member_key[1:],
        "a member key of 33 bytes": member_key + b"\0",
        "no member key": b"",
    }
    tokens = {
        "a token of 15 characters": (token[:-1], "MALFORMED"),
        "a token of 129 characters": (b"t" * 129, "MALFORMED"),
        "a token that is not ASCII": ("é".encode() * 16, "MALFORMED"),
        "no token": (b"", "MALFORMED"),
        "a token that nobody gave out": (b"fedcba9876543210", "TOKEN"),
    }
    requests = {name: (enroll(token, content, member_key), "MALFORMED") for name, content in signing_requests.items()}
    requests |= {name: (enroll(token, good, content), "MALFORMED") for name, content in member_keys.items()}
    requests |= {name: (enroll(said, good, member_key), why) for name, (said, why) in tokens.items()}
    return {
        "enrollment.json": {
            "token": token.decode(),
            "good": {
                "signing_request": good,
                "public_key": key.encoded_point(),
                "member_key": member_key,
                "request": enroll(token, good, member_key),
            },
            "also_good": {"an empty subject": signing_request(key, "")},
            "refused": [
                {"name": n, "request": content, "reason": reason(why)} for n, (content, why) in requests.items()
            ],
        }
    }
