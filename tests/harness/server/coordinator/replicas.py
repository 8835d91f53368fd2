"""Several coordinators on one PostgreSQL, in one process, and devices that ask any of them."""

import random
from contextlib import asynccontextmanager

from lightfr_harness.server.coordinator.folder import no_crash
from lightfr_harness.server.coordinator.plan import Plan
from lightfr_harness.server.coordinator.replica import Replica
from lightfr_harness.server.coordinator.service import CoordinatorService
from lightfr_harness.server.coordinator.telemetry import Log
from tests.harness.server.coordinator.helpers import ITEMS, Clock, Signer
from tests.harness.server.coordinator.secure import SECURE, STEPS, SecureDevice


class Replicas:
    """What one coordinator of the tests offers, by whichever replica chance picks."""

    def __init__(
        self, folder, database, n, plan, settings=SECURE, items=ITEMS, seed=0, log=None, crash_point=no_crash,
    ):  # fmt: skip
        self.clock, self.random = Clock(), random.Random(seed)
        self.all = [
            Replica(
                folder / f"replica-{i}", items, settings, plan, Signer(), Log(log), clock=self.clock,
                crash_point=crash_point, database=database,
            )
            for i in range(n)
        ]  # fmt: skip
        self.services = {replica: CoordinatorService(replica) for replica in self.all}

    @property
    def coordinator(self):
        return self.random.choice(self.all)

    async def call(self, device, method, body):
        return await self.services[self.coordinator].methods[method](device, body)

    def devices(self, n, first=0):
        return [SecureDevice(seed, self.call) for seed in range(first, first + n)]

    async def go_on(self):
        """Let any of them do what is due."""
        while True:
            for replica in self.random.sample(self.all, len(self.all)):
                if await replica.end_due_round():
                    break
            else:
                return

    async def run_steps(self, devices, absent=None, until="RevealShares"):
        for device in devices:
            await device.check_in()
        for name in STEPS[: STEPS.index(until) + 1]:
            gone = (absent or {}).get(name, ())
            devices = [device for device in devices if device.seed not in gone]
            for device in devices:
                await device.deliver()
            await self.go_on()
            if gone:
                self.clock.now += self.all[0].plan.deadline_seconds
                await self.go_on()
        return devices


@asynccontextmanager
async def replicas(folder, database, n=2, settings=SECURE, items=ITEMS, seed=0, **plan):
    how = {"goal": 6, "over_selection": 1.0, "minimum": 2, **plan}
    made = Replicas(folder, database, n, Plan(**how), settings, items, seed)
    started = []
    try:
        for replica in made.all:
            await replica.start()
            started.append(replica)
        yield made
    finally:
        for replica in made.all:
            await replica.close()
