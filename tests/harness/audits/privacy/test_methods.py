"""What the servers of other methods learn: every attack works on small data, and where nothing is read, it guesses."""

import secrets
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from lightfr_harness.audits.privacy import method_audit, methods
from lightfr_harness.audits.privacy.method_attacks import NOTHING, read_fedrec
from lightfr_harness.simulation.baselines.fedmf import FedMFOptions
from lightfr_harness.simulation.baselines.fedrec import FedRecDevice, FedRecOptions
from lightfr_harness.simulation.baselines.item_factors import histories
from lightfr_harness.simulation.baselines.paillier import generate
from lightfr_harness.simulation.baselines.privrec import PrivRecOptions
from lightfr_harness.simulation.baselines.sealing import Encrypted
from lightfr_harness.simulation.baselines.tables import decode_rows
from tests.harness.simulation.baselines.made import made_ratings

TRAIN = made_ratings(40, 60, 12)
ROUNDS = 3


def audited(subject, train=TRAIN, rounds=ROUNDS):
    """By what the server has beside its messages, the findings by claim."""
    by_mode = {}
    for found in method_audit.audit(subject, train, rounds, seed=0):
        by_mode.setdefault(found.mode.removeprefix(subject.title).removeprefix(", "), {})[found.claim] = found
    return by_mode


def measured(findings):
    """Items from one upload, items over rounds, ratings, vectors, lists."""
    claims = (method_audit.ITEMS, method_audit.OVER_ROUNDS, method_audit.RATINGS, method_audit.VECTORS)
    return [findings[claim].measured if claim in findings else None for claim in (*claims, method_audit.LISTS)]


def guesses(findings, *claims):
    return all(findings[claim].measured == findings[claim].predicted < 0.9 for claim in claims)


def test_one_upload_of_fcf_tells_everything_though_it_has_a_row_for_every_item():
    found = audited(methods.watched_fcf(TRAIN))[""]
    items, _, *others = measured(found)
    assert (items, *others) == (1, 1, 1, 1)
    assert guesses(found, method_audit.OVER_ROUNDS)
    assert found[method_audit.TABLE_1].verdict == "confirmed"


def test_part_uploads_of_fedmf_name_the_items_and_the_key_of_one_user_gives_the_rest():
    found = audited(methods.watched_fedmf(TRAIN, full=False))
    assert measured(found[""])[:2] == [1, 1]
    assert guesses(found[""], method_audit.RATINGS, method_audit.VECTORS, method_audit.LISTS)
    items, over_rounds, ratings, vectors, lists = measured(found["with a user's key"])
    assert (items, over_rounds, vectors) == (1, 1, 1)
    assert min(ratings, lists) > 0.95
    assert {each[method_audit.TABLE_1].verdict for each in found.values()} == {"refuted"}


def test_full_uploads_of_fedmf_tell_nothing_without_the_key_and_the_items_with_it():
    found = audited(methods.watched_fedmf(TRAIN, full=True))
    assert guesses(found[""], *(claim for claim in found[""] if claim != method_audit.TABLE_1))
    assert [each[method_audit.TABLE_1].verdict for each in found.values()] == ["confirmed", "refuted"]
    items, _, ratings, vectors, _ = measured(found["with a user's key"])
    assert items > 0.95
    assert ratings > 0.9
    assert vectors == 1


def test_real_ciphertexts_of_zeros_all_differ_and_the_key_opens_them():
    key, train = generate(256, Random(3).getrandbits), made_ratings(6, 12, 4)
    options = FedMFOptions(factors=3, step_size=0.05, full=1)
    sealings = [Encrypted(key.public, private, secrets.randbelow) for private in (None, key)]
    subject = methods.watched_fedmf(train, full=True, options=options, on_server=sealings[0], on_devices=sealings[1])
    rated, uploads = [items for items, _ in histories(train)], {}
    watched = methods.Watch(subject, rated, 0)

    def both(device, download, upload):
        watched.see(device, download, upload)
        uploads[device] = sealings[0].decode_table(upload)

    subject.method.observer = both
    subject.method.fit(train, 0, 1)
    for device, read in watched.reads["with a user's key"].items():
        assert set(read.items.tolist()) == set(rated[device].tolist())
        assert len(set(uploads[device].ravel().tolist())) == uploads[device].size
        assert len(watched.reads[""][device].items) == 0


def test_fedrec_is_read_from_one_upload_and_by_what_comes_up_again():
    found = audited(methods.watched_fedrec(TRAIN, FedRecOptions(rho=2, fraction=1.0)), rounds=8)[""]
    items, over_rounds, ratings, vectors, lists = measured(found)
    assert (items, ratings, vectors, lists) == (1, 1, 1, 1)
    assert over_rounds > 0.95
    assert found[method_audit.TABLE_1].verdict == "refuted"


def test_with_every_item_in_every_upload_of_fedrec_the_intersection_tells_nothing():
    subject = methods.watched_fedrec(TRAIN, FedRecOptions(rho=4, fraction=1.0))
    assert guesses(audited(subject, rounds=8)[""], method_audit.OVER_ROUNDS)


def test_an_attack_that_reads_nothing_scores_what_guessing_scores():
    subject = methods.watched_fedrec(TRAIN, FedRecOptions(rho=4, fraction=1.0))
    found = audited(replace(subject, attacks={"": lambda *exchange: NOTHING}), rounds=8)[""]
    assert found[method_audit.VECTORS].predicted > 0
    assert all(each.measured == each.predicted for each in found.values())
    assert found[method_audit.TABLE_1].verdict == "confirmed"


def test_real_ratings_of_fedrec_are_told_from_virtual_ones_without_the_order_of_rows():
    rng, options = np.random.default_rng(2), FedRecOptions()
    items, ratings, levels = rng.choice(60, 12, replace=False), rng.integers(1, 6, 12) * 1.0, np.arange(1.0, 6.0)
    table, number = rng.normal(0, 0.3, (60, 32)), int(options.start) + 1
    device = FedRecDevice(items.astype(np.uint32), ratings, 60, options, rng)
    uploaded, gradients = decode_rows(device.answer(table, number))
    mixed = rng.permutation(len(uploaded))
    read = read_fedrec(table, uploaded[mixed], gradients[mixed], options, number, levels)
    assert dict(zip(read.items, read.ratings, strict=True)) == dict(zip(items, ratings, strict=True))
    assert np.allclose(read.vector, device.user_factors)


def test_the_server_of_metamf_has_every_list_and_every_rating():
    found = audited(methods.watched_metamf(TRAIN))[""]
    items, over_rounds, ratings, vectors, lists = measured(found)
    assert (items, over_rounds, vectors, lists) == (1, 1, None, 1)
    # A row tells nothing where no hidden unit is awake.
    assert ratings > 0.98
    assert found[method_audit.TABLE_1].verdict == "confirmed"


def test_the_server_of_privrec_reads_uploads_that_it_only_adds_noise_to_afterwards():
    # So few devices would drown in noise that is meant for hundreds.
    found = audited(methods.watched_privrec(TRAIN, PrivRecOptions(noise=0.01)))[""]
    items, over_rounds, ratings, vectors, lists = measured(found)
    assert (items, over_rounds) == (1, 1)
    assert min(ratings, vectors, lists) > 0.95
    assert found[method_audit.TABLE_1].verdict == "refuted"


def test_the_epsilon_of_privrec_is_that_of_its_constants():
    assert audited(methods.watched_privrec(TRAIN))[""][method_audit.EPSILON].measured == pytest.approx(57.3, abs=0.1)


def test_what_privrec_shortened_names_its_items_and_no_rating():
    found = audited(methods.watched_privrec(TRAIN, PrivRecOptions(clip=0.001)))[""]
    assert measured(found)[:2] == [1, 1]
    assert guesses(found, method_audit.RATINGS, method_audit.VECTORS)


def test_rows_of_pfedrec_that_move_the_other_way_are_the_rated_ones():
    found = audited(methods.watched_pfedrec(TRAIN))[""]
    items, _, _, vectors, lists = measured(found)
    assert (items, vectors, lists) == (1, 1, 1)
    assert guesses(found, method_audit.RATINGS)
    assert method_audit.TABLE_1 not in found
