"""Messages spoiled in every way we know, from valid ones. A mutation depends on the seed alone."""

import random
from functools import lru_cache

from google.protobuf.descriptor import FieldDescriptor as Field

LEN, START_GROUP = 2, 3
BOUNDARIES = (0, 1, 7, 8, 9, 127, 128, 255, 256, 1023, 1024, 1025, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1)
WIDE = (2**32, 2**40, 2**40 + 1, 2**53, 2**63 - 1, 2**63, 2**64 - 1)
LENGTHS = (0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1000, 4096, 4097)
TEXTS = ("", "x", "a" * 15, "a" * 16, "a" * 128, "a" * 129, "\0" * 16, "ä" * 16, "\U0001f600" * 8, "{}", "%s" * 8)
DEPTHS = (2, 50, 99, 100, 101, 1000)


# A campaign meets few sizes and few valid messages, each of them many times.
@lru_cache(1 << 14)
def varint(value):
    """The shortest encoding of a number."""
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    return bytes((*encoded, value))


def read_varint(message, at):
    """(value, where it ends); raises IndexError where the message ends first."""
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128 or shift > 63:
            return value, at


@lru_cache(512)
def split_fields(message):
    """The encoded fields, one after the other; whatever is no field is the last part."""
    parts, at = [], 0
    while at < len(message):
        try:
            end = _field_end(message, at)
        except IndexError:
            end = len(message)
        parts.append(message[at:end])
        at = end
    return tuple(parts)


def _field_end(message, at):
    tag, at = read_varint(message, at)
    if tag & 7 == 0:
        return read_varint(message, at)[1]
    if tag & 7 == LEN:
        size, at = read_varint(message, at)
        return at + size
    return at + {1: 8, 5: 4}.get(tag & 7, 0)


class Mutator:
    """Spoils messages; reseeded for each, so that every one can be made again by itself."""

    def __init__(self, limit_bytes):
        self.random = random.Random()
        self._limit_bytes = limit_bytes
        self._of_bytes = (
            self._flip, self._set_byte, self._truncate, self._cut, self._repeat, self._insert, self._splice,
            self._noise, self._field_twice, self._drop_field, self._move_field, self._wrong_length, self._huge_varint,
            self._nest, self._groups, self._inside,
        )  # fmt: skip

    def mutate(self, seed, message, kind=None, other=b""):
        """Spoil a message of a kind (None: not of protobuf); `other` lends parts."""
        self.random.seed(seed)
        self._other = other or message
        if kind is not None and self.random.random() < 0.4:
            message = self._through_class(kind, message)
            if self.random.random() < 0.7:
                return message[: self._limit_bytes]
        for _ in range(self.random.choice((1, 1, 1, 2, 3))):
            message = self.random.choice(self._of_bytes)(message)
        return message[: self._limit_bytes]

    # Of bytes.

    def _place(self, message):
        return self.random.randrange(len(message) + 1)

    def _slice(self, message):
        return sorted((self._place(message), self._place(message)))

    def _flip(self, message):
        changed = bytearray(message)
        for _ in range(self.random.choice((1, 1, 2, 8)) if changed else 0):
            changed[self.random.randrange(len(changed))] ^= 1 << self.random.randrange(8)
        return bytes(changed)

    def _set_byte(self, message):
        at = self._place(message)
        return message[:at] + self.random.choice((b"\0", b"\1", b"\x7f", b"\x80", b"\xff", b"\n")) + message[at + 1 :]

    def _truncate(self, message):
        return message[: self._place(message)]

    def _cut(self, message):
        start, stop = self._slice(message)
        return message[:start] + message[stop:]

    def _repeat(self, message):
        start, stop = self._slice(message)
        return message[:stop] + message[start:stop] * self.random.choice((1, 2, 16)) + message[stop:]

    def _insert(self, message):
        at = self._place(message)
        return message[:at] + self.random.randbytes(self.random.choice((1, 2, 4, 64))) + message[at:]

    def _splice(self, message):
        return message[: self._place(message)] + self._other[self._place(self._other) :]

    def _noise(self, message):
        return self.random.randbytes(self.random.choice((0, 1, 2, 16, 64, 300)))

    # Of encoded fields.

    def _fields(self, message):
        parts = list(split_fields(message)) or [b""]
        return parts, self.random.randrange(len(parts))

    def _field_twice(self, message):
        parts, at = self._fields(message)
        parts.insert(self._place(parts), parts[at])
        return b"".join(parts)

    def _drop_field(self, message):
        parts, at = self._fields(message)
        del parts[at]
        return b"".join(parts)

    def _move_field(self, message):
        parts, at = self._fields(message)
        parts.insert(self._place(parts), parts.pop(at))
        return b"".join(parts)

    def _wrong_length(self, message):
        def changed(tag, content):
            size = varint(self.random.choice((0, len(content) + 1, max(len(content) - 1, 0), *BOUNDARIES, *WIDE)))
            if self.random.random() < 0.1:
                # The same number in more bytes than it needs.
                size = size[:-1] + bytes((size[-1] | 128, 0))
            return tag + size + content

        return self._with_content(message, changed)

    def _inside(self, message):
        """Spoil the content of one field and state its new length."""

        def changed(tag, content):
            inner = self.random.choice(self._of_bytes)(content)
            return tag + varint(len(inner)) + inner

        return self._with_content(message, changed)

    def _with_content(self, message, change):
        parts, at = self._fields(message)
        try:
            tag, after = read_varint(parts[at], 0)
            if tag & 7 == LEN:
                _, start = read_varint(parts[at], after)
                parts[at] = change(parts[at][:after], parts[at][start:])
        except IndexError:
            pass
        return b"".join(parts)

    def _huge_varint(self, message):
        number = varint(self.random.randrange(1, 9) << 3)
        value = self.random.choice((b"\xff" * 9 + b"\x01", b"\xff" * 10 + b"\x01", b"\x80" * 9 + b"\0", b"\xff" * 20))
        return message + number + value

    def _nest(self, message):
        tag = varint(self.random.randrange(1, 9) << 3 | LEN)
        # Written from the inside out, then put together at once.
        headers, size = [], len(message)
        for _ in range(min(self.random.choice(DEPTHS), 300)):
            if size > self._limit_bytes:
                break
            headers.append(tag + varint(size))
            size += len(headers[-1])
        return b"".join((*reversed(headers), message))

    def _groups(self, message):
        return message + varint(self.random.randrange(1, 9) << 3 | START_GROUP) * self.random.choice(DEPTHS)

    # Through the message class.

    def _through_class(self, kind, message):
        parsed = kind.FromString(message)
        for _ in range(self.random.choice((1, 1, 2, 4))):
            self._change_field(parsed)
        return parsed.SerializeToString()

    def _change_field(self, parsed):
        if not parsed.DESCRIPTOR.fields:
            parsed.SetInParent()
            return
        field = self.random.choice(parsed.DESCRIPTOR.fields)
        value = getattr(parsed, field.name)
        if self.random.random() < 0.1:
            parsed.ClearField(field.name)
        elif hasattr(value, "extend"):
            self._change_list(value, field)
        elif field.type == Field.TYPE_MESSAGE:
            self._change_field(value)
        else:
            setattr(parsed, field.name, self._value(field, value))

    def _change_list(self, values, field):
        for _ in range(self.random.choice((1, 1, 15, 16, 17, 40))):
            if field.type == Field.TYPE_MESSAGE:
                self._change_field(values.add())
            else:
                values.append(self._value(field, 0))

    def _value(self, field, old):
        if field.type == Field.TYPE_BYTES:
            spoiled = self._flip(old) if old and self.random.random() < 0.5 else b""
            return spoiled or self.random.randbytes(self.random.choice(LENGTHS))
        if field.type == Field.TYPE_STRING:
            return self.random.choice(TEXTS)
        if field.type == Field.TYPE_BOOL:
            return not old
        if field.type == Field.TYPE_ENUM:
            return self.random.choice((-1, 0, 1, 2, 3, 4, 5, 99, 2**31 - 1, -(2**31)))
        values = BOUNDARIES + WIDE if field.type == Field.TYPE_UINT64 else BOUNDARIES
        return self.random.choice((*values, *(v for v in (old + 1, old - 1) if 0 <= v <= values[-1])))
