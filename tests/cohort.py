"""A whole cohort of devices and the server's side of one round of secure aggregation, for tests."""

import os
import random

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lightfr.secagg import DeviceSession, Roster, Vector, round_blocks
from lightfr.secagg.roster import bitmap_of, members, survivors_message
from lightfr_harness.server.rules.secagg import MaskedSum, sign_roster


def raw_key(private_key):
    return private_key.public_key().public_bytes_raw()


class Cohort:
    """Devices are named by their index in the roster."""

    def __init__(self, n, *, minimum_cohort=2, code_bits=8):
        self.server = Ed25519PrivateKey.generate()
        self.round_id = os.urandom(16)
        self.blocks = round_blocks(2, code_bits, n)
        ids = sorted(os.urandom(16) for _ in range(n))
        self.sessions = [
            DeviceSession(self.round_id, peer_id, raw_key(self.server), minimum_cohort=minimum_cohort)
            for peer_id in ids
        ]
        self.roster = Roster.of(self.round_id, [session.advertise() for session in self.sessions])
        self.signature = sign_roster(self.server, self.roster)
        self.ids = ids

    def share(self, absent=()):
        """Every device but those absent shares its secrets; the server passes them on."""
        present = [i for i in range(len(self.ids)) if i not in absent]
        self.included = bitmap_of(present, len(self.ids))
        self.messages = [m for i in present for m in self.sessions[i].share(self.roster, self.signature)]
        self.total = MaskedSum(self.roster, self.included, self.blocks)
        return self

    def inbox(self, i):
        return [message for message in self.messages if message.receiver == self.ids[i]]

    def vector(self, i):
        """What a device adds: random, the same for each call, at the ends of its range too."""
        source, vector = random.Random(i), Vector(self.blocks)
        for block in self.blocks:
            limit = 1 if block.name == "rows" else 64
            for j in range(block.count):
                vector[block.name][j] = source.choice([-limit, limit, source.randint(-limit, limit)])
        return vector

    def mask(self, i):
        return self.sessions[i].mask(self.vector(i), self.inbox(i), self.included)

    def upload(self, absent=()):
        """Every included device but those absent uploads; the server settles who survived."""
        for i in sorted(members(self.included, len(self.ids)).difference(absent)):
            self.total.add(self.ids[i], self.mask(i))
        self.survivors, self.survivors_signature = self.total.close(self.server)
        return self

    def alive(self):
        return sorted(members(self.survivors, len(self.ids)))

    def unmask(self, absent=()):
        """Every survivor but those absent reveals its shares; the server takes the masks off."""
        for i in self.alive():
            if i not in absent:
                self.total.reveal(self.sessions[i].unmask(self.survivors, self.survivors_signature))
        return self.total.finish()

    def sign_survivors(self, survivors):
        return self.server.sign(survivors_message(self.roster.digest, self.included, survivors))

    def plain_sum(self):
        """The sum of what the survivors put in, without any mask."""
        vectors = [self.vector(i) for i in self.alive()]
        return {
            b.name: sum((np.array(v[b.name], np.int64) for v in vectors), np.zeros(b.count, np.int64))
            for b in self.blocks
        }
