"""The paper's Tables 1 and 5 and its Figure 3: what a device of each federated method stores, sends and computes.

Bytes are those of files and encoded messages. LightFR's are of an emulated device with the SDK, at its socket.
"""

from __future__ import annotations

import json
import platform
import statistics
from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from lightfr import ItemCodes, UserCode, __version__, _kernel, recommend
from lightfr_harness import devices
from lightfr_harness.audits.cost import measured_bytes, methods
from lightfr_harness.audits.cost.cost_table import ALL_GRADIENTS, ALL_ROWS, DECRYPTED_ONCE, MULTIPLIED, SENT_OTHERWISE
from lightfr_harness.audits.cost.formulas import (
    CODE_BITS,
    DATASETS,
    FCF,
    FEDMF,
    FEDREC,
    LIGHTFR,
    METAMF,
    OPEN,
    PACKED,
    PRIVREC,
    Method,
    Shape,
)
from lightfr_harness.audits.cost.run import TOP, open_and_every_row
from lightfr_harness.audits.finding import bootstrap_median_ratio
from lightfr_harness.bench.timing import interleave_samples
from lightfr_harness.devices import Plan, Scenario, load_profile
from lightfr_harness.devices.scenario import CLEAR, USUAL_OPEN_ROWS
from lightfr_harness.errors import CannotRunError, MissingPackageError
from lightfr_harness.journal import Journal
from lightfr_harness.records import PaperCostRow, PaperCostsRecord
from lightfr_harness.simulation.baselines import ckks, fcf, fedmf, fedrec, metamf, paillier, privrec
from lightfr_harness.simulation.baselines.item_factors import a_users_ratings
from lightfr_harness.simulation.baselines.method import DeviceCost

# Items of Ciao's file that ten users or more have rated; in the other files nobody has counted them.
OPEN_ROWS = {"ciao": 4_363}
PROFILE = "mid-phone"
# CPU seconds for the timings at least, and turns of each method.
TIMING_SECONDS, TURNS = 2.0, 3
# What is measured, in steps of the progress.
PARTS = ("a device with all rows", "a device with open rows", "methods")
# Rows of the table, and whose formula each is judged by.
FORMULAS = {
    FCF.name: FCF,
    ALL_GRADIENTS: FCF,
    FEDMF.name: FEDMF,
    ALL_ROWS: FEDMF,
    DECRYPTED_ONCE: FEDMF,
    FEDREC.name: FEDREC,
    METAMF.name: METAMF,
    MULTIPLIED: METAMF,
    PRIVREC.name: PRIVREC,
    LIGHTFR.name: LIGHTFR,
    PACKED.name: PACKED,
    OPEN.name: OPEN,
}
NOT_TIMED: dict[str, Any] = {"median_ns": None, "min_ns": None, "ratio": None, "ratio_interval": [], "min_ratio": None}
STREAM = 83
Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class CostsOptions:
    """Whose shape is measured, and how many of its items have rows of their own where only open ones do."""

    dataset: str = "ciao"
    open_rows: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.dataset not in DATASETS:
            raise CannotRunError(f"unknown data set '{self.dataset}', choose one of: {', '.join(DATASETS)}")

    @property
    def shape(self) -> Shape:
        items, ratings = DATASETS[self.dataset]
        open_rows = self.open_rows or OPEN_ROWS.get(self.dataset, USUAL_OPEN_ROWS)
        return Shape(items, ratings, CODE_BITS, min(open_rows, items))


def measure(options: CostsOptions, path: Path, progress: Progress) -> PaperCostsRecord:
    """Measure what `path` does not have yet, and judge all."""
    shape, seed, journal = options.shape, options.seed, Journal(path)

    def part(place: int, open_rows: int, run: Callable[[Shape, int], dict[str, Any]]) -> dict[str, Any]:
        progress(PARTS[place], place)
        asked = replace(shape, open_rows=open_rows)
        key = json.dumps([PARTS[place], __version__, *astuple(asked), seed])
        found: dict[str, Any] = journal.result(key, lambda: run(asked, seed))
        return found

    every, opened = part(0, shape.items, _device), part(1, shape.rows, _device)
    others = part(2, shape.rows, _methods)
    progress("", len(PARTS))
    costs = {**others["costs"], LIGHTFR.name: every, PACKED.name: every, OPEN.name: opened}
    times = {**others["times"], LIGHTFR.name: others["times"][PACKED.name]}
    rows = [_row(shape, name, method, costs[name], times.get(name, NOT_TIMED)) for name, method in FORMULAS.items()]
    return PaperCostsRecord(
        rows=rows,
        findings=[finding.record() for finding in methods.audit(shape, rows)],
        dataset=options.dataset,
        items=shape.items,
        ratings=shape.ratings,
        bits=shape.bits,
        open_rows=shape.rows,
        seed=seed,
        isa=_kernel.isa_name(),
        machine=platform.machine(),
        lightfr=__version__,
    )


def _row(shape: Shape, name: str, method: Method, cost: dict[str, Any], times: dict[str, Any]) -> PaperCostRow:
    return {
        "name": name,
        "formula": method.name,
        "storage_bytes": cost["storage_bytes"],
        "storage_formula_bytes": method.storage(shape),
        "down_bytes": cost["down_bytes"],
        "up_bytes": cost["up_bytes"],
        "round_formula_bytes": method.communication(shape),
        "median_ns": times["median_ns"],
        "min_ns": times["min_ns"],
        "ratio": times["ratio"],
        "ratio_interval": times["ratio_interval"],
        "min_ratio": times["min_ratio"],
        "note": cost["note"],
    }


def _device(shape: Shape, seed: int) -> dict[str, Any]:
    """One emulated device that downloads a model and takes part in a round in the clear."""
    # 0 means that there is no gate, and every item is open.
    open_rows = shape.open_rows if shape.open_rows < shape.items else 0
    scenario = Scenario(shape.items, shape.ratings, shape.bits, privacy=CLEAR, open_rows=open_rows)
    record = devices.run(scenario, [load_profile(PROFILE)], plan=Plan(seed=seed))
    if record["interrupted"]:
        raise KeyboardInterrupt
    device = record["devices"][0]
    if not device["finished"]:
        raise CannotRunError(f"the emulated device did not finish ({device['ended']}): try again")
    down, up = measured_bytes.first_round(device)
    return {
        "storage_bytes": measured_bytes.codes_bytes(shape, device["disk_bytes"]),
        "down_bytes": down,
        "up_bytes": up,
        "note": "Codes on the disk of a device with the SDK; its first sync and a round in the clear, at the socket. "
        f"Beside them are {device['disk_bytes']['catalogue']:,} bytes of item ids, which the paper does not count.",
    }


def _methods(shape: Shape, seed: int) -> dict[str, Any]:
    """Bytes of every method but LightFR, and the times of all."""
    measured = _costs(shape.items, shape.ratings, seed)
    costs = {
        name: {
            "storage_bytes": cost.storage_bytes,
            "down_bytes": cost.down_bytes,
            "up_bytes": cost.up_bytes,
            "note": cost.note,
        }
        for name, cost in measured.items()
    }
    return {"costs": costs, "times": _times(shape, measured, seed)}


def _costs(items: int, ratings: int, seed: int) -> dict[str, DeviceCost]:
    key = paillier.generate(draw=Random(seed).getrandbits)
    of_fedmf = partial(fedmf.cost, items, ratings, seed, key=key)
    encrypted = of_fedmf()
    encrypted = replace(encrypted, note=f"{encrypted.note} {_times_of_a_number(key, seed)}")
    return {
        FCF.name: fcf.cost(items, ratings, seed),
        ALL_GRADIENTS: fcf.cost(items, ratings, seed, unrated_weight=1.0),
        FEDMF.name: encrypted,
        ALL_ROWS: of_fedmf(full=True),
        DECRYPTED_ONCE: of_fedmf(decrypted_once=True),
        FEDREC.name: fedrec.cost(items, ratings, seed),
        METAMF.name: metamf.cost(items, ratings, seed),
        MULTIPLIED: metamf.cost(items, ratings, seed, multiplied=True),
        PRIVREC.name: privrec.cost(items, ratings, seed),
    }


def _times_of_a_number(key: paillier.PrivateKey, seed: int) -> str:
    """What FedMF's encryption takes, and beside it a modern scheme, if the package for it is installed."""
    taken = {what: 1e6 * seconds for what, seconds in fedmf.seconds_a_number(key).items()}
    said = (
        f"One number takes {taken['encrypt']:,.0f} us of CPU time to encrypt, {taken['add']:,.1f} to add to another "
        f"and {taken['decrypt']:,.0f} to decrypt."
    )
    try:
        modern = ckks.ckks_cost(seed)
    except MissingPackageError:
        return said
    encrypt, decrypt = (1e6 * each / modern.numbers for each in (modern.encrypt_seconds, modern.decrypt_seconds))
    return (
        f"{said} With CKKS, {modern.numbers:,} numbers to a ciphertext, it would take {encrypt:.2f} us to encrypt, "
        f"{decrypt:.2f} to decrypt, and {modern.bytes_a_number:.0f} bytes in place of {key.public.ciphertext_bytes}."
    )


def _times(shape: Shape, costs: dict[str, DeviceCost], seed: int) -> dict[str, Any]:
    """CPU time of a top 10 of unrated items, of each method in turn, and as a multiple of LightFR's."""
    rated = a_users_ratings(shape.items, shape.ratings, np.random.default_rng([seed, STREAM]))[0].tolist()
    user, (opened, every) = UserCode.random(shape.bits), _codes(shape, seed)
    timed = {name: cost for name, cost in costs.items() if name not in SENT_OTHERWISE}
    contenders: dict[str, Callable[[], object]] = {name: partial(c.recommend, TOP) for name, c in timed.items()}
    contenders[PACKED.name] = partial(recommend, user, every, TOP, rated=rated)
    contenders[OPEN.name] = partial(recommend, user, opened, TOP, rated=rated)
    samples = interleave_samples(contenders, TIMING_SECONDS, TURNS)
    # Where a call goes through a part of the catalogue, its time stands for the whole.
    whole = {
        name: [ns / (costs[name].share if name in costs else 1.0) for ns in taken] for name, taken in samples.items()
    }
    ours = whole[PACKED.name]
    return {
        name: {
            "median_ns": statistics.median(taken),
            "min_ns": min(taken),
            "ratio": statistics.median(taken) / statistics.median(ours),
            "ratio_interval": list(bootstrap_median_ratio(taken, ours)),
            "min_ratio": min(taken) / min(ours),
        }
        for name, taken in whole.items()
    }


def _codes(shape: Shape, seed: int) -> tuple[ItemCodes, ItemCodes]:
    return open_and_every_row(Scenario(shape.items, shape.ratings, shape.bits, open_rows=shape.open_rows), seed)
