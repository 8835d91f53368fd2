"""Evaluation over mutual TLS: real clients evaluate, get what they chose, and rank by it."""

import json
import signal
import sqlite3
import threading
from contextlib import ExitStack, closing
from dataclasses import replace
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from lightfr import RoundStage
from lightfr.errors import LightFRError
from lightfr.rankings import RankBy, Rankings
from lightfr.results import RankedBy
from lightfr_harness.server.coordinator.plan import EVALUATION
from tests.adversary.live import clients_of, in_threads
from tests.harness.server.coordinator.helpers import BITS, ITEMS, N_ITEMS
from tests.harness.server.coordinator.live import Live
from tests.harness.server.coordinator.secure import SECURE
from tests.harness.server.coordinator.test_two_processes import until
from tests.warm import CoordinatorProcess

N = 5
RATED = 8
WITH_NOISE = replace(
    SECURE,
    privacy="secagg+dp",
    noise_rows_thousandths=200_000,
    noise_sums_thousandths=20_000,
    noise_counts_thousandths=5100,
)
PLAN = {"goal": N, "over_selection": 1.0, "minimum": 2, "evaluate_every": 1}


def all_take_part(clients):
    outcomes = [None] * N

    def take_part(number):
        clients[number].sync()
        outcomes[number] = clients[number].participate()

    in_threads(take_part, N)
    assert [outcome.took_part for outcome in outcomes] == [True] * N


@pytest.mark.parametrize("settings", [SECURE, WITH_NOISE], ids=lambda settings: settings.privacy)
def test_clients_evaluate_and_rank_by_what_was_chosen(tmp_path, authority, settings):
    with (
        Live(tmp_path / "folder", authority, settings=settings, **PLAN) as live,
        clients_of(live, authority, tmp_path, N, minimum_cohort=N) as clients,
    ):
        coordinator = live.coordinator
        all_take_part(clients)
        assert until(lambda: coordinator.book.current.kind == EVALUATION)
        clients[0].sync()
        assert clients[0].status().ranked_by == RankedBy.POPULARITY
        shown = [found.item_id for found in clients[0].recommend(5)]
        assert shown == [f"item-{row}" for row in range(RATED, RATED + 5)]
        all_take_part(clients)
        assert until(lambda: coordinator.version.manifest.model_version == 3)
        published = Rankings.of(coordinator.version.manifest)
        assert list(published.by_group) == coordinator.evaluations.rankings()
        for client in clients:
            assert client.sync()
            ranks_as_told(client, published)
        (sums,) = [one.evaluated.sums for one in coordinator.evaluations.kept]
        # One opinion of each, all in one group; a device's noise is at most 1, or has a standard deviation of 5.1.
        assert abs(sums[1, 0, 0] - N) <= (N if settings == SECURE else 51 * N**0.5)
        metrics, page = (live.operations("GET", path)[2].decode() for path in ("/metrics", "/"))
        assert "lightfr_evaluated_model_version 2.0" in metrics
        assert 'lightfr_evaluated_hit_rate{ranking="chosen"}' in metrics
        assert "Accuracy, as devices evaluate it" in page
        assert [json.loads(line)["event"] for line in live.log.getvalue().splitlines()].count("evaluated") == 1


def ranks_as_told(client, published):
    """What the device shows is what the manifest says, computed from its similarities anew."""
    ranking = published.for_user(RATED)
    prior = published.prior(ranking, BITS)
    shown = client.recommend(N_ITEMS)
    rows = [ITEMS.ids.index(found.item_id) for found in shown]
    assert len(rows) == N_ITEMS - RATED
    if ranking.by == RankBy.POPULARITY:
        assert rows == sorted(rows)
        return
    scores = [
        round((2 * found.similarity - 1) * BITS) + (prior.offset_of(row) if prior else 0)
        for found, row in zip(shown, rows, strict=True)
    ]
    assert [found.score for found in shown] == scores
    assert sorted(zip([-score for score in scores], rows, strict=True)) == list(
        zip([-score for score in scores], rows, strict=True)
    )
    assert client.status().ranked_by == RankedBy.CODES


def test_a_coordinator_killed_in_an_evaluation_goes_on_and_counts_it_once(tmp_path, authority):
    folder, items = tmp_path / "folder", tmp_path / "items.tsv"
    items.write_text("".join(f"{item}\t{count}\n" for item, count in zip(ITEMS.ids, ITEMS.device_counts, strict=True)))
    how = {**PLAN, "bits": BITS, "rounds": 1}
    with CoordinatorProcess(folder, authority.folder, items, **how) as first, ExitStack() as stack:
        port = urlsplit(first.addresses["server"]).port
        second = CoordinatorProcess(folder, authority.folder, items, port=port, **how)
        is_killed = threading.Event()

        def kill(reached):
            if reached == RoundStage.UPLOADED and not is_killed.is_set():
                first.stop(signal.SIGKILL)
                stack.enter_context(second)
                is_killed.set()

        def stubborn(number):
            """One of them kills the coordinator; all come again until their part is done."""
            clients[number].sync()
            while True:
                try:
                    return clients[number].participate(kill if number == 0 else None)
                except LightFRError:
                    assert is_killed.wait(30)

        with clients_of(
            SimpleNamespace(addresses=first.addresses), authority, tmp_path, N, minimum_cohort=N
        ) as clients:
            all_take_part(clients)
            assert until(lambda: clients[0].sync() or clients[0].status().model_version == 2)
            in_threads(stubborn, N)
            assert until(lambda: clients[0].sync() or clients[0].status().model_version == 3)
    with closing(sqlite3.connect(folder / "coordinator.sqlite")) as connection:
        kept = connection.execute("SELECT number, model_version FROM evaluations").fetchall()
        rounds = connection.execute("SELECT number, kind, upload_count, next_model_version FROM rounds").fetchall()
    assert kept == [(2, 2)]
    assert rounds == [(1, 1, N, 2), (2, EVALUATION, N, 3)]
