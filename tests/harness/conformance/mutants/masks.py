"""Faults of secure aggregation in what devices deliver, and in how the masks come off."""

from __future__ import annotations

import numpy as np

from lightfr.errors import InvalidInputError
from lightfr.secagg import shamir
from lightfr.secagg.vector import Vector
from lightfr_harness.server.coordinator.cohort import Cohort
from lightfr_harness.server.coordinator.cohort_storage import Delivered, Outcome
from lightfr_harness.server.coordinator.coordinator import Coordinator
from lightfr_harness.server.coordinator.phases import UPLOADING
from lightfr_harness.server.coordinator.rounds import OPEN, Round
from lightfr_harness.server.coordinator.storage import Storage
from lightfr_harness.server.rules import UploadError, catalogue, secagg
from lightfr_harness.server.rules.secagg import MaskedSum
from tests.harness.conformance.mutants import around, mutant, never_refuse

SECAGG = "secagg"


@mutant("dirty-padding", "bits behind the last number of a block are ignored", "masked.padding", SECAGG)
def dirty_padding():
    @around(Vector, "require_packed")
    def _(original, self, packed):
        return original(self, _cleaned(self, packed))


def _cleaned(vector, packed):
    """The packed numbers without what stands behind the last one of a block."""
    cleaned, end = bytearray(packed), 0
    for block in vector.blocks:
        end += block.packed_bytes
        if len(packed) == vector.packed_bytes and (used_bits := block.count * block.bits % 8):
            cleaned[end - 1] &= (1 << used_bits) - 1
    return bytes(cleaned)


@mutant("refused-vector-added", "a vector is added before its padding is looked at", "masked.padding", SECAGG)
def refused_vector_added():
    @around(MaskedSum, "require_upload")
    def _(original, self, index, packed):
        try:
            original(self, index, packed)
        except UploadError:
            if len(packed) == self._sum.packed_bytes:
                self._sum.add_packed(_cleaned(self._sum, packed))
            raise


@mutant("rows-in-the-clear", "a round with secure aggregation takes rows in the clear", "masked.row-update", SECAGG)
def rows_in_the_clear():
    @around(Coordinator, "_check")
    def _(original, self, addressed, device, request):
        if request.WhichOneof("body") != "row_update":
            return original(self, addressed, device, request)
        addressed.cohort.delivered[UPLOADING][device] = bytes(32)
        addressed.cohort.taken[UPLOADING].add(device)
        return None


@mutant("vector-added-twice", "the same masked vector again is added again", "masked.same-bytes-again", SECAGG)
def vector_added_twice():
    @around(Coordinator, "upload")
    async def _(original, self, device, request, body):
        addressed = self.book.find(request.round_id)
        if device in addressed.receipts and addressed.cohort is not None:
            addressed.cohort._sum._sum.add_packed(request.masked_vector)
        return await original(self, device, request, body)


@mutant("late-vector-added", "a vector that comes after the survivors are settled is added", "masked.too-late", SECAGG)
def late_vector_added():
    never_refuse(secagg, "the survivors of the round are settled")

    @around(Round, "takes_uploads")
    def _(original, self, now):
        return original(self, now) or (self.state == OPEN and self.cohort.phase > UPLOADING)

    @around(Cohort, "require_turn")
    def _(original, self, phase, device):
        if phase != UPLOADING or self.phase <= UPLOADING:
            original(self, phase, device)

    @around(Storage, "deliver")
    def _(original, self, addressed, phase, *delivery):
        if phase == UPLOADING and addressed.phase > UPLOADING:
            return self._submit(lambda connection: Delivered(Outcome.TAKEN))
        return original(self, addressed, phase, *delivery)


@mutant(
    "dropped-masks-added",
    "masks with dropped devices come off with the wrong sign",
    "sums.vector-3-without-uploads",
    SECAGG,
)
def dropped_masks_added():
    @around(MaskedSum, "_subtract_pair_masks")
    def _(original, self, mask_keys):
        mask = Vector.mask
        Vector.mask = lambda vector, key, *, subtract: mask(vector, key, subtract=not subtract)
        try:
            original(self, mask_keys)
        finally:
            Vector.mask = mask


@mutant(
    "self-masks-of-who-reveals",
    "the self-mask of a survivor that did not reveal stays on",
    "sums.without-reveals",
    SECAGG,
)
def self_masks_of_who_reveals():
    @around(MaskedSum, "_subtract_self_masks")
    def _(original, self, seeds):
        original(self, {index: seed for index, seed in seeds.items() if index in self._answered})


@mutant("sums-unsigned", "negative sums are read as large positive ones", "sums.everybody", SECAGG)
def sums_unsigned():
    @around(secagg, "_numbers")
    def _(original, block, total):
        return original(block, total) & ((1 << block.bits) - 1)


@mutant("both-kinds-revealed", "seed and mask key of one device are taken together", "reveal.both-kinds", SECAGG)
def both_kinds_revealed():
    never_refuse(secagg, "it must have one share for each survivor")
    never_refuse(secagg, "it must have one share for each dropped device")


@mutant("reveals-in-any-order", "revealed shares are taken in any order", "reveal.order", SECAGG)
def reveals_in_any_order():
    never_refuse(secagg, "its records must be sorted by ascending index")


@mutant("shares-beyond-the-field", "shares that are no numbers of the field are taken", "reveal.not-in-field", SECAGG)
def shares_beyond_the_field():
    never_refuse(secagg, "a share is not a number of the field")


@mutant(
    "mask-keys-beyond-the-field",
    "shares of mask keys that are no numbers of the field are taken",
    "reveal.key-not-in-field",
    SECAGG,
)
def mask_keys_beyond_the_field():
    def reduced(record):
        return record[:4] + (int.from_bytes(record[4:], "little") % shamir.PRIME).to_bytes(33, "little")

    @around(MaskedSum, "require_revealed")
    def _(original, self, holder, shares):
        records = [shares.mask_keys[at : at + 37] for at in range(0, len(shares.mask_keys), 37)]
        whole = b"".join(reduced(record) if len(record) == 37 else record for record in records)
        return original(self, holder, shares._replace(mask_keys=whole))


@mutant("rest-of-mask-keys", "bytes behind the last mask key are ignored", "reveal.key-length", SECAGG)
def rest_of_mask_keys():
    @around(MaskedSum, "require_revealed")
    def _(original, self, holder, shares):
        whole = len(shares.mask_keys) // 37 * 37
        return original(self, holder, shares._replace(mask_keys=shares.mask_keys[:whole]))


@mutant("own-seed-optional", "a survivor need not reveal its share of its own seed", "reveal.missing", SECAGG)
def own_seed_optional():
    @around(MaskedSum, "require_revealed")
    def _(original, self, holder, shares):
        held, told = self._held[holder], {shares.seeds[at : at + 4] for at in range(0, len(shares.seeds), 37)}
        self._held[holder] = held if holder.to_bytes(4, "little") in told else held - {holder}
        try:
            return original(self, holder, shares)
        finally:
            self._held[holder] = held


@mutant("false-share-unnoticed", "shares beyond the threshold are not compared", "sums.false-shares", SECAGG)
def false_share_unnoticed():
    secagg.secret_of = lambda shares, threshold: (shamir.join(dict(list(shares.items())[:threshold])), frozenset())


@mutant("false-share-ends-the-round", "a false share is noticed and not corrected", "sums.false-shares", SECAGG)
def false_share_ends_the_round():
    @around(secagg, "secret_of")
    def _(original, shares, threshold):
        secret, false = original(shares, threshold)
        if false:
            raise InvalidInputError("a share is false")
        return secret, false


@mutant(
    "too-many-false-shares",
    "the first shares are taken where the others cannot be told from them",
    "abandon.false-shares",
    SECAGG,
)
def too_many_false_shares():
    _take_any_sum()

    @around(secagg, "secret_of")
    def _(original, shares, threshold):
        try:
            return original(shares, threshold)
        except InvalidInputError:
            return bytes(32), frozenset()


@mutant(
    "bits-of-the-included",
    "numbers have the bits that the included need, not the roster",
    # Sums over four fit one bit less than those over the six of the roster.
    "sums.vector-2-without-shares",
    SECAGG,
)
def bits_of_the_included():
    @around(Cohort, "__init__")
    def _(original, self, facts, places, peers, blocks_of):
        original(self, facts, places, peers, lambda devices: blocks_of(len(self._holders)))


@mutant(
    "mask-key-not-compared",
    "a mask key that was put together is not compared with the roster",
    "abandon.false-mask-key",
    SECAGG,
)
def mask_key_not_compared():
    _take_any_sum()
    MaskedSum._checked_mask_key = lambda self, owner, private_key: private_key


@mutant(
    "unmasked-anyway", "with a share too few the masks are taken off all the same", "abandon.too-few-reveals", SECAGG
)
def unmasked_anyway():
    _take_any_sum()

    def secret(shares):
        try:
            return shamir.join(shares)
        except InvalidInputError:
            return bytes(32)

    MaskedSum._secrets = lambda self, owners: {owner: secret(self._shares[owner]) for owner in owners}


def _take_any_sum():
    """Do not ask whether a sum is plausible: that finds wrong masks too, but by another rule."""
    catalogue.require_plausible_users = lambda user_sum, weight, survivors: None
    catalogue.require_plausible_clipped = lambda rows, user_sum, noise, survivors: None
    catalogue.require_plausible_energy = lambda rows, counts, survivors: None
    catalogue.implausible_rows = lambda rows, counts, survivors: np.zeros(len(rows), np.bool_)
    catalogue.cut = lambda rows, counts, survivors: rows
    catalogue.shortened = lambda rows, trails, counts, survivors: rows
