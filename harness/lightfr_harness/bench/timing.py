"""Interleaved timing by CPU time: on a noisy machine only ratios within one run mean anything."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """CPU nanoseconds of one call."""

    min_ns: float
    median_ns: float
    repeats: int


# Reading the CPU clock costs about a microsecond, so short calls are timed several at a time.
_SAMPLE_NS = 200_000
# The contender before left its own data in the caches; it takes a few passes over 8 MB until ours is back.
_WARM_NS = 2_000_000
_SAMPLES_A_TURN = 5


def _sample(call: Callable[[], object], n: int) -> float:
    before = time.process_time_ns()
    for _ in range(n):
        call()
    return (time.process_time_ns() - before) / n


def _turn(call: Callable[[], object], one_ns: float) -> list[float]:
    """Samples of one contender's turn: first untimed calls that warm the caches, then the timed ones."""
    for _ in range(1 + int(_WARM_NS / one_ns)):
        call()
    n = max(1, int(_SAMPLE_NS / one_ns))
    return [_sample(call, n) for _ in range(_SAMPLES_A_TURN)]


def interleave_samples(
    contenders: dict[str, Callable[[], object]], seconds: float, least: int = 3
) -> dict[str, list[float]]:
    """Time the contenders in turn until about `seconds` of CPU time are used, at least `least` turns each."""
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    one_ns = {name: _sample(call, 2) for name, call in contenders.items()}
    gc.disable()
    started, turns = time.process_time(), 0
    try:
        while turns < least or time.process_time() - started < seconds:
            for name, call in contenders.items():
                samples[name] += _turn(call, one_ns[name])
            turns += 1
    finally:
        gc.enable()
    return samples


def interleave(contenders: dict[str, Callable[[], object]], seconds: float, least: int = 3) -> dict[str, Timing]:
    """The same as a summary of each contender."""
    samples = interleave_samples(contenders, seconds, least)
    return {name: Timing(min(times), statistics.median(times), len(times)) for name, times in samples.items()}
