"""How a client drives a round: every message is in the store before it is sent, so that a killed device goes on."""

from __future__ import annotations

import random
import time
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from lightfr._wire import coordinator, secure
from lightfr.errors import LightFRError, NotPrivateError, ServerUnavailableError
from lightfr.participation import CANCELLED, TOOK_PART, Participation, Reason, RoundStage
from lightfr.privacy_loss import epsilon, round_loss
from lightfr.rounds import ClearRound, RoundParticipant, is_too_late
from lightfr.secagg import gate_vector, round_vector
from lightfr.v1 import model_pb2
from lightfr.views import kept_views

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping

    from lightfr._wire.channel import Channel
    from lightfr.budget import Budget, Ledger
    from lightfr.model.folder import LoadedModel
    from lightfr.participation import Progress, Terms
    from lightfr.rounds import MakeVector, Trusted
    from lightfr.secagg import Vector
    from lightfr.store import Store
    from lightfr.user import User

    Round = ClearRound | RoundParticipant

# The deadline of an assignment covers five phases, of which the first has begun; two more follow. A device that waited
# for twice as long leaves.
_DEADLINES = 2
# When to offer again, in seconds, if no server says so: after coming too late, and after a place that the budget had no
# room for, be it that this device has revealed on the model version or that its privacy loss is at its end.
_PAUSE_AFTER_LATE = (1.0, 10.0)
_PAUSE_ON_VERSION = (60.0, 300.0)
_PAUSE_AT_END = (43_200.0, 86_400.0)
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
    """One offer to take part, from the check-in to the end of the round. Whoever makes it holds the channel.

    `trusted` returns whom the device trusts in a masked round of a server with a key, and who it is there.
    """

    def __init__(
        self,
        user: User,
        channel: Channel,
        terms: Terms,
        ledger: Ledger,
        trusted: Callable[[bytes], Trusted],
        progress: Progress,
        stop: threading.Event,
    ) -> None:
        self._user, self._channel, self._terms, self._ledger = user, channel, terms, ledger
        self._trusted, self._progress, self._stop = trusted, progress, stop

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
        if pause := self._pause_before_checking_in():
            return _not_this_time(pause, Reason.BUDGET)
        answer = coordinator.check_in(self._channel, user.model_version, self._privacy_modes())
        if isinstance(answer, coordinator.RetryWindow):
            return _not_this_time((answer.earliest_seconds, answer.latest_seconds), Reason(answer.reason))
        self._progress(RoundStage.PLACED)
        model = self._model_of(answer)
        if pause := self._pause_before(model, answer.kind):
            return _not_this_time(pause, Reason.BUDGET)
        if self._finish(self._begun(answer, model)):
            return TOOK_PART
        return CANCELLED if self._stop.is_set() else _not_this_time(_PAUSE_AFTER_LATE, Reason.TOO_LATE)

    def _privacy_modes(self) -> list[int]:
        if self._terms.require_dp is not None:
            return [model_pb2.PRIVACY_MODE_SECAGG_DP]
        private: list[int] = [model_pb2.PRIVACY_MODE_SECAGG, model_pb2.PRIVACY_MODE_SECAGG_DP]
        return [*private, model_pb2.PRIVACY_MODE_CLEAR] if self._terms.allow_clear_uploads else private

    def _require_private(self, model: LoadedModel) -> None:
        if model.manifest.message.model.privacy_mode in self._privacy_modes():
            return
        if self._terms.require_dp is not None:
            raise NotPrivateError(
                "this client was opened with require_dp, and the server does not train with secagg+dp, so nothing was "
                "sent; use a server that does"
            )
        raise NotPrivateError(
            "training with this server would reveal the user's ratings to it, so nothing was sent; "
            "for audits, open the client with allow_clear_uploads=True, or run "
            "`lightfr participate --allow-clear-uploads`"
        )

    def _pause_before_checking_in(self) -> tuple[float, float] | None:
        """Return a pause while the budget has no room for a training round: a place would be lost to the cohort."""
        model = self._user.model
        if model is None or _is_clear(model):
            return None
        return _window(self._ledger.seconds_until_room(is_gate_refresh=False))

    def _pause_before(self, model: LoadedModel, kind: int) -> tuple[float, float] | None:
        """Return a pause if the budget has no room for a round of this kind; None: it has."""
        if _is_clear(model):
            return None
        spent = self._ledger.spent()
        if model.manifest.model_version <= spent.revealed_version:
            return _PAUSE_ON_VERSION
        loss, most = spent.privacy_loss + self._loss(model, kind), self._terms.require_dp
        if most is not None and epsilon(loss) > most:
            return _PAUSE_AT_END
        is_gate_refresh = kind == coordinator.GATE_REFRESH
        return _window(self._ledger.seconds_until_room(is_gate_refresh=is_gate_refresh))

    def _loss(self, model: LoadedModel, kind: int) -> float:
        published = model.published
        if published.noise is None:
            return 0.0
        cohort = self._terms.minimum_cohort
        is_training = kind == coordinator.TRAINING
        return round_loss(published.noise, published.code_bits, cohort, is_training=is_training)

    def _resumed(self) -> Round | None:
        """Return the round that was begun before, if this device would begin it today as well."""
        store = self._user.store
        begun = kept_round(store)
        if begun is None or self._still_agrees(begun):
            return begun
        store.update(_values_after(begun, store))
        return None

    def _still_agrees(self, begun: Round) -> bool:
        """Whether the round is on the model of now, and the app's terms of now allow it: they may be stricter."""
        if isinstance(begun, ClearRound):
            return self._terms.allow_clear_uploads
        model = self._user.model
        if model is None or model.manifest.sha256 != begun.manifest_sha256:
            return False
        if begun.minimum_cohort < self._terms.minimum_cohort:
            return False
        return begun.has_uploaded or self._pause_before(model, begun.kind) is None

    def _model_of(self, assignment: coordinator.Assignment) -> LoadedModel:
        """Return the round's model, in a mode that this device agrees to."""
        user = self._user
        if user.model is None or user.model.manifest.sha256 != assignment.manifest_sha256:
            user.sync(self._channel)
        model = user.require_model()
        if model.manifest.sha256 != assignment.manifest_sha256:
            raise ServerUnavailableError("the round is over before it began for this device: check in again later")
        self._require_private(model)
        return model

    def _begun(self, assignment: coordinator.Assignment, model: LoadedModel) -> Round:
        """Take the place."""
        user = self._user
        if not _is_clear(model):
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
        store = self._user.store

        def acknowledged(method: str) -> None:
            self._progress(_STAGES[method])

        budget = self._terms.budget

        def make_vector(kind: int, cohort: int) -> Vector:
            digest = current.view().roster_digest if isinstance(current, RoundParticipant) else b""
            return self._vector(kind, cohort, digest)

        driver = Driver(store, self._channel, make_vector, self._spend, acknowledged, self._stop, budget)
        took_part = driver.finish(current)
        if took_part:
            self._user.count_round(_values_after(current, store))
        return took_part

    def _spend(self, current: RoundParticipant) -> Mapping[str, bytes]:
        """Return what the outgoing message costs, to be kept before it is sent."""
        model = self._user.require_model()
        match current.outgoing.method:
            case "Upload":
                is_gate_refresh = current.kind == coordinator.GATE_REFRESH
                loss = self._loss(model, current.kind)
                return self._ledger.after_upload(is_gate_refresh=is_gate_refresh, privacy_loss=loss)
            case "RevealShares":
                return self._ledger.after_reveal(model.manifest.model_version)
            case _:
                return {}

    def _vector(self, kind: int, cohort: int, roster_digest: bytes) -> Vector:
        """Return what this device adds to the sum of a cohort."""
        user = self._user
        model = user.require_model()
        with user.lock:
            if kind == coordinator.GATE_REFRESH:
                return gate_vector(model.published, user.rated(model).to_teach(), cohort)
            if kind == coordinator.EVALUATION:
                from lightfr.evaluation import evaluation_vector

                rated, code_of_before = user.rated(model), user.code(model)
                rankings = model.manifest.rankings
                return evaluation_vector(model.published, rankings, rated, code_of_before, roster_digest, cohort)
            update, code = user.update(model)
            model.codes.release_pages()
            user.store.update(code)
            return round_vector(model.published, update, cohort)


def _is_clear(model: LoadedModel) -> bool:
    return model.manifest.message.model.privacy_mode == model_pb2.PRIVACY_MODE_CLEAR


def _window(seconds: float) -> tuple[float, float] | None:
    """Return when to come back if there is room in so many seconds; None: now."""
    return (seconds, seconds + _PAUSE_ON_VERSION[1]) if seconds else None


def _not_this_time(window: tuple[float, float], reason: Reason) -> Participation:
    # No secret: it only spreads devices out.
    pause = random.uniform(*window)  # noqa: S311
    return Participation(took_part=False, retry_after_seconds=pause, reason=reason)


def kept_round(store: Store) -> Round | None:
    """Return the round that was begun before and is not over."""
    return ClearRound.from_values(store.get) or RoundParticipant.from_values(store.get)


def _values_after(current: Round, store: Store) -> dict[str, bytes | None]:
    """Return what to keep once a round is over, however it ended: nothing of it but what the server told."""
    view = current.view() if isinstance(current, RoundParticipant) else None
    return {**current.values_to_clear, **kept_views(view, store.get)}


class Driver(NamedTuple):
    """What takes a round whose values are in the store to its end."""

    store: Store
    channel: Channel
    make_vector: MakeVector
    # Returns what the outgoing message of a masked round costs, to be kept before it is sent.
    spend: Callable[[RoundParticipant], Mapping[str, bytes]]
    # Called with the method of each message that the server has.
    acknowledged: Callable[[str], None]
    # Makes the device leave.
    stop: threading.Event
    budget: Budget

    def finish(self, current: Round) -> bool:
        """Go through the rest of a round; say whether the server has this device's part."""
        try:
            is_finished = self._walk(current)
        except LightFRError as error:
            is_late = is_too_late(error) or self._has_run_out(error)
            if self.stop.is_set() or is_late or current.is_over_after(error):
                self.store.update(_values_after(current, self.store))
            if is_late:
                return False
            raise
        finally:
            self.channel.ends = inf
        if not is_finished:
            self.store.update(_values_after(current, self.store))
        return is_finished

    def _walk(self, current: Round) -> bool:
        if isinstance(current, ClearRound):
            self._send(current)
            return True
        round_ends = time.monotonic() + min(_DEADLINES * current.deadline_seconds, self.budget.round_seconds)
        self._begin_phase(round_ends)
        self._send(current)
        while not isinstance(step := secure.next_step(self.channel, current.round_id), secure.Done):
            left = self.channel.ends - time.monotonic()
            if left < 0 or self.stop.is_set():
                return False
            if isinstance(step, secure.Wait):
                self.stop.wait(min(step.seconds, left))
            else:
                current.answer(step, self.make_vector)
                self.store.update({**current.values(), **self.spend(current)})
                self._begin_phase(round_ends)
                self._send(current)
        # A server that says so earlier has none of this device's part.
        return current.has_uploaded

    def _begin_phase(self, round_ends: float) -> None:
        """Let no call wait for longer than this device does, however slowly the server answers."""
        self.channel.ends = min(round_ends, time.monotonic() + self.budget.phase_seconds)

    def _has_run_out(self, error: LightFRError) -> bool:
        """Whether a call was given up because the time of the phase or of the round was over."""
        return isinstance(error, ServerUnavailableError) and time.monotonic() > self.channel.ends

    def _send(self, current: Round) -> None:
        method, request = current.outgoing
        secure.send(self.channel, method, request)
        self.acknowledged(method)
