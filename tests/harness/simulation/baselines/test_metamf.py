"""MetaMF: gradients on the device and through the generators against finite differences, and what is sent."""

import numpy as np
import pytest

from lightfr_harness.data import generate as generate_ratings
from lightfr_harness.simulation.baselines.lightfr_baselines_pb2 import GeneratedModelGradient
from lightfr_harness.simulation.baselines.metamf import (
    LAYERS,
    Metamf,
    MetamfDevice,
    MetamfOptions,
    MetamfServer,
    PrivateModel,
    backward,
    cost,
    generate,
    gradient,
    start,
)
from lightfr_harness.simulation.baselines.tables import from_rows

from .small import slope, two_groups

N_ITEMS = 9
USERS = np.array([3, 0, 2])


@pytest.fixture(scope="module")
def parameters():
    rng = np.random.default_rng(0)
    return {name: values + rng.normal(0, 0.02, values.shape) for name, values in start(4, N_ITEMS, rng).items()}


def samples(user):
    rng = np.random.default_rng(user)
    items = np.sort(rng.choice(N_ITEMS, 4, replace=False)).astype(np.uint32)
    return items, rng.normal(3, 1, 4)


def device(user, negatives=0):
    return MetamfDevice(*samples(user), N_ITEMS, negatives, np.random.default_rng(9))


def test_the_gradient_of_a_device_is_that_of_its_squared_errors(parameters):
    model, (items, targets) = generate(parameters, USERS)[1][0], samples(3)
    rows = model.left[items] @ model.right

    def loss():
        return ((model.predict(rows)[0] - targets) ** 2).sum()

    by_rows, by_layers = gradient(model, rows, targets)
    arrays = {"rows": rows, **{name: getattr(model, name) for name in LAYERS}}
    for name, found in {"rows": by_rows, **by_layers}.items():
        assert np.abs(found).max() > 1e-3, name
        for place in np.ndindex(*found.shape):
            assert found[place] == pytest.approx(slope(loss, arrays[name], place), abs=1e-6), (name, place)


def test_the_server_goes_back_through_all_generators(parameters):
    def loss():
        errors = []
        for user, model in zip(USERS, generate(parameters, USERS)[1], strict=True):
            items, targets = samples(user)
            errors.append(model.predict(model.left[items] @ model.right)[0] - targets)
        return np.mean(np.square(errors))

    trace, models = generate(parameters, USERS)
    answers = [device(user).answer(model.encode()) for user, model in zip(USERS, models, strict=True)]
    gradients, rows = backward(parameters, trace, models, answers)
    assert gradients.keys() == parameters.keys()
    rng = np.random.default_rng(1)
    for name, values in parameters.items():
        whole = np.zeros_like(values)
        whole[rows.get(name, ...)] = gradients[name]
        # Some of the largest, where a mistake would show, and some at random.
        largest = np.argsort(np.abs(whole), axis=None)[-2:]
        for flat in {*largest.tolist(), *rng.integers(values.size, size=4).tolist()}:
            place = np.unravel_index(flat, values.shape)
            assert whole[place] == pytest.approx(slope(loss, values, place), abs=1e-6), (name, place)


def test_the_server_cuts_long_gradients():
    server = MetamfServer(4, N_ITEMS, MetamfOptions(weight_decay=0), np.random.default_rng(0))
    trace, models = server.generate(USERS)
    far = [MetamfDevice(samples(user)[0], np.full(4, 1e6), N_ITEMS, 0, np.random.default_rng(9)) for user in USERS]
    server.learn(trace, models, [each.answer(model.encode()) for each, model in zip(far, models, strict=True)])
    # After one step the first moment is a tenth of the gradient.
    norm = np.sqrt(sum((values**2).sum() for values in server._adam._mean.values()))
    assert norm == pytest.approx(0.1 * 5, rel=1e-4)


def test_a_model_survives_the_wire(parameters):
    model = generate(parameters, USERS)[1][1]
    decoded = PrivateModel.decode(model.encode())
    for name in (*LAYERS, "left", "right"):
        np.testing.assert_array_equal(getattr(decoded, name), getattr(model, name))


def test_a_device_names_rated_items_and_with_negatives_others_too(parameters):
    message = generate(parameters, USERS)[1][0].encode()
    rated = samples(3)[0].tolist()
    found = [from_rows(GeneratedModelGradient.FromString(device(3, n).answer(message)).items)[0] for n in (0, 1)]
    assert found[0].tolist() == rated
    assert len(set(found[1].tolist())) == 8
    assert set(found[1].tolist()) > set(rated)


def test_ratings_are_learnt_and_each_batch_of_devices_is_a_step():
    train = generate_ratings("tiny", seed=1)
    method = Metamf(MetamfOptions(rate=3e-4, devices=20))
    method.begin(train, 0)
    steps, errors = [], []
    for _ in range(5):
        errors.append(np.mean((method.scores(train.user_index, train.item_index) - train.rating) ** 2))
        method.step()
        steps.append(method._server._adam._steps)
    assert steps == [2, 4, 6, 8, 10]
    assert errors[-1] < 0.5 * errors[0]
    assert errors == sorted(errors, reverse=True)


def test_with_negatives_rated_items_come_to_score_higher():
    train = two_groups()
    method = Metamf(MetamfOptions(rate=3e-4, weight_decay=0, negatives=4, devices=12))
    method.fit(train, 1, steps=15)
    users, items = np.divmod(np.arange(40 * 40), 40)
    scores = method.scores(users.astype(np.uint32), items.astype(np.uint32)).reshape(40, 40)
    rated = np.zeros((40, 40), bool)
    rated[train.user_index, train.item_index] = True
    higher = [(row[chosen][:, None] > row[~chosen]).mean() for row, chosen in zip(scores, rated, strict=True)]
    assert np.mean(higher) > 0.9


def test_down_come_the_factors_and_the_layers_and_up_go_the_rated_rows():
    found = cost(1000, 10, 0)
    layers = 32 * 8 + 8 + 8 + 1
    assert layers == 273
    assert found.down_bytes == pytest.approx((1000 * 8 + 8 * 32 + layers) * 8, abs=60)
    assert found.up_bytes == pytest.approx((10 * 32 + layers) * 8, abs=80)
    assert found.storage_bytes == (1000 * 32 + layers) * 8
    assert len(set(found.recommend(7).tolist())) == 7
