"""The few fields of a device's certificate that the SDK reads, without a parser of certificates."""

from __future__ import annotations

from base64 import b64decode
from calendar import timegm
from typing import NamedTuple

# The object identifier of a common name, 2.5.4.3.
_COMMON_NAME = bytes.fromhex("550403")


class Certificate(NamedTuple):
    """What the SDK needs to know of a device's certificate. Times are in seconds since 1970."""

    device_id: str
    begins: float
    ends: float


def parse_certificate(identity: bytes) -> Certificate:
    """Parse the first certificate of a PEM file; raises ValueError or IndexError when there is none.

    By hand, since a parser of certificates takes two megabytes for this look at each sync. The fields are those of
    RFC 5280, 4.1: version, serial number, algorithm, issuer, validity, subject.
    """
    if b"PRIVATE KEY-----" not in identity:
        raise ValueError
    block = identity.partition(b"-----BEGIN CERTIFICATE-----")[2].partition(b"-----END")[0]
    signed = _elements(_elements(_elements(b64decode(block))[0])[0])
    begins, ends = (_seconds(moment) for moment in _elements(signed[4]))
    attributes = [_elements(attribute) for one_name in _elements(signed[5]) for attribute in _elements(one_name)]
    names = [value.decode() for kind, value in attributes if kind == _COMMON_NAME]
    return Certificate(names[0], begins, ends)


def _elements(content: bytes) -> list[bytes]:
    """Return the contents of DER elements that lie one behind the other."""
    found, at = [], 0
    while at < len(content):
        size, at = content[at + 1], at + 2
        if size & 0x80:
            length_bytes = size & 0x7F
            size, at = int.from_bytes(content[at : at + length_bytes], "big"), at + length_bytes
        found.append(content[at : at + size])
        at += size
    return found


def _seconds(moment: bytes) -> float:
    """Read UTCTime, YYMMDDHHMMSSZ, or GeneralizedTime with four digits for the year; two mean 1950 to 2049."""
    digits = moment.decode("ascii").removesuffix("Z")
    if len(digits) == 12:
        digits = ("20" if digits < "50" else "19") + digits
    parts = [int(digits[:4]), *(int(digits[at : at + 2]) for at in range(4, 14, 2))]
    return float(timegm(tuple(parts)))
