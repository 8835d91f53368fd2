"""What the coordinator in TypeScript publishes about ranking is what our own makes of the same counts and sums."""

import json
import subprocess

import numpy as np

from lightfr.participation import RoundStage
from lightfr.rankings import GROUPS, UNSAID
from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import manifest_pb2
from lightfr_harness.server.coordinator.accuracy import Evaluation, Evaluations, about_ranking
from lightfr_harness.server.coordinator.options import ItemList, Settings, make_rule
from lightfr_harness.server.rules.evaluation import Evaluated, candidates_for, to_messages
from lightfr_harness.server.rules.popularity import prior_of
from lightfr_harness.simulation.remote import STAGES
from tests.interop.servers import NODE
from tests.interop.test_node_crashes import crash
from tests.interop.test_node_training import DEVICES, UNHURRIED

# Reads a list of calls, [function, ...arguments], and prints their answers.
ANSWER = """
import { readFileSync } from "node:fs";
import { candidatesFor, choose } from "./dist/evaluation.js";
import { priorOf } from "./dist/popularity.js";
const functions = { candidatesFor, choose, priorOf };
const answers = JSON.parse(readFileSync(0)).map(([name, ...rest]) => functions[name](...rest) ?? null);
console.log(JSON.stringify(answers));
"""


def meaning(rankings):
    """Rankings without the fields that belong to codes where they go by something else."""
    return [one if one.by == manifest_pb2.RANK_BY_CODES else manifest_pb2.Ranking(by=one.by) for one in rankings]


def rule_of(kit, privacy="secagg"):
    """Ours, for the counts of a kit."""
    items = ItemList.read(kit / "items.tsv", integer_ids=False)
    gate = json.loads((kit / "settings.json").read_text())["gate"]
    return make_rule(Settings(32, gate, 0, False, privacy), items)


def require_same(manifest, ours):
    """`ours`: the fields about ranking that our coordinator would publish."""
    prior = manifest.prior if manifest.HasField("prior") else None
    assert prior == ours["prior"]
    assert meaning(manifest.candidates) == meaning(ours["candidates"])
    assert meaning(manifest.rankings) == meaning(ours["rankings"])


def evaluate(devices, kept, after_uploads=lambda: None):
    """An evaluation of all devices, and how our coordinator takes its sum."""
    before, codes = devices.model.manifest.message, devices.codes
    walks = [devices.walk(user) for user in range(DEVICES)]
    for stage in STAGES:
        for walk in walks:
            walk.advance()
        if stage == RoundStage.UPLOADED:
            after_uploads()
    devices.next_version()
    assert devices.codes == codes
    assert list(devices.sums()) == ["hits"]
    return kept.plus(Evaluation.of(0, before, devices.sums()["hits"], DEVICES))


def test_devices_evaluate_and_get_the_rankings_that_ours_would_choose_in_spite_of_kills(node, cohort):
    kit, server = node("secagg", **UNHURRIED, evaluate_every=1)
    devices, ours = cohort(DEVICES, kit, server), rule_of(kit)

    def require_published(kept):
        require_same(devices.model.manifest.message, about_ranking(ours, kept.rankings(), is_day_zero=True))

    require_published(Evaluations())
    devices.train()
    require_published(Evaluations())
    first = evaluate(devices, Evaluations(), after_uploads=lambda: crash(server))
    require_published(first)
    crash(server)
    devices.train()
    require_published(first)
    require_published(evaluate(devices, first))


def test_an_evaluation_that_nobody_can_have_said_is_dropped_and_comes_again(node, cohort):
    kit, server = node("secagg", **UNHURRIED, evaluate_every=1)
    devices = cohort(DEVICES, kit, server)
    devices.train()
    before = devices.model.manifest.message
    devices.lies[5] = ("hits", 14)
    devices.train()
    after = devices.model.manifest.message
    assert after.model_version == before.model_version + 1
    assert (after.codes, list(after.rankings)) == (before.codes, list(before.rankings))
    kinds = {devices.kind_of_place(user) for user in range(DEVICES)}
    assert kinds == {None, pb.ROUND_KIND_EVALUATION}, "half of the devices must wait, as after every spoilt sum"


def test_counts_of_devices_are_told_from_the_gate_on(node, cohort):
    kit, server = node("gate", **UNHURRIED, evaluate_every=1)
    devices, ours = cohort(2 * DEVICES, kit, server), rule_of(kit)
    for users in (range(DEVICES), range(DEVICES, 2 * DEVICES)):
        require_same(devices.model.manifest.message, about_ranking(ours, [], is_day_zero=True))
        assert not devices.model.manifest.message.rankings
        devices.train_masked({}, users)
        ours.set_gate(**devices.sums(), seed=0, devices=DEVICES)
    published = about_ranking(ours, [], is_day_zero=True)
    assert published["rankings"]
    assert published["prior"] != prior_of(ours.device_counts), "some counts are below the gate"
    require_same(devices.model.manifest.message, published)


def test_in_the_clear_devices_rank_by_codes_after_the_first_round(node, cohort):
    kit, server = node("clear", **UNHURRIED, evaluate_every=1)
    devices, ours = cohort(DEVICES, kit, server), rule_of(kit, "clear")
    require_same(devices.model.manifest.message, about_ranking(ours, [], is_day_zero=True))
    for _ in range(2):
        devices.train()
        require_same(devices.model.manifest.message, about_ranking(ours, [], is_day_zero=False))
    assert list(devices.model.manifest.message.rankings) == to_messages([UNSAID] * len(GROUPS))


def ask_node(calls):
    command = ["node", "--input-type=module", "--eval", ANSWER]
    ran = subprocess.run(command, cwd=NODE, input=json.dumps(calls), capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


def ranking(answer):
    """What the server in TypeScript answers, as a message."""
    fields = {"prior_fourths": "priorFourths", "recency": "recency", "refine": "refine"}
    return manifest_pb2.Ranking(by=answer["by"], **{ours: answer.get(name) for ours, name in fields.items()})


def test_candidates_are_those_of_our_coordinator():
    cases = [(bits, has_prior) for bits in (32, 64, 128, 256) for has_prior in (True, False)]
    answers = ask_node([("candidatesFor", *case) for case in cases])
    for (bits, has_prior), answer in zip(cases, answers, strict=True):
        assert list(map(ranking, answer)) == meaning(to_messages(candidates_for(bits, has_counts=has_prior)))


def test_counts_of_any_order_and_size_give_the_same_prior():
    rng = np.random.default_rng(7)
    cases = []
    for _ in range(200):
        counts = rng.integers(-40, 10 ** int(rng.integers(1, 12)), int(rng.integers(1, 300)))
        is_sorted = rng.random() < 0.5
        cases.append((np.sort(counts)[::-1] if is_sorted else counts, int(rng.integers(1, 30))))
    cases.append((np.geomspace(10**9, 1, 5000).astype(np.int64), 1))
    answers = ask_node([("priorOf", counts.tolist(), least) for counts, least in cases])
    priors = [prior_of(counts, least) for counts, least in cases]
    assert max(len(prior.first_items) for prior in priors if prior) > 60
    for prior, answer in zip(priors, answers, strict=True):
        assert answer == (
            {"firstItems": list(prior.first_items), "popularities": list(prior.popularities)} if prior else None
        )


def test_sums_of_any_evaluations_choose_the_same_rankings():
    rng = np.random.default_rng(8)
    candidates = [candidates_for(bits, has_counts=True) for bits in (64, 128)]
    histories = []
    for _ in range(60):
        which = rng.integers(0, 2, int(rng.integers(1, 9)))
        # Small sums have many equals; large ones say enough of their group.
        sizes = [rng.choice([4, 40, 200, 5000]) for _ in which]
        histories.append(
            [
                (candidates[i], rng.integers(-3, size, 8 * (1 + 2 * len(candidates[i]))))
                for i, size in zip(which, sizes, strict=True)
            ]
        )
    sent = [
        [
            {"candidates": [_as_sent(one) for one in to_messages(c)], "hits": hits.tolist(), "variance": 128}
            for c, hits in history
        ]
        for history in histories
    ]
    for history, answer in zip(histories, ask_node([("choose", one) for one in sent]), strict=True):
        kept = Evaluations(tuple(Evaluation(0, 0, Evaluated.of(c, hits)) for c, hits in history))
        assert list(map(ranking, answer)) == to_messages(kept.rankings())


def _as_sent(one):
    return {"by": one.by, "priorFourths": one.prior_fourths, "recency": one.recency, "refine": one.refine}
