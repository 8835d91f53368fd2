"""A simulated device's part in one secure round of a real coordinator, one step at a time.

`lightfr.secure_round` is how a real device does it: in a thread of its own, and over crashes. Here hundreds share a few
threads, and a part lives in memory, so that a killed simulation loses it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

from lightfr._wire import coordinator, secure
from lightfr._wire.channel import Channel
from lightfr.secagg import DeviceSession, Vector

Step = TypeVar("Step", secure.Share, secure.Upload, secure.Reveal)


class Part:
    """advertise(), share(), upload() and reveal(), in this order. Each waits until it is due, and raises RefusedError
    when the round has gone on without this device."""

    def __init__(
        self, channel: Channel, place: coordinator.Assignment, server_key: bytes, minimum_cohort: int,
        make_vector: Callable[[bool, int], Vector],
    ) -> None:  # fmt: skip
        """`make_vector` is called with whether the round refreshes the gate, and the size of the cohort."""
        self.place = place
        self._channel, self._make_vector = channel, make_vector
        self._session = DeviceSession(place.round_id, place.peer_id, server_key, minimum_cohort=minimum_cohort)

    def advertise(self) -> None:
        self._send("AdvertiseKeys", secure.encode_keys(self.place.round_id, self._session.advertise()))

    def share(self) -> None:
        step = self._due(secure.Share)
        self._send("ShareKeys", secure.encode_shares(step.roster, self._session.share(*step)))

    def upload(self) -> None:
        step, session, place = self._due(secure.Upload), self._session, self.place
        inbox = secure.inbox(step, session.neighbours(), session.peer_id)
        vector = self._make_vector(place.is_gate_refresh, session.cohort)
        masked = session.mask(vector, inbox, step.included)
        upload_id = os.urandom(coordinator.UPLOAD_ID_BYTES)
        request = secure.encode_masked(place.round_id, place.manifest_sha256, upload_id, masked)
        coordinator.upload(self._channel, request)

    def reveal(self) -> None:
        step = self._due(secure.Reveal)
        self._send("RevealShares", secure.encode_revealed(self.place.round_id, self._session.unmask(*step)))

    def _send(self, method: str, request: bytes) -> None:
        secure.send(self._channel, method, request)

    def _due(self, kind: type[Step]) -> Step:
        while isinstance(step := secure.next_step(self._channel, self.place.round_id), secure.Wait):
            time.sleep(step.seconds)
        coordinator.require(isinstance(step, kind), f"the step that is due is not {kind.__name__}")
        return step


# In the order of a round.
STEPS = (Part.advertise, Part.share, Part.upload, Part.reveal)
