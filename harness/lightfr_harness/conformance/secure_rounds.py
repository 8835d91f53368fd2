"""Rounds of secure aggregation as the suite walks them: who has a place, who is still there, what came of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from lightfr.secagg import Vector
from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import manifest_pb2, secure_pb2
from lightfr.v1.model_pb2 import Noise
from lightfr_harness.conformance.client import Answer, NoAnswer
from lightfr_harness.conformance.cohort import (
    INDEX_BYTES,
    SEALED_BYTES,
    SEALED_RECORD_BYTES,
    Cohort,
    owner_of,
    records_of,
)
from lightfr_harness.conformance.expectations import Unexpected, expect, expect_equal
from lightfr_harness.conformance.masking import (
    KINDS,
    METHODS,
    REVEAL,
    SHARE,
    UPLOAD,
    Peer,
    Verdict,
    counts_of,
    hits_of,
    vector_of,
)
from lightfr_harness.conformance.rounds import ENDED, PATIENCE_SECONDS, POLL_SECONDS, random_gradients, random_update
from lightfr_harness.conformance.twin import Contribution
from lightfr_harness.conformance.versions import require_twin

if TYPE_CHECKING:
    from lightfr_harness.conformance.world import Device, World

# Devices that act at the same time.
AT_A_TIME = 8


class Notes(dict[str, Answer]):
    """Answers by what was tried; what is not there says why the round did not come so far."""

    finding: Exception = Unexpected("a round that comes so far", "one that does not")

    def __missing__(self, tried: str) -> Answer:
        raise self.finding


class SecureRound:
    """One round, its peers in the order of their check-in; `active` are those who still do what is due."""

    def __init__(self, world: World, peers: list[Peer]) -> None:
        self._world = world
        self.peers, self.active = peers, list(peers)
        # None while it lasts; then FINISHED or ABANDONED.
        self.ended_as: int | None = None
        # The newest when it ended, and where that was not the twin's.
        self.manifest = manifest_pb2.Manifest()
        self._difference: Unexpected | None = None
        # Answers for cases that look at this round later.
        self.noted = Notes()

    @property
    def round_id(self) -> bytes:
        return self.peers[0].round_id

    @property
    def patience_seconds(self) -> float:
        """How long a phase may last."""
        return self._world.kit.settings.deadline_seconds + PATIENCE_SECONDS

    def walk(self, last: str) -> None:
        """All who are left do every step up to this one, if they have not yet."""
        for method in METHODS[: METHODS.index(last) + 1]:
            self._together(partial(self.take_step, method=method))

    def take_step(self, peer: Peer, method: str) -> None:
        """Let a peer ask until it may do a step, and do it, if it has not yet."""
        if method not in peer.delivered:
            self.tell(peer, method)
            peer.deliver(method)

    def tell(self, peer: Peer, method: str) -> None:
        """Let a peer ask until it may do a step."""
        kind = KINDS.get(method)
        if kind is not None and kind not in peer.told:
            peer.due(kind, self.patience_seconds)

    def tell_all(self, method: str) -> None:
        """Everybody left does what comes before a step, and asks until it is due."""
        self.walk(METHODS[METHODS.index(method) - 1])
        self._together(lambda peer: self.tell(peer, method))

    def spoil_shares(self, sender: Peer, receivers: Iterable[Peer]) -> None:
        """Let a peer share what some of its holders cannot open."""
        self.tell_all(SHARE)
        cohort, request = self.cohort(), sender.good(SHARE)
        spoiled = {cohort.index_of(one.peer_id) for one in receivers}
        request.sealed_shares = b"".join(
            record[:INDEX_BYTES] + os.urandom(SEALED_BYTES) if owner_of(record) in spoiled else record
            for record in records_of(request.sealed_shares, SEALED_RECORD_BYTES)
        )
        sender.send(SHARE, request).message(secure_pb2.ShareKeysResponse)

    def _together(self, act: Callable[[Peer], None]) -> None:
        """A crowd would run out of time one after the other; each device has a connection of its own."""
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            try:
                for _ in pool.map(act, self.active):
                    pass
            finally:
                # Where one finds that the server hangs, the others need not.
                pool.shutdown(wait=False, cancel_futures=True)

    def leave(self, *peers: Peer) -> None:
        """These do nothing any more."""
        self.active = [peer for peer in self.active if peer not in peers]

    def cohort(self) -> Cohort:
        """The roster, once somebody was told."""
        knows = next((peer for peer in self.peers if "share" in peer.told), self.peers[0])
        return Cohort(knows.assignment, knows.told["share"])

    def that_did(self, method: str) -> list[Peer]:
        return [peer for peer in self.peers if method in peer.delivered]

    def status(self, peer: Peer | None = None) -> pb.GetRoundStatusResponse:
        request = pb.GetRoundStatusRequest(round_id=self.round_id)
        return (peer or self.peers[0]).device.call("GetRoundStatus", request).message(pb.GetRoundStatusResponse)

    def finish(self) -> None:
        """Those who are left do the rest, and the round must come to a version."""
        self.walk(REVEAL)
        self.require_end(pb.ROUND_STATE_FINISHED)

    def finish_exactly(self) -> None:
        """As finish(), and the version must be what the sums of the survivors make of the one before."""
        self.finish()
        self.require_exact()

    def require_played(self) -> None:
        """A shared round must have come to its end."""
        if self.ended_as != pb.ROUND_STATE_FINISHED:
            raise self.noted.finding

    def require_exact(self) -> None:
        """What the server had when this round ended must be what the twin had."""
        if self._difference is not None:
            raise self._difference

    def require_end(self, state: int) -> None:
        """Wait for the end, which must be this one."""
        ended = self.wait()
        expect_equal("state of the round", pb.RoundState.Name(ended), pb.RoundState.Name(state))

    def require_nothing_came_of_it(self) -> None:
        """It must end as abandoned, and the model stay what it was."""
        self.require_end(pb.ROUND_STATE_ABANDONED)
        expect_equal("next_model_version of an abandoned round", self.status().next_model_version, 0)
        self.require_exact()

    def require_no_next_step(self) -> None:
        """When the phase is over, those who are left must be told that the round is, too."""
        for peer in self.active:
            peer.settled(self.patience_seconds).refusal("ROUND_CLOSED")

    def wait(self) -> int:
        """Wait until the round has ended, by itself or because all is done; how. The twin follows."""
        if self.ended_as is None:
            self.ended_as = self._ended_status().state
            is_finished, kind = self.ended_as == pb.ROUND_STATE_FINISHED, self.peers[0].assignment.kind
            if is_finished and kind not in (pb.ROUND_KIND_GATE_REFRESH, pb.ROUND_KIND_EVALUATION):
                self._world.twin.finish_round([peer.contribution for peer in self.that_did(UPLOAD)])
            elif is_finished or any("reveal" in peer.told for peer in self.peers):
                # The same codes under another number: nobody reveals twice on one version. What comes of a gate refresh
                # are open rows, and codes that only the server knows.
                self._world.twin.model_version += 1
            self.manifest = self._world.manifest()
            try:
                require_twin(self._world, self.manifest)
            except Unexpected as difference:
                # For the cases that ask: the others have something else to find.
                self._difference = self._world.secure.dated(difference)
        return self.ended_as

    def _ended_status(self) -> pb.GetRoundStatusResponse:
        ends = time.monotonic() + len(METHODS) * self.patience_seconds
        while True:
            status = self.status()
            if status.state in ENDED:
                return status
            if time.monotonic() > ends:
                name = pb.RoundState.Name(status.state)
                raise Unexpected("the round to end within the deadlines of its phases", f"it still is {name}")
            time.sleep(POLL_SECONDS)


class SecureRounds:
    """All rounds of a run, one after the other."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._last: SecureRound | None = None
        self._known: set[bytes] = set()
        # The model version from which on the server's is not the twin's.
        self._differs_since: int | None = None
        self._shared: dict[Callable[[World], None], SecureRound] = {}

    def fresh(
        self,
        count: int | None = None,
        parts: Sequence[Contribution] = (),
        devices: Sequence[Device] = (),
        rated: Sequence[Collection[int]] = (),
        verdicts: Sequence[Verdict] = (),
    ) -> SecureRound:
        """A new round in which so many devices, or all there is room for, have a place; random parts unless given.

        `rated` are the items that each device has in a gate refresh, `verdicts` what it says in an evaluation.
        """
        self.end_last()
        devices = devices or self._world.devices(self._world.kit.settings.places if count is None else count)
        first = self._opened(devices[0])
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            assignments = [first, *pool.map(self._placed, devices[1:])]
        parts = [*parts, *(self._random_part() for _ in range(len(devices) - len(parts)))]
        kit = self._world.kit
        noise = Noise(**kit.settings.noise) if kit.settings.noise else None
        n_candidates = len(self._world.manifest().candidates) if verdicts else 0
        vectors: list[Callable[[int], Vector]] = [
            *(partial(counts_of, items, kit.settings.item_count) for items in rated),
            *(partial(hits_of, verdict, n_candidates) for verdict in verdicts),
            *(partial(vector_of, part, kit.open_rows, noise) for part in parts[len(rated) + len(verdicts) :]),
        ]
        peers = [
            Peer(device, assignment, self._world.trusted_keys, part, vector)
            for device, assignment, part, vector in zip(devices, assignments, parts, vectors, strict=True)
        ]
        self._last = SecureRound(self._world, peers)
        self._known.add(first.round_id)
        for peer in peers[1:]:
            expect_equal("round_id of devices that check in together", peer.round_id, first.round_id)
        return self._last

    def with_newcomer(self) -> SecureRound:
        """A new round whose last place has a device that is in no other: what it does may be held against it."""
        known = self._world.devices(self._world.kit.settings.places - 1)
        return self.fresh(devices=[*known, self._world.newcomer()])

    def of_newcomers(self) -> SecureRound:
        """A new round of devices that are in no other: it will not end well, and all of them may be suspected."""
        return self.fresh(devices=[self._world.newcomer() for _ in range(self._world.kit.settings.places)])

    def shared(self, play: Callable[[World], None]) -> SecureRound:
        """A round that several cases look at, played once, since it takes a deadline or two. As far as it went."""
        if play not in self._shared:
            before = self._last
            try:
                play(self._world)
            except Exception as finding:
                if self._last is None or self._last is before:
                    raise
                # For the cases that look for what did not happen any more.
                self._last.noted.finding = finding
            self._shared[play] = self._last  # type: ignore[assignment]
        return self._shared[play]

    def dated(self, difference: Unexpected) -> Unexpected:
        """A model that went wrong once stays so: later cases say since when."""
        if self._differs_since is None:
            self._differs_since = self._world.twin.model_version
            return difference
        since = f"; the model is another since version {self._differs_since}, see the first such case"
        return Unexpected(difference.expected, difference.got + since)

    def _random_part(self) -> Contribution:
        settings = self._world.kit.settings
        if settings.noise:
            return random_gradients(self._world.kit.open_rows, settings.code_bits)
        return Contribution.of(random_update(self._world.kit.open_rows, settings.code_bits, settings.max_rows))

    def _opened(self, device: Device) -> pb.Assignment:
        """The place of a device in a round that is new."""
        deadline = self._world.kit.settings.deadline_seconds
        ends = time.monotonic() + deadline + PATIENCE_SECONDS
        old: set[bytes] = set()
        while time.monotonic() < ends:
            answer = self._world.check_in(device)
            found = answer.assignment
            if answer.HasField("assignment") and found.round_id not in self._known | old:
                # A case without a round of its own may have left one that has little time. Once: the next is taken.
                if old or found.deadline_ms > 5000 * deadline - 500:
                    return found
                old.add(found.round_id)
            time.sleep(POLL_SECONDS)
        raise Unexpected("a place in a new round soon after the last one ended", f"no place: {answer}")

    def _placed(self, device: Device) -> pb.Assignment:
        answer = self._world.check_in(device)
        expect(answer.HasField("assignment"), "a place in a round that has some left", answer)
        return answer.assignment

    def end_last(self) -> None:
        """By doing what is left to do, which is quick; where that fails, by its deadlines."""
        last, self._last = self._last, None
        if last is None or last.ended_as is not None:
            return
        try:
            last.finish()
        except (Unexpected, NoAnswer):
            last.wait()
