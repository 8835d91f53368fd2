"""Adam against its own equations, number by number."""

import numpy as np
import pytest

from lightfr_harness.simulation.baselines.adam import Adam, clip_norm, row_sums, sigmoid, xavier


def by_hand(value, gradients, rate, decay=0.0):
    mean = square = 0.0
    for step, gradient in enumerate(gradients, 1):
        gradient += decay * value
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        value -= rate * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return value


@pytest.mark.parametrize("decay", [0.0, 0.5])
def test_each_number_moves_as_the_equations_say(decay):
    rng = np.random.default_rng(0)
    values, gradients = rng.normal(size=(3, 2)), rng.normal(size=(5, 3, 2))
    parameters = {"weights": values.copy()}
    adam = Adam(parameters, 0.1, decay)
    for gradient in gradients:
        adam.step({"weights": gradient})
    for place in np.ndindex(3, 2):
        expected = by_hand(values[place], gradients[(slice(None), *place)], 0.1, decay)
        assert parameters["weights"][place] == pytest.approx(expected, rel=1e-12)


def test_rows_without_a_gradient_stay_and_the_others_move_as_in_the_whole():
    rng = np.random.default_rng(1)
    values, gradient = rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
    whole, some = {"table": values.copy()}, {"table": values.copy()}
    Adam(whole, 0.1).step({"table": gradient})
    Adam(some, 0.1).step({"table": gradient[[1, 3]]}, {"table": np.array([1, 3])})
    np.testing.assert_array_equal(some["table"][[0, 2]], values[[0, 2]])
    np.testing.assert_array_equal(some["table"][[1, 3]], whole["table"][[1, 3]])


def test_a_parameter_may_have_a_rate_of_its_own():
    parameters = {"weights": np.zeros(1), "users": np.zeros(1)}
    Adam(parameters, 0.1, rates={"users": 0.5}).step({"weights": np.ones(1), "users": np.ones(1)})
    assert parameters["weights"][0] == pytest.approx(-0.1)
    assert parameters["users"][0] == pytest.approx(-0.5)


def test_a_row_that_occurs_twice_gets_both_gradients():
    rows, sums = row_sums(np.array([5, 2, 5, 9]), np.array([[1.0, 2], [3, 4], [10, 20], [7, 8]]))
    assert rows.tolist() == [2, 5, 9]
    assert sums.tolist() == [[3, 4], [11, 22], [7, 8]]


def test_long_gradients_are_cut_to_the_limit_and_short_ones_stay():
    gradients = {"a": np.array([3.0]), "b": np.array([0.0, 4.0])}
    clip_norm(gradients, 10.0)
    assert gradients["b"][1] == 4
    clip_norm(gradients, 1.0)
    assert gradients["a"][0] == pytest.approx(0.6)
    assert gradients["b"][1] == pytest.approx(0.8)


def test_starts_have_the_variance_of_xavier():
    weights = xavier(np.random.default_rng(2), 300, 100)
    assert weights.shape == (300, 100)
    assert weights.var() == pytest.approx(2 / 400, rel=0.03)


def test_the_sigmoid_bears_any_logit():
    with np.errstate(all="raise"):
        assert sigmoid(np.array([-1e4, 0.0, 1e4])).tolist() == [0.0, 0.5, 1.0]
