"""Rounds of many cohorts, one of them with a device that lies: `python -m tests.campaigns.lying_cohorts --help`.

A fleet trains honestly for a while. Then one device of the first cohort lies in every round, as loudly as the rules let
it: it knows what the others of its cohort say. Prints how accurate the fleet is afterwards, and in which share of the
users' lists the pushed items are, once with the cohorts combined and once with them merely added.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from lightfr import _wire
from lightfr.secagg.noise import row_variance, ternary_room, user_sum_thousandths, weight_thousandths
from lightfr.training.constants import LEAST_CATALOGUE_RATINGS
from lightfr_harness.data.evaluation import Metrics
from lightfr_harness.server.rules import CatalogueRule
from lightfr_harness.server.rules.bits import unpack_signs
from lightfr_harness.server.rules.cohorts import CohortSum, combined
from lightfr_harness.server.rules.plausible import ImplausibleSumError
from lightfr_harness.server.rules.uploads import UploadReader
from lightfr_harness.simulation.collecting import ternary_sum
from lightfr_harness.simulation.judging import BEFORE_EVALUATION, judge
from lightfr_harness.simulation.options import TrainOptions
from lightfr_harness.simulation.train import load_split, make_run
from lightfr_harness.simulation.training import TrainingRun

BITS, LIST = 64, 10
Numbers = np.ndarray
Lie = Callable[["Fleets", Numbers], Numbers]


def added(sums: Sequence[Numbers], _: Sequence[int]) -> Numbers:
    """Cohorts as they are."""
    total: Numbers = np.sum(sums, axis=0)
    return total


# "blind" adds them up without asking whether they are plausible.
WAYS = {"combined": combined, "added": added, "blind": added}


class Fleets:
    """One fleet, its server, and its cohorts, drawn anew in each round."""

    def __init__(self, options: TrainOptions, cohorts: int, size: int, way: str = "combined") -> None:
        self.options, self.split = options, load_split(options)
        self.run: TrainingRun = make_run(options, self.split.train)
        self.shape, self.round, self.n_left_out = (cohorts, size), 0, 0
        rule = self.run.server
        assert isinstance(rule, CatalogueRule)
        self.rule = rule
        self.combine_by(way)
        train = self.split.train
        self.rated = np.zeros((train.n_users, train.n_items), np.bool_)
        self.rated[train.user_index, train.item_index] = True
        self.targets: dict[str, list[int]] = {}

    def combine_by(self, way: str) -> None:
        """How the cohorts of later rounds become one."""
        self.is_blind = way == "blind"
        self.rule._combine = WAYS[way]  # type: ignore[method-assign]

    def train(self, rounds: int, lie: Lie | None = None) -> None:
        """So many rounds; the first cohort has the liar."""
        for _ in range(rounds):
            random = np.random.default_rng([self.options.seed, self.round])
            model, devices = self.run.published(), self.run.fleet.devices
            self.reader = UploadReader(self.rule.model(), self.rule.open_rows_bitmap())
            drawn = random.choice(len(devices), self.shape, replace=False)
            sums = []
            for users in np.sort(drawn, axis=1).tolist():
                uploads = [_wire.encode_update(devices[user].update(model, random.bytes)) for user in users]
                sums.append(self.sum_of(uploads, random))
            if lie is not None:
                sums[0]["rows"] = lie(self, sums[0]["rows"].reshape(-1, BITS)).reshape(-1)
            if self.is_blind:
                self.rule.add_sums(**{name: added([one[name] for one in sums], []) for name in sums[0]})
            else:
                done = self.rule.add_cohorts([CohortSum(one, self.shape[1]) for one in sums])
                self.n_left_out += len(done.left_out)
            self.rule.finish_round()
            self.round += 1

    def sum_of(self, uploads: list[bytes], random: np.random.Generator) -> dict[str, Numbers]:
        """What a cohort adds up, with the noise of its devices."""
        n, open_items = len(uploads), np.flatnonzero(self.rule.open_rows)
        rows, user_sum, weight = np.zeros((len(open_items), BITS), np.int32), np.zeros(BITS, np.int64), 0
        for message in uploads:
            upload = self.reader.read(message)
            upload.add_to(rows, np.searchsorted(open_items, upload.item_indices).astype(np.uint32))
            w = max(len(upload.item_indices), LEAST_CATALOGUE_RATINGS)
            user_sum += w * unpack_signs(upload.rows.user_code, (BITS,)).astype(np.int64)
            weight += w
        numbers = rows.reshape(-1).astype(np.int64)
        numbers += ternary_sum(n, n, row_variance(BITS), numbers.size, random)
        spread = n**0.5 / 1000
        user_sum += np.rint(random.normal(0, user_sum_thousandths(n) * spread, BITS)).astype(np.int64)
        weight += round(random.normal(0, weight_thousandths(n) * spread))
        return {"rows": numbers, "user_sum": user_sum, "weight": np.array([weight])}

    def is_believed(self, rows: Numbers) -> bool:
        """Whether these rows pass as those of the first cohort."""
        n = self.shape[1]
        if self.is_blind:
            return bool(np.abs(rows).max() <= n + ternary_room(n, row_variance(BITS)))
        sums = {"rows": rows.reshape(-1), "user_sum": np.zeros(BITS, np.int64), "weight": np.array([50 * n])}
        try:
            return not self.rule._judged(CohortSum(sums, n))[1].any()
        except ImplausibleSumError:
            return False

    def loudest(self, lying: Callable[[int], Numbers]) -> Numbers:
        """The lie of the largest amplitude that is believed."""
        low, high = 0, 2 * self.shape[1]
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.is_believed(lying(middle)) else (low, middle)
        return lying(low)

    def lists(self) -> Numbers:
        """By user, the items of the list."""
        model, devices = self.run.published(), self.run.fleet.devices
        codes = b"".join(device.code_for_use(model, BEFORE_EVALUATION).reveal() for device in devices)
        users = unpack_signs(codes, (len(devices), BITS)).astype(np.float32)
        items = self.rule.signs().astype(np.float32)
        scores = (users @ items.T).astype(np.int64) * len(items) - np.arange(len(items))
        scores[self.rated] = -(2**40)
        return np.argpartition(-scores, LIST, axis=1)[:, :LIST]

    def choose_targets(self) -> None:
        """Three of the rarest items and a middling one, all in few lists if any, and a popular one that is in some."""
        n_users, counts = len(self.rated), self.rule.device_counts
        shares = np.bincount(self.lists().ravel(), minlength=len(counts)) / n_users
        seldom = np.flatnonzero((shares <= np.median(shares[self.rule.open_rows])) & self.rule.open_rows)
        by_count = seldom[np.argsort(counts[seldom], kind="stable")]
        middle = seldom[np.argmin(np.abs(counts[seldom] - 0.06 * n_users))]
        some = np.flatnonzero((shares > 0.05) & (shares < 0.2))
        popular = some[np.argmax(counts[some])]
        self.targets = {"rare": by_count[:3].tolist(), "middle": [int(middle)], "popular": [int(popular)]}

    def shares(self) -> str:
        """The mean share of the lists that the targets of each kind are in: rare, middling, popular."""
        lists = self.lists()
        means = [np.mean([(lists == i).any(axis=1).mean() for i in items]) for items in self.targets.values()]
        return " ".join(f"{mean:.3f}" for mean in means)

    def accuracy(self) -> str:
        """HR@10/NDCG@10."""
        metrics = judge(self.options, self.run, self.split)
        assert isinstance(metrics, Metrics)
        return f"{metrics.hr:.4f}/{metrics.ndcg:.4f}"

    def state(self) -> tuple[dict[str, Numbers], Numbers, int]:
        kept = {name: value.copy() for name, value in self.rule.state().items()}
        return kept, self.run.fleet.codes().copy(), self.round

    def restore(self, state: tuple[dict[str, Numbers], Numbers, int]) -> None:
        rule, codes, self.round = state
        self.rule.restore({name: value.copy() for name, value in rule.items()})
        self.run.fleet.restore(codes)


def push(fleets: Fleets, rows: Numbers) -> Numbers:
    """All targets with the code of the mean user."""
    pattern = np.where(fleets.rule.mean_user >= 0, 1, -1)
    places = np.cumsum(fleets.rule.open_rows) - 1
    for items in fleets.targets.values():
        for place in places[items].tolist():
            rows = fleets.loudest(partial(_with_row, rows, place, pattern))
    return rows


def _with_row(rows: Numbers, place: int, pattern: Numbers, amplitude: int) -> Numbers:
    changed = rows.copy()
    changed[place] = amplitude * pattern
    return changed


def ruin(fleets: Fleets, rows: Numbers) -> Numbers:
    """As much against every row as the rows together may say."""
    signs = unpack_signs(fleets.rule.codes, (len(fleets.rule.codes), BITS))[: len(rows)].astype(np.int64)
    return fleets.loudest(lambda amplitude: rows - amplitude * signs)


def garbage(fleets: Fleets, rows: Numbers) -> Numbers:
    """Anything that there is room for."""
    return np.random.default_rng(fleets.round).integers(-fleets.shape[1], fleets.shape[1], rows.shape)


def trial(fleets: Fleets, honest: int, lying: int, lies: Sequence[str]) -> str:
    """One line of figures; each kind of lie begins where the honest rounds ended."""
    fleets.train(honest)
    fleets.choose_targets()
    start, figures = fleets.state(), []
    if "honest" in lies:
        fleets.train(lying)
        figures.append(f"honest {fleets.accuracy()} {fleets.shares()}")
    if "push" in lies:
        fleets.restore(start)
        fleets.train(1, push)
        figures.append(f"push 1 {fleets.shares()}")
        fleets.train(lying - 1, push)
        figures.append(f"push {lying} {fleets.shares()}")
    for name, lie in {"ruin": ruin, "garbage": garbage}.items():
        if name in lies:
            fleets.restore(start)
            fleets.n_left_out = 0
            fleets.train(lying, lie)
            figures.append(f"{name} {fleets.accuracy()} ({fleets.n_left_out} sums left out)")
    return ", ".join(figures)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="MovieLens-100K; without it ratings are generated")
    parser.add_argument("--synthetic", default="4400x1682x466400")
    parser.add_argument("--cohorts", type=int, default=4)
    parser.add_argument("--size", type=int, default=256, help="devices of a cohort")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=list(WAYS))
    parser.add_argument("--honest", type=int, default=30, help="rounds before the lies")
    parser.add_argument("--lying", type=int, default=20, help="rounds with them")
    parser.add_argument("--gate", type=int, default=10, help="0: nobody knows how many devices rate an item")
    parser.add_argument("--lies", nargs="*", default=["honest", "push", "ruin", "garbage"])
    args = parser.parse_args()
    for seed in args.seeds:
        options = TrainOptions(
            data=args.data, synthetic=args.synthetic, privacy="secagg", gate=args.gate, bits=BITS, seed=seed
        )
        for way in args.ways:
            fleets = Fleets(options, args.cohorts, args.size, way)
            print(f"{args.cohorts:2} {way:8} {seed}:", trial(fleets, args.honest, args.lying, args.lies), flush=True)


if __name__ == "__main__":
    main()
