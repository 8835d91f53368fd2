"""Structured logs: one JSON object a line, with counts and never a device id, a message body or a key."""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from contextlib import suppress
from typing import TextIO


class Log:
    """Writes events to a stream, standard error unless told."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr

    def event(self, name: str, **facts: object) -> None:
        line = json.dumps({"time": round(time.time(), 3), "event": name, **facts}, separators=(",", ":"))
        # Whoever read the log may be gone; the rounds go on without.
        with suppress(OSError, ValueError):
            print(line, file=self._stream, flush=True)

    def fault(self, name: str, error: BaseException) -> None:
        """What went wrong by its type and place alone: its text might quote what a device sent."""
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{frames[-1].name}:{frames[-1].lineno}" if frames else ""
        self.event(name, error=type(error).__name__, place=place)


class LibraryHandler(logging.Handler):
    """Turns what libraries log into events that keep the logger's name and the error's type, and no text."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Log one record."""
        error = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else ""
        self._log.event("library", logger=record.name, level=record.levelname.lower(), error=error)


def route_libraries(log: Log) -> None:
    """Send what aiohttp and asyncio log the same way."""
    for name in ("aiohttp", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [LibraryHandler(log)], False
