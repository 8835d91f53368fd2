"""Constants of the catalogue objective: the same for every data set, chosen on validation data (docs/accuracy.md)."""

from enum import IntEnum
from math import exp, log

ROUND_SWEEPS = 10
USE_SWEEPS = 30
REFINE_SWEEPS = 20

# Weights of rated items are integers in units of 1 / WEIGHT_UNIT.
WEIGHT_UNIT = 16

# beta: the whole catalogue weighs this many times what the rated items weigh.
CATALOGUE_WEIGHT = 2

# The pull toward the mean user, in weight units: as much as this many rated items / WEIGHT_UNIT.
MEAN_PULL = 5 * WEIGHT_UNIT

# The published mean user code is in units of 1 / MEAN_UNIT.
MEAN_UNIT = 256

# In the catalogue term a device with few ratings weighs as one with this many: what it does not like is known as well.
LEAST_CATALOGUE_RATINGS = 32

# A fit goes by the newest opinions, at most this many / (f^2 m): then its sums are below 2^61, with any weights.
MOST_FITTED = 2**51

# In mode SECAGG the most that a device weighs, which is the most rows it uploads: the bits of a sum have no more room.
MAX_WEIGHT = 64

# In mode SECAGG_DP a device clips its gradients, all of them together, to this length; they are in units of 1 / f.
CLIPPED_LENGTH = 8
# There every device weighs this much in the catalogue term: what clipped gradients are worth in rated items.
CLIPPED_WEIGHT = 20
# There a device counts at most so many of its items in a gate refresh.
COUNTED_ITEMS = 64


class Recency(IntEnum):
    """How much more newer opinions weigh in the fit for use; the numbers are those of the wire."""

    OFF = 1
    WEAK = 2
    STRONG = 3


# What the newest opinion weighs more than the oldest, in times; it halves every 5 opinions.
_RECENCY_SURPLUS = {Recency.OFF: 0, Recency.WEAK: 10, Recency.STRONG: 40}
# By age, 0 being the newest; older opinions weigh WEIGHT_UNIT. Items that are not liked weigh half of it.
RECENCY_WEIGHTS = {
    recency: tuple(WEIGHT_UNIT + int(surplus * WEIGHT_UNIT * 2 ** (-age / 5) + 0.5) for age in range(52))
    for recency, surplus in _RECENCY_SURPLUS.items()
}

# A device refines its code for use from so many ratings and bits on. With fewer ratings there is too little to climb
# by; shorter codes gain nothing that one would notice, and a watch would need most of a second (docs/accuracy.md).
REFINE_FROM_RATINGS = 20
REFINE_FROM_BITS = 128


def rated_target(code_bits: int) -> int:
    """t: what the similarity s of a rated item should be, 0.6 f."""
    return (6 * code_bits + 5) // 10


def catalogue_target(code_bits: int) -> int:
    """tau: what -s of every other item should be, 0.4 f."""
    return (4 * code_bits + 5) // 10


def refine_temperature(code_bits: int) -> tuple[int, int, int]:
    """T = (64 + f) / 10 as the kernel's refinement takes it: (step, down, up) in units of 1/65536."""
    twice_inverse = 20 / (64 + code_bits)
    return (
        round(65536 * twice_inverse / log(2)),
        round(65536 * exp(-twice_inverse)),
        round(65536 * exp(twice_inverse)),
    )
