"""A round in another thread: what it says and how it ends reaches the caller."""

import sys
import threading

import pytest

from lightfr.participation import CANCELLED, TOOK_PART, RoundStage, until_cancelled
from lightfr.user import log


def run(take_part, cancel=None, interrupt=lambda: None):
    """What came of it, and what was said meanwhile and in which thread."""
    said = []
    ended = until_cancelled(
        take_part, lambda news: said.append((news, threading.current_thread())), cancel or threading.Event(), interrupt
    )
    return ended, said


def test_progress_is_told_in_the_thread_of_the_caller():
    def take_part(progress):
        progress(RoundStage.PLACED)
        return TOOK_PART

    assert run(take_part) == (TOOK_PART, [(RoundStage.PLACED, threading.current_thread())])


def test_an_error_of_the_round_is_raised_to_the_caller():
    def take_part(_progress):
        raise KeyError("the round's own")

    with pytest.raises(KeyError, match="the round's own"):
        run(take_part)


def test_who_cancels_does_not_wait_for_a_call_that_is_stuck():
    cancel, interrupted, stuck = threading.Event(), threading.Event(), threading.Event()
    cancel.set()
    ended, said = run(lambda _progress: stuck.wait(60) and TOOK_PART, cancel, interrupted.set)
    stuck.set()
    assert (ended, said) == (CANCELLED, [])
    assert interrupted.is_set()


def test_an_error_of_progress_ends_the_round():
    """Nobody would look at `cancel` any more, and the device would stay in its round behind the app's back."""
    interrupted = threading.Event()

    def take_part(progress):
        progress(RoundStage.PLACED)
        interrupted.wait(60)
        return CANCELLED

    def progress(_stage):
        raise KeyError("the app's own")

    with pytest.raises(KeyError, match="the app's own"):
        until_cancelled(take_part, progress, threading.Event(), interrupted.set)
    assert interrupted.is_set()


def test_an_app_without_logging_is_told_nothing_and_loads_nothing(monkeypatch):
    monkeypatch.delitem(sys.modules, "logging")
    log("a round ended")
    assert "logging" not in sys.modules
