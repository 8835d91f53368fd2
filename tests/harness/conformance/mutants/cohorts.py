"""Faults of secure aggregation in places, in the roster, and in the keys and shares that devices deliver."""

from __future__ import annotations

import hashlib
import secrets
import struct
from dataclasses import replace

from lightfr.secagg.roster import ENTRY_BYTES, VOUCHER_BYTES, Roster, RosterEntry, VouchedEntry
from lightfr.secagg.views import roster_message
from lightfr_harness.server.coordinator import cohort_storage, deliveries
from lightfr_harness.server.coordinator.book import RoundBook
from lightfr_harness.server.coordinator.cohort import Cohort
from lightfr_harness.server.coordinator.phases import ADVERTISING, SHARING
from lightfr_harness.server.coordinator.rounds import OPEN, Round
from tests.harness.conformance.mutants import around, mutant, never_refuse

SECAGG = "secagg"


@mutant("new-peer-id", "a device that checks in again gets another peer id", "cohort.same-place-again", SECAGG)
def new_peer_id():
    @around(RoundBook, "check_in")
    def _(original, self, device, *more):
        if device in self.current.assigned:
            self.current.assigned[device] = secrets.token_bytes(16)
        return original(self, device, *more)


@mutant(
    "deadline-of-five-phases",
    "deadline_ms counts the phases that are over",
    "cohort.same-place-again",
    SECAGG,
)
def deadline_of_five_phases():
    Round.upload_deadline_ms = lambda self, now: self.deadline_ms(now) + int(4000 * self.deadline_seconds)


@mutant("same-peer-ids", "a device has the same peer id in every round", "cohort.peer-ids", SECAGG)
def same_peer_ids():
    @around(Round, "assign")
    def _(original, self, device, now):
        is_placed = original(self, device, now)
        if is_placed:
            self.assigned[device] = hashlib.sha256(device.encode()).digest()[:16]
        return is_placed


@mutant("places-in-every-phase", "places that are left are given out in every phase", "cohort.places-left", SECAGG)
def places_in_every_phase():
    @around(Round, "takes_check_ins")
    def _(original, self, now):
        return self.state == OPEN and not self.is_late(now)


@mutant("roster-unsorted", "the roster has the devices in the order in which they came", "roster.entries", SECAGG)
def roster_unsorted():
    keys = []

    @around(Cohort, "settlement")
    def _(original, self, key):
        keys.append(key)
        return original(self, key)

    def reverse(self, share):
        share.entries = _reversed(share.entries, ENTRY_BYTES)
        share.vouchers = _reversed(share.vouchers, VOUCHER_BYTES)
        facts, size = self._facts, len(share.entries) // ENTRY_BYTES
        numbers = struct.pack("<5I", facts.kind, size, share.degree, share.holders, share.threshold)
        digest = hashlib.sha256(facts.round_id + facts.manifest_sha256 + numbers + share.entries).digest()
        share.signature = keys[0].sign(roster_message(digest))

    _with_share_step(reverse)


@mutant("vouchers-unsorted", "the vouchers are in another order than the entries", "roster.vouchers", SECAGG)
def vouchers_unsorted():
    def reverse(self, share):
        share.vouchers = _reversed(share.vouchers, VOUCHER_BYTES)

    _with_share_step(reverse)


def _with_share_step(change):
    @around(Cohort, "_make_step")
    def _(original, self):
        step = original(self)
        if self.phase == SHARING:
            change(self, step.share)
        return step


def _reversed(records, size):
    return b"".join(reversed([records[at : at + size] for at in range(0, len(records), size)]))


@mutant(
    "roster-of-places", "the roster has devices that took a place and sent no keys", "roster.without-late-ones", SECAGG
)
def roster_of_places():
    @around(Cohort, "settlement")
    def _(original, self, key):
        if self.phase == ADVERTISING:
            for device in self._peers.keys() - self._entries.keys():
                entry = RosterEntry(self._peers[device], *(secrets.token_bytes(32) for _ in range(3)))
                self._entries[device] = VouchedEntry(entry, entry.member_key + bytes(72), bytes(64))
        return original(self, key)


@mutant(
    "roster-signed-whole", "the roster's signature is over its bytes, not over its digest", "roster.signature", SECAGG
)
def roster_signed_whole():
    @around(Cohort, "_settle")
    def _(original, self, key):
        settled = original(self, key)
        if self.phase == ADVERTISING:
            settled["roster_signature"] = key.sign(roster_message(settled["entries"]))
        return settled


@mutant("roster-of-any-model", "the digest of the roster leaves out the manifest", "roster.signature", SECAGG)
def roster_of_any_model():
    def digest(self):
        numbers = struct.pack("<5I", self.kind, self.size, self.degree, self.holders, self.threshold)
        return hashlib.sha256(self.round_id + numbers + self.entries).digest()

    Roster.digest = property(digest)


@mutant("threshold-too-low", "the threshold is one below the majority", "roster.numbers", SECAGG)
def threshold_too_low():
    usual = Roster.of
    Roster._require_graph = lambda self: None
    Roster.of = lambda *arguments: _one_less(usual(*arguments))


def _one_less(roster):
    return replace(roster, threshold=roster.threshold - 1)


@mutant("keys-repeated", "a key that another device has advertised is taken", "advertise.key-of-another", SECAGG)
def keys_repeated():
    cohort_storage._claim = lambda *delivery: True


@mutant(
    "member-keys-apart",
    "a member key is compared with other member keys, not with keys that were advertised before",
    "advertise.member-key-taken",
    SECAGG,
)
def member_keys_apart():
    @around(cohort_storage, "_claim")
    def _(original, connection, round_id, device, keys):
        if not keys:
            return original(connection, round_id, device, keys)
        fresh, members = keys[:2], [b"member" + key for key in keys]
        find = "SELECT 1 FROM advertised WHERE round_id = ? AND key IN (?, ?)"
        is_known = connection.execute(find, (round_id, *members[:2])).fetchone()
        # A key that is claimed twice is refused.
        return original(connection, round_id, device, (*fresh, fresh[0] if is_known else members[2]))


@mutant("keys-of-low-order", "keys with which everybody agrees on zeros are taken", "advertise.low-order", SECAGG)
def keys_of_low_order():
    class Gullible:
        def __init__(self, private_key):
            pass

        def with_peer(self, key):
            return bytes(32)

    deliveries.Agreement = Gullible


@mutant("keys-replaced", "other keys of a device are answered like the first", "advertise.other-keys", SECAGG)
def keys_replaced():
    @around(Round, "has_delivered")
    def _(original, self, phase, device, digest):
        known = self.delivered[phase].get(device) if phase == ADVERTISING else None
        return original(self, phase, device, known or digest)


@mutant("any-membership", "who signed a membership is not looked at", "advertise.membership", SECAGG)
def any_membership():
    VouchedEntry.require_member = lambda self, membership_keys, now: None


@mutant("ended-membership", "when a membership ends is not looked at", "advertise.membership", SECAGG)
def ended_membership():
    @around(VouchedEntry, "require_member")
    def _(original, self, membership_keys, now):
        original(self, membership_keys, 0.0)


@mutant("any-entry", "a device's signature of its own entry is not looked at", "advertise.signature", SECAGG)
def any_entry():
    VouchedEntry.require_own_keys = lambda self, round_id: None


@mutant("shares-in-any-order", "sealed shares are taken in any order", "share.order", SECAGG)
def shares_in_any_order():
    @around(Cohort, "check")
    def _(original, self, phase, device, request):
        if phase == SHARING:
            size, records = deliveries.SEALED_RECORD_BYTES, request.sealed_shares
            parts = [records[at : at + size] for at in range(0, len(records), size)]
            request.sealed_shares = b"".join(sorted(parts, key=lambda part: int.from_bytes(part[:4], "little")))
        return original(self, phase, device, request)


@mutant("any-number-of-holders", "a device may have fewer holders than the roster says", "share.missing", SECAGG)
def any_number_of_holders():
    never_refuse(deliveries, "it must have one sealed share per holder")


@mutant("inbox-names-receiver", "sealed shares arrive under the index of their receiver", "share.inbox", SECAGG)
def inbox_names_receiver():
    inboxes = Cohort._inboxes.func

    def renamed(self):
        size = deliveries.SEALED_RECORD_BYTES
        return {
            index: b"".join(index.to_bytes(4, "little") + box[at + 4 : at + size] for at in range(0, len(box), size))
            for index, box in inboxes(self).items()
        }

    Cohort._inboxes = property(renamed)


@mutant(
    "graph-of-the-roster",
    "neighbours are those who are next in the roster, not in the cycles",
    "crowd.sum-with-dropouts",
    "crowd",
)
def graph_of_the_roster():
    @around(Roster, "neighbours")
    def _(original, self, index):
        if self.is_complete:
            return original(self, index)
        return sorted((index + step) % self.size for step in range(-32, 33) if step)
