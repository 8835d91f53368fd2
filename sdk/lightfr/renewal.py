"""A device's certificate is renewed before it ends: a new key made here, vouched for by the old one."""

from __future__ import annotations

import os
import time
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
        from cryptography import x509

        try:
            certificate = x509.load_pem_x509_certificate(self._path.read_bytes())
        except (OSError, ValueError):
            return False
        begin, end = certificate.not_valid_before_utc.timestamp(), certificate.not_valid_after_utc.timestamp()
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


def _remove(path: Path) -> None:
    with _files.step("remove what renewal kept"):
        _files.remove(path)
