"""A device does not give more than its budget, whatever the server offers: it does not even begin."""

import json
import math
from contextlib import suppress

import pytest

from lightfr import Budget, Reason
from lightfr.budget import Ledger
from lightfr.errors import (
    InvalidInputError,
    NotPrivateError,
    OutOfRangeError,
    ProtocolError,
    ServerUnavailableError,
)
from lightfr.privacy_loss import epsilon, round_loss
from lightfr.v1 import coordinator_pb2, model_pb2, secure_pb2
from tests.sdk.client.publisher import random_codes

SECAGG, SECAGG_DP = model_pb2.PRIVACY_MODE_SECAGG, model_pb2.PRIVACY_MODE_SECAGG_DP
NOISE = model_pb2.Noise(rows_thousandths=100_000, sums_thousandths=20_000, counts_thousandths=2_000)
DP = {"privacy_mode": SECAGG_DP, "noise": NOISE, "upload_kind": model_pb2.UPLOAD_KIND_EXACT}
GATE_REFRESH = coordinator_pb2.ROUND_KIND_GATE_REFRESH
EVALUATION = coordinator_pb2.ROUND_KIND_EVALUATION


@pytest.fixture
def offered(publisher, open_device):
    """A device that is offered a place in a masked round, of a server that takes keys and then breaks the protocol."""

    def make(kind=coordinator_pb2.ROUND_KIND_TRAINING, model=None, **options):
        publisher.publish(1, random_codes(1), **(model or {"privacy_mode": SECAGG}))
        publisher.assignment(peer_id=b"p" * 16, kind=kind)
        publisher.answers["AdvertiseKeys"] = (200, {}, b"")
        publisher.answers["GetStep"] = (200, {}, b"")
        client = open_device(**{"allow_clear_uploads": False, **options})
        client.sync()
        return client

    return make


def called(publisher):
    return [path.rsplit("/", 1)[-1] for _, path, _, _ in publisher.server.requests]


def begins(client, publisher):
    """Whether participate() gets as far as sending keys."""
    with pytest.raises(ProtocolError):
        client.participate()
    return called(publisher)[-2:] == ["AdvertiseKeys", "GetStep"]


def spend(client, n_rounds=0, n_refreshes=0, privacy_loss=0.0, revealed=0):
    ledger = Ledger(client._store, Budget())
    for is_gate_refresh, count in ((False, n_rounds), (True, n_refreshes)):
        for _ in range(count):
            client._store.update(ledger.after_upload(is_gate_refresh=is_gate_refresh, privacy_loss=privacy_loss))
    client._store.update(ledger.after_reveal(revealed))


def test_a_device_with_room_in_its_budget_takes_the_place(offered, publisher):
    client = offered()
    spend(client, n_rounds=11, n_refreshes=1)
    assert begins(client, publisher)


def test_a_device_that_has_revealed_on_a_version_takes_no_other_place_on_it(offered, publisher):
    client = offered()
    spend(client, revealed=1)
    outcome = client.participate()
    assert (outcome.took_part, outcome.reason) == (False, Reason.BUDGET)
    assert 60 <= outcome.retry_after_seconds <= 300
    assert "AdvertiseKeys" not in called(publisher)
    assert not client.status().upload_pending
    publisher.publish(2, random_codes(2), privacy_mode=SECAGG)
    publisher.assignment(peer_id=b"p" * 16)
    assert begins(client, publisher)


def test_a_month_of_training_rounds_is_enough_and_no_place_is_asked_for(offered, publisher):
    client = offered()
    spend(client, n_rounds=12)
    before = len(called(publisher))
    outcome = client.participate()
    assert outcome.reason == Reason.BUDGET
    assert 30 * 86_400 - 400 < outcome.retry_after_seconds < 30 * 86_400 + 301
    assert called(publisher)[before:] == []


def test_one_gate_refresh_in_a_month_is_enough(offered, publisher):
    client = offered(GATE_REFRESH)
    spend(client, n_refreshes=1)
    outcome = client.participate()
    assert outcome.reason == Reason.BUDGET
    assert called(publisher)[-1] == "CheckIn"


def test_an_evaluation_counts_as_a_round_of_the_month_and_not_as_a_gate_refresh(offered, publisher):
    client = offered(EVALUATION)
    spend(client, n_rounds=11, n_refreshes=1)
    assert begins(client, publisher)
    spend(client, n_rounds=1)
    assert client.participate().reason == Reason.BUDGET


def test_the_app_may_set_other_numbers(offered, publisher):
    client = offered(budget=Budget(rounds_per_month=13))
    spend(client, n_rounds=12)
    assert begins(client, publisher)


@pytest.mark.parametrize("name", Budget._fields)
def test_a_negative_budget_is_refused(open_device, name):
    with pytest.raises(OutOfRangeError, match=f"budget.{name}"):
        open_device(budget=Budget(**{name: -1}))


def test_what_is_spent_can_be_exported_as_json_whatever_it_is(offered):
    client = offered()
    spend(client, n_rounds=1, privacy_loss=0.25, revealed=3)
    spent = client.export_my_data()["spent"]
    assert (len(spent["rounds"]), spent["revealed_version"], spent["privacy_loss"]) == (1, 3, 0.25)
    spend(client, n_rounds=1, privacy_loss=math.inf)
    exported = json.dumps(client.export_my_data(), allow_nan=False)
    assert json.loads(exported)["spent"]["privacy_loss"] is None


# ---- a round that was begun ----


def test_a_round_is_given_up_when_the_model_has_moved_on(offered, publisher):
    client = offered()
    publisher.answers["GetStep"] = (503, {}, b"")
    with pytest.raises(ServerUnavailableError):
        client.participate()
    (first,) = advertised(publisher)
    with pytest.raises(ServerUnavailableError):
        client.participate()
    assert advertised(publisher) == [first, first]
    publisher.publish(2, random_codes(2), privacy_mode=SECAGG)
    publisher.assignment(peer_id=b"p" * 16, round_id=b"s" * 16)
    client.sync()
    with pytest.raises(ServerUnavailableError):
        client.participate()
    third = advertised(publisher)[2]
    assert third != first
    assert third.round_id == b"s" * 16


def advertised(publisher):
    bodies = [body for _, path, _, body in publisher.server.requests if path.endswith("AdvertiseKeys")]
    return [secure_pb2.AdvertiseKeysRequest.FromString(body) for body in bodies]


@pytest.mark.parametrize("has_model", [True, False])
def test_an_upload_in_the_clear_is_dropped_once_the_app_allows_none(publisher, open_device, tmp_path, has_model):
    publisher.publish(1, random_codes(1))
    publisher.assignment()
    publisher.answers["Upload"] = (503, {}, b"")
    audited = open_device(allow_clear_uploads=True)
    audited.sync()
    audited.rate_many([(f"item {n}", 5) for n in range(30)])
    with pytest.raises(ServerUnavailableError):
        audited.participate()
    audited.close()
    publisher.publish(2, random_codes(2), privacy_mode=SECAGG)
    publisher.answers["CheckIn"] = (503, {}, b"")
    if not has_model:
        for file in (tmp_path / "device" / "models").iterdir():
            file.unlink()
    private = open_device(allow_clear_uploads=False)
    if has_model:
        private.sync()
    assert private.status().upload_pending
    publisher.server.requests.clear()
    with pytest.raises(ServerUnavailableError):
        private.participate()
    assert "Upload" not in called(publisher)
    assert not private.status().upload_pending


@pytest.fixture
def begun(offered, publisher, open_device):
    """A device that has sent its keys when its server went away, opened anew on other terms."""

    def make(model, **terms):
        publisher.answers["GetStep"] = (503, {}, b"")
        first = offered(model=model, minimum_cohort=4)
        publisher.answers["GetStep"] = (503, {}, b"")
        with pytest.raises(ServerUnavailableError):
            first.participate()
        first.close()
        publisher.server.requests.clear()
        publisher.answers["CheckIn"] = (503, {}, b"")
        return open_device(**{"allow_clear_uploads": False, "minimum_cohort": 4, **terms})

    return make


@pytest.mark.parametrize(
    ("model", "terms"),
    [
        ({"privacy_mode": SECAGG}, {"minimum_cohort": 5}),
        ({"privacy_mode": SECAGG}, {"budget": Budget(rounds_per_month=0)}),
        (DP, {"require_dp": 0.001}),
    ],
    ids=["a larger cohort", "no rounds", "a smaller epsilon"],
)
def test_a_round_is_given_up_when_the_terms_of_now_do_not_allow_it(begun, publisher, model, terms):
    client = begun(model, **terms)
    with suppress(ServerUnavailableError):
        client.participate()
    assert "AdvertiseKeys" not in called(publisher)
    assert not client.status().upload_pending


@pytest.mark.parametrize("terms", [{}, {"minimum_cohort": 3}, {"budget": Budget(rounds_per_month=1)}])
def test_a_round_goes_on_when_the_terms_of_now_allow_it_as_well(begun, publisher, terms):
    client = begun({"privacy_mode": SECAGG}, **terms)
    with pytest.raises(ServerUnavailableError):
        client.participate()
    assert called(publisher)[0] == "AdvertiseKeys"


def test_a_round_whose_upload_is_made_goes_on_since_it_is_paid_for(begun, publisher):
    client = begun({"privacy_mode": SECAGG}, budget=Budget(rounds_per_month=1))
    spend(client, n_rounds=1)
    client._store.put("secure_outgoing", b"Upload\n")
    with pytest.raises(ServerUnavailableError):
        client.participate()
    assert called(publisher)[0] == "Upload"


# ---- require_dp ----


def test_a_device_that_requires_dp_declines_other_rounds(offered, publisher):
    client = offered(require_dp=8.0)
    before = len(called(publisher))
    with pytest.raises(NotPrivateError, match="require_dp"):
        client.participate()
    assert called(publisher)[before:] == []


def test_a_device_that_requires_dp_says_so_when_it_checks_in(offered, publisher):
    client = offered(model=DP, require_dp=100.0)
    assert begins(client, publisher)
    checked_in = next(body for _, path, _, body in publisher.server.requests if path.endswith("CheckIn"))
    assert coordinator_pb2.CheckInRequest.FromString(checked_in).capabilities.privacy_modes == [SECAGG_DP]


@pytest.mark.parametrize("kind", [coordinator_pb2.ROUND_KIND_TRAINING, GATE_REFRESH, EVALUATION])
def test_it_takes_part_until_one_more_round_would_exceed_the_epsilon(offered, publisher, kind):
    loss = round_loss(NOISE, 64, 256, is_training=kind == coordinator_pb2.ROUND_KIND_TRAINING)
    client = offered(kind, DP, require_dp=epsilon(3.5 * loss))
    spend(client, n_rounds=2, privacy_loss=loss)
    assert begins(client, publisher)
    spend(client, n_rounds=1, privacy_loss=loss)
    outcome = client.participate()
    assert outcome.reason == Reason.BUDGET
    assert 43_200 <= outcome.retry_after_seconds <= 86_400
    assert called(publisher)[-1] == "CheckIn"


def test_noise_that_is_too_small_to_count_is_declined(offered, publisher):
    small = model_pb2.Noise(rows_thousandths=1_299, sums_thousandths=20_000, counts_thousandths=2_000)
    client = offered(model={**DP, "noise": small}, require_dp=1e9)
    assert client.participate().reason == Reason.BUDGET


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan])
def test_an_epsilon_that_is_none_is_refused(open_device, bad):
    with pytest.raises(InvalidInputError, match="require_dp"):
        open_device(allow_clear_uploads=False, require_dp=bad)


def test_nobody_can_require_dp_and_allow_uploads_in_the_clear(open_device):
    with pytest.raises(InvalidInputError, match="does not go together with allow_clear_uploads"):
        open_device(allow_clear_uploads=True, require_dp=8.0)
