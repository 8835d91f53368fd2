"""A cohort of the SDK's own sessions in one process, and a server that tells each of them what it likes.

The cohort is prepared once, by an honest server, up to the acknowledged shares. Every attack goes on from the same
stored sessions, and everything is drawn from a seed: a test finds the same every time.
"""

import random
from collections import Counter
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from unittest.mock import patch

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lightfr import membership
from lightfr.errors import PrivacyError
from lightfr.membership import MEMBERSHIP_CONTEXT, Member, MemberKey
from lightfr.secagg import DeviceSession, Place, Roster, Vector, round_blocks, views
from lightfr.secagg.views import bitmap_of, included_message, quorum, roster_message, survivors_message
from tests.adversary.loot import Loot

TRAINING = 1
MINIMUM = 16
# One open row of 64 bits: what an attack reads does not depend on how much there is to read.
N_ROWS, CODE_BITS = 1, 64
FOREVER = b"\xff" * 8

# A set that each device is told, by its roster index. A device that is not here is told nothing more.
Told = Mapping[int, frozenset[int]]


@contextmanager
def remembered_signatures():
    """All devices of a cohort verify the same signatures: each is verified once here, which saves two thirds."""
    with (
        patch.object(membership, "_is_signed", lru_cache(None)(membership._is_signed)),
        patch.object(views, "is_signed", lru_cache(None)(views.is_signed)),
    ):
        yield


def twin_of(session):
    """A session that goes its own way from here: what it has done so far, the given one has done too."""
    twin = object.__new__(type(session))
    vars(twin).update(vars(session))
    return twin


def member_of(authority, seeded, ends=FOREVER):
    key = MemberKey.from_private(seeded.randbytes(32))
    statement = key.public + ends
    return Member(key, statement + authority.sign(MEMBERSHIP_CONTEXT + statement))


class Devices:
    """Sessions that have advertised. `vouched` are their entries; all of it by ascending peer id."""

    def __init__(self, n, seed=1, minimum=MINIMUM, kind=DeviceSession):
        seeded = self.seeded = random.Random(seed)
        self.server, self.authority = (Ed25519PrivateKey.from_private_bytes(seeded.randbytes(32)) for _ in range(2))
        self.server_key, authority_key = (key.public_key().public_bytes_raw() for key in (self.server, self.authority))
        self.round_id, manifest = seeded.randbytes(16), bytes(32)
        self.peer_ids = sorted(seeded.randbytes(16) for _ in range(n))
        self.sessions = []
        for peer_id in self.peer_ids:
            place = Place(self.round_id, peer_id, manifest, TRAINING, self.server_key, [authority_key])
            member, own = member_of(self.authority, seeded), random.Random(seeded.random())
            session = kind(place, member, now_unix_seconds=0.0, minimum_cohort=minimum, random=own.randbytes)
            self.sessions.append(session)
        self.vouched = [session.advertise() for session in self.sessions]

    def roster(self, vouched=None):
        """Roster, vouchers and the server's signature, of these entries instead of the true ones if there are any."""
        entries = self.vouched if vouched is None else vouched
        roster = Roster.of(self.round_id, bytes(32), TRAINING, [one.entry for one in entries])
        return roster, b"".join(one.voucher() for one in entries), self.server.sign(roster_message(roster.digest))

    def acknowledged(self, who):
        """A roster of some devices, by ascending index, and copies of their sessions that hold each other's shares."""
        told = roster, _, _ = self.roster([self.vouched[i] for i in who])
        sessions = [twin_of(self.sessions[i]) for i in who]
        inboxes = [[] for _ in who]
        for sender, session in enumerate(sessions):
            for receiver, message in session.share(*told):
                inboxes[receiver].append((sender, message))
        for session, inbox in zip(sessions, inboxes, strict=True):
            assert not any(session.acknowledge(inbox))
        return roster, sessions


class Prepared:
    """A cohort whose shares are where they belong. Devices are named by their roster indices."""

    @remembered_signatures()
    def __init__(self, n, seed=1, minimum=MINIMUM):
        devices = Devices(n, seed, minimum)
        self.server, (self.roster, sessions) = devices.server, devices.acknowledged(range(n))
        self.stored = [session.to_bytes() for session in sessions]
        self.blocks = round_blocks(N_ROWS, CODE_BITS, n)

    @property
    def size(self):
        return self.roster.size

    def session(self, index):
        return DeviceSession.from_bytes(self.stored[index])

    def vector(self, index):
        return vector_of(index, self.size)


def vector_of(index, n):
    """What a device adds to the sum of a cohort: numbers of its own."""
    vector, own = Vector(round_blocks(N_ROWS, CODE_BITS, n)), random.Random(index)
    for name, largest in (("rows", 1), ("user_sum", 64), ("weight", 64)):
        numbers = vector[name]
        for place in range(len(numbers)):
            numbers[place] = own.randint(-largest, largest)
    return vector


@dataclass
class Outcome:
    """How an attack went: who left and why, who revealed shares on which survivors, and which vectors were read."""

    refusals: Counter = field(default_factory=Counter)
    uploaded: set[int] = field(default_factory=set)
    # Index to the set on which the device revealed.
    revealed: dict[int, frozenset[int]] = field(default_factory=dict)
    read: set[int] = field(default_factory=set)


@remembered_signatures()
def attack(cohort: Prepared, colluders: frozenset[int], included: Told, survivors: Told) -> Outcome:
    """Tell each honest device its own sets, with as many signatures as it asks for, forged where there is no true one.

    Colluders give the server all that they have; it signs for them.
    """
    outcome, size, digest = Outcome(), cohort.size, cohort.roster.digest
    states = {index: cohort.session(index).state for index in colluders}
    loot = Loot(cohort.roster, cohort.blocks, states)
    sessions = {index: cohort.session(index) for index in included.keys() - colluders}

    def told(step, said, messages):
        """Everybody signs what it was told; then everybody gets a quorum for it. Yields device and quorum."""
        signed = {}
        for index, message in messages.items():
            signature = cohort.server.sign(message)
            answer = _answered(outcome, sessions[index], f"sign_{step}", bitmap_of(said[index], size), signature)
            if answer is not None:
                signed.setdefault(message, {})[index] = answer
        for message, true in signed.items():
            colluding = {i: MemberKey.from_private(state.member_private).sign(message) for i, state in states.items()}
            claimed = forged_quorum(size, said[next(iter(true))], true | colluding)
            yield from ((index, claimed) for index in true)

    bits = {i: bitmap_of(included[i], size) for i in sessions}
    messages = {i: included_message(digest, bits[i]) for i in sorted(sessions)}
    for index, claimed in told("included", included, messages):
        packed = _answered(outcome, sessions[index], "mask", cohort.vector(index), *claimed)
        if packed is not None:
            loot.uploads[index] = included[index], packed
    outcome.uploaded = set(loot.uploads)
    asked = sorted(outcome.uploaded & survivors.keys())
    messages = {i: survivors_message(digest, bits[i], bitmap_of(survivors[i], size)) for i in asked}
    for index, claimed in told("survivors", survivors, messages):
        shares = _answered(outcome, sessions[index], "reveal", *claimed)
        if shares is not None:
            outcome.revealed[index] = survivors[index]
            loot.take(index, shares)
    outcome.read = {i for i, vector in loot.vectors().items() if vector.pack() == cohort.vector(i).pack()}
    return outcome


def forged_quorum(size, allowed, true):
    """Signers and signatures: true ones as far as there are any, random bytes for the rest of the quorum."""
    genuine = sorted(true.keys() & allowed)[: quorum(size)]
    invented = sorted(allowed - true.keys())[: quorum(size) - len(genuine)]
    signers = sorted([*genuine, *invented])
    signatures = b"".join(true[i] if i in genuine else random.Random(i).randbytes(64) for i in signers)
    return bitmap_of(signers, size), signatures


def _answered(outcome, session, step, *said):
    """What the device answers; None when it leaves, which is noted."""
    try:
        return getattr(session, step)(*said)
    except PrivacyError as refusal:
        outcome.refusals[f"{step}: {refusal}"] += 1
        return None
