"""Clients that train with secure aggregation: a real coordinator, real threads, real masks."""

import threading
import time

import pytest

from lightfr._wire import secure as secure_calls
from lightfr.errors import CohortTooSmallError, ServerUnavailableError
from lightfr.kept_rounds import kept_round
from tests.sdk.client.publisher import COORDINATED_ITEMS as ITEMS

COHORT = 5


def rated(client, first):
    client.sync()
    client.rate_many([(item, 5) for item in ITEMS[first : first + 40]])
    return client


@pytest.fixture
def secure(start_coordinator, open_client):
    """A coordinator and a cohort of clients."""

    def make(n=COHORT, **options):
        how = {
            "privacy": "secagg",
            "goal": COHORT,
            "over_selection": 1.0,
            "minimum": 3,
            "deadline_seconds": 4,
            "gate": 0,
        }
        coordinator = start_coordinator(**{**how, **options})
        return coordinator, [rated(open_client(coordinator, minimum_cohort=3), 30 * number) for number in range(n)]

    return make


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
    for _ in range(200):
        client.sync()
        if client.status().model_version == version:
            return
        time.sleep(0.05)
    raise AssertionError(f"version {version} never came")


def test_a_cohort_trains_and_nobody_is_left_with_secrets(secure):
    _, clients = secure(rounds=1)
    outcomes = together(*(client.participate for client in clients))
    assert [outcome.took_part for outcome in outcomes] == [True] * COHORT
    for client in clients:
        assert kept_round(client._store) is None
        assert client.status().rounds == 1
    wait_for_version(clients[0], 2)
    assert clients[0].participate().reason == "training_finished"


def test_a_device_that_vanishes_after_sharing_does_not_stop_the_others(secure, monkeypatch):
    _, clients = secure(rounds=1)

    def vanish(*_):
        raise ServerUnavailableError("gone")

    monkeypatch.setattr(clients[0]._user, "update", vanish)
    outcomes = together(*(client.participate for client in clients))
    assert isinstance(outcomes[0], ServerUnavailableError)
    assert [outcome.took_part for outcome in outcomes[1:]] == [True] * (COHORT - 1)


@pytest.mark.parametrize("step", ["AdvertiseKeys", "ShareKeys", "Upload", "RevealShares"])
def test_a_device_killed_between_keeping_and_sending_goes_on_after_a_restart(secure, open_client, monkeypatch, step):
    coordinator, clients = secure(rounds=1, deadline_seconds=20)
    struck, send = [], secure_calls.send

    def strike(channel, method, request):
        if channel is clients[0]._channel and method == step and not struck:
            struck.append(step)
            raise SystemExit
        return send(channel, method, request)

    monkeypatch.setattr(secure_calls, "send", strike)

    def twice():
        try:
            return clients[0].participate()
        except SystemExit:
            clients[0].close()
            again = open_client(coordinator, clients[0].device, minimum_cohort=3)
            assert again.status().upload_pending
            return again.participate()

    outcomes = together(twice, *(client.participate for client in clients[1:]))
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
    """The counts carry noise, so that nobody can foretell the open rows; most that no device rates stay closed."""
    _, clients = secure(gate=3, rounds=1)
    for version in (2, 3):
        assert all(outcome.took_part for outcome in together(*(client.participate for client in clients)))
        wait_for_version(clients[0], version)
    bitmap = clients[0]._user.models.open_rows(clients[0]._channel, clients[0]._user.model.manifest)
    opened = {row for row in range(len(ITEMS)) if bitmap[row >> 3] >> (row & 7) & 1}
    unrated = set(range(30 * COHORT + 10, len(ITEMS)))
    assert opened
    assert len(opened & unrated) < len(unrated) / 4
    assert all(outcome.took_part for outcome in together(*(client.participate for client in clients)))


def test_noise_is_added_where_the_round_asks_for_it(secure):
    _, clients = secure(privacy="secagg+dp", noise_rows=200.0, noise_sums=20.0, noise_counts=2.0, rounds=1)
    assert all(outcome.took_part for outcome in together(*(client.participate for client in clients)))
    wait_for_version(clients[0], 2)


def test_what_is_sent_names_no_item_and_no_code(secure, monkeypatch):
    import ssl

    sent, sendall = [], ssl.SSLSocket.sendall
    monkeypatch.setattr(
        ssl.SSLSocket, "sendall", lambda self, data, *f: (sent.append(bytes(data)), sendall(self, data, *f))[1]
    )
    _, clients = secure(rounds=1)
    assert all(outcome.took_part for outcome in together(*(client.participate for client in clients)))
    everything = b"".join(sent)
    for client in clients:
        assert client._store.get("user_code") not in everything
    assert b"item " not in everything
