"""Logs tell what happened, not to whom, and never stop the rounds."""

import io
import json
import logging

from lightfr_harness.server.coordinator.telemetry import LibraryHandler, Log
from tests.harness.server.coordinator.helpers import Clock


def test_an_event_is_one_line_of_json():
    stream = io.StringIO()
    Log(stream).event("round_finished", uploads=64)
    (line,) = stream.getvalue().splitlines()
    assert json.loads(line).items() >= {"event": "round_finished", "uploads": 64}.items()


def test_an_error_is_told_by_type_and_place_alone():
    stream = io.StringIO()
    try:
        raise KeyError("what a device sent")
    except KeyError as error:
        Log(stream).fault("internal_error", error)
        record = logging.LogRecord(
            "aiohttp.server", logging.ERROR, "", 1, "sent: %s", ("secret",), (KeyError, error, None)
        )
    LibraryHandler(Log(stream)).emit(record)
    assert "device sent" not in stream.getvalue()
    assert "secret" not in stream.getvalue()
    assert stream.getvalue().count("KeyError") == 2


def test_what_a_library_says_again_and_again_has_a_line_a_minute_which_counts():
    stream, clock = io.StringIO(), Clock()
    handler = LibraryHandler(Log(stream), clock)
    for times in (1000, 1000, 1):
        for _ in range(times):
            handler.emit(logging.LogRecord("aiohttp.server", logging.ERROR, "", 1, "bad request", (), None))
        clock.now += 60
    handler.emit(logging.LogRecord("asyncio", logging.WARNING, "", 1, "slow", (), None))
    told = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(one["logger"], one["times"]) for one in told] == [
        ("aiohttp.server", 1),
        ("aiohttp.server", 1000),
        ("aiohttp.server", 1000),
        ("asyncio", 1),
    ]


def test_a_log_that_nobody_reads_any_more_stops_nothing():
    stream = io.StringIO()
    stream.close()
    Log(stream).event("round_finished")
