"""Faults of secure aggregation in who goes on: complaints, the included, signatures, the survivors."""

from __future__ import annotations

from collections import defaultdict

from lightfr.secagg.views import bitmap_of, included_message, members, survivors_message
from lightfr_harness.server.coordinator import cohort, deliveries
from lightfr_harness.server.coordinator.cohort import Cohort
from lightfr_harness.server.coordinator.phases import ACKNOWLEDGING, INCLUDING, UPLOADING
from lightfr_harness.server.coordinator.standing import Faults
from lightfr_harness.server.rules.secagg import Included, MaskedSum
from tests.harness.conformance.mutants import around, mutant, never_refuse

SECAGG = "secagg"


@mutant(
    "included-who-did-not-acknowledge",
    "the included are all who shared",
    "included.without-late-ones",
    SECAGG,
)
def included_who_did_not_acknowledge():
    _with_settlement(lambda original, roster, holders, unopened: Included(frozenset(holders), frozenset()))

    @around(MaskedSum, "__init__")
    def _(original, self, roster, blocks, included, holders, unopened):
        original(self, roster, blocks, included, holders, defaultdict(frozenset, unopened))


@mutant("complaints-ignored", "what devices could not open changes nothing", "acknowledge.shares-spoiled", SECAGG)
def complaints_ignored():
    def settle(original, roster, holders, unopened):
        return original(roster, holders, dict.fromkeys(unopened, frozenset()))

    _with_settlement(settle)


@mutant("one-complaint-decides", "one complaint about a device throws it out", "acknowledge.few-complaints", SECAGG)
def one_complaint_decides():
    def settle(original, roster, holders, unopened):
        named = frozenset().union(*unopened.values())
        settled = original(roster, holders, unopened)
        return Included(settled.devices - named, settled.faulty | named)

    _with_settlement(settle)


@mutant(
    "opened-not-counted",
    "a device goes on although too few of its shares opened",
    "acknowledge.too-few-opened",
    SECAGG,
)
def opened_not_counted():
    def settle(original, roster, holders, unopened):
        faulty = original(roster, holders, unopened).faulty
        return Included(frozenset(holders.keys() & unopened.keys()) - faulty, faulty)

    _with_settlement(settle)


@mutant("slander-unpunished", "a device that complains about everybody goes on", "acknowledge.slander", SECAGG)
def slander_unpunished():
    def settle(original, roster, holders, unopened):
        believed = {holder: bad if len(bad) < 3 else frozenset() for holder, bad in unopened.items()}
        return original(roster, holders, believed)

    _with_settlement(settle)


@mutant(
    "slander-believed",
    "the complaints of a device that is left out for them still count",
    "acknowledge.slander-does-not-count",
    SECAGG,
)
def slander_believed():
    def settle(original, roster, holders, unopened):
        settled = original(roster, holders, unopened)
        complaints = [owner for bad in unopened.values() for owner in bad]
        spare = (roster.holders + 1 - roster.threshold) // 2
        out = frozenset(owner for owner in complaints if complaints.count(owner) > spare)
        return Included(settled.devices - out, settled.faulty | out)

    _with_settlement(settle)


def _with_settlement(settle):
    around(cohort, "settle_included")(settle)


@mutant(
    "any-complaint",
    "complaints about devices that sent nothing are taken",
    "acknowledge.about-who-sent-nothing",
    SECAGG,
)
def any_complaint():
    never_refuse(deliveries, "it complains about a device that sent it nothing")


@mutant("faults-forgotten", "a device that is always at fault always gets a place", "acknowledge.faulty", SECAGG)
def faults_forgotten():
    Faults.is_paused = lambda self, device, now: False


@mutant(
    "included-signed-alone", "the signature of the included set leaves out the roster", "included.signature", SECAGG
)
def included_signed_alone():
    @around(Cohort, "_settle")
    def _(original, self, key):
        settled = original(self, key)
        if self.phase == ACKNOWLEDGING:
            settled["included_signature"] = key.sign(included_message(b"", settled["included"]))
        return settled


@mutant("any-signature", "what devices sign is not verified", "included.bad-signature", SECAGG)
def any_signature():
    deliveries.is_signed = lambda key, signature, message: True


@mutant("half-is-a-quorum", "half of the signatures are sent", "included.quorum", SECAGG)
def half_is_a_quorum():
    cohort.quorum = lambda size: size // 2


@mutant("signatures-unsorted", "the signatures are in another order than the signers", "survivors.quorum", SECAGG)
def signatures_unsorted():
    @around(Cohort, "_joined")
    def _(original, self, phase, signers):
        joined = original(self, phase, signers)
        if phase == INCLUDING:
            return joined
        return b"".join(joined[at : at + 64] for at in reversed(range(0, len(joined), 64)))


@mutant(
    "upload-after-the-first", "uploads are asked for when one device has signed", "included.quorum-is-awaited", SECAGG
)
def upload_after_the_first():
    @around(Cohort, "step_for")
    def _(original, self, device):
        step = original(self, device)
        if step is None and self.phase == INCLUDING:
            phase = self.settled
            self.settled = cohort.replace(phase, phase=INCLUDING + 1, included_signers=self._quorum(INCLUDING))
            step, self.settled = self._make_step().SerializeToString(), phase
        return step


@mutant("survivors-without-the-last", "the survivor set lacks the last one who uploaded", "survivors.everybody", SECAGG)
def survivors_without_the_last():
    _with_survivors(lambda uploaded, included: sorted(uploaded)[:-1])


@mutant(
    "survivors-with-a-dropout", "the survivor set has one who did not upload", "survivors.without-late-ones", SECAGG
)
def survivors_with_a_dropout():
    _with_survivors(lambda uploaded, included: [*uploaded, *sorted(included - uploaded)[:1]])


def _with_survivors(chosen):
    @around(Cohort, "_settle")
    def _(original, self, key):
        settled = original(self, key)
        if self.phase == UPLOADING:
            uploaded, size = members(settled["survivors"], self.roster.size), self.roster.size
            survivors = bitmap_of(chosen(set(uploaded), self._included), size)
            message = survivors_message(self.roster.digest, self.settled.included, survivors)
            settled |= {"survivors": survivors, "survivors_signature": key.sign(message)}
        return settled


@mutant("survivors-signed-alone", "the survivors' signature leaves out the included", "survivors.signature", SECAGG)
def survivors_signed_alone():
    @around(cohort, "survivors_message")
    def _(original, digest, included, survivors):
        return original(digest, b"", survivors)
