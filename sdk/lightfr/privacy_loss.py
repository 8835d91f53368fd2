"""What rounds of mode SECAGG_DP tell about a user at most, counted on the device itself. docs/privacy-dp.md has why."""

from __future__ import annotations

from math import inf, log, sqrt
from typing import TYPE_CHECKING

from lightfr.training.constants import CLIPPED_LENGTH, COUNTED_ITEMS

if TYPE_CHECKING:
    from lightfr.v1.model_pb2 import Noise

# The chance that is left out of what epsilon promises.
DELTA = 1e-5
# Below this deviation, in thousandths, a sum of discrete Gaussians is not close enough to one.
_LEAST_THOUSANDTHS = 1_300


def round_loss(noise: Noise, code_bits: int, minimum_cohort: int, *, is_training: bool) -> float:
    """Return rho (zero-concentrated differential privacy) of one round; infinite when the noise is too small to count.

    Only the noise of honest devices that uploaded hides a user. A server can show devices two rosters, so only those
    that signed the survivors count, at least 7/10 of the roster; up to 1/5 of it may collude. A roster has at least
    `minimum_cohort` devices, so half of the minimum are honest and signed.
    """
    if is_training:
        length = CLIPPED_LENGTH * code_bits
        blocks = [(length * length, noise.rows_thousandths), (code_bits, noise.sums_thousandths)]
    else:
        # Gate refreshes and evaluations: numbers of 0 or 1, of which at most 64 are 1.
        blocks = [(COUNTED_ITEMS, noise.counts_thousandths)]
    honest = minimum_cohort // 2
    if not honest or any(thousandths < _LEAST_THOUSANDTHS for _, thousandths in blocks):
        return inf
    return sum(squared_length / (thousandths / 1000) ** 2 for squared_length, thousandths in blocks) / (2 * honest)


def epsilon(rho: float) -> float:
    """Return an epsilon for DELTA that is never too small: Bun and Steinke 2016, Proposition 1.3."""
    return rho + 2 * sqrt(rho * -log(DELTA))
