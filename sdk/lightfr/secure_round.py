"""A device's way through one round of secure aggregation, step by step, over crashes and restarts.

Every step is kept in the store before it is sent, together with the session behind it, so that a device which is killed
sends the same bytes again and never masks two vectors with one mask.
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

from lightfr._wire import coordinator, secure
from lightfr.clear_round import TOO_LATE
from lightfr.errors import PrivacyError, ProtocolError, RefusedError
from lightfr.secagg import DeviceSession

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping

    from lightfr._wire.channel import Channel
    from lightfr.secagg import Vector
    from lightfr.store import Store

    # Called with whether the round refreshes the gate, and the size of the cohort.
    MakeVector = Callable[[bool, int], Vector]

# Names of the values in the store.
_ROUND, _SESSION, _OUTGOING = "secure_round", "secure_session", "secure_outgoing"
# A round has four phases, each with its deadline; a device that waited longer than all of them leaves.
_PATIENCE = 5


def is_begun(store: Store) -> bool:
    """Whether the store holds a round that is not over."""
    return store.get(_ROUND) is not None


class SecureRound:
    """A round that this device takes part in."""

    # Store values that end the round.
    forgotten: dict[str, bytes | None] = {_ROUND: None, _SESSION: None, _OUTGOING: None}  # noqa: RUF012 # never changed

    def __init__(self, store: Store, channel: Channel, facts: Mapping[str, str], session: DeviceSession) -> None:
        """Use begin or resume."""
        self._store = store
        self._channel = channel
        self._facts = facts
        self._session = session
        self._round_id = bytes.fromhex(facts["round_id"])
        self._ends = time.monotonic() + _PATIENCE * float(facts["deadline_seconds"])

    @classmethod
    def begin(
        cls, store: Store, channel: Channel, assignment: coordinator.Assignment, server_key: bytes, minimum_cohort: int
    ) -> SecureRound:
        """Take a place: make fresh keys and send the public ones."""
        facts = {
            "round_id": assignment.round_id.hex(),
            "manifest_sha256": assignment.manifest_sha256.hex(),
            "gate_refresh": "yes" if assignment.is_gate_refresh else "",
            "deadline_seconds": str(assignment.deadline_seconds),
            "limit_bytes": str(assignment.upload_limit_bytes),
        }
        session = DeviceSession(assignment.round_id, assignment.peer_id, server_key, minimum_cohort=minimum_cohort)
        begun = cls(store, channel, facts, session)
        begun._keep("AdvertiseKeys", secure.encode_keys(assignment.round_id, session.advertise()))
        return begun

    @classmethod
    def resume(cls, store: Store, channel: Channel) -> SecureRound | None:
        """Take up the round that was begun before, if there is one."""
        facts, session = store.get(_ROUND), store.get(_SESSION)
        if facts is None or session is None:
            return None
        return cls(store, channel, json.loads(facts), DeviceSession.from_bytes(session))

    @property
    def manifest_sha256(self) -> bytes:
        """Digest of the model that the round trains on."""
        return bytes.fromhex(self._facts["manifest_sha256"])

    def run(self, make_vector: MakeVector, acknowledged: Callable[[str], None], stop: threading.Event) -> bool:
        """Go on to the end; say whether the cohort has this device's part. `stop` makes the device leave the round."""
        try:
            acknowledged(self._send())
            while not isinstance(step := secure.next_step(self._channel, self._round_id), secure.Done):
                if time.monotonic() > self._ends or stop.is_set():
                    self.leave()
                    return False
                if isinstance(step, secure.Wait):
                    stop.wait(step.seconds)
                else:
                    self._take(step, make_vector)
                    acknowledged(self._send())
        except RefusedError as refused:
            self.leave()
            if refused.reason not in TOO_LATE:
                raise
            return False
        except (PrivacyError, ProtocolError):
            self.leave()
            raise
        return True

    def leave(self) -> None:
        """Forget the round. Its keys go with it, so that nobody can take its masks off any more."""
        self._store.update(self.forgotten)

    def _take(self, step: secure.Step, make_vector: MakeVector) -> None:
        session, round_id = self._session, self._round_id
        if isinstance(step, secure.Share):
            self._keep("ShareKeys", secure.encode_shares(step.roster, session.share(*step)))
        elif isinstance(step, secure.Upload):
            self._keep("Upload", self._upload(step, make_vector))
        elif isinstance(step, secure.Reveal):
            self._keep("RevealShares", secure.encode_revealed(round_id, session.unmask(*step)))

    def _upload(self, step: secure.Upload, make_vector: MakeVector) -> bytes:
        session = self._session
        inbox = secure.inbox(step, session.neighbours(), session.peer_id)
        masked = session.mask(make_vector(bool(self._facts["gate_refresh"]), session.cohort), inbox, step.included)
        upload_id = os.urandom(coordinator.UPLOAD_ID_BYTES)
        request = secure.encode_masked(self._round_id, self.manifest_sha256, upload_id, masked)
        if len(request) > int(self._facts["limit_bytes"]):
            raise ProtocolError(f"an upload of {len(request)} bytes, the server takes {self._facts['limit_bytes']}")
        return request

    def _keep(self, method: str, request: bytes) -> None:
        outgoing = method.encode() + b"\n" + request
        # An upload can be larger than all else that a device holds; the store needs room for several copies.
        del request
        facts = json.dumps(self._facts).encode()
        self._store.update({_ROUND: facts, _SESSION: self._session.to_bytes(), _OUTGOING: outgoing})

    def _send(self) -> str:
        """Send what was kept last and return its method; sending it twice does no harm."""
        method, _, request = (self._store.get(_OUTGOING) or b"").partition(b"\n")
        if method == b"Upload":
            coordinator.upload(self._channel, request)
        else:
            secure.send(self._channel, method.decode(), request)
        return method.decode()
