"""The authority that a small installation runs beside its coordinator: its own process, which ends with this one."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from lightfr.errors import LightFRError

# How long the authority may take to answer the requests at hand, in seconds.
_PATIENCE_SECONDS = 10.0


class AuthorityEndedError(LightFRError):
    """The authority's process ended by itself: nobody could enrol or renew any more."""

    def __init__(self, code: int) -> None:
        self.code = code
        super().__init__(
            f"the authority's process ended with exit code {code}, so the coordinator was stopped too. "
            "Read what it said above, and start both again"
        )


class AuthorityBeside:
    """An authority that was started."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def port(self) -> int:
        """The port where devices enrol, as soon as it listens; raises AuthorityEndedError."""
        line = await self._process.stdout.readline() if self._process.stdout else b""
        if not line:
            raise AuthorityEndedError(await self._process.wait())
        return urlsplit(json.loads(line)["enrollment"]).port or 0

    async def ended(self, stop: asyncio.Event) -> None:
        """Wait for its end; raises AuthorityEndedError unless that is wanted."""
        code = await self._process.wait()
        if not stop.is_set():
            raise AuthorityEndedError(code)


@asynccontextmanager
async def authority_beside(folder: Path, host: str, port: int) -> AsyncIterator[AuthorityBeside]:
    """Start `ca serve` on an authority's folder, and stop it in the end. This process reads none of its keys."""
    command = (sys.executable, "-m", "lightfr_harness", "ca", "serve", str(folder), "--host", host, "--port", str(port))
    # In a session of its own it does not get the terminal's Ctrl-C, so that this process ends both in order. Should
    # this process be killed, the other sees the end of its input.
    process = await asyncio.create_subprocess_exec(
        *command, "--until-input-ends", stdin=PIPE, stdout=PIPE, start_new_session=True
    )
    try:
        yield AuthorityBeside(process)
    finally:
        await _stop(process)


async def _stop(process: Process) -> None:
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), _PATIENCE_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
