"""How soon items that join half-way are as good as items that were there from the start, on MovieLens-100K.

    python -m tests.campaigns.measure_joining --data "$(lightfr-harness data fetch ml-100k)" --seeds 5

A tenth of the items, drawn at random, joins after 25 of 50 rounds. Until then no device knows them. Then they open by
how many devices rate them. Figures are HR@10 and NDCG@10 of the held-out ratings of these items alone, as the fleet
chooses to rank; beside them those of the same ratings in a training that had the items from the start.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from lightfr_harness.data.held_out import groups_from_lists
from lightfr_harness.simulation.fleet import Fleet
from lightfr_harness.simulation.judging import Judged
from lightfr_harness.simulation.options import TrainOptions
from lightfr_harness.simulation.train import load_split, make_server
from lightfr_harness.simulation.training import RunOptions, TrainingRun

ROUNDS, JOIN_AFTER, LOOKS = 50, 25, (25, 35, 50)


def without(ratings, items):
    """The ratings of the other items, which are numbered anew in the same order."""
    is_there = ~items
    kept = is_there[ratings.item_index]
    columns = {name: getattr(ratings, name)[kept] for name in ("user_index", "rating", "timestamp")}
    numbers = (np.cumsum(is_there) - 1)[ratings.item_index[kept]]
    ids = [item for item, stays in zip(ratings.item_ids, is_there, strict=True) if stays]
    return replace(ratings, item_index=numbers, item_ids=ids, **columns)


def of_items(test, items):
    """The candidates of users whose held-out item is one of these."""
    rows = [row for row in range(len(test.groups)) if items[test.groups[row][0]]]
    return replace(
        test,
        user_index=test.user_index[rows],
        groups=groups_from_lists([test.groups[row] for row in rows]),
        levels=test.levels[rows],
    )


def figures(options, run, split):
    metrics = Judged.of(options, run, split).metrics
    return metrics.hr, metrics.ndcg


def from_the_start(options, split):
    run = TrainingRun(
        make_server(options, split.train), Fleet.of(split.train, options.bits, options.seed), plan(options)
    )
    return {done: figures(options, run, split) for done in run if done in LOOKS}


def half_way(options, split, joining):
    before = without(split.train, joining)
    run = TrainingRun(make_server(options, before), Fleet.of(before, options.bits, options.seed), plan(options))
    for done in run:
        if done == JOIN_AFTER:
            break
    old = np.where(joining, -1, np.cumsum(~joining) - 1)
    run.server.change_items(old, np.zeros(len(old), bool), split.train.item_counts(), seed=options.seed)
    fleet = Fleet.of(split.train, options.bits, options.seed)
    fleet.restore(run.fleet.codes())
    run = TrainingRun(run.server, fleet, plan(options), finished_rounds=JOIN_AFTER)
    found = {JOIN_AFTER: figures(options, run, split)}
    return found | {done: figures(options, run, split) for done in run if done in LOOKS}


def plan(options):
    return RunOptions(ROUNDS, options.fraction, options.dropout, options.seed, masked=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--bits", type=int, default=64)
    asked = parser.parse_args()
    results, held_out = {"joined": [], "always": []}, 0
    for seed in range(asked.seeds):
        options = TrainOptions(data=asked.data, seed=seed, positives="all", bits=asked.bits)
        split = load_split(options)
        joining = np.zeros(split.train.n_items, bool)
        joining[np.random.default_rng([seed, 15]).permutation(split.train.n_items)[: split.train.n_items // 10]] = True
        split = replace(split, test=of_items(split.test, joining))
        held_out += len(split.test.groups)
        results["joined"].append(half_way(options, split, joining))
        results["always"].append(from_the_start(options, split))
    print(f"{held_out} held-out ratings of items that join, {asked.seeds} seeds")
    for name, runs in results.items():
        for done in LOOKS:
            hr, ndcg = np.mean([run[done] for run in runs], axis=0)
            print(f"{name} round {done}: HR@10 {hr:.3f}, NDCG@10 {ndcg:.3f}")


if __name__ == "__main__":
    main()
