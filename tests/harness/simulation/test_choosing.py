"""The fleet's evaluation: sums are what masks give, the choice sees no test data, rankings score as devices do."""

from dataclasses import replace

import numpy as np
import pytest

from lightfr import rank
from lightfr._wire.coordinator import EVALUATION
from lightfr.evaluation import evaluation_vector
from lightfr.rankings import RankBy, Ranking
from lightfr.secagg.vector import evaluation_blocks
from lightfr.training.constants import Recency
from lightfr_harness.data import generate, leave_last_out
from lightfr_harness.data.held_out import Candidates, groups_from_lists
from lightfr_harness.server.rules.evaluation import POPULARITY, Evaluated
from lightfr_harness.simulation import scoring
from lightfr_harness.simulation.choosing import Users, evaluate, rankings_of
from lightfr_harness.simulation.fleet import Fleet
from lightfr_harness.simulation.judging import Judged
from lightfr_harness.simulation.options import TrainOptions
from lightfr_harness.simulation.secure import SecureRound
from lightfr_harness.simulation.train import make_server, train
from lightfr_harness.simulation.training import RunOptions, TrainingRun

OPTIONS = TrainOptions(bits=16, gate=2, privacy="secagg")


@pytest.fixture(scope="module")
def split():
    return leave_last_out(generate("60x120x900", seed=1))


def trained(split, rounds=2, **options):
    run = TrainingRun(
        make_server(OPTIONS, split.train), Fleet.of(split.train, 16, 0), RunOptions(rounds, masked=False, **options)
    )
    for _ in run:
        pass
    return run


def test_the_masked_sums_of_an_evaluation_are_exactly_those_computed_in_the_open(split):
    run = trained(split, fraction=0.4)
    model, rankings, users = run.published(), rankings_of(run.server), run.cohort(2)
    digest, n = bytes(range(32)), len(users)

    def part(user):
        # One generator for each device, so that its bits and its noise can be drawn a second time.
        def vector(cohort):
            device, random = run.fleet.devices[user], np.random.default_rng([7, user]).bytes
            return evaluation_vector(model, rankings, device.interactions, device.code, digest, cohort, random)

        return vector

    parts = [part(user) for user in users.tolist()]
    in_the_open = sum(np.asarray(each(n)["hits"], np.int64) for each in parts)
    secure = SecureRound(parts, lambda size: evaluation_blocks(len(rankings.candidates), size), EVALUATION)
    secure.run(lambda _: np.zeros(n, np.bool_))
    masked = secure.finish()["hits"]
    assert masked.tolist() == in_the_open.tolist()
    one, other = (Evaluated.of(list(rankings.candidates), hits) for hits in (masked, in_the_open))
    assert one.figures(one.best()) == other.figures(other.best())
    assert one.opinions() == pytest.approx(n, abs=40)


def test_the_sums_count_each_device_that_stays_once_a_round(split):
    run = trained(split, fraction=1.0, dropout=0.5)
    staying = sum(int((~run.drops(run.finished_rounds + index)).sum()) for index in range(4))
    found = evaluate(run, rankings_of(run.server))
    assert found.noise_variance == 4 * 128
    # The noise of a number has a variance of 2/3 a device; there are eight numbers a round.
    assert found.opinions() == pytest.approx(staying, abs=5 * np.sqrt(8 * staying * 2 / 3))
    assert np.array_equal(found.sums, evaluate(trained(split, fraction=1.0, dropout=0.5), rankings_of(run.server)).sums)


def test_the_choice_does_not_look_at_the_test(split):
    run = trained(split)
    unlike = Candidates(split.test.user_index, groups_from_lists([group[::-1] for group in groups(split.test)]))
    one, other = (Judged.of(OPTIONS, run, replace(split, test=test)) for test in (split.test, unlike))
    assert one.metrics != other.metrics
    for mine, yours in zip(one.by_count, other.by_count, strict=True):
        assert mine["ranking"] == yours["ranking"]
        assert [each["evaluated_net"] for each in mine["candidates"]] == [
            each["evaluated_net"] for each in yours["candidates"]
        ]


def groups(candidates):
    return [candidates.groups[place] for place in range(len(candidates))]


def test_users_are_judged_by_what_their_group_chose_and_the_record_has_what_every_candidate_gave(split):
    judged = Judged.of(OPTIONS, trained(split), split)
    for each in judged.by_count:
        (chosen,) = [one for one in each["candidates"] if one["ranking"] == each["ranking"]]
        assert chosen["test_hr"] == pytest.approx(each["learned"]["hr_device"])
        assert chosen["test_ndcg"] == pytest.approx(each["learned"]["ndcg_device"])
        popular = next(one for one in each["candidates"] if one["ranking"]["by"] == "popularity")
        assert popular["test_hr"] == pytest.approx(each["popularity"]["hr_device"])
        assert "chance" not in {one["ranking"]["by"] for one in each["candidates"]}
        assert chosen["test_net"] <= chosen["test_ndcg"]


@pytest.mark.parametrize("ranking", [Ranking(RankBy.CODES, fourths, Recency.WEAK, False) for fourths in (0, 8, 64)])
def test_scores_are_those_that_a_device_ranks_by(split, ranking):
    run = trained(split)
    model, rankings, user = run.published(), rankings_of(run.server), int(split.test.user_index[0])
    way = Users(model, run.fleet, rankings, [user]).ways(ranking)[user]
    prior = rankings.prior(ranking, 16)
    device = {one.item_index: one.score for one in rank(way.code, model.codes, model.n_items, prior=prior)}
    everything = Candidates(np.array([user]), groups_from_lists([np.arange(model.n_items)]))
    scores = scoring.candidate_scores(model, {user: way}, everything)
    assert scores.tolist() == [device[item] for item in range(model.n_items)]


def test_the_popularity_list_is_the_order_of_the_rows_with_counts_and_without(split):
    run = trained(split, rounds=0)
    counted = rankings_of(run.server)
    for rankings in (counted, counted._replace(popularities=())):
        offsets = Users(run.published(), run.fleet, rankings, [0]).ways(POPULARITY)[0].offsets
        assert (np.diff(offsets) <= 0).all()
        assert len(set(offsets.tolist())) > 5


def test_of_counts_that_devices_summed_only_those_from_the_gate_on_are_told(split):
    run = trained(split, rounds=0)
    run.server.gate = 9
    told_by_operator = min(popularity for _, popularity in rankings_of(run.server).popularities if popularity)
    run.server.counting_devices = np.array([0, 30])
    steps = rankings_of(run.server).popularities
    assert told_by_operator < round(16 * np.log(10))
    assert steps[-1] == (int((run.server.device_counts >= 9).sum()), 0)
    assert steps[-2][1] >= round(16 * np.log(10))


def test_without_times_no_item_is_the_newest_of_all_users():
    ratings = generate("40x30x400", seed=2)
    by_item = np.argsort(ratings.item_index, kind="stable")
    columns = {name: getattr(ratings, name)[by_item] for name in ("user_index", "item_index", "rating")}
    untimed = replace(ratings, **columns, timestamp=np.arange(len(ratings)), has_times=False)
    newest = [device.interactions.newest()[0] for device in Fleet.of(untimed, 16, 0).devices]
    last = [max(device.interactions.arrays()[0]) for device in Fleet.of(untimed, 16, 0).devices]
    assert np.mean(np.array(newest) == np.array(last)) < 0.5


def test_a_ranking_that_the_options_say_is_not_evaluated():
    tiny = {"synthetic": "tiny", "rounds": 1, "bits": 16}
    record = train(TrainOptions(**tiny, recency="weak", prior=0.5)).record
    for each in record.by_count:
        assert each["ranking"] == {"by": "codes", "prior": 0.5, "recency": "weak", "refine": False}
        assert "candidates" not in each
    paper = train(TrainOptions(**tiny, objective="paper")).record
    assert all("ranking" not in each for each in paper.by_count)


def test_when_all_ratings_are_positives_there_is_nothing_that_users_dislike():
    tiny = {"synthetic": "tiny", "rounds": 1, "bits": 16, "recency": "off"}
    opinions, everything = (train(TrainOptions(**tiny, positives=name)).record for name in ("opinions", "all"))
    assert opinions.n_liked + opinions.n_disliked < opinions.n_users
    assert opinions.n_disliked > 0
    assert (everything.n_disliked, everything.disliked_hr) == (0, None)
    assert (everything.liked_hr, everything.n_liked) == (pytest.approx(everything.hr), everything.n_users)
    assert "disliked_hr" not in everything.popularity
