"""The object that an app embeds: rate, sync, take part, recommend. Ratings and the user code stay in its store."""

from __future__ import annotations

import os
import random
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

from lightfr._wire import coordinator, encode_update, tls
from lightfr._wire.channel import Channel
from lightfr.clear_round import PENDING_UPLOAD, ClearRound
from lightfr.codes import UserCode
from lightfr.errors import (
    InvalidInputError,
    LightFRError,
    NotPrivateError,
    NotSyncedError,
    ProtocolError,
    ServerUnavailableError,
)
from lightfr.interactions import LEVELS, Interactions, RatingScale
from lightfr.model.folder import LoadedModel, ModelFolder
from lightfr.ranking import recommend
from lightfr.renewal import Identity
from lightfr.secagg.contribution import gate_vector, round_vector
from lightfr.secagg.session import DEFAULT_MINIMUM_COHORT, require_minimum_cohort
from lightfr.secure_round import SecureRound, is_begun
from lightfr.store import Store
from lightfr.training import fit_for_round, fit_for_use, make_update
from lightfr.trust import Trust
from lightfr.v1 import model_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType
    from typing import Self

    from lightfr.keys import KeyProvider
    from lightfr.secagg import Vector
    from lightfr.training import RowUpdate

# Names of the values in the store.
_USER_CODE, _ROUNDS, _SCALE = "user_code", "rounds", "scale"
# When to offer again after coming too late, in seconds; the server's own window is not known then.
_PAUSE_AFTER_LATE = (1.0, 10.0)
# How long participate() waits for its round to stop once it is cancelled, and how often it looks, in seconds.
_CANCEL_SECONDS = 0.5
_LOOK_SECONDS = 0.1
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Recommendation(NamedTuple):
    """An item to show. Similarity is the share of bits in which its code equals the user's, in [0, 1]."""

    item_id: str | int
    similarity: float


class RoundStage(StrEnum):
    """How far a device has come in a round; the server has acknowledged the message of each stage."""

    PLACED = "placed"
    KEYS_SENT = "keys_sent"
    SHARES_SENT = "shares_sent"
    UPLOADED = "uploaded"
    REVEALED = "revealed"


class Reason(StrEnum):
    """Why a device did not take part this time."""

    ROUND_FULL = "round_full"
    ALREADY_UPLOADED = "already_uploaded"
    AGGREGATING = "aggregating"
    TRAINING_FINISHED = "training_finished"
    NOT_CAPABLE = "not_capable"
    # The round went on without this device.
    TOO_LATE = "too_late"
    # The app cancelled the call, or called forget().
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Participation:
    """How an offer to take part ended."""

    # Whether the server has this device's upload for a round, safely.
    took_part: bool
    # When to offer again, in seconds; drawn at random from the server's window.
    retry_after_seconds: float
    # Why the device did not take part; None when it did.
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """What an app may show about this device. Counts only."""

    model_version: int
    item_count: int
    code_bits: int
    item_id_kind: str
    rating_count: int
    rounds: int
    upload_pending: bool


class Client:
    """One user on one device. Thread-safe; recommends from the old model while a new one is on its way."""

    def __init__(
        self, store: Store, identity: Identity, channel: Channel, models: ModelFolder, allow_clear: bool
    ) -> None:
        """Use Client.open instead."""
        self._store = store
        self._identity = identity
        self._channel = channel
        self._models = models
        self._allow_clear = allow_clear
        # _network is held during sync and participate, _state only while something in memory is read or changed.
        # Whoever needs both takes _network first.
        self._network = threading.Lock()
        self._state = threading.RLock()
        self._minimum_cohort = DEFAULT_MINIMUM_COHORT
        self._scale = RatingScale(1, 5)
        self._interactions: Interactions | None = None
        self._code_for_use: UserCode | None = None
        self._model: LoadedModel | None = None
        # Stops the call that holds _network.
        self._stop: threading.Event | None = None
        self._is_forgotten = False

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        *,
        server: str,
        identity: str | os.PathLike[str],
        trust: str | os.PathLike[str],
        key: KeyProvider,
        scale: RatingScale | None = None,
        minimum_cohort: int = DEFAULT_MINIMUM_COHORT,
        allow_clear_uploads: bool = False,
    ) -> Client:
        """Open the data of one user in a folder, making it when there is none. Needs no network.

        `server` is https://host:port; `identity` and `trust` are the PEM files that enrolment wrote; `key` keeps the
        secret that encrypts the store. `scale` is the range of ratings, 1 to 5 unless given when the folder was made.
        With secure aggregation this device takes part only among at least `minimum_cohort` devices; fewer than 256 are
        for tests. `allow_clear_uploads` lets it upload in the clear, which reveals its ratings to the server: for
        audits only.
        """
        require_minimum_cohort(minimum_cohort)
        trusted = Trust(trust)
        channel = Channel(server, tls.context(trusted.path, identity))
        store = Store.open(folder, key)
        try:
            allow_clear = allow_clear_uploads or channel.host in _LOOPBACK
            models = ModelFolder(Path(folder) / "models", trusted)
            client = cls(store, Identity(identity, trusted), channel, models, allow_clear)
            client._minimum_cohort = minimum_cohort
            client._scale = _agreed_scale(store, scale)
            client._model = client._models.load_or_begin_anew()
        except BaseException:
            store.close()
            raise
        return client

    def rate(self, item_id: str | int, rating: float) -> None:
        """Keep a rating, durably; it replaces an older one of the item. Items that the catalogue lacks are kept too."""
        self.rate_many([(item_id, rating)])

    def rate_many(self, ratings: Iterable[tuple[str | int, float]]) -> None:
        """Keep several ratings at once, oldest first: all of them or, with an error, none."""
        levels = [(item_id, self._scale.level(rating)) for item_id, rating in ratings]
        with self._state:
            self._store.rate(levels)
            self._interactions = self._code_for_use = None

    def unrate(self, item_id: str | int) -> bool:
        """Forget the rating of an item; say whether there was one."""
        with self._state:
            self._interactions = self._code_for_use = None
            return self._store.unrate(item_id)

    def recommend(self, k: int = 10, *, exclude_rated: bool = True) -> list[Recommendation]:
        """Return the k best items for this user, best first. Works offline, but not before the first sync."""
        with self._state:
            model = self._require_model()
            rated = self._rated(model).arrays()[0] if exclude_rated else ()
            ranked = recommend(self._fitted_for_use(model), model.codes, k, rated=rated)
            return [Recommendation(model.catalogue.id_of(index), similarity) for index, similarity in ranked]

    def sync(self) -> bool:
        """Fetch the newest model, a delta where that is smaller; say whether it is new. Resumes a broken download.

        Renews this device's certificate too, when it ends soon.
        """
        with self._network_call(threading.Event()):
            self._identity.renew_if_due(self._channel)
            return self._sync()

    def participate(
        self, progress: Callable[[RoundStage], None] | None = None, cancel: threading.Event | None = None
    ) -> Participation:
        """Offer to take part in a training round, and do so if there is a place.

        A round that was begun before is finished first. With secure aggregation this takes as long as the slowest of
        the cohort: seconds to minutes, most of it waiting. `progress` is called in this thread after each stage. Once
        `cancel` is set, the call returns within a second and the device leaves its round.
        """
        if cancel is None:
            return self._participate(progress or (lambda stage: None), threading.Event())
        return self._participate_until(cancel, progress or (lambda stage: None))

    def _participate_until(self, cancel: threading.Event, progress: Callable[[RoundStage], None]) -> Participation:
        """Take part in another thread, so that this one can return even while a call to the server is stuck."""
        said: SimpleQueue[RoundStage | Participation | BaseException] = SimpleQueue()
        stop = threading.Event()

        def take_part() -> None:
            try:
                said.put(self._participate(said.put, stop))
            except BaseException as error:
                said.put(error)

        threading.Thread(target=take_part, name="lightfr round", daemon=True).start()
        ends = None
        while ends is None or time.monotonic() < ends:
            try:
                news = said.get(timeout=_LOOK_SECONDS)
            except Empty:
                news = None
            if isinstance(news, Participation):
                return news
            if isinstance(news, RoundStage):
                progress(news)
            elif news is not None:
                raise news
            if cancel.is_set() and ends is None:
                self._interrupt(stop)
                ends = time.monotonic() + _CANCEL_SECONDS
        return _CANCELLED

    def _participate(self, progress: Callable[[RoundStage], None], stop: threading.Event) -> Participation:
        try:
            with self._network_call(stop):
                return self._offer(progress, stop)
        except LightFRError:
            if not stop.is_set():
                raise
            return _CANCELLED

    def _offer(self, progress: Callable[[RoundStage], None], stop: threading.Event) -> Participation:
        if self._model is not None:
            self._require_private(self._model)
        begun_before = self._resumed()
        if begun_before is not None and self._finish(begun_before, progress, stop):
            return Participation(took_part=True, retry_after_seconds=0.0)
        if stop.is_set():
            return _CANCELLED
        answer = coordinator.check_in(self._channel, self._model_version(), self._privacy_modes())
        if isinstance(answer, coordinator.RetryWindow):
            return _not_this_time(answer.earliest_seconds, answer.latest_seconds, Reason(answer.reason))
        progress(RoundStage.PLACED)
        if self._finish(self._begun(answer), progress, stop):
            return Participation(took_part=True, retry_after_seconds=0.0)
        return _CANCELLED if stop.is_set() else _not_this_time(*_PAUSE_AFTER_LATE, Reason.TOO_LATE)

    @contextmanager
    def _network_call(self, stop: threading.Event) -> Iterator[None]:
        """Hold the network; `stop` ends what the caller does with it."""
        try:
            with self._network:
                self._store.require_open()
                self._stop = self._channel.stop = stop
                try:
                    yield
                finally:
                    self._stop = self._channel.stop = None
        finally:
            self._remove_forgotten_models()

    def _remove_forgotten_models(self) -> None:
        with self._state:
            if self._is_forgotten:
                self._is_forgotten = False
                self._models.remove()

    def _interrupt(self, stop: threading.Event | None) -> None:
        """Make the call that `stop` belongs to end soon."""
        if stop is not None:
            stop.set()
            if self._stop is stop:
                self._channel.interrupt()

    def status(self) -> Status:
        """Say how things stand, in numbers."""
        with self._state:
            model = self._model
            shape = model.manifest.message.model if model else model_pb2.RoundModel()
            return Status(
                model_version=self._model_version(),
                item_count=shape.item_count,
                code_bits=shape.code_bits,
                item_id_kind=model.catalogue.kind if model else "",
                rating_count=len(self._store.ratings),
                rounds=int.from_bytes(self._store.get(_ROUNDS) or b"", "little"),
                upload_pending=self._store.get(PENDING_UPLOAD) is not None or is_begun(self._store),
            )

    def export_my_data(self) -> dict[str, Any]:
        """Return all that is kept about this user, readable and ready for JSON: for the user, not for logs."""
        with self._state:
            span = self._scale.maximum - self._scale.minimum
            return {
                "ratings": [
                    {"item_id": item_id, "rating": self._scale.minimum + level * span / LEVELS}
                    for item_id, level in self._store.ratings.items()
                ],
                "rating_scale": [self._scale.minimum, self._scale.maximum],
                "user_code": (self._store.get(_USER_CODE) or b"").hex(),
                "rounds": self.status().rounds,
                "pending_upload": (self._store.get(PENDING_UPLOAD) or b"").hex(),
            }

    def forget(self) -> None:
        """Destroy the key, then delete everything in the folder, and close. What was uploaded stays uploaded."""
        self._interrupt(self._stop)
        with self._state:
            self._store.forget()
            self._is_forgotten = True
            self.close()
        # A call that still holds the network removes them when it ends.
        if self._network.acquire(blocking=False):
            self._network.release()
            self._remove_forgotten_models()

    def rotate_key(self) -> None:
        """Encrypt the store anew, under a new key."""
        with self._state:
            self._store.rotate_key()

    def close(self) -> None:
        """Close the store, the model and the connection; closing twice is fine."""
        with self._state:
            self._channel.close()
            self._store.close()
            if self._model is not None:
                self._model.close()
            self._model = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client at model version {self._model_version()}>"

    def _model_version(self) -> int:
        return self._model.manifest.model_version if self._model else 0

    def _require_model(self) -> LoadedModel:
        if self._model is None:
            self._store.require_open()
            raise NotSyncedError
        return self._model

    def _rated(self, model: LoadedModel) -> Interactions:
        """The ratings by row, oldest first; items that the catalogue lacks wait for one that has them."""
        if self._interactions is None:
            rows = ((model.catalogue.row_of(item_id), level) for item_id, level in self._store.ratings.items())
            self._interactions = Interactions((row, level) for row, level in rows if row is not None)
            # Binary searches touch pages all over the file, and a small device wants them back.
            model.catalogue.release_pages()
        return self._interactions

    def _user_code(self, model: LoadedModel) -> UserCode:
        kept = self._store.get(_USER_CODE)
        if kept is not None and len(kept) * 8 == model.codes.code_bits:
            return UserCode(kept)
        return UserCode.random(model.codes.code_bits)

    def _fitted_for_use(self, model: LoadedModel) -> UserCode:
        if self._code_for_use is None:
            code, rated = self._user_code(model), self._rated(model)
            self._code_for_use = fit_for_use(model.published, rated, code, recency=True)
        return self._code_for_use

    def _sync(self) -> bool:
        old = self._model.manifest if self._model else None
        signed = coordinator.get_manifest(self._channel, self._model_version())
        if signed is None:
            return False
        loaded = self._models.fetch(self._channel, signed, old)
        with self._state:
            if self._model is not None:
                self._model.close()
            self._model = loaded
            self._interactions = self._code_for_use = None
        return True

    def _privacy_modes(self) -> list[int]:
        private: list[int] = [model_pb2.PRIVACY_MODE_SECAGG, model_pb2.PRIVACY_MODE_SECAGG_DP]
        return [*private, model_pb2.PRIVACY_MODE_CLEAR] if self._allow_clear else private

    def _require_private(self, model: LoadedModel) -> None:
        if model.manifest.message.model.privacy_mode not in self._privacy_modes():
            raise NotPrivateError(
                "training with this server would reveal the user's ratings to it, so nothing was sent; "
                "for audits, open the client with allow_clear_uploads=True"
            )

    def _resumed(self) -> ClearRound | SecureRound | None:
        """The round that was begun before, unless the model has moved on since."""
        clear = ClearRound.resume(self._store, self._channel)
        secure = SecureRound.resume(self._store, self._channel)
        if secure is not None and (self._model is None or self._model.manifest.sha256 != secure.manifest_sha256):
            secure.leave()
            secure = None
        return clear or secure

    def _begun(self, assignment: coordinator.Assignment) -> ClearRound | SecureRound:
        """Take the place: with the round's model, and in a mode that this device agrees to."""
        if self._model is None or self._model.manifest.sha256 != assignment.manifest_sha256:
            self._sync()
        model = self._require_model()
        if model.manifest.sha256 != assignment.manifest_sha256:
            raise ServerUnavailableError("the round is over before it began for this device: check in again later")
        self._require_private(model)
        model.published.set_open_rows(self._models.open_rows(self._channel, model.manifest))
        if model.manifest.message.model.privacy_mode != model_pb2.PRIVACY_MODE_CLEAR:
            if not assignment.peer_id:
                raise ProtocolError("the server broke the protocol: an assignment without a peer_id")
            key = model.manifest.signing_key
            return SecureRound.begin(self._store, self._channel, assignment, key, self._minimum_cohort)
        with self._state:
            update, code = self._update(model)
            return ClearRound.begin(self._store, self._channel, assignment, encode_update(update), code)

    def _finish(
        self, current: ClearRound | SecureRound, progress: Callable[[RoundStage], None], stop: threading.Event
    ) -> bool:
        """Go through the rest of a round; count it if the server has this device's part."""
        try:
            if isinstance(current, ClearRound):
                took_part = current.run()
                if took_part:
                    progress(RoundStage.UPLOADED)
            else:
                took_part = current.run(self._vector, lambda method: progress(_STAGES[method]), stop)
        except LightFRError:
            if stop.is_set():
                self._store.update(current.forgotten)
            raise
        if took_part:
            with self._state:
                rounds = self.status().rounds + 1
                self._store.update({_ROUNDS: rounds.to_bytes(8, "little"), **current.forgotten})
        return took_part

    def _update(self, model: LoadedModel) -> tuple[RowUpdate, dict[str, bytes]]:
        """This device's gradients, and the user code behind them as the store keeps it."""
        code = fit_for_round(model.published, self._rated(model), self._user_code(model))
        return make_update(model.published, self._rated(model), code), {_USER_CODE: code.reveal()}

    def _vector(self, is_gate_refresh: bool, cohort: int) -> Vector:
        """What this device adds to the sum of a cohort."""
        model = self._require_model()
        # The gate is needed again after a restart in the middle of a round.
        model.published.set_open_rows(self._models.open_rows(self._channel, model.manifest))
        # A round needs few rows of them, and memory for its vector.
        model.codes.release_pages()
        with self._state:
            if is_gate_refresh:
                return gate_vector(model.codes.n_items, self._rated(model), cohort)
            update, code = self._update(model)
            self._store.update(code)
            return round_vector(model.published, update, cohort)


_CANCELLED = Participation(took_part=False, retry_after_seconds=0.0, reason=Reason.CANCELLED)
_STAGES = {
    "AdvertiseKeys": RoundStage.KEYS_SENT,
    "ShareKeys": RoundStage.SHARES_SENT,
    "Upload": RoundStage.UPLOADED,
    "RevealShares": RoundStage.REVEALED,
}


def _not_this_time(earliest_seconds: float, latest_seconds: float, reason: Reason) -> Participation:
    # No secret: it only spreads devices out.
    pause = random.uniform(earliest_seconds, latest_seconds)  # noqa: S311
    return Participation(took_part=False, retry_after_seconds=pause, reason=reason)


def _agreed_scale(store: Store, asked: RatingScale | None) -> RatingScale:
    """The scale that the folder was made with; another one later would change what the kept ratings mean."""
    kept = store.get(_SCALE)
    if kept is None:
        chosen = asked or RatingScale(1, 5)
        store.put(_SCALE, f"{chosen.minimum!r} {chosen.maximum!r}".encode())
        return chosen
    minimum, maximum = map(float, kept.split())
    if asked is not None and (asked.minimum, asked.maximum) != (minimum, maximum):
        raise InvalidInputError(
            f"this folder was made with ratings from {minimum:g} to {maximum:g}: open it with that scale"
        )
    return RatingScale(minimum, maximum)
