"""The only door bytes leave the device by: messages of proto/, Connect calls and downloads over mutual TLS.

This module loads neither TLS nor protobuf, so that a device can read its own files without them.
"""

from __future__ import annotations

from lightfr._wire.training import decode_round_model, encode_update
from lightfr.errors import InvalidInputError

__all__ = ["address_of", "decode_round_model", "encode_update"]


def address_of(server: str) -> tuple[str, int]:
    """Return host and port of 'https://host:port'; raises InvalidInputError for anything else."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(server)
        host, port = parts.hostname, parts.port or 443
    except ValueError as error:
        raise InvalidInputError("the server's address is not https://host:port") from error
    if parts.scheme != "https" or not host or parts.path not in ("", "/") or parts.query or parts.username:
        raise InvalidInputError("the server's address is not https://host:port")
    return host, port
