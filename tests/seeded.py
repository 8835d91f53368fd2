"""Simulated devices with seeds: whatever server they train with, they say the same."""

import random

from lightfr.interactions import Interactions
from lightfr_harness.simulation.fleet import SimulatedDevice, first_code, stream

SEED = 20
CODE_BITS, ITEMS = 32, 80


class SeededDevice(SimulatedDevice):
    """Has rated 4 to 70 items; its chance is its own, round by round, and not what it is handed."""

    __slots__ = ("_chance",)

    def __init__(self, user):
        source = random.Random(f"{SEED}/{user}")
        rated = source.sample(range(ITEMS), source.randint(4, 70))
        super().__init__(Interactions((item, 2520) for item in rated), first_code(CODE_BITS, SEED, user))
        self._chance = stream(SEED, "chance", user)

    def update(self, model, random_bytes=None):
        return super().update(model, self._chance)
