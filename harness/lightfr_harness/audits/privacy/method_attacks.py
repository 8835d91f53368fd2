"""What one exchange tells the server of another method about its device: rated items, ratings, factors, scores.

The server is honest but curious. It knows the method's constants, the scale of the ratings, what it sent and what came
back, and nothing else. In all methods of matrix factorization an uploaded row is a number times the user's factors,
so each gives their direction d, and one unknown length s is left: with x = s d, what a row says of its rating has the
form r = k / s + s a, with k and a known. Every row that should be a step of the scale then offers a few values of s,
and the right one makes many ratings whole steps at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lightfr_harness.data.ratings import Index
from lightfr_harness.simulation.baselines.fcf import FcfDevice, FcfOptions
from lightfr_harness.simulation.baselines.fedrec import FedRecOptions
from lightfr_harness.simulation.baselines.lightfr_baselines_pb2 import GeneratedModelGradient
from lightfr_harness.simulation.baselines.metamf import PrivateModel
from lightfr_harness.simulation.baselines.method import Floats
from lightfr_harness.simulation.baselines.tables import from_rows

# Two numbers that are equal but for rounding: messages hold float64.
NEAR = 1e-9
# Rows that offer lengths to try.
PIVOTS = 30
# Passes over one user's rows, and how many lengths are kept after the first of them.
PASSES, KEPT = 8, 16


@dataclass(frozen=True)
class Read:
    """What was read; None where nothing was."""

    items: Index
    """Those taken for rated."""
    ratings: Floats | None = None
    """One for each of them."""
    vector: Floats | None = None
    """The user's factors; their length may be wrong."""
    scores: Floats | None = None
    """Of all items, in the order in which the device ranks them; their scale may be wrong."""


NOTHING = Read(np.empty(0, np.uint32))


def nearest(values: Floats, levels: Floats) -> Floats:
    """The step of the scale that is nearest to each value."""
    return np.asarray(levels[np.abs(values[..., None] - levels).argmin(axis=-1)])


def direction(rows: Floats) -> Floats:
    """Of length 1, that of rows which are all multiples of it but for rounding."""
    return np.asarray(np.linalg.eigh(rows.T @ rows)[1][:, -1])


def lengths(k: Floats, a: Floats, levels: Floats) -> Floats:
    """Every s for which some row has r = k / s + s a with r a step of the scale."""
    square = levels**2 - 4 * (k * a)[:, None]
    roots = np.sqrt(np.maximum(square, 0))
    below = np.concatenate([(levels + roots)[square >= 0], (levels - roots)[square >= 0]])
    tops = np.tile(np.broadcast_to(2 * k[:, None], square.shape)[square >= 0], 2)
    return np.asarray(tops[below != 0] / below[below != 0])


def read_fcf(table: Floats, gradients: Floats, options: FcfOptions, levels: Floats) -> Read:
    """Rows are c (p - x.y) x. Most items are unrated, with -(x.y) x: they give |x|, and the others are the rated ones.

    `levels` are places in the scale, from 0 to 1. O(items factors^2).
    """
    d = direction(gradients)
    k, a = gradients @ d, table @ d
    square = float(np.median(-k / np.where(a == 0, np.inf, a)))
    rated = np.flatnonzero(np.abs(k + square * a) > NEAR * np.abs(k).max())
    if square <= 0 or not len(rated):
        return NOTHING
    candidates = np.sqrt(square) * np.array([[1.0], [-1.0]])
    confidence = k[rated] / (candidates * (1 - candidates * a[rated]))
    places = (confidence - 1) / options.alpha
    misses = np.abs(places - nearest(places, levels)).sum(axis=1)
    ratings, items = nearest(places[misses.argmin()], levels), rated.astype(np.uint32)
    # With items and ratings in hand, the server does what the device does.
    x = FcfDevice(items, ratings, options).factors(table)
    return Read(items, ratings, x, table @ x)


def read_fedrec(
    table: Floats, items: Index, gradients: Floats, options: FedRecOptions, number: int, levels: Floats
) -> Read:
    """Rows are lambda V - e u. Real ratings are steps of the scale, virtual ones are not: that parts them.

    The order of the rows is not looked at. O(rows x lengths to try).
    """
    order = np.argsort(items)
    items, rows = items[order], table[items[order]]
    errors_times_user = options.regularization * rows - gradients[order]
    d = direction(errors_times_user)
    k, a = errors_times_user @ d, rows @ d
    pivots = np.linspace(0, len(items) - 1, min(PIVOTS, len(items))).astype(int)
    tried = lengths(k[pivots], a[pivots], levels)
    if not len(tried):
        return NOTHING
    ratings = k / tried[:, None] + tried[:, None] * a
    steps = nearest(ratings, levels)
    is_step = np.abs(ratings - steps) < NEAR
    best = int(is_step.sum(axis=1).argmax())
    user, error, rated = tried[best] * d, k / tried[best], is_step[best]
    user = user - options.step_size_of(number) * (options.regularization * user - error @ rows / len(rows))
    return Read(items[rated], steps[best][rated], user, table @ user)


def read_walk(rows: Floats, changes: Floats, rate: float, strength: float, levels: Floats) -> tuple[Floats, Floats]:
    """The ratings of a walk, and the user's factors p at its end.

    FedMF and PrivRec walk so: e = r - p.q, then p <- p + rate (e q - strength p), and q changes by
    rate (e p - strength q). p moves on the way, so its start is found by turns: with a start, each row's rating is
    the step of the scale that explains the row best; with all ratings, the start is a mean. Rounding of the changes
    does no harm as long as the steps stay apart. O(passes x rows x lengths x levels x factors).
    """
    walked = changes / rate + strength * rows
    d = direction(walked)
    k, a, shrink = walked @ d, rows @ d, 1 - rate * strength
    # p before a step is (p - rate e q) / shrink, p being the one after it.
    k_before = k * (1 - rate * (rows**2).sum(axis=1) / shrink)
    pivots = np.argsort(-np.abs(k))[: min(PIVOTS, len(k)) // 3 + 1]
    starts = lengths(k_before[pivots], a[pivots] / shrink, levels)[:, None] * d
    for number in range(PASSES):
        ratings, ends, starts_next, misses = _walk(rows, walked, starts, rate, shrink, levels)
        best = np.argsort(misses, kind="stable")[:KEPT]
        if number == PASSES - 1:
            return ratings[best[0]], ends[best[0]]
        starts = starts_next[best]
    raise AssertionError("PASSES is at least 1")


def _walk(
    rows: Floats, walked: Floats, starts: Floats, rate: float, shrink: float, levels: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """From each start: ratings, ends, the start that suits these ratings best, and how badly the walk fits."""
    p, factor = starts.copy(), 1.0
    ratings, misses = np.empty((len(starts), len(rows))), np.zeros(len(starts))
    above, below = np.zeros_like(starts), np.zeros(len(starts))
    everybody = np.arange(len(starts))
    for n, (q, seen) in enumerate(zip(rows, walked, strict=True)):
        errors = levels - (p @ q)[:, None]
        # |seen - e (shrink p + rate e q)|^2 of every step of the scale, by inner products.
        by_q, by_p, own = float(seen @ q), shrink * (p @ seen), shrink * (p @ q)
        length = shrink**2 * (p * p).sum(axis=1)[:, None] + 2 * rate * errors * own[:, None]
        length = length + (rate * errors) ** 2 * float(q @ q)
        miss = seen @ seen - 2 * errors * (by_p[:, None] + rate * errors * by_q) + errors**2 * length
        chosen = miss.argmin(axis=1)
        error = errors[everybody, chosen]
        ratings[:, n], misses = levels[chosen], misses + miss[everybody, chosen]
        p, factor = shrink * p + rate * error[:, None] * q, shrink * factor
        # seen = e (factor start + drift), for the mean over all rows.
        drift = p - factor * starts
        above += (factor * error)[:, None] * (seen - error[:, None] * drift)
        below += (factor * error) ** 2
    return ratings, p, above / np.maximum(below, 1e-300)[:, None], misses


def read_metamf(download: bytes, upload: bytes, levels: Floats) -> Read:
    """The server made the whole model, so it has every score; and a row is 2 (score - r) times a known vector."""
    model, answer = PrivateModel.decode(download), GeneratedModelGradient.FromString(upload)
    items, gradients = from_rows(answer.items)
    table = model.left @ model.right
    scores, hidden = model.predict(table)
    known = (model.output_weights.T * (hidden[items] > 0)) @ model.hidden_weights.T
    errors = (gradients * known).sum(axis=1) / np.maximum((known**2).sum(axis=1), 1e-300)
    return Read(items, nearest(scores[items] - errors / 2, levels), None, scores.astype(np.float64))


def read_pfedrec(table: Floats, items: Index, moves: Floats) -> Read:
    """Rated rows move along the scorer, drawn ones against it, and the rated ones are fewer. Ratings enter nowhere."""
    # The scorer moves between batches; the last row has the direction that the device keeps.
    d = moves[-1] / np.linalg.norm(moves[-1])
    forward = moves @ d > 0
    if 2 * np.count_nonzero(forward) > len(forward):
        d, forward = -d, ~forward
    return Read(items[forward], None, d, table @ d)
