"""The object that an app embeds: rate, sync, take part, recommend. Ratings and the user code stay in its store.

What a call needs beside the store and the model is imported when it is called: TLS, secure aggregation, a round.
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING

from lightfr import _arguments, _files
from lightfr.budget import Budget, Ledger
from lightfr.cohorts import DEFAULT_MINIMUM_COHORT, require_minimum_cohort
from lightfr.device import Trust
from lightfr.errors import InvalidInputError, LightFRError
from lightfr.interactions import HIDDEN, MIDDLE, RatingScale
from lightfr.model.catalogue import require_item_id
from lightfr.model.folder import ModelFolder
from lightfr.participation import Terms
from lightfr.results import ExportedData, ItemIdKind, Recommendation, Status
from lightfr.store import Store
from lightfr.user import USER_CODE, User, agreed_scale, log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType
    from typing import Self

    from lightfr._wire.channel import Channel
    from lightfr.keys import KeyProvider
    from lightfr.participation import Participation, Progress, RoundStage
    from lightfr.rounds import Trusted


class Client:
    """One user on one device. Thread-safe; recommends from the old model while a new one is on its way."""

    def __init__(
        self, user: User, scale: RatingScale, terms: Terms, server: str, identity: str | os.PathLike[str], trust: Trust
    ) -> None:
        """Use Client.open instead."""
        self._user, self._store, self._scale, self._terms = user, user.store, scale, terms
        self._server, self._identity, self._trust = server, identity, trust
        # _network is held during sync and participate, the user's lock only while something in memory is read or
        # changed. Whoever needs both takes _network first.
        self._network = threading.Lock()
        # The thread that holds _network, which would wait for itself for ever.
        self._holder: int | None = None
        # Stops the call that holds _network.
        self._stop: threading.Event | None = None
        self._is_closed = self._is_forgotten = False

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
        budget: Budget | None = None,
        require_dp: float | None = None,
    ) -> Client:
        """Open the data of one user in a folder, making it when there is none. Needs no network.

        `server` is https://host:port; `identity` and `trust` are the PEM files that enrolment wrote; `key` keeps the
        secret that encrypts the store. `scale` is the range of ratings, 1 to 5 unless given when the folder was made.
        With secure aggregation this device takes part only among at least `minimum_cohort` devices; fewer than 256 are
        for tests. `allow_clear_uploads` lets it upload in the clear, which reveals its ratings to the server: for
        audits only. `budget` limits how often the device takes part, whatever the server asks for. With `require_dp` it
        takes part in mode secagg+dp alone, until the epsilon of all its rounds would exceed this number.
        """
        minimum_cohort = _arguments.whole("minimum_cohort", minimum_cohort)
        require_minimum_cohort(minimum_cohort)
        folder = _arguments.path("folder", folder)
        identity, trust = _arguments.path("identity", identity), _arguments.path("trust", trust)
        if scale is not None and not isinstance(scale, RatingScale):
            raise InvalidInputError("scale must be a RatingScale")
        budget = Budget() if budget is None else budget
        if not isinstance(budget, Budget):
            raise InvalidInputError(f"budget must be a Budget, not {type(budget).__name__}")
        budget.require_valid()
        if require_dp is not None and (allow_clear_uploads or not _is_positive(require_dp)):
            raise InvalidInputError(
                "require_dp must be an epsilon above 0, and does not go together with allow_clear_uploads"
            )
        # The rest of the address and of the identity is checked before the first call to the server.
        if not isinstance(server, str) or not server.startswith("https://"):
            raise InvalidInputError("the server's address is not https://host:port")
        if not identity.is_file():
            raise InvalidInputError(f"there is no identity at {identity}: enrol this device first")
        trusted = Trust(trust)
        store = Store.open(folder, _arguments.key_provider(key))
        try:
            agreed = agreed_scale(store, scale)
            user = User(store, ModelFolder(folder / "models", trusted))
        except BaseException:
            store.close()
            raise
        terms = Terms(minimum_cohort, allow_clear_uploads, budget, require_dp)
        return cls(user, agreed, terms, server, identity, trusted)

    def rate(self, item_id: str | int, rating: float) -> None:
        """Keep a rating, durably; it replaces an older one of the item. Items that the catalogue lacks are kept too."""
        self.rate_many([(item_id, rating)])

    def rate_many(self, ratings: Iterable[tuple[str | int, float]]) -> None:
        """Keep several ratings at once, oldest first: all of them or, with an error, none."""
        try:
            pairs = [(item_id, rating) for item_id, rating in ratings]  # looks at each pair
        except (TypeError, ValueError):
            raise InvalidInputError("rate_many takes pairs of an item id and a rating") from None
        levels = [(item_id, self._scale.level(rating)) for item_id, rating in pairs]
        with self._user.lock:
            self._store.rate(levels)
            self._user.forget_computed()

    def like(self, item_id: str | int) -> None:
        """Keep that the user likes an item: the highest rating."""
        self.rate(item_id, self._scale.maximum)

    def dislike(self, item_id: str | int) -> None:
        """Keep that the user dislikes an item: the lowest rating. Recommendations move away from it."""
        self.rate(item_id, self._scale.minimum)

    def seen(self, item_id: str | int) -> None:
        """Keep an event that is no rating: a play, a click. A rating that the item has stays, as the newest opinion."""
        require_item_id(item_id)
        with self._user.lock:
            level = self._store.ratings.get(item_id, HIDDEN)
            self._store.rate([(item_id, MIDDLE if level == HIDDEN else level)])
            self._user.forget_computed()

    def hide(self, item_id: str | int) -> None:
        """Never recommend an item again. It teaches nothing, and takes the place of a rating; unrate() undoes it."""
        with self._user.lock:
            self._store.rate([(item_id, HIDDEN)])
            self._user.forget_computed()

    def unrate(self, item_id: str | int) -> bool:
        """Forget what the user thinks of an item; say whether there was anything."""
        with self._user.lock:
            self._user.forget_computed()
            return self._store.unrate(item_id)

    def ratings(self) -> list[tuple[str | int, float]]:
        """Return what the user rated, oldest first: for the user's own screen, not for logs."""
        kept = self._store.ratings.items()
        return [(item_id, self._scale.rating(level)) for item_id, level in kept if level != HIDDEN]

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
        are ignored in both. Disliked and hidden items are never recommended.
        """
        from lightfr import recommending

        k, exclude = _arguments.whole("k", k), _arguments.listed("exclude", exclude)
        among = None if among is None else _arguments.listed("among", among)
        with self._user.lock:
            return recommending.recommend(self._user, k, exclude_rated=exclude_rated, exclude=exclude, among=among)

    def score(self, item_id: str | int) -> Recommendation:
        """Return one item as recommend() would. Raises UnknownItemError for an unknown id."""
        from lightfr import recommending

        with self._user.lock:
            return recommending.score(self._user, item_id)

    def similar(self, item_id: str | int, k: int = 10) -> list[Recommendation]:
        """Return the k items that are most like an item, whoever asks: the nearest first."""
        from lightfr import recommending

        with self._user.lock:
            return recommending.similar(self._user, item_id, _arguments.whole("k", k))

    def explain(self, item_id: str | int, k: int = 3) -> list[Recommendation]:
        """Return the k items that the user likes and that are most like an item: the nearest first."""
        from lightfr import recommending

        with self._user.lock:
            return recommending.explain(self._user, item_id, _arguments.whole("k", k))

    def sync(self) -> bool:
        """Fetch the newest model, a delta where that is smaller; say whether it is new. Resumes a broken download.

        The first sync or round after opening checks the files of the model that is here. A damaged one is fetched
        again, which counts as new, and recommend() raises NotSyncedError until that is done.
        Renews this device's certificate too, when it ends soon.
        """
        from lightfr.device import Identity

        with self._network_call(threading.Event()):
            Identity(self._identity, self._trust).renew_if_due(self._channel)
            return self._user.sync(self._channel)

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
        from lightfr.participation import until_cancelled

        return until_cancelled(
            lambda report: self._participate(report, stop), progress, cancel, lambda: self._interrupt(stop)
        )

    def _participate(self, progress: Progress, stop: threading.Event) -> Participation:
        with self._user.lock:
            if self._user.model is not None:
                # A round reads few rows of the codes, and needs memory for what it loads and for its vector.
                self._user.model.codes.release_pages()
        from lightfr.kept_rounds import Offer
        from lightfr.participation import CANCELLED

        try:
            with self._network_call(stop):
                self._user.drop_damaged_model()
                ledger = Ledger(self._store, self._terms.budget)
                outcome = Offer(self._user, self._channel, self._terms, ledger, self._trusted, progress, stop).make()
        except LightFRError as error:
            if not stop.is_set():
                log("a round failed: %s", error)
                raise
            outcome = CANCELLED
        log("took part in a round" if outcome.took_part else f"did not take part in a round: {outcome.reason}")
        return outcome

    def _trusted(self, server_key: bytes) -> Trusted:
        """Return whom this device trusts in a masked round of a server with this key, and who it is there."""
        import time

        from lightfr.device import Identity
        from lightfr.rounds import Trusted

        member = Identity(self._identity, self._trust).member()
        return Trusted(server_key, self._trust.membership_keys, member, time.time())

    @contextmanager
    def _network_call(self, stop: threading.Event) -> Iterator[None]:
        """Hold the network; `stop` ends what the caller does with it."""
        if self._holder == threading.get_ident():
            raise InvalidInputError("`progress` called sync() or participate(): do so once participate() has returned")
        try:
            with self._network:
                self._store.require_open()
                self._channel.stop = self._stop = stop  # in this order: an address that is none raises
                self._holder = threading.get_ident()
                try:
                    yield
                finally:
                    self._holder = self._stop = self._channel.stop = None
        finally:
            self._clean_up()

    def _clean_up(self) -> None:
        """Do what is left to do after a close. While a call holds the network, it does so itself when it ends."""
        if not self._is_closed or not self._network.acquire(blocking=False):
            return
        try:
            if "_channel" in self.__dict__:
                self._channel.close()
            with self._user.lock:
                if self._is_forgotten:
                    self._is_forgotten = False
                    self._user.models.remove()
        finally:
            self._network.release()

    def _interrupt(self, stop: threading.Event | None) -> None:
        """Make the call that `stop` belongs to end soon."""
        if stop is not None:
            stop.set()
            if self._stop is stop:
                self._channel.interrupt()

    def status(self) -> Status:
        """Say how things stand, in numbers."""
        from lightfr import recommending
        from lightfr.kept_rounds import kept_round
        from lightfr.rounds import RoundParticipant

        with self._user.lock:
            model, rating_count = self._user.model, len(self.ratings())
            begun = kept_round(self._store)
            return Status(
                model_version=self._user.model_version,
                item_count=model.codes.n_items - len(model.left_out()) if model else 0,
                code_bits=model.codes.code_bits if model else 0,
                item_id_kind=ItemIdKind(model.catalogue.kind) if model else None,
                rating_count=rating_count,
                unknown_ratings=rating_count - len(self._user.rated(model)) if model else 0,
                rounds=self._user.rounds,
                upload_pending=begun is not None,
                ranked_by=recommending.ranked_by(self._user),
                others_in_round=begun.others if isinstance(begun, RoundParticipant) else None,
            )

    def export_my_data(self) -> ExportedData:
        """Return all that is kept about this user, readable and ready for JSON: for the user, not for logs."""
        from lightfr.rounds import ClearRound

        with self._user.lock:
            pending = ClearRound.from_values(self._store.get)
            spent = Ledger(self._store, self._terms.budget).spent()._asdict()
            if not isfinite(spent["privacy_loss"]):
                spent["privacy_loss"] = None  # JSON has no infinity
            return {
                "ratings": [{"item_id": item_id, "rating": rating} for item_id, rating in self.ratings()],
                "rating_scale": [self._scale.minimum, self._scale.maximum],
                "hidden": self._user.hidden(),
                "user_code": (self._store.get(USER_CODE) or b"").hex(),
                "rounds": self._user.rounds,
                "pending_upload": pending.outgoing.request.hex() if pending else "",
                "spent": spent,
            }

    def export_views(self, path: str | os.PathLike[str]) -> int:
        """Write what the server told this device in its last rounds, with its signatures; return how many rounds.

        The file is JSON and holds nothing of the user's. Whoever has the files of two devices of one round can tell
        whether the server told them the same: `lightfr-harness audit views` does.
        """
        from lightfr.views import exported, views_in

        path = _arguments.file("path", path)
        with self._user.lock:
            views = views_in(self._store.get)
        with _files.step(f"write {path}"):
            _files.save(path, exported(views))
        return len(views)

    def forget(self) -> None:
        """Destroy the key, then delete everything in the folder, and close. What was uploaded stays uploaded."""
        self._interrupt(self._stop)
        with self._user.lock:
            self._store.forget()
            self._is_forgotten = True
        self.close()

    def rotate_key(self) -> None:
        """Encrypt the store anew, under a new key."""
        with self._user.lock:
            self._store.rotate_key()

    def close(self) -> None:
        """Close the store, the model and the connection; closing twice is fine. A call in another thread ends soon."""
        self._interrupt(self._stop)
        with self._user.lock:
            self._user.close()
            self._is_closed = True
        self._clean_up()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client at model version {self._user.model_version}>"

    @cached_property
    def _channel(self) -> Channel:
        """The connection to the server, made when a call needs it. Whoever uses it holds _network."""
        from lightfr._wire import tls
        from lightfr._wire.channel import Channel

        return Channel(self._server, tls.context(self._trust.path, self._identity))


def _is_positive(number: float) -> bool:
    try:
        return number > 0
    except TypeError:
        return False
