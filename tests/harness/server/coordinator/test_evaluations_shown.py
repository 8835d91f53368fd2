"""What people and Prometheus see of evaluations."""

import json

import pytest
from prometheus_client.exposition import generate_latest

from lightfr_harness.server.coordinator.operations import render
from lightfr_harness.server.rules.evaluation import POPULARITY, Evaluated
from tests.harness.server.coordinator.helpers import run
from tests.harness.server.coordinator.secure import secure
from tests.harness.server.coordinator.test_accuracy import CANDIDATES, evaluation
from tests.harness.server.coordinator.test_evaluations import EXPECTED, rounds_of
from tests.harness.server.coordinator.test_operations import WellFormed

IT = Evaluated.of(CANDIDATES, EXPECTED)
CHOSEN, BY_POPULARITY = IT.figures(IT.best()), IT.figures([POPULARITY] * 4)


def page_of(it):
    parsed = WellFormed()
    parsed.feed(render(it.coordinator))
    assert not parsed.open
    return parsed, " ".join(parsed.text)


def metrics_of(it):
    lines = generate_latest(it.coordinator.metrics.registry).decode().splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))}


def test_the_page_and_the_metrics_show_the_newest_evaluation_beside_popularity(tmp_path):
    async def story():
        async with secure(tmp_path, evaluate_every=1) as it:
            await rounds_of(it, 1)
            assert "Evaluation in round 2: open" in page_of(it)[1]
            assert "Accuracy" not in page_of(it)[1]
            assert metrics_of(it)["lightfr_evaluated_model_version"] == 0
            await rounds_of(it, 1)
            shows_all_of_it(it)
        async with secure(tmp_path, evaluate_every=1) as again:
            shows_all_of_it(again)

    run(story())


def shows_all_of_it(it):
    parsed, text = page_of(it)
    assert (
        f"hit rate {CHOSEN.hr:.3f} ± {CHOSEN.hr_within:.3f}, NDCG {CHOSEN.ndcg:.3f} ± {CHOSEN.ndcg_within:.3f}, "
        f"of disliked items {CHOSEN.disliked_hr:.3f}, at version 2; by popularity "
        f"{BY_POPULARITY.hr:.3f}, {BY_POPULARITY.ndcg:.3f} and {BY_POPULARITY.disliked_hr:.3f}"
    ) in text
    assert "users with 5 to 19 opinions" in text
    assert {"svg", "path"} <= parsed.tags
    metrics = metrics_of(it)
    assert metrics["lightfr_evaluated_model_version"] == 2
    for ranking, figures in (("chosen", CHOSEN), ("popularity", BY_POPULARITY)):
        shown = {name: metrics[f'lightfr_evaluated_{name}{{ranking="{ranking}"}}'] for name in figures.shares()}
        assert shown == figures.shares()


@pytest.mark.parametrize(("tolerance", "warns"), [(0.05, True), (0.2, False), (None, False)])
def test_a_fall_that_devices_find_is_a_warning_and_logged(tmp_path, tolerance, warns):
    async def story():
        async with secure(tmp_path, tolerance=tolerance) as it:
            it.coordinator._show(evaluation(1, 3, 0.8))
            assert "has fallen" not in page_of(it)[1]
            it.coordinator._show(evaluation(2, 3, 0.6))
            assert ("The hit rate that devices find has fallen" in page_of(it)[1]) == warns
            fell = [event for line in it.log.getvalue().splitlines() if "fell" in (event := json.loads(line))["event"]]
            assert [(event["model_version"], event["hit_rate"]) for event in fell] == ([(2, 0.6)] if warns else [])

    run(story())
