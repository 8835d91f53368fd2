"""What a manifest says about ranking: read as manifest.proto has it, refused where it contradicts that."""

import math

import pytest

from lightfr.errors import ManifestError
from lightfr.rankings import GROUPS, UNSAID, RankBy, Ranking, Rankings, group_of
from lightfr.training.constants import Recency
from lightfr.v1 import manifest_pb2

BY_CODES, BY_POPULARITY = manifest_pb2.RANK_BY_CODES, manifest_pb2.RANK_BY_POPULARITY
BY_CHANCE = manifest_pb2.RANK_BY_CHANCE
ITEMS = 1000


def manifest(prior=None, rankings=(), candidates=()):
    """A manifest of 1,000 items. `prior` is (first row, popularity) pairs, the others are fields of Rankings."""
    message = manifest_pb2.Manifest(
        rankings=[manifest_pb2.Ranking(**fields) for fields in rankings],
        candidates=[manifest_pb2.Ranking(**fields) for fields in candidates],
    )
    message.model.item_count = ITEMS
    if prior is not None:
        message.prior.SetInParent()
        for first, popularity in prior:
            message.prior.first_items.append(first)
            message.prior.popularities.append(popularity)
    return message


def test_everything_is_read():
    said = Rankings.of(
        manifest(
            prior=[(0, 1023), (10, 80), (11, 80), (999, 0)],
            rankings=[
                {"by": BY_POPULARITY},
                {"by": BY_CODES, "prior_fourths": 32, "recency": manifest_pb2.RECENCY_WEAK},
                {"by": BY_CODES, "prior_fourths": 1024, "recency": manifest_pb2.RECENCY_OFF, "refine": True},
                {"by": BY_CODES},
            ],
            candidates=[{"by": BY_CHANCE}, {"by": BY_CODES, "recency": manifest_pb2.RECENCY_STRONG}],
        )
    )
    assert said.popularities == ((0, 1023), (10, 80), (11, 80), (999, 0))
    assert said.by_group == (
        Ranking(RankBy.POPULARITY, 0, Recency.OFF, refine=False),
        Ranking(RankBy.CODES, 32, Recency.WEAK, refine=False),
        Ranking(RankBy.CODES, 1024, Recency.OFF, refine=True),
        Ranking(RankBy.CODES, 0, Recency.OFF, refine=False),
    )
    assert said.candidates == (
        Ranking(RankBy.CHANCE, 0, Recency.OFF, refine=False),
        Ranking(RankBy.CODES, 0, Recency.STRONG, refine=False),
    )


def test_a_manifest_that_says_nothing_leaves_the_device_its_own_way():
    said = Rankings.of(manifest())
    assert said == ((), (), ())
    assert said.for_user(0) == said.for_user(500) == UNSAID
    assert Ranking(RankBy.CODES, 0, Recency.STRONG, refine=True) == UNSAID


def test_the_limits_themselves_are_in_order():
    steps = [(i, 64 - i) for i in range(64)]
    said = Rankings.of(manifest(steps, candidates=[{"by": BY_CODES}] * 31))
    assert (len(said.popularities), len(said.candidates)) == (64, 31)


CODES_FOR_ALL = [{"by": BY_CODES}] * 4


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"prior": []}, "1 to 64 steps"),
        ({"prior": [(i, 0) for i in range(65)]}, "1 to 64 steps"),
        ({"prior": [(1, 5)]}, "do not ascend from 0"),
        ({"prior": [(0, 5), (7, 4), (7, 3)]}, "do not ascend from 0"),
        ({"prior": [(0, 5), (7, 4), (6, 3)]}, "do not ascend from 0"),
        ({"prior": [(0, 5), (ITEMS, 4)]}, "behind the last row"),
        ({"prior": [(0, 5), (7, 6)]}, "rise"),
        ({"prior": [(0, 1024)]}, "above 1,023"),
        ({"rankings": CODES_FOR_ALL[:3]}, "4 rankings or none"),
        ({"rankings": [*CODES_FOR_ALL, {"by": BY_CODES}]}, "4 rankings or none"),
        ({"rankings": [*CODES_FOR_ALL[:3], {"by": BY_CHANCE}]}, "chance is only a candidate"),
        ({"rankings": [*CODES_FOR_ALL[:3], {}]}, "something unknown"),
        ({"rankings": [*CODES_FOR_ALL[:3], {"by": 4}]}, "something unknown"),
        ({"candidates": [{}]}, "something unknown"),
        ({"candidates": [{"by": BY_CODES, "recency": 4}]}, "recency of a ranking is unknown"),
        ({"candidates": [{"by": BY_CODES, "prior_fourths": 1025}]}, "above 1,024 fourths"),
        ({"candidates": [{"by": BY_CODES}] * 32}, "more than 31 candidates"),
    ],
)
def test_what_contradicts_the_proto_is_refused(fields, reason):
    with pytest.raises(ManifestError, match=reason):
        Rankings.of(manifest(**fields))


@pytest.mark.parametrize("extra", ["first_items", "popularities"])
def test_a_prior_with_more_rows_than_popularities_or_fewer_is_refused(extra):
    message = manifest([(0, 5), (7, 4)])
    getattr(message.prior, extra).append(3)
    with pytest.raises(ManifestError, match="1 to 64 steps"):
        Rankings.of(message)


@pytest.mark.parametrize(
    ("n_opinions", "group"), [(0, 0), (1, 0), (4, 0), (5, 1), (19, 1), (20, 2), (99, 2), (100, 3), (10**6, 3)]
)
def test_users_are_told_how_to_rank_by_how_many_opinions_they_have(n_opinions, group):
    said = Rankings.of(manifest(rankings=[{"by": BY_CODES, "prior_fourths": place} for place in range(4)]))
    assert group_of(n_opinions) == group
    assert said.for_user(n_opinions).prior_fourths == group


@pytest.mark.parametrize("code_bits", [8, 64, 256, 1024])
@pytest.mark.parametrize("fourths", [1, 4, 128, 1024])
def test_what_popularity_adds_is_so_many_fourths_of_the_logarithm_for_each_64_bits(code_bits, fourths):
    """p = a (f / 64) ln(1 + count), a in fourths, ln in sixteenths; rounded to the nearest number, a half up."""
    popularities = [1023, 777, 90, 11, 1, 0]
    said = Rankings.of(manifest([(100 * i, popularity) for i, popularity in enumerate(popularities)]))
    prior = said.prior(Ranking(RankBy.CODES, fourths), code_bits)
    exact = [fourths / 4 * code_bits / 64 * popularity / 16 for popularity in popularities]
    assert prior.steps == tuple((100 * i, math.floor(value + 0.5)) for i, value in enumerate(exact))
    assert [prior.offset_of(row) for row in (0, 99, 100, 999)] == [prior.steps[step][1] for step in (0, 0, 1, 5)]


def test_popularity_adds_nothing_where_nothing_is_known_or_asked_for():
    assert Rankings.of(manifest([(0, 9)])).prior(Ranking(RankBy.CODES, 0), 64) is None
    assert Rankings.of(manifest()).prior(Ranking(RankBy.CODES, 8), 64) is None


def test_the_groups_begin_with_everybody():
    assert GROUPS == (0, 5, 20, 100)
