"""What a client answers: ranked as the server says, without what the user dislikes or hides."""

import logging

import pytest

from lightfr import RankedBy, Recommendation, rank
from lightfr.codes import ItemSet, UserCode
from lightfr.errors import InvalidInputError, NotSyncedError, UnknownItemError
from lightfr.interactions import HIDDEN, MIDDLE, Interactions
from lightfr.ranking import Prior
from lightfr.training import fit_for_use
from lightfr.training.constants import Recency
from lightfr.v1 import manifest_pb2
from tests.sdk.client.publisher import ITEMS, asked, random_codes

BY_CODES, BY_POPULARITY = manifest_pb2.RANK_BY_CODES, manifest_pb2.RANK_BY_POPULARITY
STEPS = [(0, 160), (20, 96), (200, 16), (400, 0)]
OLD_CODE = bytes(range(8))


@pytest.fixture
def device(publisher, open_device):
    """A client of a server that ranks in a given way: one way for all groups, four ways, or none."""

    def make(*rankings, bits=64, steps=STEPS):
        message = publisher.publish(1, random_codes(1, bits))
        for first, popularity in steps:
            message.prior.first_items.append(first)
            message.prior.popularities.append(popularity)
        rankings = rankings * 4 if len(rankings) == 1 else rankings
        message.rankings.extend(manifest_pb2.Ranking(**fields) for fields in rankings)
        publisher.sign(message)
        client = open_device()
        client.sync()
        client._store.put("user_code", (OLD_CODE * 16)[: bits // 8])
        return client

    return make


def ids(found):
    return [item.item_id for item in found]


def by_hand(client, opinions, k, *, recency, prior=None, refine=False, exclude=()):
    """Fit and rank with the parts; `opinions` are rows and levels, oldest first."""
    model = client._user.model
    code = UserCode(client._store.get("user_code"))
    fitted = fit_for_use(model.published, Interactions(opinions), code, recency=recency, refine=refine)
    ranked = rank(fitted, model.codes, k, exclude=ItemSet(model.codes.n_items, exclude), prior=prior)
    return [Recommendation(ITEMS[row], similarity, score) for row, similarity, score in ranked]


# ---- verbs ----


def test_each_verb_keeps_its_opinion(device):
    client = device()
    client.like("item 1")
    client.dislike("item 2")
    client.seen("item 3")
    client.hide("item 4")
    assert client.ratings() == [("item 1", 5.0), ("item 2", 1.0), ("item 3", 3.0)]
    assert client._store.ratings == {"item 1": 2520, "item 2": 0, "item 3": MIDDLE, "item 4": HIDDEN}
    assert client.status().rating_count == 3
    exported = client.export_my_data()
    assert [rating["item_id"] for rating in exported["ratings"]] == ["item 1", "item 2", "item 3"]
    assert exported["hidden"] == ["item 4"]


def test_the_verbs_follow_the_scale(open_device, publisher):
    from lightfr import RatingScale

    client = open_device(scale=RatingScale(-1, 11))
    client.like("a")
    client.dislike("b")
    client.seen("c")
    assert client.ratings() == [("a", 11.0), ("b", -1.0), ("c", 5.0)]


def test_an_event_leaves_a_rating_as_it_is_and_makes_it_the_newest(device):
    client = device()
    client.rate_many([("item 1", 4.5), ("item 2", 1), ("item 3", 5)])
    client.seen("item 2")
    client.seen("item 1")
    assert client.ratings() == [("item 3", 5.0), ("item 2", 1.0), ("item 1", 4.5)]


def test_hiding_takes_the_place_of_a_rating_and_a_rating_or_an_event_that_of_hiding(device):
    client = device()
    client.like("item 1")
    client.hide("item 1")
    assert (client.ratings(), client.export_my_data()["hidden"]) == ([], ["item 1"])
    client.rate("item 1", 2)
    assert (client.ratings(), client.export_my_data()["hidden"]) == ([("item 1", 2.0)], [])
    client.hide("item 1")
    client.seen("item 1")
    assert (client.ratings(), client.export_my_data()["hidden"]) == ([("item 1", 3.0)], [])


def test_every_opinion_can_be_forgotten(device):
    client = device()
    for verb in (client.like, client.dislike, client.seen, client.hide):
        verb("item 1")
        assert client.unrate("item 1")
        assert not client.unrate("item 1")
        assert "item 1" in ids(client.recommend(500))


def test_opinions_survive_closing(device, open_device):
    client = device()
    client.hide("item 4")
    client.dislike("item 2")
    client.close()
    again = open_device()
    assert (again.ratings(), again.export_my_data()["hidden"]) == ([("item 2", 1.0)], ["item 4"])
    assert not {"item 2", "item 4"} & set(ids(again.recommend(500, exclude_rated=False)))


@pytest.mark.parametrize("verb", ["like", "dislike", "seen", "hide"])
@pytest.mark.parametrize("bad", ["", "x" * 256, True, None, 1.5])
def test_an_item_id_outside_its_domain_is_refused_without_being_repeated(device, verb, bad):
    client = device()
    with pytest.raises(InvalidInputError) as refused:
        getattr(client, verb)(bad)
    assert "xxx" not in str(refused.value)
    assert client._store.ratings == {}


def test_hidden_items_teach_nothing(device):
    client = device({"by": BY_CODES, "recency": manifest_pb2.RECENCY_STRONG})
    client.rate_many([("item 1", 5), ("item 7", 4)])
    before = client.score("item 300")
    client.hide("item 40")
    client.hide("unknown item")
    assert client.score("item 300") == before
    assert client.status().unknown_ratings == 0
    assert len(client._user.rated(client._user.model)) == 2


# ---- recommend and score ----


@pytest.mark.parametrize("ranking", [(), ({"by": BY_CODES, "prior_fourths": 16},), ({"by": BY_POPULARITY},)])
def test_disliked_and_hidden_items_are_never_recommended(device, ranking):
    client = device(*ranking)
    client.like("item 1")
    client.rate("item 2", 2.9)
    client.seen("item 3")
    client.hide("item 4")
    hidden_too = {"item 2", "item 4"}
    assert set(ids(client.recommend(500))) == set(ITEMS) - hidden_too - {"item 1", "item 3"}
    assert set(ids(client.recommend(500, exclude_rated=False))) == set(ITEMS) - hidden_too
    asked = ["item 1", "item 2", "item 3", "item 4", "item 5"]
    assert set(ids(client.recommend(5, exclude_rated=False, among=asked))) == {"item 1", "item 3", "item 5"}
    assert ids(client.recommend(5, among=asked, exclude=["item 9"])) == ["item 5"]


OPINIONS = [(3, 2520), (90, 0), (301, 1260), (44, 2520), (7, 630)]


@pytest.mark.parametrize("recency", Recency)
@pytest.mark.parametrize("fourths", [0, 4, 1024])
def test_recommendations_are_ranked_as_the_server_says(device, recency, fourths):
    client = device({"by": BY_CODES, "prior_fourths": fourths, "recency": manifest_pb2.Recency.Name(recency)})
    client.rate_many([(ITEMS[row], 1 + level / 630) for row, level in OPINIONS])
    prior = Prior((first, (fourths * popularity * 64 + 2048) // 4096) for first, popularity in STEPS)
    rows = [row for row, _ in OPINIONS]
    wanted = by_hand(client, OPINIONS, 30, recency=recency, prior=prior if fourths else None, exclude=rows)
    assert client.recommend(30) == wanted
    assert [client.score(item.item_id) for item in wanted] == wanted
    asked = [item.item_id for item in wanted[::3]]
    assert client.recommend(5, among=asked) == wanted[::3][:5]
    assert client.status().ranked_by is RankedBy.CODES


def test_each_group_ranks_in_its_own_way(device):
    """Up to 4 opinions by popularity, from 5 on by codes; opinions of unknown items and hidden items do not count."""
    popularity, codes = {"by": BY_POPULARITY}, {"by": BY_CODES, "recency": manifest_pb2.RECENCY_OFF}
    client = device(popularity, codes, popularity, popularity)
    client.rate_many([(ITEMS[row], 5) for row in (400, 300, 200, 100)])
    client.rate_many([("unknown", 5), (17, 5)])
    client.hide("item 450")
    assert (client.status().ranked_by, ids(client.recommend(2))) == (RankedBy.POPULARITY, ["item 0", "item 1"])
    client.like("item 50")
    assert client.status().ranked_by is RankedBy.CODES
    opinions = [(row, 2520) for row in (400, 300, 200, 100, 50)]
    left_out = [400, 300, 200, 100, 50, 450]
    assert client.recommend(9) == by_hand(client, opinions, 9, recency=Recency.OFF, exclude=left_out)


@pytest.mark.parametrize(("liked", "refine", "is_refined"), [(19, True, False), (20, True, True), (20, False, False)])
def test_a_code_is_refined_where_the_server_says_so_and_the_device_may(device, liked, refine, is_refined):
    client = device({"by": BY_CODES, "recency": manifest_pb2.RECENCY_WEAK, "refine": refine}, bits=128)
    opinions = [(row, 2520) for row in range(liked)] + [(row, 0) for row in range(100, 110)]
    client.rate_many([(ITEMS[row], 1 + level / 630) for row, level in opinions])
    rows = [row for row, _ in opinions]
    wanted = by_hand(client, opinions, 20, recency=Recency.WEAK, refine=is_refined, exclude=rows)
    assert client.recommend(20) == wanted


def test_by_popularity_the_lower_row_comes_first_whatever_its_code_is(device):
    client = device({"by": BY_POPULARITY})
    client.rate_many([("item 1", 5), ("item 3", 5)])
    found = client.recommend(6)
    assert ids(found) == ["item 0", "item 2", "item 4", "item 5", "item 6", "item 7"]
    assert len({item.score for item in found}) > 1
    assert [client.score(item.item_id) for item in found] == found
    assert ids(client.recommend(3, exclude=["item 0"], among=["item 9", "item 0", "item 8", "unknown"])) == [
        "item 8",
        "item 9",
    ]
    assert client.recommend(3, among=[]) == []
    with pytest.raises(InvalidInputError, match="expected 1 to"):
        client.recommend(0)


def test_a_server_that_does_not_say_is_unknown_and_still_answers(device):
    client = device(steps=[])
    assert client.status().ranked_by is RankedBy.UNKNOWN
    client.rate_many([(ITEMS[row], 1 + level / 630) for row, level in OPINIONS])
    rows = [row for row, _ in OPINIONS]
    assert client.recommend(20) == by_hand(client, OPINIONS, 20, recency=Recency.STRONG, exclude=rows)
    assert client.status().ranked_by is RankedBy.UNKNOWN


def test_a_prior_alone_does_not_change_the_ranking(device):
    client = device()
    client.rate_many([(ITEMS[row], 1 + level / 630) for row, level in OPINIONS])
    rows = [row for row, _ in OPINIONS]
    assert client.recommend(20) == by_hand(client, OPINIONS, 20, recency=Recency.STRONG, exclude=rows)


def test_before_the_first_sync_nothing_is_known(open_device):
    client = open_device()
    assert client.status().ranked_by is RankedBy.UNKNOWN
    for ask in (client.score, client.similar, client.explain):
        with pytest.raises(NotSyncedError):
            ask("item 1")


def test_a_new_version_may_rank_in_another_way(device, publisher):
    client = device({"by": BY_POPULARITY})
    client.rate_many([(ITEMS[row], 1 + level / 630) for row, level in OPINIONS])
    client.recommend(5)
    message = publisher.publish(2, random_codes(1))
    message.rankings.extend([manifest_pb2.Ranking(by=BY_CODES, recency=manifest_pb2.RECENCY_WEAK)] * 4)
    publisher.sign(message)
    before = asked(publisher)
    assert client.sync()
    # As after an evaluation: the codes are the same, and nothing is downloaded.
    assert asked(publisher) == before
    rows = [row for row, _ in OPINIONS]
    assert client.recommend(20) == by_hand(client, OPINIONS, 20, recency=Recency.WEAK, exclude=rows)


# ---- similar and explain ----


def nearest(client, row, among):
    """(distance, row) of some rows, by hand."""
    codes = client._user.model.codes
    own = int.from_bytes(codes.row(row))
    return sorted(((own ^ int.from_bytes(codes.row(other))).bit_count(), other) for other in among)


def test_similar_items_have_the_nearest_codes_and_the_item_itself_is_not_among_them(device):
    client = device({"by": BY_POPULARITY})
    client.dislike("item 2")
    client.hide("item 3")
    wanted = nearest(client, 40, set(range(500)) - {40})
    found = client.similar("item 40", 499)
    assert [(ITEMS.index(item.item_id)) for item in found] == [row for _, row in wanted]
    assert [item.similarity for item in found] == [1 - distance / 64 for distance, _ in wanted]
    assert client.similar("item 40") == found[:10]


def test_an_explanation_is_the_nearest_items_that_the_user_likes(device):
    client = device({"by": BY_CODES, "prior_fourths": 1024})
    client.rate_many([(ITEMS[row], 5) for row in (3, 90, 301, 44, 7, 12)])
    client.dislike("item 40")
    client.hide("item 41")
    client.like("unknown")
    wanted = [row for _, row in nearest(client, 39, [3, 90, 301, 44, 7, 12])]
    assert [ITEMS.index(item.item_id) for item in client.explain("item 39", 10)] == wanted
    assert [ITEMS.index(item.item_id) for item in client.explain("item 39")] == wanted[:3]
    assert "item 3" not in ids(client.explain("item 3", 10))
    assert len(client.explain("item 3", 10)) == 5


def test_who_likes_nothing_gets_no_explanation(device):
    client = device()
    client.dislike("item 40")
    assert client.explain("item 39") == []


def test_unknown_items_are_refused_and_their_ids_are_in_no_message(device):
    client = device()
    for ask in (client.score, client.similar, client.explain):
        with pytest.raises(UnknownItemError) as unknown:
            ask("a secret wish")
        assert "secret" not in str(unknown.value)


@pytest.mark.parametrize("name", ["similar", "explain"])
def test_asking_for_no_items_is_refused(device, name):
    client = device()
    client.like("item 2")
    with pytest.raises(InvalidInputError, match="expected 1 to"):
        getattr(client, name)("item 1", 0)


def test_neither_log_nor_repr_says_what_the_user_thinks(device, caplog):
    caplog.set_level(logging.DEBUG)
    client = device({"by": BY_POPULARITY})
    for verb in (client.like, client.dislike, client.seen, client.hide):
        verb("item 44")
    client.like("item 45")
    client.recommend()
    client.similar("item 44")
    client.explain("item 44")
    client.unrate("item 44")
    said = "".join(record.getMessage() for record in caplog.records)
    shown = repr(client) + repr(client.status()) + repr(client._user)
    assert "item 4" not in said + shown
