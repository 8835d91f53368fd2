"""What a client answers from its user's opinions and the model in use. Whoever calls holds the user's lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lightfr.codes import UserCode
from lightfr.errors import UnknownItemError
from lightfr.interactions import MIDDLE
from lightfr.ranking import popular, rank
from lightfr.rankings import RankBy
from lightfr.results import RankedBy, Recommendation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lightfr.model.folder import LoadedModel
    from lightfr.ranking import Ranked
    from lightfr.user import User


def recommend(
    user: User,
    k: int,
    *,
    exclude_rated: bool,
    exclude: Iterable[str | int],
    among: Iterable[str | int] | None,
) -> list[Recommendation]:
    """Return the k best items, in the way that the server says; see Client.recommend."""
    model = user.require_model()
    ranking = user.ranking(model)
    left_out = model.left_out(model.indices_of([*exclude, *user.hidden()]))
    for item_index, level in zip(*user.rated(model).arrays(), strict=True):
        if exclude_rated or level < MIDDLE:
            left_out.add(item_index)
    asked = None if among is None else model.indices_of(among)
    if ranking.by == RankBy.POPULARITY:
        found = _scored(user, popular(model.codes.n_items, k, left_out, asked))
        return _recommendations(model, sorted(found, key=lambda item: item.item_index))
    prior = model.manifest.rankings.prior(ranking, model.codes.code_bits)
    ranked = rank(user.code_for_use(model), model.codes, k, exclude=left_out, among=asked, prior=prior)
    return _recommendations(model, ranked)


def score(user: User, item_id: str | int) -> Recommendation:
    """Return one item as recommend() would."""
    model = user.require_model()
    return _recommendations(model, _scored(user, [_index_of(model, item_id)]))[0]


def similar(user: User, item_id: str | int, k: int) -> list[Recommendation]:
    """Return the k items with the nearest codes."""
    model = user.require_model()
    index = _index_of(model, item_id)
    code = UserCode(model.codes.row(index))
    return _recommendations(model, rank(code, model.codes, k, exclude=model.left_out([index])))


def explain(user: User, item_id: str | int, k: int) -> list[Recommendation]:
    """Return the k items with the nearest codes that the user likes."""
    model = user.require_model()
    index, opinions = _index_of(model, item_id), zip(*user.rated(model).arrays(), strict=True)
    liked = [liked for liked, level in opinions if level >= MIDDLE and liked != index]
    return _recommendations(model, rank(UserCode(model.codes.row(index)), model.codes, k, among=liked))


def ranked_by(user: User) -> RankedBy:
    """Return what recommendations go by."""
    model = user.model
    if model is None or not model.manifest.rankings.by_group:
        return RankedBy.UNKNOWN
    return RankedBy.POPULARITY if user.ranking(model).by == RankBy.POPULARITY else RankedBy.CODES


def _scored(user: User, items: list[int]) -> list[Ranked]:
    """Return these items with their scores; rank() asks for at least one."""
    model = user.require_model()
    if not items:
        return []
    prior = model.manifest.rankings.prior(user.ranking(model), model.codes.code_bits)
    return rank(user.code_for_use(model), model.codes, len(items), among=items, prior=prior)


def _index_of(model: LoadedModel, item_id: str | int) -> int:
    index = model.index_of(item_id)
    if index is None:
        raise UnknownItemError
    return index


def _recommendations(model: LoadedModel, ranked: Iterable[Ranked]) -> list[Recommendation]:
    return [Recommendation(model.catalogue.id_of(index), similarity, score) for index, similarity, score in ranked]
