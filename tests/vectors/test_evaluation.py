"""A device's part of evaluation rounds equals the known answers of vectors/v1."""

import pytest

from lightfr import ItemCodes, UserCode
from lightfr.evaluation import GAINS, drawn_items, evaluation_vector, ranks
from lightfr.interactions import Interactions
from lightfr.rankings import RankBy, Ranking, Rankings
from lightfr.training import PublishedModel
from lightfr.training.constants import Recency
from lightfr.v1 import model_pb2
from tests.vectors.reading import Replay, by_name, vector

KNOWN = vector("evaluation")
DEVICES = 300


def candidates():
    return tuple(
        Ranking(RankBy[c["by"].upper()], c["prior_fourths"], Recency[c["recency"].upper()], c["refine"])
        for c in KNOWN["candidates"]
    )


def test_the_gains():
    assert list(GAINS) == KNOWN["gains"]


@pytest.mark.parametrize(**by_name(KNOWN["draws"]))
def test_the_items_that_a_round_draws(known):
    drawn = drawn_items(bytes.fromhex(known["roster_digest"]), known["item_count"], set(known["without"]))
    assert drawn == known["items"]


@pytest.mark.parametrize(**by_name(KNOWN["devices"]))
def test_ranks_and_bits_of_a_device(known):
    message = model_pb2.RoundModel(
        code_bits=known["code_bits"],
        item_count=known["item_count"],
        objective=model_pb2.OBJECTIVE_CATALOGUE,
        upload_kind=model_pb2.UPLOAD_KIND_TERNARY,
    )
    model = PublishedModel(ItemCodes(bytes.fromhex(known["codes"]), known["code_bits"]), message)
    rankings = Rankings(tuple(map(tuple, known["prior"])), (), candidates())
    opinions, code = Interactions(known["opinions"]), UserCode(bytes.fromhex(known["old_code"]))
    roster_digest = bytes.fromhex(known["roster_digest"])
    # In the middle of the range: no noise.
    random = Replay(known["random"] + "0080" * len(known["hits"]))
    vector = evaluation_vector(model, rankings, opinions, code, roster_digest, DEVICES, random)
    assert vector["hits"].tolist() == known["hits"]
    assert random.left == b""
    if known["ranks"]:
        held_out = known["opinions"][-1][0]
        random = Replay(known["random"])
        got = ranks(model, rankings, opinions.without(held_out), held_out, code, roster_digest, random)
        assert got == known["ranks"]
