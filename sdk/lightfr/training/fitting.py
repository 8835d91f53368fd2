"""The user fit: discrete coordinate descent on the device, for a round and for use."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from lightfr import _kernel
from lightfr.codes import UserCode
from lightfr.errors import CodeLengthError
from lightfr.interactions import LEVELS
from lightfr.training.constants import (
    CATALOGUE_WEIGHT,
    LEAST_CATALOGUE_RATINGS,
    MEAN_PULL,
    RECENCY_WEIGHTS,
    REFINE_SWEEPS,
    ROUND_SWEEPS,
    USE_SWEEPS,
    WEIGHT_UNIT,
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
    return _fit_catalogue(model, interactions, code, ROUND_SWEEPS, recency=False)


def fit_for_use(
    model: PublishedModel, interactions: Interactions, code: UserCode, *, recency: bool = False, refine: bool = False
) -> UserCode:
    """Fit the user code to recommend with: more sweeps, and newer ratings may weigh more. Also the cold start.

    `refine` climbs a ranking objective from there: a little more accurate, at the cost of n_items * f look-ups a sweep.
    The paper's objective has no recency, and its cold start leaves the balance term out.
    """
    _require_length(model, code)
    if model.objective == PAPER:
        fitted = _fit_paper(model, interactions, code, USE_SWEEPS, balance=0)
    else:
        fitted = _fit_catalogue(model, interactions, code, USE_SWEEPS, recency=recency)
    return _refine(model, interactions, fitted, recency=recency) if refine else fitted


def _refine(model: PublishedModel, interactions: Interactions, code: UserCode, *, recency: bool) -> UserCode:
    rows, _, n = _rated(model, interactions)
    weights = _recency_weights(n) if recency else None
    refined = bytearray(code.reveal())
    temperature = refine_temperature(model.code_bits)
    _kernel.refine(model.codes.kernel_pointer(), rows, weights, n, temperature, REFINE_SWEEPS, refined)
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


def _fit_catalogue(
    model: PublishedModel, interactions: Interactions, code: UserCode, sweeps: int, *, recency: bool
) -> UserCode:
    """The catalogue objective times n_items, from two starts: the old code, and the signs of the linear term."""
    rows, targets, n = _rated(model, interactions)
    weights = _recency_weights(n) if recency else None
    total = sum(weights) if weights else WEIGHT_UNIT * n
    factor = model.n_items if weights else model.n_items * WEIGHT_UNIT
    catalogue = CATALOGUE_WEIGHT * (total + WEIGHT_UNIT * max(0, LEAST_CATALOGUE_RATINGS - n))
    fit = model.fit
    fit.prepare(
        rows,
        targets,
        n,
        weights=weights,
        row_factor=factor,
        target_factor=factor,
        gram_factor=catalogue + MEAN_PULL,
        column_factor=-catalogue * catalogue_target(model.code_bits),
    )
    from_old, from_signs = bytearray(code.reveal()), fit.linear_signs(code.reveal())
    old_loss, signs_loss = fit.sweep(from_old, sweeps), fit.sweep(from_signs, sweeps)
    return UserCode(bytes(from_signs if signs_loss < old_loss else from_old))


def _rated(model: PublishedModel, interactions: Interactions) -> tuple[bytearray, array[int], int]:
    indices, levels = interactions.arrays()
    rows = _kernel.gather(model.codes.kernel_pointer(), indices, len(indices))
    return rows, targets_of(model, levels, len(indices)), len(indices)


def _recency_weights(n: int) -> array[int]:
    """Weights of n ratings, oldest first."""
    newest_first = [*RECENCY_WEIGHTS[:n], *[WEIGHT_UNIT] * (n - len(RECENCY_WEIGHTS))]
    return array("H", newest_first[::-1])
