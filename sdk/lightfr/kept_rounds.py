"""How a client drives a round: every message is in the store before it is sent, so that a killed device goes on."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from lightfr._wire import coordinator, secure
from lightfr.errors import LightFRError, NotPrivateError, ServerUnavailableError
from lightfr.participation import CANCELLED, TOOK_PART, Participation, Reason, RoundStage
from lightfr.rounds import ClearRound, RoundParticipant, is_too_late
from lightfr.secagg import gate_vector, round_vector
from lightfr.v1 import model_pb2

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from lightfr._wire.channel import Channel
    from lightfr.model.folder import LoadedModel
    from lightfr.participation import Progress, Terms
    from lightfr.rounds import MakeVector, Trusted
    from lightfr.secagg import Vector
    from lightfr.store import Store
    from lightfr.user import User

    Round = ClearRound | RoundParticipant

# The deadline of an assignment covers the phases up to the upload; the two that follow are shorter together.
_DEADLINES = 2
# When to offer again after coming too late, in seconds; the server's own window is not known then.
_PAUSE_AFTER_LATE = (1.0, 10.0)
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_STAGES = {
    "AdvertiseKeys": RoundStage.KEYS_SENT,
    "ShareKeys": RoundStage.SHARES_SENT,
    "AcknowledgeShares": RoundStage.SHARES_ACKNOWLEDGED,
    "SignIncluded": RoundStage.INCLUDED_SIGNED,
    "Upload": RoundStage.UPLOADED,
    "SignSurvivors": RoundStage.SURVIVORS_SIGNED,
    "RevealShares": RoundStage.REVEALED,
}


class Offer:
    """One offer to take part, from the check-in to the end of the round. Whoever makes it holds the channel."""

    def __init__(
        self,
        user: User,
        channel: Channel,
        terms: Terms,
        trusted: Callable[[bytes], Trusted],
        progress: Progress,
        stop: threading.Event,
    ) -> None:
        self._user, self._channel, self._terms, self._trusted = user, channel, terms, trusted
        self._progress, self._stop = progress, stop

    def make(self) -> Participation:
        """Finish the round that was begun before; if there is none, check in, and take a place that is offered."""
        user = self._user
        if user.model is not None:
            self._require_private(user.model)
        begun_before = self._resumed()
        if begun_before is not None and self._finish(begun_before):
            return TOOK_PART
        if self._stop.is_set():
            return CANCELLED
        answer = coordinator.check_in(self._channel, user.model_version, self._privacy_modes())
        if isinstance(answer, coordinator.RetryWindow):
            return _not_this_time(answer.earliest_seconds, answer.latest_seconds, Reason(answer.reason))
        self._progress(RoundStage.PLACED)
        if self._finish(self._begun(answer)):
            return TOOK_PART
        return CANCELLED if self._stop.is_set() else _not_this_time(*_PAUSE_AFTER_LATE, Reason.TOO_LATE)

    def _privacy_modes(self) -> list[int]:
        private: list[int] = [model_pb2.PRIVACY_MODE_SECAGG, model_pb2.PRIVACY_MODE_SECAGG_DP]
        allow_clear = self._terms.allow_clear_uploads or self._channel.host in _LOOPBACK
        return [*private, model_pb2.PRIVACY_MODE_CLEAR] if allow_clear else private

    def _require_private(self, model: LoadedModel) -> None:
        if model.manifest.message.model.privacy_mode not in self._privacy_modes():
            raise NotPrivateError(
                "training with this server would reveal the user's ratings to it, so nothing was sent; "
                "for audits, open the client with allow_clear_uploads=True"
            )

    def _resumed(self) -> Round | None:
        """Return the round that was begun before, unless the model has moved on since."""
        store, model = self._user.store, self._user.model
        begun = kept_round(store)
        if isinstance(begun, RoundParticipant) and (model is None or model.manifest.sha256 != begun.manifest_sha256):
            store.update(begun.values_to_clear)
            return None
        return begun

    def _begun(self, assignment: coordinator.Assignment) -> Round:
        """Take the place: with the round's model, and in a mode that this device agrees to."""
        user = self._user
        if user.model is None or user.model.manifest.sha256 != assignment.manifest_sha256:
            user.sync(self._channel)
        model = user.require_model()
        if model.manifest.sha256 != assignment.manifest_sha256:
            raise ServerUnavailableError("the round is over before it began for this device: check in again later")
        self._require_private(model)
        model.published.set_open_rows(user.models.open_rows(self._channel, model.manifest))
        if model.manifest.message.model.privacy_mode != model_pb2.PRIVACY_MODE_CLEAR:
            trusted = self._trusted(model.manifest.signing_key)
            masked = RoundParticipant.begin(assignment, trusted, self._terms.minimum_cohort)
            user.store.update(masked.values())
            return masked
        with user.lock:
            update, code = user.update(model)
            clear = ClearRound.begin(assignment, update)
            user.store.update({**clear.values(), **code})
            return clear

    def _finish(self, current: Round) -> bool:
        """Go through the rest of a round; count it if the server has this device's part."""

        def acknowledged(method: str) -> None:
            self._progress(_STAGES[method])

        took_part = finish(current, self._user.store, self._channel, self._vector, acknowledged, self._stop)
        if took_part:
            self._user.count_round(current.values_to_clear)
        return took_part

    def _vector(self, is_gate_refresh: bool, cohort: int) -> Vector:
        """Return what this device adds to the sum of a cohort."""
        user = self._user
        model = user.require_model()
        # The gate is needed again after a restart in the middle of a round.
        model.published.set_open_rows(user.models.open_rows(self._channel, model.manifest))
        with user.lock:
            if is_gate_refresh:
                return gate_vector(model.published, user.rated(model), cohort)
            update, code = user.update(model)
            model.codes.release_pages()
            user.store.update(code)
            return round_vector(model.published, update, cohort)


def _not_this_time(earliest_seconds: float, latest_seconds: float, reason: Reason) -> Participation:
    # No secret: it only spreads devices out.
    pause = random.uniform(earliest_seconds, latest_seconds)  # noqa: S311
    return Participation(took_part=False, retry_after_seconds=pause, reason=reason)


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
