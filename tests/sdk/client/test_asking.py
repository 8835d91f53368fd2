"""What an app may ask a client: ratings, scores, recommendations among some items, and how many are unknown."""

import pytest

from lightfr import ItemIdKind
from lightfr.errors import LightFRError, NotSyncedError, UnknownItemError
from lightfr.interactions import Interactions
from lightfr.ranking import rank
from lightfr.training import fit_for_use
from lightfr.training.constants import Recency
from tests.sdk.client.publisher import COORDINATED_ITEMS as ITEMS


@pytest.fixture(scope="module")
def coordinators(start_shared_coordinator):
    """By code length: one whose codes are too short to be refined, one whose codes are just long enough."""
    how = {"goal": 1000, "deadline_seconds": 36_000}
    return {bits: start_shared_coordinator(**how, bits=bits) for bits in (120, 128)}


@pytest.mark.parametrize(
    ("rated", "bits", "is_refined"), [(19, 128, False), (20, 128, True), (40, 128, True), (40, 120, False)]
)
def test_recommendations_are_those_of_the_fitted_code(coordinators, open_client, rated, bits, is_refined):
    """The same as fitting and ranking by hand, with recency, and refined from 20 ratings and 128 bits on."""
    client = open_client(coordinators[bits])
    client.sync()
    client._store.put("user_code", bytes(range(bits // 8)))
    client.rate_many([(ITEMS[i], 5) for i in range(rated)])
    got = client.recommend(20, exclude_rated=False)
    model, code = client._user.model, client._user.code(client._user.model)
    ratings = Interactions((i, 2520) for i in range(rated))
    fitted = fit_for_use(model.published, ratings, code, recency=Recency.STRONG, refine=is_refined)
    ranked = rank(fitted, model.codes, 20)
    assert got == [(ITEMS[item.item_index], item.similarity, item.score) for item in ranked]


def test_a_score_is_what_recommend_gives(synced):
    every = synced.recommend(300, exclude_rated=False)
    # Two of the ratings are dislikes, and dislikes are never recommended.
    assert len(every) == 298
    assert all(synced.score(item.item_id) == item for item in every)


def test_an_unknown_item_has_no_score_and_its_id_is_in_no_message(synced):
    with pytest.raises(UnknownItemError) as unknown:
        synced.score("a secret wish")
    assert "secret" not in str(unknown.value)
    assert isinstance(unknown.value, LightFRError)


def test_recommend_leaves_out_what_it_is_told_and_ignores_unknown_ids(synced):
    best = synced.recommend(5)
    without = synced.recommend(4, exclude=[best[0].item_id, "unknown", 17])
    assert without == best[1:]


def test_recommend_among_is_the_whole_ranking_of_these_items_alone(synced):
    every = synced.recommend(300, exclude_rated=False)
    asked = {f"item {number}" for number in range(0, 300, 7)}
    wanted = [item for item in every if item.item_id in asked]
    assert synced.recommend(300, exclude_rated=False, among=[*asked, "unknown", 17]) == wanted
    assert synced.recommend(3, exclude_rated=False, among=asked) == wanted[:3]
    assert synced.recommend(3, exclude_rated=False, among=asked, exclude=[wanted[1].item_id]) == [
        wanted[0],
        *wanted[2:4],
    ]
    assert synced.recommend(5, among=["item 1", "item 2", "unknown"]) == []
    assert synced.recommend(5, among=[]) == []


def test_ratings_are_what_the_user_gave_oldest_first(synced):
    synced.rate("item 3", 4)
    synced.rate("not in the catalogue", 3)
    assert synced.ratings() == [("item 1", 2.5), ("item 2", 1.0), ("item 3", 4.0), ("not in the catalogue", 3.0)]


def test_status_counts_the_ratings_that_the_catalogue_does_not_know(synced):
    synced.rate_many([("unknown", 5), (17, 4)])
    status = synced.status()
    assert (status.rating_count, status.unknown_ratings) == (5, 2)
    assert status.item_id_kind is ItemIdKind.STR


def test_before_the_first_sync_nothing_can_be_scored_and_no_rating_is_called_unknown(coordinator, open_client):
    client = open_client(coordinator)
    client.rate("item 1", 5)
    with pytest.raises(NotSyncedError):
        client.score("item 1")
    status = client.status()
    assert (status.rating_count, status.unknown_ratings, status.item_id_kind) == (1, 0, None)
