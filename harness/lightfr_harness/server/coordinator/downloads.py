"""Artifacts over HTTP: whole or one range of bytes, named and validated by their digest (RFC 9110, parts 13 and 14).

aiohttp's FileResponse makes its ETag of the time of change and compares If-Range with dates only, so a device could
not resume by the digest; hence this one.
"""

from __future__ import annotations

import asyncio
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from aiohttp import web

# Read and sent at a time: what one slow download holds in memory.
CHUNK_BYTES = 256 * 1024
# Who has not taken a piece by then has stopped. Devices count on 1,000 bytes a second at the least, which takes 262.
STALL_SECONDS = 300.0
_RANGE = re.compile(r"bytes=(\d{0,19})-(\d{0,19})", re.ASCII)


async def answer(request: web.Request, folder: Path, digest: str) -> tuple[web.StreamResponse, int]:
    """Answer GET or HEAD; the response, sent, and the bytes of its body."""
    headers = {"ETag": f'"{digest}"', "Cache-Control": "public, max-age=31536000, immutable", "Accept-Ranges": "bytes"}
    try:
        file = await asyncio.to_thread((folder / digest).open, "rb")
    except OSError:
        return web.Response(status=404), 0
    with file:
        if _names(request.headers.get("If-None-Match", ""), digest):
            return web.Response(status=304, headers=headers), 0
        size = file.seek(0, 2)
        part = _part(request, digest, size)
        if part is not None and not part:
            return web.Response(status=416, headers={**headers, "Content-Range": f"bytes */{size}"}), 0
        return await _send(request, file, part, size, headers)


async def _send(
    request: web.Request, file: BinaryIO, part: range | None, size: int, headers: dict[str, str]
) -> tuple[web.StreamResponse, int]:
    sent = range(size) if part is None else part
    if part is not None:
        headers["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{size}"
    response = web.StreamResponse(status=200 if part is None else 206, headers=headers)
    response.content_type, response.content_length = "application/octet-stream", len(sent)
    await response.prepare(request)
    if request.method == "HEAD":
        return response, 0
    written = 0
    # A device goes away in the middle, as devices do, and comes back for the rest.
    with suppress(ConnectionError):
        while written < len(sent):
            part_bytes = min(CHUNK_BYTES, len(sent) - written)
            content = await asyncio.to_thread(os.pread, file.fileno(), part_bytes, sent.start + written)
            try:
                async with asyncio.timeout(STALL_SECONDS):
                    await response.write(content)
            except TimeoutError:
                if request.transport is not None:
                    request.transport.abort()
                break
            written += part_bytes
        else:
            await response.write_eof()
    return response, written


def _names(header: str, digest: str) -> bool:
    """Whether an If-None-Match lists this artifact; its comparison is the weak one."""
    tags = {tag.strip().removeprefix("W/") for tag in header.split(",")}
    return f'"{digest}"' in tags or "*" in tags


def _part(request: web.Request, digest: str, size: int) -> range | None:
    """The bytes asked for, empty when there are none such.

    None, for the whole: when the range is not one of bytes, is several, or when If-Range names something else.
    """
    asked = _RANGE.fullmatch(request.headers.get("Range", "").replace(" ", ""))
    if asked is None or request.method != "GET" or request.headers.get("If-Range", f'"{digest}"') != f'"{digest}"':
        return None
    first, last = asked.groups()
    if not first:
        return range(max(size - int(last), 0), size) if last else None
    if last and int(last) < int(first):
        return None
    return range(int(first), min(int(last) + 1, size) if last else size)
