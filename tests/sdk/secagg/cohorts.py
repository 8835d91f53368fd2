"""A cohort of devices in memory, and a server that a test can make lie."""

import os
import random
from dataclasses import replace

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lightfr.membership import MEMBERSHIP_CONTEXT, Member, MemberKey
from lightfr.secagg import DeviceSession, Place, Roster, Vector, round_blocks
from lightfr.secagg.views import (
    bitmap_of,
    entry_message,
    included_message,
    members,
    quorum,
    roster_message,
    survivors_message,
)
from lightfr_harness.server.rules.secagg import MaskedSum

TRAINING = 1
NOW = 1_700_000_000.0
ENDS = int(NOW) + 86_400
STEPS = ("share", "acknowledge", "sign_included", "upload", "sign_survivors", "reveal")


def raw_key(private_key):
    return private_key.public_key().public_bytes_raw()


def new_member(authority, ends=ENDS):
    """A device that this authority vouches for."""
    key = MemberKey.new()
    statement = key.public + ends.to_bytes(8, "little")
    return Member(key, statement + authority.sign(MEMBERSHIP_CONTEXT + statement))


def at(step, n=5, **how):
    """A cohort whose next step is this one."""
    cohort = Cohort(n, **how)
    for name in STEPS[: STEPS.index(step)]:
        getattr(cohort, name)()
    return cohort


class Cohort:
    """Devices are named by their index in the roster. Each step is a method that takes all of them through it."""

    def __init__(self, n, *, minimum_cohort=2, code_bits=8):
        self.n, self.minimum_cohort = n, minimum_cohort
        self.server, self.authority = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
        self.round_id, self.manifest = os.urandom(16), os.urandom(32)
        self.ids = sorted(os.urandom(16) for _ in range(n))
        self.members = [new_member(self.authority) for _ in range(n)]
        self.sessions = [self.session(i) for i in range(n)]
        self.vouched = [session.advertise() for session in self.sessions]
        self.blocks = round_blocks(2, code_bits, n)
        self.everybody = bitmap_of(range(n), n)
        self.use_roster(self.entries())

    def session(self, i, **changes):
        place = {
            "round_id": self.round_id,
            "peer_id": self.ids[i],
            "manifest_sha256": self.manifest,
            "kind": TRAINING,
            "server_key": raw_key(self.server),
            "membership_keys": [raw_key(self.authority)],
        }
        how = {"minimum_cohort": self.minimum_cohort, "now_unix_seconds": NOW}
        return DeviceSession(Place(**{**place, **changes}), self.members[i], **how)

    def use_roster(self, entries, **changes):
        """Make the roster of these entries, with what vouches for each, signed."""
        about = {"round_id": self.round_id, "manifest_sha256": self.manifest, "kind": TRAINING, **changes}
        self.roster = Roster.of(*about.values(), entries)
        self.vouchers = b"".join(vouched.voucher() for vouched in self.vouched)
        self.roster_signature = self.server.sign(roster_message(self.roster.digest))

    def entries(self):
        return [vouched.entry for vouched in self.vouched]

    def replace_member(self, i, member):
        """Put another member in the place of a device; it signs its entry itself."""
        self.members[i] = member
        self.sessions[i] = self.session(i)
        self.vouched[i] = self.sessions[i].advertise()
        self.use_roster(self.entries())

    def replace_key(self, i, field, key):
        """Give an entry another key than its device advertised, signed by the device nevertheless."""
        entry = replace(self.vouched[i].entry, **{field: key})
        message = entry_message(self.round_id, entry.peer_id, entry.mask_key, entry.share_key)
        self.vouched[i] = replace(self.vouched[i], entry=entry, signature=self.members[i].key.sign(message))
        self.use_roster(self.entries())

    def share_by(self, i):
        return self.sessions[i].share(self.roster, self.vouchers, self.roster_signature)

    def share(self, absent=()):
        """Every device but those absent shares its secrets."""
        self.sealed = {i: dict(self.share_by(i)) for i in range(self.n) if i not in absent}
        return self

    def inbox(self, i):
        """What others sealed for a device."""
        return [(sender, sealed[i]) for sender, sealed in sorted(self.sealed.items()) if i in sealed]

    def acknowledge(self, absent=()):
        """Every device that shared, but those absent, opens its shares; the rest are included."""
        present = [i for i in self.sealed if i not in absent]
        self.unopened = {i: self.sessions[i].acknowledge(self.inbox(i)) for i in present}
        self.included = bitmap_of(present, self.n)
        return self

    def sign_included_by(self, i, included=None):
        included = self.included if included is None else included
        message = included_message(self.roster.digest, included)
        return self.sessions[i].sign_included(included, self.server.sign(message))

    def sign_included(self):
        for i in members(self.included, self.n):
            self.sign_included_by(i)
        return self

    def signatures(self, message, signers):
        """A bitmap of signers, and their signatures as the server passes them on."""
        joined = b"".join(self.members[i].key.sign(message) for i in sorted(signers))
        return bitmap_of(signers, self.n), joined

    def included_signed(self, n_signers=None):
        """The quorum for the included set; `n_signers` of them if given."""
        message = included_message(self.roster.digest, self.included)
        return self.signatures(message, sorted(members(self.included, self.n))[: n_signers or quorum(self.n)])

    def vector(self, i):
        """What a device adds: random, the same for each call, at the ends of its range too."""
        source, vector = random.Random(i), Vector(self.blocks)
        for block in self.blocks:
            limit = 1 if block.name == "rows" else 64
            for j in range(block.count):
                vector[block.name][j] = source.choice([-limit, limit, source.randint(-limit, limit)])
        return vector

    def upload_by(self, i):
        return self.sessions[i].mask(self.vector(i), *self.included_signed())

    def upload(self, absent=()):
        """Every included device but those absent uploads; the server settles who survived."""
        holders = {sender: list(sealed) for sender, sealed in self.sealed.items()}
        unopened = {i: members(bitmap, self.n) for i, bitmap in self.unopened.items()}
        self.total = MaskedSum(self.roster, self.blocks, members(self.included, self.n), holders, unopened)
        for i in sorted(members(self.included, self.n).difference(absent)):
            self.total.add(i, self.upload_by(i))
        self.survivors = bitmap_of(self.total.close(), self.n)
        return self

    def sign_survivors_by(self, i, survivors=None):
        survivors = self.survivors if survivors is None else survivors
        message = survivors_message(self.roster.digest, self.included, survivors)
        return self.sessions[i].sign_survivors(survivors, self.server.sign(message))

    def sign_survivors(self):
        for i in members(self.survivors, self.n):
            self.sign_survivors_by(i)
        return self

    def survivors_signed(self, n_signers=None):
        message = survivors_message(self.roster.digest, self.included, self.survivors)
        return self.signatures(message, sorted(members(self.survivors, self.n))[: n_signers or quorum(self.n)])

    def reveal_by(self, i):
        return self.sessions[i].reveal(*self.survivors_signed())

    def reveal(self):
        """Every survivor reveals its shares; the server takes the masks off."""
        for i in sorted(members(self.survivors, self.n)):
            self.total.reveal(i, self.reveal_by(i))
        return self.total.finish()

    def plain_sum(self):
        """The sum of what the survivors put in, without any mask."""
        vectors = [self.vector(i) for i in members(self.survivors, self.n)]
        return {
            block.name: sum((np.array(v[block.name], np.int64) for v in vectors), np.zeros(block.count, np.int64))
            for block in self.blocks
        }
