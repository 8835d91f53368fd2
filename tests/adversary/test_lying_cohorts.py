"""One device lies in a round of four cohorts, in the clear: tests.campaigns.lying_cohorts has the figures."""

import numpy as np
import pytest

from lightfr_harness.simulation.options import TrainOptions
from tests.campaigns.lying_cohorts import Fleets, garbage, push, ruin

OPTIONS = TrainOptions(synthetic="400x120x12000", privacy="secagg")


@pytest.fixture(scope="module")
def fleets():
    made = Fleets(OPTIONS, 4, 90)
    made.train(2)
    made.targets = {"rare": [100], "popular": [5]}
    return made


def test_garbage_is_left_out_alone(fleets):
    start, fleets.n_left_out = fleets.state(), 0
    fleets.train(1, garbage)
    assert fleets.n_left_out == 1
    fleets.restore(start)


@pytest.mark.parametrize("lie", [push, ruin])
def test_what_is_believed_is_as_loud_as_the_rules_let_it_be_and_moves_the_codes_less_than_when_it_is_added(fleets, lie):
    start, moved = fleets.state(), {}
    for way in ("honest", "combined", "added"):
        fleets.combine_by("added" if way == "added" else "combined")
        fleets.n_left_out = 0
        fleets.train(1, None if way == "honest" else lie)
        assert fleets.n_left_out == 0
        moved[way] = fleets.rule.trails.astype(np.int64)
        fleets.restore(start)
    distance = {way: np.abs(moved[way] - moved["honest"]).sum() for way in ("combined", "added")}
    assert 0 < distance["combined"] < distance["added"]
