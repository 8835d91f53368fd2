"""The object that an app embeds: rate, sync, take part, recommend. Ratings and the user code stay in its store.

What a call needs beside the store and the model is imported when it is called: TLS, secure aggregation, a round.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import contextmanager
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from lightfr.codes import ItemSet, UserCode
from lightfr.cohorts import DEFAULT_MINIMUM_COHORT, require_minimum_cohort
from lightfr.device import Trust
from lightfr.errors import (
    InvalidInputError,
    LightFRError,
    NotPrivateError,
    NotSyncedError,
    ServerUnavailableError,
    UnknownItemError,
)
from lightfr.interactions import Interactions, RatingScale
from lightfr.model.folder import LoadedModel, ModelFolder
from lightfr.participation import CANCELLED, TOOK_PART, Participation, Reason, RoundStage, until_cancelled
from lightfr.ranking import rank, similarity_of
from lightfr.store import Store
from lightfr.training import fit_for_round, fit_for_use, make_update
from lightfr.training.constants import REFINE_FROM_RATINGS
from lightfr.training.model import CATALOGUE
from lightfr.v1 import model_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType
    from typing import Self

    from lightfr._wire import coordinator
    from lightfr._wire.channel import Channel
    from lightfr.keys import KeyProvider
    from lightfr.participation import Progress
    from lightfr.rounds import ClearRound, RoundParticipant
    from lightfr.secagg import Vector
    from lightfr.training import RowUpdate

    ItemId = str | int

# Names of the values in the store.
_USER_CODE, _ROUNDS, _SCALE = "user_code", "rounds", "scale"
# When to offer again after coming too late, in seconds; the server's own window is not known then.
_PAUSE_AFTER_LATE = (1.0, 10.0)
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_STAGES = {
    "AdvertiseKeys": RoundStage.KEYS_SENT,
    "ShareKeys": RoundStage.SHARES_SENT,
    "Upload": RoundStage.UPLOADED,
    "RevealShares": RoundStage.REVEALED,
}


class Recommendation(NamedTuple):
    """An item to show. Similarity is the share of bits in which its code equals the user's, in [0, 1]."""

    item_id: str | int
    similarity: float


class ItemIdKind(StrEnum):
    """What the item ids of a catalogue are."""

    STR = "str"
    INT = "int"


class Status(NamedTuple):
    """What an app may show about this device. Counts only."""

    model_version: int
    item_count: int
    code_bits: int
    # None before the first sync.
    item_id_kind: ItemIdKind | None
    rating_count: int
    # Ratings of items that the catalogue does not have: they wait for one that has them. 0 before the first sync.
    unknown_ratings: int
    rounds: int
    upload_pending: bool


class ExportedRating(TypedDict):
    """One rating of an export."""

    item_id: str | int
    rating: float


class ExportedData(TypedDict):
    """All that is kept about a user, ready for JSON; codes and messages are in hexadecimal."""

    ratings: list[ExportedRating]
    rating_scale: list[float]
    user_code: str
    rounds: int
    pending_upload: str


class Client:
    """One user on one device. Thread-safe; recommends from the old model while a new one is on its way."""

    def __init__(
        self, store: Store, models: ModelFolder, server: str, identity: str | os.PathLike[str], trust: Trust
    ) -> None:
        """Use Client.open instead."""
        self._store = store
        self._models = models
        self._server, self._identity, self._trust = server, identity, trust
        # _network is held during sync and participate, _state only while something in memory is read or changed.
        # Whoever needs both takes _network first.
        self._network = threading.Lock()
        self._state = threading.RLock()
        self._allow_clear_uploads = False
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
        # The rest of the address and of the identity is checked before the first call to the server.
        if not server.startswith("https://"):
            raise InvalidInputError("the server's address is not https://host:port")
        if not Path(identity).is_file():
            raise InvalidInputError(f"there is no identity at {os.fspath(identity)}: enrol this device first")
        trusted = Trust(trust)
        store = Store.open(folder, key)
        try:
            client = cls(store, ModelFolder(Path(folder) / "models", trusted), server, identity, trusted)
            client._allow_clear_uploads = allow_clear_uploads
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

    def ratings(self) -> list[tuple[str | int, float]]:
        """Return what the user rated, oldest first: for the user's own screen, not for logs."""
        return [(item_id, self._scale.rating(level)) for item_id, level in self._store.ratings.items()]

    def recommend(
        self,
        k: int = 10,
        *,
        exclude_rated: bool = True,
        exclude: Iterable[str | int] = (),
        among: Iterable[str | int] | None = None,
    ) -> list[Recommendation]:
        """Return the k best items for this user, best first. Works offline, but not before the first sync.

        `exclude` leaves more items out, and `among` asks about these items alone. Ids that the catalogue does not have
        are ignored in both.
        """
        with self._state:
            model = self._require_model()
            left_out = ItemSet(model.codes.n_items, model.rows_of(exclude))
            for row in self._rated(model).arrays()[0] if exclude_rated else ():
                left_out.add(row)
            asked = None if among is None else model.rows_of(among)
            ranked = rank(self._fitted_for_use(model), model.codes, k, exclude=left_out, among=asked)
            return [Recommendation(model.catalogue.id_of(index), similarity) for index, similarity in ranked]

    def score(self, item_id: str | int) -> float:
        """Return the similarity of one item, as recommend() does. Raises UnknownItemError for an unknown id."""
        with self._state:
            model = self._require_model()
            row = model.catalogue.row_of(item_id)
            if row is None:
                raise UnknownItemError
            return similarity_of(self._fitted_for_use(model), model.codes, row)

    def sync(self) -> bool:
        """Fetch the newest model, a delta where that is smaller; say whether it is new. Resumes a broken download.

        Renews this device's certificate too, when it ends soon.
        """
        from lightfr.device import Identity

        with self._network_call(threading.Event()):
            Identity(self._identity, self._trust).renew_if_due(self._channel)
            return self._sync()

    def participate(
        self, progress: Callable[[RoundStage], None] | None = None, cancel: threading.Event | None = None
    ) -> Participation:
        """Offer to take part in a training round, and do so if there is a place.

        A round that was begun before is finished first. With secure aggregation this takes as long as the slowest of
        the cohort: seconds to minutes, most of it waiting. `progress` is called in this thread after each stage. Once
        `cancel` is set, the call returns within a second and the device leaves its round.
        """
        progress, stop = progress or (lambda stage: None), threading.Event()
        if cancel is None:
            return self._participate(progress, stop)
        return until_cancelled(
            lambda report: self._participate(report, stop), progress, cancel, lambda: self._interrupt(stop)
        )

    def _participate(self, progress: Progress, stop: threading.Event) -> Participation:
        try:
            with self._network_call(stop):
                outcome = self._offer(progress, stop)
        except LightFRError as error:
            if not stop.is_set():
                _log("a round failed: %s", error)
                raise
            outcome = CANCELLED
        _log("took part in a round" if outcome.took_part else f"did not take part in a round: {outcome.reason}")
        return outcome

    def _offer(self, progress: Progress, stop: threading.Event) -> Participation:
        from lightfr._wire import coordinator

        if self._model is not None:
            self._require_private(self._model)
            # A round reads few rows of the codes, and needs memory for its vector.
            self._model.codes.release_pages()
        begun_before = self._resumed()
        if begun_before is not None and self._finish(begun_before, progress, stop):
            return TOOK_PART
        if stop.is_set():
            return CANCELLED
        answer = coordinator.check_in(self._channel, self._model_version(), self._privacy_modes())
        if isinstance(answer, coordinator.RetryWindow):
            return _not_this_time(answer.earliest_seconds, answer.latest_seconds, Reason(answer.reason))
        progress(RoundStage.PLACED)
        if self._finish(self._begun(answer), progress, stop):
            return TOOK_PART
        return CANCELLED if stop.is_set() else _not_this_time(*_PAUSE_AFTER_LATE, Reason.TOO_LATE)

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
        from lightfr.kept_rounds import kept_round

        with self._state:
            model, rating_count = self._model, len(self._store.ratings)
            return Status(
                model_version=self._model_version(),
                item_count=model.codes.n_items if model else 0,
                code_bits=model.codes.code_bits if model else 0,
                item_id_kind=ItemIdKind(model.catalogue.kind) if model else None,
                rating_count=rating_count,
                unknown_ratings=rating_count - len(self._rated(model)) if model else 0,
                rounds=self._rounds(),
                upload_pending=kept_round(self._store) is not None,
            )

    def export_my_data(self) -> ExportedData:
        """Return all that is kept about this user, readable and ready for JSON: for the user, not for logs."""
        from lightfr.rounds import ClearRound

        with self._state:
            pending = ClearRound.from_values(self._store.get)
            return {
                "ratings": [{"item_id": item_id, "rating": rating} for item_id, rating in self.ratings()],
                "rating_scale": [self._scale.minimum, self._scale.maximum],
                "user_code": (self._store.get(_USER_CODE) or b"").hex(),
                "rounds": self._rounds(),
                "pending_upload": pending.outgoing.request.hex() if pending else "",
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
            if "_channel" in self.__dict__:
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

    @cached_property
    def _channel(self) -> Channel:
        """The connection to the server, made when a call needs it. Whoever uses it holds _network."""
        from lightfr._wire import tls
        from lightfr._wire.channel import Channel

        return Channel(self._server, tls.context(self._trust.path, self._identity))

    def _rounds(self) -> int:
        return int.from_bytes(self._store.get(_ROUNDS) or b"", "little")

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
        return self._interactions

    def _user_code(self, model: LoadedModel) -> UserCode:
        kept = self._store.get(_USER_CODE)
        if kept is not None and len(kept) * 8 == model.codes.code_bits:
            return UserCode(kept)
        return UserCode.random(model.codes.code_bits)

    def _fitted_for_use(self, model: LoadedModel) -> UserCode:
        if self._code_for_use is None:
            code, rated = self._user_code(model), self._rated(model)
            refine = model.published.objective == CATALOGUE and len(rated) >= REFINE_FROM_RATINGS
            self._code_for_use = fit_for_use(model.published, rated, code, recency=True, refine=refine)
        return self._code_for_use

    def _sync(self) -> bool:
        from lightfr._wire import coordinator

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
        _log("synced to model version %d", loaded.manifest.model_version)
        return True

    def _privacy_modes(self) -> list[int]:
        private: list[int] = [model_pb2.PRIVACY_MODE_SECAGG, model_pb2.PRIVACY_MODE_SECAGG_DP]
        allow_clear = self._allow_clear_uploads or self._channel.host in _LOOPBACK
        return [*private, model_pb2.PRIVACY_MODE_CLEAR] if allow_clear else private

    def _require_private(self, model: LoadedModel) -> None:
        if model.manifest.message.model.privacy_mode not in self._privacy_modes():
            raise NotPrivateError(
                "training with this server would reveal the user's ratings to it, so nothing was sent; "
                "for audits, open the client with allow_clear_uploads=True"
            )

    def _resumed(self) -> ClearRound | RoundParticipant | None:
        """The round that was begun before, unless the model has moved on since."""
        from lightfr.kept_rounds import kept_round
        from lightfr.rounds import RoundParticipant

        begun = kept_round(self._store)
        if isinstance(begun, RoundParticipant) and (
            self._model is None or self._model.manifest.sha256 != begun.manifest_sha256
        ):
            self._store.update(begun.values_to_clear)
            return None
        return begun

    def _begun(self, assignment: coordinator.Assignment) -> ClearRound | RoundParticipant:
        """Take the place: with the round's model, and in a mode that this device agrees to."""
        from lightfr.rounds import ClearRound, RoundParticipant

        if self._model is None or self._model.manifest.sha256 != assignment.manifest_sha256:
            self._sync()
        model = self._require_model()
        if model.manifest.sha256 != assignment.manifest_sha256:
            raise ServerUnavailableError("the round is over before it began for this device: check in again later")
        self._require_private(model)
        model.published.set_open_rows(self._models.open_rows(self._channel, model.manifest))
        if model.manifest.message.model.privacy_mode != model_pb2.PRIVACY_MODE_CLEAR:
            masked = RoundParticipant.begin(assignment, model.manifest.signing_key, self._minimum_cohort)
            self._store.update(masked.values())
            return masked
        with self._state:
            update, code = self._update(model)
            clear = ClearRound.begin(assignment, update)
            self._store.update({**clear.values(), **code})
            return clear

    def _finish(self, current: ClearRound | RoundParticipant, progress: Progress, stop: threading.Event) -> bool:
        """Go through the rest of a round; count it if the server has this device's part."""
        from lightfr.kept_rounds import finish

        def acknowledged(method: str) -> None:
            progress(_STAGES[method])

        took_part = finish(current, self._store, self._channel, self._vector, acknowledged, stop)
        if took_part:
            with self._state:
                rounds = self._rounds() + 1
                self._store.update({_ROUNDS: rounds.to_bytes(8, "little"), **current.values_to_clear})
        return took_part

    def _update(self, model: LoadedModel) -> tuple[RowUpdate, dict[str, bytes]]:
        """This device's gradients, and the user code behind them as the store keeps it."""
        code = fit_for_round(model.published, self._rated(model), self._user_code(model))
        return make_update(model.published, self._rated(model), code), {_USER_CODE: code.reveal()}

    def _vector(self, is_gate_refresh: bool, cohort: int) -> Vector:
        """What this device adds to the sum of a cohort."""
        from lightfr.secagg import gate_vector, round_vector

        model = self._require_model()
        # The gate is needed again after a restart in the middle of a round.
        model.published.set_open_rows(self._models.open_rows(self._channel, model.manifest))
        with self._state:
            if is_gate_refresh:
                return gate_vector(model.codes.n_items, self._rated(model), cohort)
            update, code = self._update(model)
            model.codes.release_pages()
            self._store.update(code)
            return round_vector(model.published, update, cohort)


def _log(message: str, *details: object) -> None:
    """Tell the app's log what happened, under the name lightfr. Nothing of the user's may be in it."""
    # An app that has not loaded logging does not listen; to load it would take a megabyte.
    if "logging" in sys.modules:
        sys.modules["logging"].getLogger("lightfr").info(message, *details)


def _not_this_time(earliest_seconds: float, latest_seconds: float, reason: Reason) -> Participation:
    import random

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
