"""Reads zlib streams of downloads, and inflates no more of them than a caller asks for."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Callable

    from lightfr.errors import LightFRError

_READ_BYTES = 1 << 14


class Inflater:
    """The stream with which a file ends, from where the file stands now."""

    def __init__(self, file: BinaryIO, refused: Callable[[str], LightFRError]) -> None:
        """Take a file, and what makes the error for a reason."""
        self._file = file
        self._refused = refused
        self._stream = zlib.decompressobj()

    def read(self, size: int) -> bytes:
        """Return exactly that many bytes."""
        content = bytearray()
        while len(content) < size:
            piece = self._inflate(size - len(content))
            if not piece:
                raise self._refused("its stream is too short")
            content += piece
        return bytes(content)

    def require_end(self) -> None:
        """Raise the error unless the stream and the file end here. Reaching the end checks zlib's checksum too."""
        if self._inflate(1):
            raise self._refused("its stream is too long")
        if not self._stream.eof:
            raise self._refused("its stream has no end")
        if self._stream.unused_data or self._file.read(1):
            raise self._refused("bytes follow its stream")

    def _inflate(self, max_bytes: int) -> bytes:
        """Return 1 to max_bytes bytes, none at the end of the stream or of the file."""
        while not self._stream.eof:
            packed = self._stream.unconsumed_tail or self._file.read(_READ_BYTES)
            try:
                piece = self._stream.decompress(packed, max_bytes)
            except zlib.error as error:
                raise self._refused("its stream is corrupt") from error
            if piece or not packed:
                return piece
        return b""
