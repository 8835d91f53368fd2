"""A coordinator that lies, over real TLS: our own, but for what it tells each device of who takes part.

Its clients are the SDK's, with identities and memberships of a real authority. Colluders are clients like the others
whose secrets the server knows; it signs for them.
"""

import threading
from contextlib import contextmanager
from dataclasses import replace

from lightfr import Client, FileKey
from lightfr.errors import LightFRError
from lightfr.membership import MemberKey
from lightfr.secagg import DeviceSession, RevealedShares
from lightfr.secagg.views import bitmap_of, included_message, survivors_message
from lightfr.v1 import secure_pb2
from lightfr_harness.server.coordinator import keeper
from lightfr_harness.server.coordinator.cohort import Cohort
from lightfr_harness.server.coordinator.phases import CONFIRMING, INCLUDING, REVEALING, UPLOADING
from lightfr_harness.server.rules.secagg import SecureSumError
from tests.adversary.cohort import forged_quorum
from tests.adversary.loot import Loot
from tests.adversary.plans import colluders_of
from tests.certificates import client_pem
from tests.harness.server.coordinator.helpers import N_ITEMS
from tests.harness.server.coordinator.live import Live
from tests.harness.server.coordinator.secure import SECURE

TIMEOUT_SECONDS = 120


class Secrets:
    """What only the devices know: a test looks, the server only at what colluders have."""

    def __init__(self, monkeypatch):
        # By peer id: sessions that have acknowledged, and vectors before they are masked.
        self.states, self.vectors = {}, {}
        # Thread of a client to its peer id.
        self.peers = {}
        acknowledge, mask = DeviceSession.acknowledge, DeviceSession.mask

        def acknowledged(session, inbox):
            unopened = acknowledge(session, inbox)
            self.states[session.state.peer_id] = session.state
            self.peers[threading.get_ident()] = session.state.peer_id
            return unopened

        def masked(session, vector, signers, signatures):
            self.vectors[session.state.peer_id] = vector.pack()
            return mask(session, vector, signers, signatures)

        monkeypatch.setattr(DeviceSession, "acknowledge", acknowledged)
        monkeypatch.setattr(DeviceSession, "mask", masked)


class LyingLive(Live):
    def wake(self):
        """Let the coordinator look whether a phase is over."""
        self._loop.call_soon_threadsafe(self.coordinator.wake)


class LyingCohort(Cohort):
    """Honest up to the acknowledged shares; then everybody is told its own sets."""

    def __init__(self, *how, plan, n_colluders, secrets):
        super().__init__(*how)
        self._plan, self._n_colluders, self._secrets = plan, n_colluders, secrets
        self.gone = set()
        self._answers = {phase: {} for phase in (INCLUDING, UPLOADING, CONFIRMING, REVEALING)}
        self._key = None

    def settlement(self, key):
        self._key = key
        if self.phase < INCLUDING:
            return super().settlement(key)
        return replace(self.settled, phase=self.phase + 1)

    def adopt(self, settled):
        if settled.phase <= INCLUDING:
            super().adopt(settled)
        self.settled = settled
        if settled.phase == INCLUDING:
            self._begin_to_lie()

    def _begin_to_lie(self):
        size = self.roster.size
        self.colluders = colluders_of(self.roster, self._n_colluders)
        self.included, self.survivors = self._plan(self.roster, self.colluders)
        by_index = {i: self._secrets.states[self.roster.entry(i).peer_id] for i in range(size)}
        self._states = {i: by_index[i] for i in self.colluders}

    def has_enough(self, minimum):
        return True

    def has_missed(self, device):
        return self.phase < INCLUDING and super().has_missed(device)

    def is_complete(self):
        if self.phase < INCLUDING:
            return super().is_complete()
        return self._asked() <= self._answers[self.phase].keys() | self.gone

    def leave(self, peer_id):
        """A device has left. A server would wait for its deadline; the test knows."""
        self.gone.add(self.roster.index_of(peer_id))

    def _asked(self):
        told = self.included if self.phase <= UPLOADING else self.survivors
        before = self._answers.get(self.phase - 1, told)
        return told.keys() - self.colluders if self.phase == INCLUDING else before.keys() & told.keys()

    def step_for(self, device):
        if self.phase < INCLUDING:
            return super().step_for(device)
        index = self._index(device)
        if index not in self._asked() or index in self._answers[self.phase]:
            return None
        if self.phase == INCLUDING:
            step = {"included": bitmap_of(self.included[index], self.roster.size)}
            signed = secure_pb2.IncludedStep(**step, signature=self._key.sign(self._message(index)))
            return secure_pb2.GetStepResponse(included=signed).SerializeToString()
        if self.phase == CONFIRMING:
            step = {"survivors": bitmap_of(self.survivors[index], self.roster.size)}
            signed = secure_pb2.SurvivorsStep(**step, signature=self._key.sign(self._message(index)))
            return secure_pb2.GetStepResponse(survivors=signed).SerializeToString()
        return self._claimed(index)

    def _message(self, index):
        """What a device signs in this phase, or signed in the one before."""
        size, digest = self.roster.size, self.roster.digest
        included = bitmap_of(self.included[index], size)
        if self.phase <= UPLOADING:
            return included_message(digest, included)
        return survivors_message(digest, included, bitmap_of(self.survivors[index], size))

    def _claimed(self, index):
        """As many signatures as the device asks for, forged where there is no true one."""
        message, answers = self._message(index), self._answers[self.phase - 1]
        true = {i: answer.signature for i, answer in answers.items() if self._message(i) == message}
        true |= {i: MemberKey.from_private(state.member_private).sign(message) for i, state in self._states.items()}
        allowed = (self.included if self.phase == UPLOADING else self.survivors)[index]
        signers, signatures = forged_quorum(self.roster.size, allowed, true)
        if self.phase == UPLOADING:
            upload = secure_pb2.UploadStep(signers=signers, signatures=signatures)
            return secure_pb2.GetStepResponse(upload=upload).SerializeToString()
        reveal = secure_pb2.RevealStep(signers=signers, signatures=signatures)
        return secure_pb2.GetStepResponse(reveal=reveal).SerializeToString()

    def check(self, phase, device, request):
        return super().check(phase, device, request) if phase < INCLUDING else request

    def keep(self, phase, device, digest, checked):
        if phase < INCLUDING:
            super().keep(phase, device, digest, checked)
            return
        self._answers[phase][self._index(device)] = checked
        self.taken[phase].add(device)
        self.delivered[phase][device] = digest

    def finish(self):
        raise SecureSumError("the server has what it wanted")

    def uploaded(self):
        return self._answers[UPLOADING].keys()

    def revealed(self):
        """Index to the survivor set on which a device revealed shares."""
        return {i: self.survivors[i] for i in self._answers[REVEALING]}

    def read(self):
        """The devices whose vectors the server can read, number for number."""
        loot = Loot(self.roster, self._blocks_of(self.roster.size), self._states)
        for index, request in self._answers[UPLOADING].items():
            loot.uploads[index] = self.included[index], request.masked_vector
        for index, request in self._answers[REVEALING].items():
            loot.take(index, RevealedShares(request.seeds, request.mask_keys))
        true = {i: self._secrets.vectors[self.roster.entry(i).peer_id] for i in loot.uploads}
        return {i for i, vector in loot.vectors().items() if vector.pack() == true[i]}


@contextmanager
def clients_of(live, authority, folder, n, **terms):
    """Clients with identities of their own, who have rated some items."""
    opened = []
    try:
        for number in range(n):
            place = folder / f"device-{number}"
            place.mkdir()
            client = Client.open(
                place / "data",
                server=live.addresses["server"],
                identity=client_pem(authority, place),
                trust=authority.folder / "trust.pem",
                key=FileKey(place / "key"),
                **terms,
            )
            client.rate_many([(f"item-{(number + i) % N_ITEMS}", 5) for i in range(8)])
            opened.append(client)
        yield opened
    finally:
        for client in opened:
            client.close()


def lie_to(monkeypatch, authority, folder, n, n_colluders, plan):
    """One round of n clients: the cohort as the server saw it, what each participate() came to, and exported views."""
    secrets, cohorts, outcomes = Secrets(monkeypatch), [], [None] * n
    exported = [folder / f"views-{number}.json" for number in range(n)]

    def made(*how):
        cohorts.append(LyingCohort(*how, plan=plan, n_colluders=n_colluders, secrets=secrets))
        return cohorts[-1]

    monkeypatch.setattr(keeper, "Cohort", made)
    how = {"goal": n, "over_selection": 1.0, "minimum": 2, "rounds": 1, "deadline_seconds": 60}
    with (
        LyingLive(folder / "coordinator", authority, settings=SECURE, **how) as live,
        clients_of(live, authority, folder, n, minimum_cohort=n // 2) as clients,
    ):

        def take_part(number):
            try:
                outcomes[number] = clients[number].participate()
            except LightFRError as error:
                outcomes[number] = error
                cohorts[0].leave(secrets.peers[threading.get_ident()])
                live.wake()

        in_threads(take_part, n)
        for client, path in zip(clients, exported, strict=True):
            client.export_views(path)
    return cohorts[0], outcomes, exported


def in_threads(function, n):
    """Call it for each number at the same time, and wait."""
    threads = [threading.Thread(target=function, args=[number]) for number in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_SECONDS)
        assert not thread.is_alive()
