"""Faults of secure aggregation in what devices are told: places, the roster, included devices, survivors, steps."""

from __future__ import annotations

import hashlib
import secrets
import struct
from dataclasses import replace

from lightfr.secagg.roster import ENTRY_BYTES, Roster, bitmap_of, roster_message
from lightfr.v1 import secure_pb2
from lightfr_harness.server.coordinator import cohort, secure_steps
from lightfr_harness.server.coordinator.cohort import ADVERTISING, SHARING, Cohort
from lightfr_harness.server.coordinator.coordinator import Coordinator
from lightfr_harness.server.coordinator.rounds import OPEN, Round, RoundBook
from lightfr_harness.server.rules import secagg
from lightfr_harness.server.rules.secagg import MaskedSum
from tests.harness.conformance.mutants import around, mutant, never_refuse

SECAGG = "secagg"


@mutant("new-peer-id", "a device that checks in again gets another peer id", "cohort.same-place-again", SECAGG)
def new_peer_id():
    @around(RoundBook, "check_in")
    def _(original, self, device, now):
        if device in self.current.assigned:
            self.current.assigned[device] = secrets.token_bytes(16)
        return original(self, device, now)


@mutant("same-peer-ids", "a device has the same peer id in every round", "cohort.peer-ids", SECAGG)
def same_peer_ids():
    @around(Round, "assign")
    def _(original, self, device, now):
        is_placed = original(self, device, now)
        if is_placed:
            self.assigned[device] = hashlib.sha256(device.encode()).digest()[:16]
        return is_placed


@mutant("roster-unsorted", "the roster has the devices in the order in which they came", "roster.entries", SECAGG)
def roster_unsorted():
    @around(Cohort, "advance")
    def _(original, self, key):
        settled = original(self, key)
        if settled.phase == SHARING:
            entries = [settled.entries[at : at + ENTRY_BYTES] for at in range(0, len(settled.entries), ENTRY_BYTES)]
            self._entries_told = b"".join(reversed(entries))
            numbers = struct.pack("<III", len(entries), settled.degree, settled.threshold)
            digest = hashlib.sha256(self._round_id + numbers + self._entries_told).digest()
            self._signature_told = key.sign(roster_message(digest))
        return settled

    def told(self):
        step = secure_pb2.ShareStep(
            entries=self._entries_told,
            degree=self.settled.degree,
            threshold=self.settled.threshold,
            signature=self._signature_told,
        )
        return secure_pb2.GetStepResponse(share=step)

    Cohort._share_step = property(told)


@mutant(
    "roster-of-places", "the roster has devices that took a place and sent no keys", "roster.without-late-ones", SECAGG
)
def roster_of_places():
    @around(Cohort, "advance")
    def _(original, self, key):
        if self.phase == ADVERTISING:
            for device in self._peers.keys() - self._entries.keys():
                keys = secure_pb2.AdvertiseKeysRequest(
                    mask_public_key=secrets.token_bytes(32), share_public_key=secrets.token_bytes(32)
                )
                Cohort.advertise(self, device, b"", keys)
        return original(self, key)


@mutant(
    "roster-signed-whole", "the roster's signature is over its bytes, not over its digest", "roster.signature", SECAGG
)
def roster_signed_whole():
    cohort.sign_roster = lambda key, roster: key.sign(roster_message(roster.entries))


@mutant("threshold-too-low", "the threshold is one below the majority", "roster.degree-and-threshold", SECAGG)
def threshold_too_low():
    usual = Roster.of
    Roster._require_graph = lambda self: None
    Roster.of = lambda round_id, entries: _one_less(usual(round_id, entries))


def _one_less(roster):
    return replace(roster, threshold=roster.threshold - 1)


@mutant("keys-repeated", "a key that another device has advertised is taken", "advertise.key-of-another", SECAGG)
def keys_repeated():
    never_refuse(cohort, "a key is not new")


@mutant("keys-of-low-order", "keys with which everybody agrees on zeros are taken", "advertise.low-order", SECAGG)
def keys_of_low_order():
    class Gullible:
        def __init__(self, private_key):
            pass

        def with_peer(self, key):
            return bytes(32)

    cohort.Agreement = Gullible


@mutant("keys-replaced", "other keys of a device are answered like the first", "advertise.other-keys", SECAGG)
def keys_replaced():
    @around(Cohort, "is_known")
    def _(original, self, phase, device, digest):
        known = self.delivered[phase].get(device) if phase == ADVERTISING else None
        return original(self, phase, device, known or digest)


@mutant("shares-in-any-order", "sealed shares are taken in any order", "share.order", SECAGG)
def shares_in_any_order():
    @around(Roster, "neighbours")
    def _(original, self, index):
        return Anyhow(original(self, index))


class Anyhow(list):
    """A list that equals every other order of itself."""

    def __eq__(self, other):
        return sorted(self) == sorted(other)

    __hash__ = None


@mutant("included-who-did-not-share", "the included are all of the roster", "included.without-late-ones", SECAGG)
def included_who_did_not_share():
    @around(Cohort, "advance")
    def _(original, self, key):
        was, settled = self.phase, original(self, key)
        if was == SHARING:
            everybody = bitmap_of(range(self.roster.size), self.roster.size)
            settled = self.settled = replace(settled, included=everybody)
        return settled


@mutant("inbox-names-receiver", "sealed shares arrive under the index of their receiver", "included.inbox", SECAGG)
def inbox_names_receiver():
    inboxes = Cohort._inboxes.func

    def renamed(self):
        size = cohort.SEALED_RECORD_BYTES
        return {
            index: b"".join(index.to_bytes(4, "little") + box[at + 4 : at + size] for at in range(0, len(box), size))
            for index, box in inboxes(self).items()
        }

    Cohort._inboxes = property(renamed)


@mutant("survivors-without-the-last", "the survivor set lacks the last one who uploaded", "survivors.everybody", SECAGG)
def survivors_without_the_last():
    _with_survivors(lambda uploaded, included: sorted(uploaded)[:-1])


@mutant(
    "survivors-with-a-dropout", "the survivor set has one who did not upload", "survivors.without-late-ones", SECAGG
)
def survivors_with_a_dropout():
    _with_survivors(lambda uploaded, included: [*uploaded, *sorted(included - uploaded)[:1]])


def _with_survivors(chosen):
    @around(MaskedSum, "close")
    def _(original, self, key):
        self._uploaded = set(chosen(self._uploaded, self._included))
        return original(self, key)


@mutant("survivors-signed-alone", "the survivors' signature leaves out the included", "survivors.signature", SECAGG)
def survivors_signed_alone():
    @around(secagg, "survivors_message")
    def _(original, digest, included, survivors):
        return original(digest, b"", survivors)


@mutant("step-again", "GetStep goes on to say what a device has done already", "step.walk", SECAGG)
def step_again():
    @around(Cohort, "step_for")
    def _(original, self, device):
        delivered, self.delivered = self.delivered, {**self.delivered, self.phase: {}}
        try:
            return original(self, device)
        finally:
            self.delivered = delivered


@mutant("strangers-see-the-roster", "GetStep answers devices that have no place", "step.not-assigned", SECAGG)
def strangers_see_the_roster():
    @around(secure_steps, "_step")
    def _(original, addressed, device):
        known = device in addressed.assigned
        return original(addressed, device if known else next(iter(addressed.assigned)))


@mutant("too-few-keys-go-on", "a roster smaller than the minimum goes on", "abandon.too-few-keys", SECAGG)
def too_few_keys_go_on():
    @around(Cohort, "has_enough")
    def _(original, self, minimum):
        return original(self, 2 if self.phase == ADVERTISING else minimum)


@mutant(
    "threshold-not-awaited",
    "a phase goes on with the minimum, although the threshold is higher",
    "abandon.too-few-shares",
    SECAGG,
)
def threshold_not_awaited():
    Cohort.has_enough = lambda self, minimum: len(self.delivered[self.phase]) >= minimum


@mutant(
    "bits-of-the-included",
    "numbers have the bits that the included need, not the roster",
    # Sums over four fit one bit less than those over the six of the roster.
    "sums.vector-2-without-shares",
    SECAGG,
)
def bits_of_the_included():
    @around(Cohort, "__init__")
    def _(original, self, round_id, places, peers, blocks_of):
        original(self, round_id, places, peers, lambda devices: blocks_of(len(self._shares)))


@mutant(
    "ring-of-the-roster",
    "neighbours are those who are next in the roster, not in the order of digests",
    "crowd.ring",
    "crowd",
)
def ring_of_the_roster():
    Roster._ring = property(lambda self: list(range(self.size)))


@mutant(
    "phases-last", "a phase lasts until its deadline, also when all have delivered", "step.ends-with-the-last", SECAGG
)
def phases_last():
    @around(Round, "is_phase_due")
    def _(original, self, now):
        return original(self, now) and self.is_late(now)


@mutant("one-deadline", "all phases share one deadline", "sums.one-missing-at-each-step", SECAGG)
def one_deadline():
    @around(Coordinator, "_end_phase")
    async def _(original, self, current):
        deadline = current.deadline
        seconds, current.deadline_seconds = current.deadline_seconds, deadline - self._clock()
        await original(self, current)
        current.deadline_seconds = seconds


@mutant("places-in-every-phase", "places that are left are given out in every phase", "cohort.places-left", SECAGG)
def places_in_every_phase():
    @around(Round, "takes_check_ins")
    def _(original, self, now):
        return self.state == OPEN and not self.is_late(now)


@mutant(
    "absent-awaited",
    "every phase waits for all places, also for who missed one before",
    "step.ends-with-the-last-who-is-left",
    SECAGG,
)
def absent_awaited():
    @around(Cohort, "expected")
    def _(original, self, phase):
        return self._places
