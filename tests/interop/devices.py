"""Devices with seeds that train with a server in any language, and the calls by which tests look at it."""

import os
import time

import numpy as np

from lightfr import _wire
from lightfr._wire import coordinator
from lightfr.device import Trust
from lightfr.evaluation import evaluation_vector
from lightfr.model.bitmaps import read_bitmap
from lightfr.model.catalogue import Catalogue
from lightfr.rounds import RoundParticipant, Trusted
from lightfr.secagg import gate_vector, round_vector
from lightfr.v1 import coordinator_pb2, model_pb2
from lightfr_harness.server.authority import Authority
from lightfr_harness.simulation.fleet import stream
from lightfr_harness.simulation.remote import STAGES, RemoteFleet, RoundWalk
from tests.seeded import SEED, SeededDevice

PATIENCE_SECONDS = 60
MINIMUM_COHORT = 3


class Cohort:
    """All devices of a server; the same ones take part in each round. Each has its own noise, by its number."""

    def __init__(self, count, kit, addresses, folder):
        authority = Authority.open(kit / "authority")
        self._membership_keys = Trust(kit / "authority/trust.pem").membership_keys
        devices = [SeededDevice(user) for user in range(count)]
        self._fleet = RemoteFleet(devices, authority, addresses["server"], folder)
        authority.close()
        self._folder = folder
        self._noise = [stream(SEED, "noise", user) for user in range(count)]
        self.channels = [remote.channel for remote in self._fleet.devices]
        self._fleet.sync()
        # What each device had to say in its last round with secure aggregation, before it was masked; by block.
        self.vectors = {}
        # The block to whose first number a device adds what it should not, and how much, by the device's number.
        self.lies = {}

    @property
    def model(self):
        return self._fleet.model

    @property
    def codes(self):
        """The item codes, fetched and checked as a device does, by way of deltas where there are some."""
        return self._path(self.model.manifest.message.codes).read_bytes()

    @property
    def open_rows(self):
        """A bit for each item: whether it is open."""
        manifest = self.model.manifest.message
        return read_bitmap(self._path(manifest.open_rows), manifest.model.item_count)

    @property
    def removed(self):
        """Indices of the items that left."""
        manifest = self.model.manifest.message
        if not manifest.HasField("removed_items"):
            return set()
        bits = read_bitmap(self._path(manifest.removed_items), manifest.model.item_count)
        return {item for item in range(manifest.model.item_count) if bits[item // 8] >> item % 8 & 1}

    @property
    def ids(self):
        """The ids of all items, by index."""
        with Catalogue.open([self._path(part) for part in self.model.manifest.message.catalogue_parts]) as catalogue:
            return [catalogue.id_of(item) for item in range(catalogue.n_items)]

    def _path(self, artifact):
        return self._folder / "models" / artifact.sha256.hex()

    def update(self, user):
        """What a device has to say in this round."""
        return self._fleet.devices[user].device.update(self.model.published)

    def check_in(self, user, mode):
        answer = coordinator.check_in(self.channels[user], self.model.manifest.model_version, [mode])
        assert isinstance(answer, coordinator.Assignment), answer
        return answer

    def kind_of_place(self, user):
        """The kind of the round in which the server gives this device a place now; None: it gives none."""
        modes = [self.model.manifest.message.model.privacy_mode]
        answer = coordinator.check_in(self.channels[user], self.model.manifest.model_version, modes)
        return answer.kind if isinstance(answer, coordinator.Assignment) else None

    def status(self, user, round_id):
        request = coordinator_pb2.GetRoundStatusRequest(round_id=round_id).SerializeToString()
        answer = self.channels[user].call("CoordinatorService/GetRoundStatus", request, 4096)
        return coordinator_pb2.GetRoundStatusResponse.FromString(answer)

    def next_version(self, count=1):
        """Wait for what comes of the round, or for so many versions."""
        old, until = self.model.manifest.model_version, time.monotonic() + PATIENCE_SECONDS
        while self.model.manifest.model_version < old + count and time.monotonic() < until:
            time.sleep(0.05)
            self._fleet.sync()
        assert self.model.manifest.model_version == old + count

    def upload_clear(self, user):
        """Take part in a round in the clear; returns the round's id when the server has acknowledged the upload."""
        assignment = self.check_in(user, model_pb2.PRIVACY_MODE_CLEAR)
        update = _wire.encode_update(self.update(user))
        coordinator.upload(self.channels[user], coordinator.encode_upload(assignment, os.urandom(16), update))
        return assignment.round_id

    def walk(self, user):
        """A device with a place in a round of secure aggregation, which it has not begun."""
        place = self.check_in(user, self.model.manifest.message.model.privacy_mode)
        member, key = self._fleet.devices[user].member, self.model.manifest.signing_key

        def make_vector(kind, size):
            device, noise, model = self._fleet.devices[user].device, self._noise[user], self.model.published
            if kind == coordinator.GATE_REFRESH:
                vector = gate_vector(model, device.interactions.to_teach(), size, noise)
            elif kind == coordinator.EVALUATION:
                rankings, code, digest = self.model.manifest.rankings, device.code, participant.view().roster_digest
                vector = evaluation_vector(model, rankings, device.interactions, code, digest, size, noise)
            else:
                vector = round_vector(model, self.update(user), size, noise)
            if user in self.lies:
                block, lie = self.lies[user]
                vector[block][0] += lie
            self.vectors[user] = {block.name: np.array(vector[block.name], np.int64) for block in vector.blocks}
            return vector

        trusted = Trusted(key, self._membership_keys, member, time.time())
        participant = RoundParticipant.begin(place, trusted, MINIMUM_COHORT)
        return RoundWalk(self.channels[user], participant, make_vector)

    def train(self):
        """One round of all devices, in the mode of the server."""
        if self.model.manifest.message.model.privacy_mode == model_pb2.PRIVACY_MODE_CLEAR:
            for user in range(len(self.channels)):
                self.upload_clear(user)
            self.next_version()
        else:
            self.train_masked({})

    def train_masked(self, stages_of, users=None):
        """One round with secure aggregation, stage by stage; some devices leave after so many stages."""
        self.vectors.clear()
        walks = {user: self.walk(user) for user in users or range(len(self.channels))}
        for done, _ in enumerate(STAGES):
            for user, walk in walks.items():
                if stages_of.get(user, len(STAGES)) > done:
                    walk.advance()
        self.next_version()

    def sums(self):
        """What the devices of the last masked round said, added up by block."""
        names = next(iter(self.vectors.values()))
        return {name: sum(vector[name] for vector in self.vectors.values()) for name in names}

    def close(self):
        self._fleet.close()
