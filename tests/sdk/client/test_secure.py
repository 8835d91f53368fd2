"""Clients that train with secure aggregation: a real coordinator, real threads, real masks."""

import ssl
import threading
import time

import pytest

from lightfr._wire import secure as secure_calls
from lightfr.errors import CohortTooSmallError, PrivacyError, ServerUnavailableError
from lightfr.kept_rounds import kept_round
from lightfr.privacy_loss import round_loss
from lightfr.v1.model_pb2 import Noise
from lightfr.views import imported, views_in
from tests.sdk.client.publisher import COORDINATED_ITEMS as ITEMS
from tests.sdk.test_rounds import METHODS

COHORT = 5
# Long enough for a machine that is busy with something else.
LONGEST_WAIT_SECONDS = 100


def rated(client, first):
    client.sync()
    client.rate_many([(item, 5) for item in ITEMS[first : first + 40]])
    return client


# What `serve` is told of every coordinator here.
PLAN = {
    "privacy": "secagg",
    "goal": COHORT,
    "over_selection": 1.0,
    "minimum": 3,
    "deadline_seconds": 4,
    "gate": 0,
}


@pytest.fixture
def cohort_of(open_client):
    """Clients of a coordinator, who have rated."""

    def make(coordinator, n=COHORT, rated_by=None):
        """`rated_by`: after so many clients the next ones have rated the same items again."""
        clients = [open_client(coordinator, minimum_cohort=3) for _ in range(n)]
        return [rated(client, 30 * (number % (rated_by or n))) for number, client in enumerate(clients)]

    return make


@pytest.fixture
def secure(start_coordinator, cohort_of):
    """A coordinator of its own and a cohort of clients."""

    def make(n=COHORT, rated_by=None, **options):
        coordinator = start_coordinator(**{**PLAN, **options})
        return coordinator, cohort_of(coordinator, n, rated_by)

    return make


@pytest.fixture(scope="module")
def patient(start_shared_coordinator):
    """One for all tests of a cohort that goes through a round: no phase ends before all five have done it."""
    return start_shared_coordinator(**{**PLAN, "deadline_seconds": 600, "evaluate_every": 0})


@pytest.fixture
def cohort(patient, cohort_of):
    """A new cohort at the coordinator that tests share; its round is over when the next cohort comes."""
    clients = cohort_of(patient)
    version = clients[-1].status().model_version
    yield clients
    wait_for_version(clients[-1], version + 1)


def together(*calls):
    """Run the calls at the same time; what each returned or raised."""
    results = [None] * len(calls)

    def run(place, call):
        try:
            results[place] = call()
        except Exception as error:
            results[place] = error

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def wait_for_version(client, version):
    """Masks come off after the last device has gone: the new version follows a moment later."""
    for _ in range(LONGEST_WAIT_SECONDS * 20):
        client.sync()
        if client.status().model_version == version:
            return
        time.sleep(0.05)
    raise AssertionError(f"version {version} never came")


def test_a_cohort_trains_and_nobody_is_left_with_secrets(secure):
    _, clients = secure(rounds=1, evaluate_every=0)
    outcomes = together(*(client.participate for client in clients))
    assert [outcome.took_part for outcome in outcomes] == [True] * COHORT
    for client in clients:
        assert kept_round(client._store) is None
        assert client.status().rounds == 1
        assert len(client.export_my_data()["spent"]["rounds"]) == 1
        assert client.export_my_data()["spent"]["revealed_version"] == 1
        assert client.export_my_data()["spent"]["privacy_loss"] == 0
    wait_for_version(clients[0], 2)


def test_when_training_is_over_the_cohort_evaluates_and_devices_rank_by_it(secure):
    _, clients = secure(rounds=1)
    assert [client.status().ranked_by for client in clients] == ["unknown"] * COHORT
    together(*(client.participate for client in clients))
    codes = [client._store.get("user_code") for client in clients]
    wait_for_version(clients[0], 2)
    assert all(outcome.took_part for outcome in together(*(client.participate for client in clients)))
    for client, code in zip(clients, codes, strict=True):
        spent = client.export_my_data()["spent"]
        assert (len(spent["rounds"]), len(spent["gate_refreshes"]), spent["revealed_version"]) == (2, 0, 2)
        # An evaluation fits codes of its own.
        assert client._store.get("user_code") == code
    wait_for_version(clients[0], 3)
    assert clients[0].status().ranked_by in ("codes", "popularity")
    assert len(clients[0].recommend(5)) == 5
    assert clients[0].participate().reason == "training_finished"


def test_a_device_that_vanishes_after_sharing_does_not_stop_the_others(secure, monkeypatch):
    _, clients = secure(rounds=1)

    def vanish(*_):
        raise ServerUnavailableError("gone")

    monkeypatch.setattr(clients[0]._user, "update", vanish)
    outcomes = together(*(client.participate for client in clients))
    assert isinstance(outcomes[0], ServerUnavailableError)
    assert [outcome.took_part for outcome in outcomes[1:]] == [True] * (COHORT - 1)


@pytest.mark.parametrize("step", METHODS)
def test_a_device_killed_between_keeping_and_sending_goes_on_after_a_restart(
    patient, cohort, open_client, monkeypatch, step
):
    struck, send = [], secure_calls.send

    def strike(channel, method, request):
        if channel is cohort[0]._channel and method == step and not struck:
            struck.append(step)
            raise SystemExit
        return send(channel, method, request)

    monkeypatch.setattr(secure_calls, "send", strike)

    def twice():
        try:
            return cohort[0].participate()
        except SystemExit:
            cohort[0].close()
            again = open_client(patient, cohort[0].device, minimum_cohort=3)
            assert again.status().upload_pending
            return again.participate()

    outcomes = together(twice, *(client.participate for client in cohort[1:]))
    assert struck == [step]
    assert [getattr(outcome, "took_part", outcome) for outcome in outcomes] == [True] * COHORT


def test_a_device_leaves_a_cohort_that_is_too_small_for_it(secure):
    _, clients = secure()
    clients[0]._terms = clients[0]._terms._replace(minimum_cohort=COHORT + 1)
    outcomes = together(*(client.participate for client in clients))
    assert isinstance(outcomes[0], CohortTooSmallError)
    assert kept_round(clients[0]._store) is None
    assert [outcome.took_part for outcome in outcomes[1:]] == [True] * (COHORT - 1)


def test_the_first_two_rounds_without_counts_sum_them_for_the_gate(secure):
    """The counts carry noise, so that nobody can foretell the open rows; most that no device rates stay closed.

    A device is in one of the two: the server keeps it so, and so does the device's own budget.
    """
    _, everybody = secure(2 * COHORT, gate=3, rounds=1, rated_by=COHORT)
    clients = everybody[:COHORT]
    for version, counting in ((2, clients), (3, everybody[COHORT:])):
        assert all(outcome.took_part for outcome in together(*(client.participate for client in counting)))
        assert all(len(client.export_my_data()["spent"]["gate_refreshes"]) == 1 for client in counting)
        wait_for_version(clients[0], version)
    open_rows = clients[0]._user.model.codes.open_rows
    opened = {item for item in range(len(ITEMS)) if open_rows.is_open(item)}
    unrated = set(range(30 * COHORT + 10, len(ITEMS)))
    assert opened
    assert len(opened & unrated) < len(unrated) / 4
    assert all(outcome.took_part for outcome in together(*(client.participate for client in clients)))


def test_devices_of_a_round_export_what_they_were_told_and_it_is_the_same(cohort, tmp_path):
    together(*(client.participate for client in cohort))
    files = [tmp_path / f"views{number}.json" for number in range(COHORT)]
    assert [client.export_views(file) for client, file in zip(cohort, files, strict=True)] == [1] * COHORT
    assert len({file.read_bytes() for file in files}) == 1
    (view,) = imported(files[0].read_bytes())
    assert (view.included, view.survivors) == (b"\x1f", b"\x1f")


def test_a_device_that_left_after_the_roster_keeps_what_it_was_told(secure, monkeypatch):
    _, clients = secure(rounds=1)
    refused = PrivacyError("the vector cannot be made")
    monkeypatch.setattr(clients[0]._user, "update", lambda model: (_ for _ in ()).throw(refused))
    outcomes = together(*(client.participate for client in clients))
    assert outcomes[0] is refused
    (view,) = views_in(clients[0]._store.get)
    assert view.included
    assert not view.survivors
    assert kept_round(clients[0]._store) is None
    assert clients[0].export_my_data()["spent"]["rounds"] == []


def test_noise_is_added_where_the_round_asks_for_it_and_its_loss_is_counted(secure):
    _, clients = secure(privacy="secagg+dp", noise_rows=200.0, noise_sums=20.0, noise_counts=2.0, rounds=1)
    assert all(outcome.took_part for outcome in together(*(client.participate for client in clients)))
    noise = Noise(rows_thousandths=200_000, sums_thousandths=20_000, counts_thousandths=2_000)
    loss = round_loss(noise, 64, 3, is_training=True)
    assert [client.export_my_data()["spent"]["privacy_loss"] for client in clients] == [loss] * COHORT
    wait_for_version(clients[0], 2)


@pytest.fixture
def sent(monkeypatch):
    """All that anybody sends from here on, before it is encrypted."""
    kept, sendall = [], ssl.SSLSocket.sendall
    monkeypatch.setattr(
        ssl.SSLSocket, "sendall", lambda self, data, *f: (kept.append(bytes(data)), sendall(self, data, *f))[1]
    )
    return kept


def test_what_is_sent_names_no_item_and_no_code(sent, cohort):
    """`sent` comes first, for the devices of the cohort already speak when they join."""
    assert all(outcome.took_part for outcome in together(*(client.participate for client in cohort)))
    everything = b"".join(sent)
    assert b"lightfr.v1.EnrollmentService" in everything
    for client in cohort:
        assert client._store.get("user_code") not in everything
    assert b"item " not in everything
