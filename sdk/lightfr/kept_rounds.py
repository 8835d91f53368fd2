"""How a client drives a round: every message is in the store before it is sent, so that a killed device goes on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from lightfr._wire import secure
from lightfr.errors import LightFRError
from lightfr.rounds import ClearRound, RoundParticipant, is_too_late

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from lightfr._wire.channel import Channel
    from lightfr.rounds import MakeVector
    from lightfr.store import Store

    Round = ClearRound | RoundParticipant

# A round has four phases, each with its deadline; a device that waited longer than all of them leaves.
_DEADLINES = 5


def kept_round(store: Store) -> Round | None:
    """Return the round that was begun before and is not over."""
    return ClearRound.from_values(store.get) or RoundParticipant.from_values(store.get)


def finish(
    current: Round,
    store: Store,
    channel: Channel,
    make_vector: MakeVector,
    acknowledged: Callable[[str], None],
    stop: threading.Event,
) -> bool:
    """Go through the rest of a round whose values are in the store; say whether the server has this device's part.

    `acknowledged` is called with the method of each message that the server has. `stop` makes the device leave.
    """
    try:
        is_finished = _walk(current, store, channel, make_vector, acknowledged, stop)
    except LightFRError as error:
        if stop.is_set() or current.is_over_after(error):
            store.update(current.values_to_clear)
        if is_too_late(error):
            return False
        raise
    if not is_finished:
        store.update(current.values_to_clear)
    return is_finished


def _walk(
    current: Round,
    store: Store,
    channel: Channel,
    make_vector: MakeVector,
    acknowledged: Callable[[str], None],
    stop: threading.Event,
) -> bool:
    acknowledged(_send(channel, current))
    if isinstance(current, ClearRound):
        return True
    ends = time.monotonic() + _DEADLINES * current.deadline_seconds
    while not isinstance(step := secure.next_step(channel, current.round_id), secure.Done):
        if time.monotonic() > ends or stop.is_set():
            return False
        if isinstance(step, secure.Wait):
            stop.wait(step.seconds)
        else:
            current.answer(step, make_vector)
            store.update(current.values())
            acknowledged(_send(channel, current))
    return True


def _send(channel: Channel, current: Round) -> str:
    method, request = current.outgoing
    secure.send(channel, method, request)
    return method
