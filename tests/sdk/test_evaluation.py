"""A device's part of an evaluation round, against a plain account of docs/protocol.md."""

import hashlib
from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightfr import ItemSet, UserCode
from lightfr.errors import PrivacyError
from lightfr.evaluation import GAINS, drawn_items, evaluation_vector, ranks
from lightfr.interactions import LEVELS, MIDDLE, Interactions
from lightfr.rankings import RankBy, Ranking, Rankings
from lightfr.secagg import evaluation_blocks, gate_blocks
from lightfr.training import fit_for_use
from lightfr.training.constants import Recency
from lightfr.v1 import model_pb2
from lightfr_harness import oracle
from lightfr_harness.simulation.fleet import stream
from tests.helpers import make_model, random_signs

DIGEST, DEVICES = b"r" * 32, 300
# Of SHA-256("lightfr evaluation v1\n" + 16 times "r" + four zeros), for a million items.
KNOWN_DRAW = [212432, 617608, 251448]
POPULARITIES = ((0, 90), (10, 60), (40, 21), (150, 0))
CANDIDATES = (
    *(Ranking(RankBy.CODES, fourths, recency, refine=False) for recency in Recency for fourths in (0, 8, 128)),
    Ranking(RankBy.CODES, 8, Recency.STRONG, refine=True),
    Ranking(RankBy.POPULARITY),
)
RANKINGS = Rankings(POPULARITIES, (), CANDIDATES)


def no_noise(n):
    """Random bytes in the middle of the range: no noise, and a draw of a half."""
    return b"\0\x80" * (n // 2)


class Draws:
    """Random bytes for a device without candidates by chance: first the draw, then no noise; counts what was asked."""

    def __init__(self, draw):
        self._draw, self.asked = draw.to_bytes(2, "little"), []

    def __call__(self, n):
        self.asked.append(n)
        return self._draw if len(self.asked) == 1 else no_noise(n)


def opinions(n, n_items=200, seed=0, newest=LEVELS):
    rng = np.random.default_rng(seed)
    items = rng.permutation(n_items)[:n].tolist()
    levels = [*rng.choice([0, MIDDLE, LEVELS], max(0, n - 1)).tolist(), newest][:n]
    return Interactions(zip(items, levels, strict=True))


def hits_of(model, interactions, draw=2**15, rankings=RANKINGS):
    code = UserCode(bytes(model.code_bits // 8))
    vector = evaluation_vector(model, rankings, interactions, code, DIGEST, DEVICES, Draws(draw))
    return np.array(vector["hits"]).reshape(4, 2, 1 + 2 * len(rankings.candidates))


# ---- which items ----


def plain_drawn(roster_digest, n_items, without):
    """docs/protocol.md, word for word, as long as it takes."""
    found, block = [], 0
    while len(found) < 49:
        digest = hashlib.sha256(b"lightfr evaluation v1\n" + roster_digest + block.to_bytes(4, "little")).digest()
        numbers = [int.from_bytes(digest[at : at + 4], "little") for at in range(0, 32, 4)]
        for item in (number * n_items // 2**32 for number in numbers):
            if item not in without and item not in found:
                found.append(item)
        block += 1
    return found[:49]


@settings(max_examples=50)
@given(st.binary(min_size=32, max_size=32), st.sampled_from([51, 60, 1000, 2**32 - 1]), st.sets(st.integers(0, 999)))
def test_items_are_drawn_as_the_protocol_says(roster_digest, n_items, without):
    without = {item for item in without if item < n_items}
    drawn = drawn_items(roster_digest, n_items, without)
    if n_items - len(without) > 49:
        assert drawn == plain_drawn(roster_digest, n_items, without)
    else:
        assert set(drawn) == set(range(n_items)) - without
    assert len(set(drawn)) == len(drawn) == min(49, n_items - len(without))
    assert not without & set(drawn)


def test_a_known_draw():
    """Made with sha256sum and a calculator."""
    assert drawn_items(b"r" * 32, 1_000_000, set())[:3] == KNOWN_DRAW
    assert drawn_items(b"s" * 32, 1_000_000, set())[:3] != KNOWN_DRAW
    assert drawn_items(b"r" * 32, 1_000_000, {KNOWN_DRAW[1]})[:2] == [KNOWN_DRAW[0], KNOWN_DRAW[2]]


def test_a_catalogue_with_49_others_or_fewer_is_taken_whole():
    assert drawn_items(DIGEST, 51, {3, 50}) == [i for i in range(50) if i != 3]
    assert drawn_items(DIGEST, 3, {0, 1, 2}) == []


def test_items_that_left_are_not_drawn():
    rated, left = opinions(5), set(range(60, 200))
    held_out = rated.newest()[0]
    model = make_model(random_signs(200, 64, 1), removed=ItemSet(200, left))
    by_popularity = Rankings((), (), (Ranking(RankBy.POPULARITY),))
    (place,) = ranks(model, by_popularity, rated.without(held_out), held_out, UserCode(bytes(8)), DIGEST)
    known = set(rated.arrays()[0])
    assert place == 1 + sum(i < held_out for i in drawn_items(DIGEST, 200, known | left))
    assert place != 1 + sum(i < held_out for i in drawn_items(DIGEST, 200, known))


# ---- ranks ----


def plain_rank(signs, fitted_on, held_out, candidate, code):
    """Each candidate alone, everything computed anew; the lower index first among equals."""
    asked = [held_out, *plain_drawn(DIGEST, len(signs), {held_out, *fitted_on.arrays()[0]})]
    if candidate.by == RankBy.POPULARITY:
        return 1 + sorted(asked).index(held_out)
    fitted = fit_for_use(make_model(signs), fitted_on, code, recency=candidate.recency, refine=False)
    similarities = signs.astype(int) @ oracle.unpack(fitted.reveal()).astype(int)

    def score(item):
        popularity = next(p for first, p in reversed(POPULARITIES) if first <= item)
        return similarities[item] + (candidate.prior_fourths * popularity * signs.shape[1] + 2048) // 4096

    return 1 + sorted(asked, key=lambda item: (-score(item), item)).index(held_out)


@settings(max_examples=20, deadline=None)
@given(st.sampled_from([8, 64]), st.integers(2, 60), st.integers(0, 2**32 - 1))
def test_ranks_are_those_of_each_candidate_alone(code_bits, n, seed):
    """Codes of 8 bits give many ties."""
    signs, told = random_signs(200, code_bits, seed), opinions(n, seed=seed)
    held_out, _ = told.newest()
    fitted_on, code = told.without(held_out), UserCode(bytes(code_bits // 8))
    got = ranks(make_model(signs), RANKINGS, fitted_on, held_out, code, DIGEST)
    assert got == [plain_rank(signs, fitted_on, held_out, candidate, code) for candidate in CANDIDATES]


@pytest.mark.parametrize(("held_out", "place"), [(0, 1), (25, 26), (49, 50)])
def test_a_tie_goes_to_the_lower_index(held_out, place):
    """All codes are the same."""
    model = make_model(np.ones((50, 8), np.int8))
    said = Rankings((), (), (Ranking(RankBy.CODES), Ranking(RankBy.POPULARITY)))
    got = ranks(model, said, Interactions(), held_out, UserCode(b"\xff"), DIGEST)
    assert got == [place, place]


def test_refinement_changes_ranks_only_where_a_device_may_refine():
    plain, refined = (Ranking(RankBy.CODES, 0, Recency.OFF, refine=refine) for refine in (False, True))
    said, code = Rankings((), (), (plain, refined)), UserCode(bytes(16))
    model = make_model(random_signs(200, 128, 5))

    def places(n):
        liked = Interactions((i, LEVELS) for i in range(n))
        return [ranks(model, said, liked, item, code, DIGEST) for item in range(n, 200)]

    assert all(a == b for a, b in places(19))
    assert any(a != b for a, b in places(20))


def test_chance_ranks_by_random_numbers_alone():
    model, said = make_model(random_signs(50, 8, 1)), Rankings((), (), (Ranking(RankBy.CHANCE),))

    def draws(of_held_out):
        """The held-out item comes first, the others have 0 to 48."""
        numbers = [of_held_out, *range(49)]
        return lambda n: b"".join(number.to_bytes(4, "little") for number in numbers)[:n]

    def place(number):
        return ranks(model, said, Interactions(), 49, UserCode(b"\0"), DIGEST, draws(number))

    # A tie with another item is lost: item 49 has the highest index.
    assert (place(2**32 - 1), place(48), place(0)) == ([1], [2], [50])
    found = [
        ranks(model, said, Interactions(), 7, UserCode(b"\0"), DIGEST, stream("chance", seed))[0]
        for seed in range(1000)
    ]
    assert 22 < np.mean(found) < 29
    assert {min(found), max(found)} == {1, 50}


# ---- bits ----


def test_the_gains_are_65536_parts_of_one_over_the_logarithm():
    assert [65536 / log2(rank + 1) for rank in range(1, 11)] == pytest.approx(GAINS, abs=0.5)
    assert GAINS[0] == 65536


@pytest.mark.parametrize(("n", "group"), [(2, 0), (5, 0), (6, 1), (20, 1), (21, 2), (100, 2), (101, 3), (150, 3)])
@pytest.mark.parametrize("newest", [0, MIDDLE - 1, MIDDLE, LEVELS])
def test_the_bits_stand_with_the_group_of_the_opinions_that_are_left_and_in_the_half_of_the_opinion(n, group, newest):
    model, told = make_model(random_signs(400, 16, 1)), opinions(n, 400, newest=newest)
    hits = hits_of(model, told)
    half = int(newest < MIDDLE)
    assert hits[group, half, 0] == 1
    own = hits[group, half].copy()
    hits[group, half] = 0
    assert not hits.any()
    assert set(own.tolist()) <= {0, 1}


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 40), st.integers(0, 2**16 - 1), st.integers(0, 2**32 - 1))
def test_an_item_among_the_first_ten_is_shown_and_counts_by_one_draw_for_all(n, draw, seed):
    signs, told = random_signs(200, 64, seed), opinions(n, seed=seed)
    model, (held_out, _) = make_model(signs), told.newest()
    places = ranks(model, RANKINGS, told.without(held_out), held_out, UserCode(bytes(8)), DIGEST)
    hits = hits_of(model, told, draw).sum(axis=(0, 1))
    assert hits[1::2].tolist() == [int(place <= 10) for place in places]
    counts = [int(place <= 10 and draw < 65536 / log2(place + 1) - 0.5) for place in places]
    assert hits[2::2].tolist() == counts


def test_one_draw_is_made_however_many_candidates_there_are():
    model, draws = make_model(random_signs(200, 64, 1)), Draws(0)
    evaluation_vector(model, RANKINGS, opinions(9), UserCode(bytes(8)), DIGEST, DEVICES, draws)
    assert draws.asked == [2, 2 * 4 * 2 * (1 + 2 * len(CANDIDATES))]


def test_a_device_adds_at_most_63_ones():
    """The first of 31 candidates' lists by each of them."""
    said = Rankings((), (), (Ranking(RankBy.POPULARITY),) * 31)
    told = Interactions([(5, LEVELS), (0, LEVELS)])
    assert hits_of(make_model(random_signs(200, 64, 1)), told, rankings=said).sum() == 63


@pytest.mark.parametrize("told", [Interactions(), Interactions([(3, LEVELS)]), Interactions([(3, 0)])])
def test_fewer_than_two_opinions_add_nothing(told):
    model, asked = make_model(random_signs(200, 64, 1)), []

    def random_bytes(n):
        asked.append(n)
        return no_noise(n)

    vector = evaluation_vector(model, RANKINGS, told, UserCode(bytes(8)), DIGEST, DEVICES, random_bytes)
    assert not any(vector["hits"])
    # The noise is all that they add.
    assert asked == [2 * len(vector["hits"])]


def test_without_candidates_a_device_says_only_that_it_is_there():
    hits = hits_of(make_model(random_signs(200, 64, 1)), opinions(3), rankings=Rankings((), (), ()))
    assert hits.shape == (4, 2, 1)
    assert hits.sum() == 1


@pytest.mark.parametrize("told", [Interactions(), opinions(30)])
def test_every_number_carries_noise(told):
    model, chance = make_model(random_signs(200, 64, 1)), stream("noise", 1)
    total = np.zeros(8 * (1 + 2 * len(CANDIDATES)), int)
    for _ in range(100):
        vector = evaluation_vector(model, RANKINGS, told, UserCode(bytes(8)), DIGEST, 100, chance)
        total += np.array(vector["hits"]) != 0
    # Two of 25 numbers are +1 or -1 with 100 devices: after 100 times hardly any was never changed.
    assert (total > 0).mean() > 0.99


def test_in_mode_secagg_dp_the_noise_is_that_of_counts():
    noise = model_pb2.Noise(rows_thousandths=20_000, sums_thousandths=9000, counts_thousandths=3000)
    dp = {"privacy_mode": model_pb2.PRIVACY_MODE_SECAGG_DP, "upload_kind": model_pb2.UPLOAD_KIND_EXACT, "noise": noise}
    model = make_model(random_signs(200, 64, 1), **dp)
    drawn = [
        number
        for seed in range(20)
        for number in evaluation_vector(
            model, RANKINGS, Interactions(), UserCode(bytes(8)), DIGEST, DEVICES, stream("dp", seed)
        )["hits"]
    ]
    assert 2.8 < np.std(drawn) < 3.2
    with pytest.raises(PrivacyError):
        evaluation_vector(model, RANKINGS, Interactions(), UserCode(bytes(8)), DIGEST, 2)


@pytest.mark.parametrize("noise", [None, model_pb2.Noise(counts_thousandths=3000)])
@pytest.mark.parametrize("devices", [2, 300, 8192])
def test_the_block_has_the_bits_of_counts(noise, devices):
    (hits,), (counts,) = evaluation_blocks(31, devices, noise), gate_blocks(504, devices, noise)
    assert (hits.name, hits.count, hits.bits) == ("hits", 504, counts.bits)


def test_nothing_of_the_user_shows_in_a_repr_of_the_vector():
    model = make_model(random_signs(200, 64, 1))
    vector = evaluation_vector(model, RANKINGS, opinions(9), UserCode(bytes(8)), DIGEST, DEVICES)
    assert repr(vector) == f"<Vector of {8 * (1 + 2 * len(CANDIDATES))} numbers>"
