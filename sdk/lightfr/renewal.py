"""A device's certificate is renewed before it ends: a new key made here, vouched for by the old one."""

from __future__ import annotations

import os
import time
from base64 import b64decode
from calendar import timegm
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from lightfr import _files
from lightfr._wire import coordinator, tls
from lightfr.enrollment import key_and_request, save_identity
from lightfr.errors import InvalidInputError, LightFRError

if TYPE_CHECKING:
    from lightfr._wire.channel import Channel
    from lightfr.trust import Trust

_EARLIEST_SECONDS = 60 * 86_400


class Identity:
    """The PEM file by which the server knows this device."""

    def __init__(self, path: str | os.PathLike[str], trust: Trust) -> None:
        self._path, self._trust = Path(path), trust

    def renew_if_due(self, channel: Channel) -> None:
        """Renew the certificate when it ends soon. A failure is for the next time: the old one is still good."""
        if not self._is_due():
            return
        with suppress(LightFRError):
            self._renew(channel)

    def _is_due(self) -> bool:
        """Whether fewer than 60 days are left, or than a third of its life when that is less."""
        try:
            begin, end = validity(self._path.read_bytes())
        except (OSError, ValueError, IndexError):
            return False
        return end - time.time() < min(_EARLIEST_SECONDS, (end - begin) / 3)

    def _renew(self, channel: Channel) -> None:
        """Keep the key before it is sent, and the old identity until the new one is whole: any step may be the last."""
        kept = self._path.with_name("renewing.pem")
        if not self._is_of_use(kept):
            _remove(kept)
        private_key, signing_request = key_and_request(kept)
        certificates = coordinator.renew(channel, signing_request)
        save_identity(self._path, self._trust.path, private_key, certificates)
        channel.become(tls.context(self._trust.path, self._path))
        _remove(kept)

    def _is_of_use(self, kept: Path) -> bool:
        """Whether a file that an interruption left is whole, and not of a renewal that was over but for its removal."""
        try:
            return kept.exists() and not self._path.read_bytes().startswith(key_and_request(kept)[0])
        except InvalidInputError:
            return False


def validity(identity: bytes) -> tuple[float, float]:
    """Return when the first certificate of a PEM file begins and ends, in seconds since 1970.

    Raises ValueError or IndexError when there is none. By hand, since a parser of certificates takes two megabytes for
    this look at each sync. The fields are those of RFC 5280, 4.1: version, serial number, algorithm, issuer, validity.
    """
    block = identity.partition(b"-----BEGIN CERTIFICATE-----")[2].partition(b"-----END")[0]
    certificate = _elements(b64decode(block))[0]
    signed = _elements(_elements(certificate)[0])
    begin, end = (_seconds(moment) for moment in _elements(signed[4]))
    return begin, end


def _elements(content: bytes) -> list[bytes]:
    """The contents of DER elements that lie one behind the other."""
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
    """UTCTime, YYMMDDHHMMSSZ, or GeneralizedTime with four digits for the year; two mean 1950 to 2049."""
    digits = moment.decode("ascii").removesuffix("Z")
    if len(digits) == 12:
        digits = ("20" if digits < "50" else "19") + digits
    parts = [int(digits[:4]), *(int(digits[at : at + 2]) for at in range(4, 14, 2))]
    return float(timegm(tuple(parts)))


def _remove(path: Path) -> None:
    with _files.step("remove what renewal kept"):
        _files.remove(path)
