"""One run: judged at the right moments, stopped in time, and refused where its scores are no numbers."""

import numpy as np
import pytest

from lightfr.errors import InvalidInputError
from lightfr_harness.data import generate, leave_last_out
from lightfr_harness.paper.runs import DivergedError, final_run, judge, tuning_run
from lightfr_harness.simulation.baselines.method import Entry, Method, Traffic

SPLIT = leave_last_out(generate("tiny"))
CANDIDATES, TRAIN = SPLIT.test, SPLIT.train
TESTS = {"one": CANDIDATES, "two": CANDIDATES}
POSITIVES = dict(zip(CANDIDATES.user_index.tolist(), CANDIDATES.positives.tolist(), strict=True))


class Scripted(Method):
    """After so many steps it finds the held-out item of as many users as the script says; None is NaN for all."""

    def __init__(self, script):
        self._script, self.seeds = script, []

    def begin(self, train, seed):
        self._done = 0
        self.seeds.append(seed)

    def step(self):
        self._done += 1
        if self._script.get(self._done) == "singular":
            raise np.linalg.LinAlgError

    def scores(self, users, items):
        found = [self._script[key] for key in sorted(self._script) if key <= self._done][-1]
        if found is None:
            return np.full(len(users), np.nan)
        wanted = np.array([POSITIVES[user] for user in users.tolist()])
        return np.where(users < found, items == wanted, items != wanted).astype(np.float64)


def entry_of(script):
    method = Scripted(script)
    return Entry("scripted", "Scripted", "reference", lambda settings: method, {}, ({},)), method


def tuned(script, most=50):
    shares = []
    result = tuning_run(entry_of(script)[0], {}, most, TRAIN, CANDIDATES, shares.append)
    return result, shares


def test_scores_that_are_not_finite_are_refused_and_never_ranked():
    """Without this every positive of a run that diverged would rank first."""
    method = Scripted({0: None})
    method.begin(TRAIN, 0)
    with pytest.raises(DivergedError, match="NaN"):
        judge(method, CANDIDATES)
    assert issubclass(DivergedError, InvalidInputError)


def test_a_final_run_takes_its_steps_with_its_seed_and_is_judged_at_the_end():
    entry, method = entry_of({0: None, 7: 32})
    result = final_run(entry, {}, 7, 5, TRAIN, TESTS, lambda share: None)
    assert result["figures"]["one"]["hr"] == pytest.approx(0.5)
    assert result["figures"]["two"] == result["figures"]["one"]
    assert (result["steps"], result["outcome"], method.seeds) == (7, "", [5])


@pytest.mark.parametrize("script", [{0: 64, 3: None}, {0: 64, 3: "singular"}])
def test_a_final_run_that_diverges_has_no_figures(script):
    result = final_run(entry_of(script)[0], {}, 3, 0, TRAIN, TESTS, lambda share: None)
    assert (result["figures"], result["outcome"]) == ({}, "diverged")


def test_tuning_keeps_the_number_of_steps_of_the_best_look():
    result, _ = tuned({0: 0, 6: 40, 9: 10, 12: 50, 15: 20})
    assert result["steps"] == 12
    assert result["figures"]["validation"]["hr"] == pytest.approx(50 / 64)


def test_tuning_ends_after_five_looks_without_gain():
    _, shares = tuned({0: 0, 6: 40, 9: 10, 24: 64})
    assert len(shares) == 6 + 5 * 3


def test_tuning_looks_at_the_last_step_too():
    result, _ = tuned({0: 0, 10: 40}, most=10)
    assert result["steps"] == 10


def test_a_setting_that_diverges_late_keeps_its_best_look():
    result, _ = tuned({0: 0, 3: 30, 6: None})
    assert (result["steps"], result["outcome"]) == (3, "")


def test_a_setting_that_diverges_at_once_has_none():
    result, _ = tuned({0: None})
    assert (result["figures"], result["outcome"]) == ({}, "diverged")


def test_a_method_without_steps_is_judged_once():
    result, shares = tuned({0: 64}, most=0)
    assert (result["steps"], result["figures"]["validation"]["hr"], shares) == (0, 1.0, [])


def test_a_method_that_refuses_the_data_says_why():
    entry, method = entry_of({0: 0})

    def refuse(train, seed):
        raise InvalidInputError("too many items")

    method.begin = refuse
    assert final_run(entry, {}, 1, 0, TRAIN, TESTS, print)["outcome"] == "too many items"


def test_bytes_are_those_of_one_device_in_one_round():
    entry, method = entry_of({0: 0})
    method.rounds = [Traffic(10, 1000, 200), Traffic(30, 3000, 1000)]
    result = final_run(entry, {}, 1, 0, TRAIN, TESTS, lambda share: None)
    assert (result["down_bytes"], result["up_bytes"]) == (100, 30)
