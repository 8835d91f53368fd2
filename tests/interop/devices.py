"""Devices of the SDK with seeds: whatever server they train with, they say the same."""

import os
import random
import time
from concurrent.futures import ThreadPoolExecutor

from lightfr import FileKey, _wire
from lightfr._wire import coordinator
from lightfr.interactions import Interactions
from lightfr.privacy import round_vector
from lightfr.secure_round import SecureRound
from lightfr.store import Store
from lightfr.v1 import coordinator_pb2, model_pb2
from lightfr_harness.authority import Authority
from lightfr_harness.fleet.devices import SimulatedDevice, first_code, stream
from lightfr_harness.fleet.remote import RemoteFleet

SEED = 20
CODE_BITS, ITEMS = 32, 80
PATIENCE_SECONDS = 60
MINIMUM_COHORT = 3


def seeded(user):
    """A device that rated 4 to 70 items, closed ones among them."""
    source = random.Random(f"{SEED}/{user}")
    rated = source.sample(range(ITEMS), source.randint(4, 70))
    return SimulatedDevice(Interactions((item, 2520) for item in rated), first_code(CODE_BITS, SEED, user))


class Cohort:
    """All devices of a server; the same ones take part in each round."""

    def __init__(self, count, kit, addresses, folder):
        authority = Authority.open(kit / "authority")
        self._fleet = RemoteFleet([seeded(user) for user in range(count)], authority, addresses["server"], folder)
        authority.close()
        self._folder = folder
        self.channels = [remote.channel for remote in self._fleet.devices]
        self.model = self._fleet.sync()

    @property
    def codes(self):
        """The item codes, fetched and checked as a device does, by way of deltas where there are some."""
        return (self._folder / "models" / self.model.manifest.message.codes.sha256.hex()).read_bytes()

    def update(self, user):
        """What a device has to say in this round: the same bits of chance at every server."""
        chance = stream(SEED, "round", self.model.manifest.model_version, user)
        return self._fleet.devices[user].device.update(self.model.published, chance)

    def check_in(self, user, mode):
        answer = coordinator.check_in(self.channels[user], self.model.manifest.model_version, [mode])
        assert isinstance(answer, coordinator.Assignment), answer
        return answer

    def status(self, user, round_id):
        request = coordinator_pb2.GetRoundStatusRequest(round_id=round_id).SerializeToString()
        answer = self.channels[user].call("CoordinatorService/GetRoundStatus", request, 4096)
        return coordinator_pb2.GetRoundStatusResponse.FromString(answer)

    def next_version(self):
        """Wait for what comes of the round."""
        old, until = self.model.manifest.model_version, time.monotonic() + PATIENCE_SECONDS
        while self.model.manifest.model_version == old and time.monotonic() < until:
            time.sleep(0.05)
            self.model = self._fleet.sync()
        assert self.model.manifest.model_version == old + 1

    def upload_clear(self, user):
        """Take part in a round in the clear; returns the round's id when the server has acknowledged the upload."""
        assignment = self.check_in(user, model_pb2.PRIVACY_MODE_CLEAR)
        update = _wire.encode_update(self.update(user))
        coordinator.upload(self.channels[user], coordinator.encode_upload(assignment, os.urandom(16), update))
        return assignment.round_id

    def train_clear(self):
        """One round in the clear."""
        for user in range(len(self.channels)):
            self.upload_clear(user)
        self.next_version()

    def train_secure(self):
        """One round with secure aggregation, through the SDK's own steps; the devices wait for one another."""
        updates = [self.update(user) for user in range(len(self.channels))]
        with ThreadPoolExecutor(len(updates)) as workers:
            assert all(workers.map(self._secure, range(len(updates)), updates))
        self.next_version()

    def _secure(self, user, update):
        place = self._folder / f"store-{user}"
        place.mkdir(exist_ok=True)
        store = Store.open(place, FileKey(place / "key"))
        assignment = self.check_in(user, model_pb2.PRIVACY_MODE_SECAGG)
        key = self.model.manifest.signing_key
        begun = SecureRound.begin(store, self.channels[user], assignment, key, MINIMUM_COHORT)
        took_part = begun.run(lambda _, size: round_vector(self.model.published, update, size))
        begun.leave()
        store.close()
        return took_part

    def close(self):
        self._fleet.close()
