"""What an app learns about its part in training: the stage of a round, how it ended, and why it did not begin."""

from __future__ import annotations

import threading
import time
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from lightfr.budget import Budget

    Progress = Callable[["RoundStage"], None]

# Once a call is cancelled, it waits so long for its round to stop; before that, it looks so often. In seconds.
_CANCEL_SECONDS = 0.5
_LOOK_SECONDS = 0.1


class RoundStage(StrEnum):
    """How far a device has come in a round; the server has acknowledged the message of each stage."""

    PLACED = "placed"
    KEYS_SENT = "keys_sent"
    SHARES_SENT = "shares_sent"
    SHARES_ACKNOWLEDGED = "shares_acknowledged"
    INCLUDED_SIGNED = "included_signed"
    UPLOADED = "uploaded"
    SURVIVORS_SIGNED = "survivors_signed"
    REVEALED = "revealed"


class Reason(StrEnum):
    """Why a device did not take part this time."""

    ROUND_FULL = "round_full"
    ALREADY_UPLOADED = "already_uploaded"
    AGGREGATING = "aggregating"
    TRAINING_FINISHED = "training_finished"
    NOT_CAPABLE = "not_capable"
    # What this device delivered in earlier rounds did not fit together.
    FAULTY = "faulty"
    # This device has given as much as its budget allows; see Budget.
    BUDGET = "budget"
    # The round went on without this device.
    TOO_LATE = "too_late"
    # The app cancelled the call, or called forget().
    CANCELLED = "cancelled"


class Terms(NamedTuple):
    """On what terms a device takes part."""

    # Among at least so many devices.
    minimum_cohort: int
    # Whether it uploads in the clear, which reveals its ratings to the server.
    allow_clear_uploads: bool
    # How often, and how long.
    budget: Budget
    # Only with secagg+dp, and only while its privacy loss stays within this epsilon. None: secagg will do.
    require_dp: float | None


class Participation(NamedTuple):
    """How an offer to take part ended."""

    # Whether the server has this device's upload for a round, safely.
    took_part: bool
    # When to offer again, in seconds; drawn at random from the server's window.
    retry_after_seconds: float
    # Why the device did not take part; None when it did.
    reason: Reason | None = None


TOOK_PART = Participation(took_part=True, retry_after_seconds=0.0)
CANCELLED = Participation(took_part=False, retry_after_seconds=0.0, reason=Reason.CANCELLED)


def until_cancelled(
    take_part: Callable[[Progress], Participation],
    progress: Progress,
    cancel: threading.Event,
    interrupt: Callable[[], None],
) -> Participation:
    """Take part in another thread, so that this one can return even while a call to the server is stuck.

    Calls `progress` in this thread. When `cancel` is set, calls `interrupt` and returns soon; a thread that is still
    busy then leaves the round as soon as it can. It does so too when this thread ends with an error of `progress` or a
    signal, since nobody would look at `cancel` any more.
    """
    from queue import Empty, SimpleQueue

    said: SimpleQueue[RoundStage | Participation | BaseException] = SimpleQueue()

    def run() -> None:
        try:
            said.put(take_part(said.put))
        except BaseException as error:
            said.put(error)

    threading.Thread(target=run, name="lightfr round", daemon=True).start()
    try:
        ends = None
        while ends is None or time.monotonic() < ends:
            if ends is None and cancel.is_set():
                interrupt()
                ends = time.monotonic() + _CANCEL_SECONDS
            try:
                news = said.get(timeout=_LOOK_SECONDS)
            except Empty:
                continue
            if isinstance(news, Participation):
                return news
            if isinstance(news, BaseException):
                raise news
            progress(news)
    except BaseException:
        interrupt()
        raise
    return CANCELLED
