"""What the generators share: inputs that depend on a label alone, bits, a small protobuf writer. Nothing of lightfr."""

import hashlib
import json
import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "vectors" / "v1"


def noise(label, n):
    """n bytes that depend on the label alone."""
    blocks = (hashlib.sha256(f"{label} {at}".encode()).digest() for at in range(0, n, 32))
    return b"".join(blocks)[:n]


def number(label, below):
    """A number from 0 that depends on the label alone."""
    return int.from_bytes(noise(label, 16), "little") % below


def chosen(label, population, n):
    """n of them, ascending."""
    return sorted(sorted(population, key=lambda x: noise(f"{label} {x}", 16))[:n])


def signs(code):
    """Bytes to signs: bit k is bit (k mod 8) of byte (k div 8), a set bit is +1."""
    return [1 if byte >> k & 1 else -1 for byte in code for k in range(8)]


def rows_of(codes, code_bits):
    """A packed matrix as rows of signs."""
    size = code_bits // 8
    return [signs(codes[at : at + size]) for at in range(0, len(codes), size)]


def packed(values):
    """Signs to bytes; whatever is not positive is a clear bit."""
    return bytes(sum((values[at + k] > 0) << k for k in range(8)) for at in range(0, len(values), 8))


def packed_rows(rows):
    return b"".join(packed(row) for row in rows)


def little(values, size, *, signed=False):
    """Numbers one behind the other, little-endian."""
    return b"".join(value.to_bytes(size, "little", signed=signed) for value in values)


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def sign(value, old):
    """Zero keeps the old bit."""
    return old if value == 0 else 1 if value > 0 else -1


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(tag, value):
    """One protobuf field: a varint, or bytes with their length. As in proto3, zero and empty are left out."""
    if isinstance(value, int):
        return varint(tag << 3) + varint(value) if value else b""
    return varint(tag << 3 | 2) + varint(len(value)) + value if value else b""


def message(*fields):
    """Fields by tag, from (tag, value) pairs."""
    return b"".join(field(tag, value) for tag, value in fields)


def nested(tag, content):
    """A message as a field: unlike bytes it is written when it is empty, for being there says something."""
    return varint(tag << 3 | 2) + varint(len(content)) + content


def as_text(content):
    """JSON with bytes as hexadecimal digits, and a list of numbers in one line."""
    text = json.dumps(content, indent=1, default=bytes.hex)
    return re.sub(r"\[[-\d,\s]+\]", lambda numbers: re.sub(r"\s+", " ", numbers[0]), text) + "\n"
