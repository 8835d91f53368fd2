"""The only door bytes leave the device by: messages of proto/, Connect calls and downloads over mutual TLS.

This module loads neither TLS nor protobuf, so that a device can read its own files without them.
"""

from __future__ import annotations

from lightfr._wire.training import decode_round_model, encode_update
from lightfr.errors import InvalidInputError

__all__ = ["address_of", "decode_round_model", "encode_update"]


def address_of(server: str) -> tuple[str, int]:
    """Return host and port of 'https://host:port', where the port may be left out; else raises InvalidInputError."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(server)
        host, port = parts.hostname, 443 if parts.port is None else parts.port
        (host or "").encode("idna")  # as a connection does: a label is 1 to 63 characters long
    except ValueError as error:
        raise InvalidInputError("the server's address is not https://host:port") from error
    more = parts.path.removeprefix("/") or parts.query or parts.fragment or "@" in parts.netloc
    if parts.scheme != "https" or not host or not port or more:
        raise InvalidInputError("the server's address is not https://host:port")
    return host, port
