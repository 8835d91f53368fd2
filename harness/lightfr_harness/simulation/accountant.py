"""What a user who takes part in rounds of secagg+dp gives away, at most."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lightfr.errors import OutOfRangeError
from lightfr.v1 import model_pb2
from lightfr_harness.simulation.loss import PrivacyLoss, summed_discrete_gaussians


@dataclass(frozen=True)
class Accountant:
    """The rounds of one training.

    Neighbouring are two runs in which one user's numbers are as they are, or all zero: the whole user, in all rounds.
    `honest_devices` is the least number of survivors of a round that add the noise they should, this user's among them.

    Nothing is gained from the cohort's being sampled: whoever runs the server knows who is in it.
    """

    open_rows: int
    code_bits: int
    max_rows: int
    noise: model_pb2.Noise
    honest_devices: int

    def __post_init__(self) -> None:
        if self.honest_devices < 1:
            raise OutOfRangeError("honest_devices", self.honest_devices, 1, math.inf)

    def round_loss(self) -> PrivacyLoss:
        """Of one round that the user takes part in."""
        f, rows = self.code_bits, min(self.max_rows, self.open_rows)
        sums = f * (f - 1) // 2 + f
        return self._block(self.open_rows * f, rows * f, self.noise.rows_thousandths) + self._block(
            sums, sums, self.noise.sums_thousandths
        )

    def loss(self, rounds: int) -> PrivacyLoss:
        """Of so many rounds that the user takes part in, whatever each is made to depend on."""
        return self.round_loss().times(rounds)

    def _block(self, numbers: int, not_zero: int, thousandths: int) -> PrivacyLoss:
        """A device has at most `not_zero` numbers that are -1 or 1; the others are 0."""
        return summed_discrete_gaussians(
            numbers, not_zero, math.sqrt(not_zero), thousandths / 1000, self.honest_devices
        )
