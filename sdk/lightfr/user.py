"""One user's data and the model in use: what recommending and training both read."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from lightfr._secret import secret
from lightfr.codes import UserCode
from lightfr.errors import InvalidInputError, NotSyncedError
from lightfr.interactions import HIDDEN, Interactions, RatingScale
from lightfr.training import fit_for_round, fit_for_use, make_update, may_refine, taught_by

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lightfr._wire.channel import Channel
    from lightfr.model.folder import LoadedModel, ModelFolder
    from lightfr.rankings import Ranking
    from lightfr.store import Store
    from lightfr.training import RowUpdate

# Names of the values in the store.
USER_CODE = "user_code"
_ROUNDS = "rounds"
_SCALE = "scale"


@secret
class User:
    """A store, the models beside it, and what was computed from both. Whoever reads or changes it holds `lock`."""

    def __init__(self, store: Store, models: ModelFolder) -> None:
        self.store, self.models = store, models
        self.lock = threading.RLock()
        self.model: LoadedModel | None = models.load_or_begin_anew()
        self._interactions: Interactions | None = None
        self._code_for_use: UserCode | None = None

    @property
    def model_version(self) -> int:
        """Version of the model in use; 0 before the first sync."""
        return self.model.manifest.model_version if self.model else 0

    def require_model(self) -> LoadedModel:
        """Return the model in use; raises NotSyncedError when there is none."""
        if self.model is None:
            self.store.require_open()
            raise NotSyncedError
        return self.model

    def sync(self, channel: Channel) -> bool:
        """Fetch the newest model and use it; say whether it is new. The old one is in use until then.

        A model whose files are damaged is fetched again, which counts as new.
        """
        from lightfr._wire import coordinator

        self.drop_damaged_model()
        signed = coordinator.get_manifest(channel, self.model_version)
        if signed is None:
            return False
        loaded = self.models.fetch(channel, signed)
        with self.lock:
            if self.model is not None:
                self.model.close()
            self.model = loaded
            self.forget_computed()
        log("synced to model version %d", loaded.manifest.model_version)
        return True

    def drop_damaged_model(self) -> None:
        """Check the files of the model; a damaged one is not used from here on. Reads them whole only if need be."""
        if not self.models.drop_damaged():
            return
        with self.lock:
            if self.model is not None:
                self.model.close()
            self.model = None
            self.forget_computed()
        log("a file of the model is damaged: the next sync fetches it again")

    def forget_computed(self) -> None:
        """Compute everything anew, since the ratings or the model have changed."""
        self._interactions = self._code_for_use = None

    def rated(self, model: LoadedModel) -> Interactions:
        """Return the opinions by item index, oldest first; opinions of items that the catalogue lacks wait."""
        if self._interactions is None:
            opinions = ((item_id, level) for item_id, level in self.store.ratings.items() if level != HIDDEN)
            indexed = ((model.index_of(item_id), level) for item_id, level in opinions)
            self._interactions = Interactions((index, level) for index, level in indexed if index is not None)
        return self._interactions

    def hidden(self) -> list[str | int]:
        """Return the items that the user does not want to see and has no other opinion of."""
        return [item_id for item_id, level in self.store.ratings.items() if level == HIDDEN]

    def code(self, model: LoadedModel) -> UserCode:
        """Return the code of the last round, or a random one."""
        kept = self.store.get(USER_CODE)
        if kept is not None and len(kept) * 8 == model.codes.code_bits:
            return UserCode(kept)
        return UserCode.random(model.codes.code_bits)

    def ranking(self, model: LoadedModel) -> Ranking:
        """Return how the server says to rank for a user with so many opinions."""
        return model.manifest.rankings.for_user(len(self.rated(model)))

    def code_for_use(self, model: LoadedModel) -> UserCode:
        """Return the code to recommend with."""
        if self._code_for_use is None:
            code, rated, ranking = self.code(model), self.rated(model), self.ranking(model)
            refine = ranking.refine and may_refine(model.published, rated)
            self._code_for_use = fit_for_use(model.published, rated, code, recency=ranking.recency, refine=refine)
        return self._code_for_use

    def update(self, model: LoadedModel) -> tuple[RowUpdate, dict[str, bytes]]:
        """Return this device's gradients, and the user code behind them as the store keeps it."""
        taught = taught_by(model.published, self.rated(model))
        code = fit_for_round(model.published, taught, self.code(model))
        return make_update(model.published, taught, code), {USER_CODE: code.reveal()}

    @property
    def rounds(self) -> int:
        """How many rounds this device took part in."""
        return int.from_bytes(self.store.get(_ROUNDS) or b"", "little")

    def count_round(self, values: Mapping[str, bytes | None]) -> None:
        """Keep that one more round is over, and what else is to be kept or forgotten of it."""
        with self.lock:
            self.store.update({_ROUNDS: (self.rounds + 1).to_bytes(8, "little"), **values})

    def close(self) -> None:
        """Close the store and the model; closing twice is fine."""
        self.store.close()
        if self.model is not None:
            self.model.close()
        self.model = None


def agreed_scale(store: Store, asked: RatingScale | None) -> RatingScale:
    """Return the scale that the folder was made with; another one later would change what the kept ratings mean."""
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


def log(message: str, *details: object) -> None:
    """Tell the app's log what happened, under the name lightfr. Nothing of the user's may be in it."""
    # An app that has not loaded logging does not listen; to load it would take a megabyte.
    if "logging" in sys.modules:
        sys.modules["logging"].getLogger("lightfr").info(message, *details)
