"""The user fit: discrete coordinate descent on the device, for a round and for use."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, NamedTuple

from lightfr import _kernel
from lightfr._secret import secret
from lightfr.codes import UserCode
from lightfr.errors import CodeLengthError
from lightfr.interactions import LEVELS, MIDDLE
from lightfr.training.constants import (
    CATALOGUE_WEIGHT,
    LEAST_CATALOGUE_RATINGS,
    MEAN_PULL,
    MOST_FITTED,
    RECENCY_WEIGHTS,
    REFINE_FROM_BITS,
    REFINE_FROM_RATINGS,
    REFINE_SWEEPS,
    ROUND_SWEEPS,
    USE_SWEEPS,
    WEIGHT_UNIT,
    Recency,
    catalogue_target,
    rated_target,
    refine_temperature,
)
from lightfr.training.model import PAPER, PublishedModel

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lightfr.interactions import Interactions


def fit_for_round(model: PublishedModel, interactions: Interactions, code: UserCode) -> UserCode:
    """Fit the user code as a training round asks, from the code of the round before."""
    _require_length(model, code)
    if model.objective == PAPER:
        return _fit_paper(model, interactions, code, ROUND_SWEEPS, model.balance)
    rows, targets, n = _rated(model, interactions)
    return _fit_catalogue(model, code, ROUND_SWEEPS, Weighed(rows, targets, None, n, WEIGHT_UNIT * n, n))


def fit_for_use(
    model: PublishedModel,
    interactions: Interactions,
    code: UserCode,
    *,
    recency: Recency = Recency.OFF,
    refine: bool = False,
) -> UserCode:
    """Fit the user code to recommend with: more sweeps, away from disliked items, and newer opinions may weigh more.

    Also the cold start. `refine` climbs a ranking objective from there: a little more accurate, at the cost of
    n_items * f look-ups a sweep. The paper's objective knows neither dislikes nor recency, and its cold start leaves
    the balance term out.
    """
    _require_length(model, code)
    if model.objective == PAPER:
        return _fit_paper(model, interactions, code, USE_SWEEPS, balance=0)
    weighed = _weighed(model, interactions, recency)
    fitted = _fit_catalogue(model, code, USE_SWEEPS, weighed)
    return _refine(model, weighed, fitted) if refine else fitted


def may_refine(model: PublishedModel, interactions: Interactions) -> bool:
    """Say whether refining a code can pay: only with enough items to climb by, and with enough bits.

    Nor is it done among more items than the kernel counts.
    """
    if model.code_bits < REFINE_FROM_BITS or model.objective == PAPER or model.n_items > _kernel.MOST_REFINED_ITEMS:
        return False
    return sum(level >= MIDDLE for level in _newest(model, interactions)[1]) >= REFINE_FROM_RATINGS


@secret
class Weighed(NamedTuple):
    """Items that a code is fitted to: those that it shall be near to first, then those that it shall be far from."""

    rows: bytearray
    targets: array[int]
    # In units of 1 / WEIGHT_UNIT. None: all weigh 1.
    weights: array[int] | None
    # How many are to be near, and what these weigh.
    n_near: int
    near_weight: int
    n: int

    def __repr__(self) -> str:
        return f"<Weighed items: {self.n}>"


def _weighed(model: PublishedModel, interactions: Interactions, recency: Recency) -> Weighed:
    """Liked items weigh 1, the others half; where nothing is liked, the items in the middle of the scale weigh 1."""
    opinions = list(zip(*_newest(model, interactions), strict=True))
    by_age = RECENCY_WEIGHTS[recency]
    weights = [by_age[age] if age < len(by_age) else WEIGHT_UNIT for age in reversed(range(len(opinions)))]
    best = MIDDLE + 1 if any(level > MIDDLE for _, level in opinions) else MIDDLE
    near: list[tuple[int, int]] = []
    far: list[tuple[int, int]] = []
    for (item, level), weight in zip(opinions, weights, strict=True):
        (near if level >= MIDDLE else far).append((item, weight if level >= best else weight >> 1))
    items, target = near + far, rated_target(model.code_bits)
    indices = array("I", [item for item, _ in items])
    rows = _kernel.gather(model.codes.kernel_pointer(), indices, len(indices))
    targets = array("i", [target] * len(near) + [-target] * len(far))
    near_weight = sum(weight for _, weight in near)
    return Weighed(rows, targets, array("H", [weight for _, weight in items]), len(near), near_weight, len(items))


def _refine(model: PublishedModel, weighed: Weighed, code: UserCode) -> UserCode:
    refined = bytearray(code.reveal())
    temperature, near = refine_temperature(model.code_bits), weighed.n_near
    rows, weights = weighed.rows[: near * model.code_bits // 8], (weighed.weights or array("H"))[:near]
    _kernel.refine(model.codes.kernel_pointer(), rows, weights, near, temperature, REFINE_SWEEPS, refined)
    return UserCode(bytes(refined))


def targets_of(model: PublishedModel, levels: Iterable[int], n: int) -> array[int]:
    """t_i of n items: flat in the catalogue objective; in the paper's, 2 f r_i - f in units of 1 / LEVELS."""
    f = model.code_bits
    if model.objective == PAPER:
        return array("i", [2 * f * level - f * LEVELS for level in levels])
    return array("i", [rated_target(f)]) * n


def _require_length(model: PublishedModel, code: UserCode) -> None:
    if code.code_bits != model.code_bits:
        raise CodeLengthError(code.code_bits, model.code_bits)


def _fit_paper(
    model: PublishedModel, interactions: Interactions, code: UserCode, sweeps: int, balance: int
) -> UserCode:
    """b*_k of the paper times 2 f^2 LEVELS, an integer; one start, as printed."""
    rows, targets, n = _rated(model, interactions)
    model.fit.prepare(rows, targets, n, row_factor=LEVELS, target_factor=1, balance=balance)
    fitted = bytearray(code.reveal())
    model.fit.sweep(fitted, sweeps)
    return UserCode(bytes(fitted))


def _fit_catalogue(model: PublishedModel, code: UserCode, sweeps: int, weighed: Weighed) -> UserCode:
    """The catalogue objective times n_items, from two starts: the old code, and the signs of the linear term."""
    factor = model.n_items if weighed.weights else model.n_items * WEIGHT_UNIT
    short = max(0, LEAST_CATALOGUE_RATINGS - weighed.n_near)
    catalogue = CATALOGUE_WEIGHT * (weighed.near_weight + WEIGHT_UNIT * short)
    fit = model.fit
    fit.prepare(
        weighed.rows,
        weighed.targets,
        weighed.n,
        weights=weighed.weights,
        row_factor=factor,
        target_factor=factor,
        gram_factor=catalogue + MEAN_PULL,
        column_factor=-catalogue * catalogue_target(model.code_bits),
    )
    from_old, from_signs = bytearray(code.reveal()), fit.linear_signs(code.reveal())
    old_loss, signs_loss = fit.sweep(from_old, sweeps), fit.sweep(from_signs, sweeps)
    return UserCode(bytes(from_signs if signs_loss < old_loss else from_old))


def _newest(model: PublishedModel, interactions: Interactions) -> tuple[array[int], array[int]]:
    """The newest opinions, oldest first, of which the catalogue objective has exact sums in 64-bit integers."""
    indices, levels = interactions.arrays()
    first = max(0, len(indices) - MOST_FITTED // max(1, model.code_bits**2 * model.n_items))
    return indices[first:], levels[first:]


def _rated(model: PublishedModel, interactions: Interactions) -> tuple[bytearray, array[int], int]:
    indices, levels = interactions.arrays() if model.objective == PAPER else _newest(model, interactions)
    rows = _kernel.gather(model.codes.kernel_pointer(), indices, len(indices))
    return rows, targets_of(model, levels, len(indices)), len(indices)
