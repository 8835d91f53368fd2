"""Uploads in the clear: what is in them is read, and on noise the attacks are no better than guessing."""

import numpy as np
import pytest

from lightfr import UserCode
from lightfr._wire import encode_update
from lightfr.interactions import Interactions
from lightfr.training import make_update
from lightfr.v1 import model_pb2
from lightfr_harness.audits.capture import CohortSum, Knowledge, RoundView
from lightfr_harness.audits.privacy import clear_uploads, item_set_recovery, rating_recovery, user_code_recovery
from lightfr_harness.audits.privacy.clear_uploads import decode_capture
from lightfr_harness.server.rules import UploadReader
from lightfr_harness.server.rules.bits import pack_signs
from tests.helpers import make_model, random_signs

LEVELS = (0, 630, 1260, 1890, 2520)


def one_upload(*, objective, upload_kind, seed, n_rated=30):
    """One device's upload, the view of it, its code and its steps by ascending item."""
    rng = np.random.default_rng(seed)
    signs, code = random_signs(200, 64, seed), random_signs(1, 64, seed + 1)[0]
    model = make_model(signs, objective=objective, upload_kind=upload_kind)
    items = np.sort(rng.choice(200, n_rated, replace=False))
    steps = rng.integers(0, 5, n_rated)
    interactions = Interactions([(int(i), LEVELS[s]) for i, s in zip(items, steps, strict=True)])
    update = make_update(model, interactions, UserCode(pack_signs(code).tobytes()), rng.bytes)
    message = model_pb2.RoundModel(code_bits=64, item_count=200, objective=objective, upload_kind=upload_kind)
    nothing = CohortSum(np.zeros((200, 64)), np.zeros(64), 0, 1)
    view = RoundView(signs, signs, model, message, np.ones(200, bool), (7,), (encode_update(update),), nothing)
    return view, code, items, steps


@pytest.mark.parametrize("seed", range(5))
def test_one_exact_upload_of_the_paper_gives_code_and_ratings_up_to_the_mirror_image(seed):
    view, code, items, steps = one_upload(
        objective=model_pb2.OBJECTIVE_PAPER, upload_kind=model_pb2.UPLOAD_KIND_EXACT, seed=seed
    )
    ((device, upload),) = view.read()
    decoded = clear_uploads.decode(view, device, upload, LEVELS)
    straight = (decoded.code == code).all()
    assert straight or (decoded.code == -code).all()
    assert decoded.items.tolist() == items.tolist()
    assert decoded.likelihood.argmax(axis=1).tolist() == (steps if straight else 4 - steps).tolist()


def test_rows_sent_as_codes_give_the_code_and_rule_out_no_true_level():
    view, code, _, steps = one_upload(
        objective=model_pb2.OBJECTIVE_PAPER, upload_kind=model_pb2.UPLOAD_KIND_CODES, seed=11
    )
    ((device, upload),) = view.read()
    decoded = clear_uploads.decode(view, device, upload, LEVELS)
    evidence = decoded.likelihood if (decoded.code == code).all() else decoded.likelihood[:, ::-1]
    assert abs((decoded.code == code).mean() - 0.5) == 0.5
    assert (evidence[np.arange(len(steps)), steps] == 1).all()


@pytest.mark.parametrize("kind", [model_pb2.UPLOAD_KIND_EXACT, model_pb2.UPLOAD_KIND_TERNARY])
def test_rows_of_the_catalogue_objective_give_the_code_without_the_field(kind):
    view, code, *_ = one_upload(objective=model_pb2.OBJECTIVE_CATALOGUE, upload_kind=kind, seed=12)
    claimed = user_code_recovery.codes_from_rows_alone(view)
    assert (claimed[7] == code).all()


def test_rows_of_noise_give_no_code():
    view, code, *_ = one_upload(
        objective=model_pb2.OBJECTIVE_CATALOGUE, upload_kind=model_pb2.UPLOAD_KIND_TERNARY, seed=13
    )
    upload = UploadReader(view.model).read(view.uploads[0])
    noise = np.random.default_rng(14)
    plane = noise.bytes(len(upload.rows.ternary.nonzero))
    upload.rows.ternary.nonzero, upload.rows.ternary.positive = b"\xff" * len(plane), plane
    noisy = RoundView(**{**vars(view), "uploads": (upload.rows.SerializeToString(),)})
    assert 0.2 < (user_code_recovery.codes_from_rows_alone(noisy)[7] == code).mean() < 0.8


def test_mirror_images_are_told_apart_by_what_others_rate():
    rng, n_items = np.random.default_rng(15), 60
    usual = rng.integers(1, 5, n_items)
    users, turned = [], []
    for _ in range(80):
        items = np.sort(rng.choice(n_items, 25, replace=False))
        steps = np.clip(usual[items] + rng.integers(-1, 2, 25), 0, 4)
        turned.append(bool(rng.random() < 0.5))
        likelihood = np.eye(5)[4 - steps if turned[-1] else steps]
        users.append(clear_uploads.Evidence(items, likelihood, (False,)))
    known = Knowledge(LEVELS, (0,), {0: np.arange(n_items)}, {0: usual}, ())
    mirrored, _ = clear_uploads.orient(users, known, n_items)
    assert np.mean(np.array(mirrored) == np.array(turned)) > 0.97


def test_the_papers_uploads_give_ratings_items_and_codes_away(paper):
    _, capture, truth = paper
    decoded = decode_capture(capture)
    exactly, within = rating_recovery.audit(capture, truth, decoded, private=False)
    assert exactly.measured > 0.98 > exactly.predicted + 0.3
    assert within.measured >= exactly.measured
    assert item_set_recovery.audit(capture, truth, decoded, private=False)[0].measured == 1
    assert user_code_recovery.audit(capture, truth, decoded, private=False)[0].measured > 0.95


def test_a_flat_target_leaves_the_ratings_at_guessing_and_gives_code_and_items(clear):
    _, capture, truth = clear
    decoded = decode_capture(capture)
    exactly, _ = rating_recovery.audit(capture, truth, decoded, private=False)
    assert abs(exactly.measured - exactly.predicted) < 0.05
    assert "cannot leak by construction" in exactly.note
    code, to_the_last_bit, rows_alone = user_code_recovery.audit(capture, truth, decoded, private=False)
    assert code.measured == to_the_last_bit.measured == 1
    assert rows_alone.measured > 0.9
    items = item_set_recovery.audit(capture, truth, decoded, private=False)[0]
    assert items.measured > items.predicted + 0.2


@pytest.mark.parametrize(("read", "verdict"), [(1.0, "refuted"), (0.5, "for information")])
def test_an_attack_that_fails_its_own_check_breaks_no_limit_of_ours(read, verdict):
    right, wrong = np.zeros(round(100 * read), np.int64), np.full(100 - round(100 * read), 4)
    errors = [np.concatenate([right, wrong])]
    found = rating_recovery._finding("paper", 0, errors, errors, "", private=False)
    assert found.verdict == verdict
    assert ("The attack should read 99%" in found.note) == (verdict == "for information")
