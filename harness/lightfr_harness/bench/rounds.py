"""What a device round costs, against the number of ratings, of items and of devices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lightfr import ItemCodes, UserCode
from lightfr.interactions import Interactions
from lightfr.training import PublishedModel
from lightfr.v1 import model_pb2
from lightfr_harness.bench.timing import interleave
from lightfr_harness.records import RoundsRecord
from lightfr_harness.simulation.fleet import SimulatedDevice, stream

RATINGS = (64, 256, 1024, 4096)
ITEMS = (10_000, 100_000)
DEVICES = (100, 10_000)


def run(code_bits: int, seed: int, seconds: float) -> RoundsRecord:
    """CPU time of take_part (fit, rows, ternary rounding, encoding) with the model already there."""
    by_ratings = interleave({str(n): _device(n, ITEMS[0], code_bits, seed) for n in RATINGS}, seconds)
    by_items = interleave({str(m): _device(166, m, code_bits, seed) for m in ITEMS}, seconds)
    by_devices = interleave({str(n): _one_of(n, code_bits, seed) for n in DEVICES}, seconds)
    times = [by_ratings[str(n)].min_ns for n in RATINGS]
    slopes = np.diff(np.log(times)) / np.diff(np.log(RATINGS))
    in_us = [{n: timing.min_ns / 1000 for n, timing in by.items()} for by in (by_ratings, by_items, by_devices)]
    return RoundsRecord(
        bits=code_bits,
        us_by_ratings=in_us[0],
        us_by_items=in_us[1],
        us_by_devices=in_us[2],
        exponent_in_ratings=float(slopes[-1]),
    )


def make_model(n_items: int, code_bits: int, seed: int) -> PublishedModel:
    """A published model of random item codes."""
    codes = ItemCodes(np.random.default_rng(seed).bytes(n_items * code_bits // 8), code_bits)
    message = model_pb2.RoundModel(
        code_bits=code_bits,
        item_count=n_items,
        objective=model_pb2.OBJECTIVE_CATALOGUE,
        upload_kind=model_pb2.UPLOAD_KIND_TERNARY,
        max_rows=64,
    )
    return PublishedModel(codes, message)


def _new_device(n_rated: int, n_items: int, code_bits: int, rng: np.random.Generator) -> SimulatedDevice:
    rated = rng.choice(n_items, n_rated, replace=False).tolist()
    return SimulatedDevice(Interactions((item, 0) for item in rated), UserCode(rng.bytes(code_bits // 8)))


def _device(n_rated: int, n_items: int, code_bits: int, seed: int) -> Callable[[], None]:
    """A round from the same start each time, so that every call does the same work."""
    model = make_model(n_items, code_bits, seed)
    device, random_bytes = _new_device(n_rated, n_items, code_bits, np.random.default_rng(seed)), stream("bench")
    start = device.code

    def take_part() -> None:
        device.code = start
        device.take_part(model, random_bytes)

    return take_part


def _one_of(n_devices: int, code_bits: int, seed: int) -> Callable[[], None]:
    """A round of the next of many devices in turn."""
    rng, model = np.random.default_rng(seed), make_model(ITEMS[0], code_bits, seed)
    devices, random_bytes = [_new_device(100, ITEMS[0], code_bits, rng) for _ in range(n_devices)], stream("bench")
    turn = 0

    def take_part() -> None:
        nonlocal turn
        devices[turn % n_devices].take_part(model, random_bytes)
        turn += 1

    return take_part
