"""FedMF: its layers agree, and training follows a slow version of its equations."""

import secrets
import sys

import numpy as np
import pytest

from lightfr.errors import InvalidInputError, ProtocolError
from lightfr_harness.errors import MissingPackageError
from lightfr_harness.simulation.baselines import ckks
from lightfr_harness.simulation.baselines.fedmf import (
    ENTRY,
    SAMPLED_ROWS,
    FedMF,
    FedMFDevice,
    FedMFOptions,
    cost,
    encrypted_run,
    seconds_a_number,
    table_bytes,
)
from lightfr_harness.simulation.baselines.sealing import Encrypted, FixedPoint, Plain, multiples
from tests.harness.simulation.baselines.made import made_ratings
from tests.harness.simulation.baselines.test_paillier import KEY, KEY_1024

SMALL = {"factors": 3, "step_size": 0.01, "regularization": 0.01, "fraction": 1.0}


def trained(train, rounds, *sealings, **changes):
    method = FedMF(FedMFOptions(**{**SMALL, **changes}), *sealings)
    method.fit(train, seed=1, steps=rounds)
    return method


def factors_of(method):
    return method.opened(method.server.download()), np.array([device.user_factors for device in method.devices])


@pytest.mark.parametrize("full", [0, 1])
def test_fixed_point_equals_decrypted_paillier_bit_for_bit(full):
    train, options = made_ratings(3, 6, 3), FedMFOptions(**SMALL, full=full)
    encrypted = encrypted_run(options, KEY)
    encrypted.fit(train, seed=1, steps=3)
    for ours, theirs in zip(factors_of(trained(train, 3, FixedPoint(), full=full)), factors_of(encrypted), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_run_with_1024_bits_equals_fixed_point_and_its_messages_have_256_bytes_a_number():
    train, options = made_ratings(2, 5, 2), FedMFOptions(**{**SMALL, "factors": 4})
    encrypted = encrypted_run(options, KEY_1024)
    encrypted.fit(train, seed=1, steps=1)
    expected, _ = factors_of(trained(train, 1, FixedPoint(), factors=4))
    np.testing.assert_array_equal(factors_of(encrypted)[0], expected)
    (traffic,) = encrypted.rounds
    assert 2 * 5 * 4 * 256 < traffic.down_bytes < 2 * 5 * 4 * 256 + 40
    assert 2 * 2 * 4 * 256 < traffic.up_bytes < 2 * 2 * 4 * 256 + 60


def test_rounding_changes_little():
    train = made_ratings(10, 20, 8)
    plain, fixed = (factors_of(trained(train, 20, sealing))[0] for sealing in (Plain(), FixedPoint()))
    assert 0 < np.abs(plain - fixed).max() < 1e-3


def test_full_and_part_uploads_give_the_same_model():
    train = made_ratings(10, 20, 8)
    for sealing in (Plain(), FixedPoint()):
        part, full = (factors_of(trained(train, 5, sealing, full=full)) for full in (0, 1))
        np.testing.assert_array_equal(part[0], full[0])
        np.testing.assert_array_equal(part[1], full[1])


def test_the_server_cannot_open_what_it_adds_to():
    method = encrypted_run(FedMFOptions(**SMALL), KEY)
    method.begin(made_ratings(2, 5, 2), seed=0)
    with pytest.raises(InvalidInputError, match="Only devices"):
        method._on_server.opened(method.server.cells)


def slow_training(train, test, options, rounds):
    """The equations with one number for each user and item, since all columns stay equal; errors of each round."""
    d, eta, strength = options.factors, options.step_size, options.regularization
    p, q = [options.start] * train.n_users, [options.start] * train.n_items
    trained, held_out = (
        list(zip(r.user_index.tolist(), r.item_index.tolist(), r.rating.tolist(), strict=True)) for r in (train, test)
    )
    errors = []
    for _ in range(rounds):
        steps = []
        for user, item, rating in trained:
            error = rating - d * p[user] * q[item]
            p[user] -= eta * (-2 * error * q[item] + 2 * strength * p[user])
            steps.append((item, eta * (-2 * error * p[user] + 2 * strength * q[item])))
        for item, step in steps:
            q[item] -= step
        both = ([(r - d * p[u] * q[i]) ** 2 for u, i, r in rows] for rows in (trained, held_out))
        errors.append([sum(squares) / len(squares) for squares in both])
    return errors


def test_training_follows_the_equations_from_the_authors_constant_start():
    """Ten users, 40 items, the last three ratings of each held out: the authors' example with made-up ratings."""
    ratings, options = made_ratings(10, 40, 15, seed=4), FedMFOptions(**ENTRY.authors, start=0.01)
    is_last = np.arange(len(ratings)) % 15 >= 12
    train, test = ratings.subset(~is_last), ratings.subset(is_last)
    method, errors = FedMF(options), []

    def note_errors(_done):
        errors.append([((r.rating - method.scores(r.user_index, r.item_index)) ** 2).mean() for r in (train, test)])
        return False

    method.fit(train, seed=0, steps=ENTRY.authors_steps, after=note_errors)
    np.testing.assert_allclose(errors, slow_training(train, test, options, 175), rtol=1e-9)
    assert errors[-1][0] < 0.2 * errors[0][0]
    assert np.ptp(factors_of(method)[0], axis=1).max() < 1e-12, "a constant start stays a model of rank one"


def test_the_default_start_is_random():
    method = FedMF(FedMFOptions(**SMALL))
    method.begin(made_ratings(4, 6, 3), seed=0)
    assert np.ptp(factors_of(method)[0], axis=1).min() > 0


def test_gradients_are_those_of_the_loss_when_steps_are_tiny():
    """With a step size near zero p stays where it is, and g / eta is the slope of the squared error and the penalty."""
    rng, eta = np.random.default_rng(0), 1e-9
    options = FedMFOptions(factors=3, step_size=eta, regularization=0.1)
    ratings, rows = np.array([1.0, 4.0]), rng.normal(0, 1, (2, 3))
    device = FedMFDevice(np.array([0, 1], np.uint32), ratings, options, Plain(), rng)
    p = device.user_factors

    def loss(q):
        return ((ratings - q @ p) ** 2).sum() + 0.1 * (q**2).sum()

    gradients = device.gradients(rows) / eta
    for place in np.ndindex(2, 3):
        step = np.zeros((2, 3))
        step[place] = 1e-6
        slope = (loss(rows + step) - loss(rows - step)) / 2e-6
        assert gradients[place] == pytest.approx(slope, abs=1e-5)


def test_diverging_numbers_are_refused_before_they_are_rounded():
    for number in (np.inf, np.nan, 1e9):
        with pytest.raises(InvalidInputError, match="smaller step size"):
            multiples(np.array([0.0, number]))


@pytest.mark.parametrize("message", [b"\xff", b"", b"\x08\x02\x10\x05"])
def test_a_malformed_encrypted_message_is_refused(message):
    sealing = Encrypted(KEY.public, None, secrets.randbelow)
    with pytest.raises(ProtocolError):
        sealing.decode_table(message)


def test_the_length_of_a_whole_table_is_that_of_a_real_message():
    sealing = Encrypted(KEY.public, None, secrets.randbelow)
    for n_items in (1, 3, 40):
        cells = np.full((n_items, 32), 7, object)
        assert table_bytes(n_items, KEY) == len(sealing.encode_table(cells))


def test_a_table_of_the_size_of_ciao_has_twice_the_bytes_of_the_papers_formula():
    assert table_bytes(105_096, KEY_1024) == pytest.approx(2 * 105_096 * 32 * 128, rel=1e-6)


def test_a_device_that_keeps_ciphertexts_stores_the_download_and_recommends_from_a_sample():
    part = cost(105_096, 38, seed=0, key=KEY)
    assert part.down_bytes == table_bytes(105_096, KEY)
    assert 0 < part.up_bytes - 38 * 32 * 64 < 38 * 4 + 20
    assert part.storage_bytes == part.down_bytes + 32 * 8 + 32
    assert part.share == SAMPLED_ROWS / 105_096
    assert len(part.recommend(10)) <= SAMPLED_ROWS


def test_a_table_decrypted_once_is_stored_and_searched_as_plain_numbers():
    full = cost(500, 20, seed=0, full=True, decrypted_once=True, key=KEY)
    assert full.up_bytes == full.down_bytes
    assert full.storage_bytes == 501 * 256 + 32
    assert len(full.recommend(10)) == 10
    assert full.share == 1.0


def test_times_are_told_for_one_number():
    ticks = iter([0.0, 4.0, 6.0, 7.0])
    assert seconds_a_number(KEY, 2, lambda: next(ticks)) == {"encrypt": 2.0, "add": 1.0, "decrypt": 0.5}


def test_training_with_random_factors_lowers_the_error():
    train, errors = made_ratings(20, 30, 10), []
    method = FedMF(FedMFOptions(**SMALL))

    def note_error(_done):
        errors.append(float(np.mean((train.rating - method.scores(train.user_index, train.item_index)) ** 2)))
        return False

    method.fit(train, seed=0, steps=60, after=note_error)
    assert errors[-1] < 0.3 * errors[0]


def test_measuring_ckks_without_tenseal_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tenseal", None)
    with pytest.raises(MissingPackageError, match="Measuring CKKS needs the package tenseal"):
        ckks.ckks_cost(seed=0)
