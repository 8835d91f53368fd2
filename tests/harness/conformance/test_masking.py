"""The suite's masked devices, and its plain view of what a server says, are what docs/secagg.md says."""

import os

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lightfr.v1 import secure_pb2, update_pb2
from lightfr_harness.conformance.cohort import Cohort, sealed_by_receiver
from lightfr_harness.conformance.expectations import Unexpected
from lightfr_harness.conformance.masking import vector_of
from lightfr_harness.conformance.secure_rounds import Notes
from lightfr_harness.conformance.twin import Contribution
from tests.vectors.reading import by_name, vector

WITHOUT_NOISE = [one for one in vector("contribution")["cases"] if not one["noise"]]


@pytest.mark.parametrize(**by_name(WITHOUT_NOISE))
def test_the_vector_of_a_device_is_the_known_one(known):
    common = vector("contribution")
    bitmap = bytes.fromhex(common["open_rows"])
    is_open = [bool(bitmap[row // 8] >> row % 8 & 1) for row in range(common["item_count"])]
    update = update_pb2.RowUpdate.FromString(bytes.fromhex(known["row_update"]))
    made = vector_of(Contribution.of(update), is_open, common["devices"])
    assert [made[block.name].tolist() for block in made.blocks] == known["before_noise"]


def cohort_of(known, **changes):
    fields = {name: known[name] for name in ("degree", "threshold")}
    step = secure_pb2.ShareStep(**fields, entries=bytes.fromhex(known["entries"]))
    return Cohort(bytes.fromhex(known["round_id"]), secure_pb2.ShareStep(**{**as_fields(step), **changes}))


def as_fields(step):
    return {field.name: value for field, value in step.ListFields()}


@pytest.mark.parametrize("known", vector("secagg_roster"))
def test_digest_and_neighbours_are_the_known_ones(known):
    cohort = cohort_of(known)
    assert cohort.digest.hex() == known["digest"]
    for index, neighbours in known["neighbours"].items():
        assert cohort.neighbours(int(index)) == neighbours


def test_signatures_of_a_whole_round_are_those_of_the_exact_bytes():
    known = vector("secagg_round")
    key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(known["server_private_key"])).public_key()
    signature, included = bytes.fromhex(known["roster_signature"]), bytes.fromhex(known["included"])
    cohort_of(known, signature=signature).require_signed(key)
    with pytest.raises(Unexpected, match="a roster signed"):
        cohort_of(known, signature=signature, threshold=4).require_signed(key)
    step = secure_pb2.RevealStep(
        survivors=bytes.fromhex(known["survivors"]), signature=bytes.fromhex(known["survivors_signature"])
    )
    cohort_of(known).require_survivors_signed(key, included, step)
    with pytest.raises(Unexpected, match="a survivor set signed"):
        cohort_of(known).require_survivors_signed(key, b"\x0f", step)


def test_bitmaps_begin_with_the_low_bit():
    cohort = cohort_of(vector("secagg_roster")[2])
    assert cohort.bitmap([cohort.ids[0], cohort.ids[9], cohort.ids[69]]).hex() == "010200000000000020"


def test_a_roster_in_another_order_or_with_another_degree_is_found():
    cohort = cohort_of(vector("secagg_round"))
    cohort.require_entries(cohort.entries[::-1])
    cohort.require_usual()
    swapped = b"".join([cohort.entries[1], cohort.entries[0], *cohort.entries[2:]])
    with pytest.raises(Unexpected, match="by ascending peer id"):
        cohort_of(vector("secagg_round"), entries=swapped).require_entries(cohort.entries)
    with pytest.raises(Unexpected, match="threshold for 4 neighbours = 3, got 4"):
        cohort_of(vector("secagg_round"), threshold=4).require_usual()


def test_an_inbox_that_is_not_what_the_neighbours_sent_is_found():
    cohort = cohort_of(vector("secagg_round"))
    sent = {sender: {0: os.urandom(94)} for sender in (1, 2, 4)}
    records = [sender.to_bytes(4, "little") + sealed[0] for sender, sealed in sent.items()]
    cohort.require_inbox(secure_pb2.UploadStep(sealed_shares=b"".join(records)), 0, sent)
    for wrong in (records[::-1], records[1:], [records[0], *records]):
        with pytest.raises(Unexpected, match="sealed shares for device 0"):
            cohort.require_inbox(secure_pb2.UploadStep(sealed_shares=b"".join(wrong)), 0, sent)


def test_sealed_shares_are_taken_apart_by_receiver():
    request = secure_pb2.ShareKeysRequest(sealed_shares=b"\1\0\0\0" + b"a" * 94 + b"\3\1\0\0" + b"b" * 94)
    assert sealed_by_receiver(request) == {1: b"a" * 94, 259: b"b" * 94}


def test_what_a_shared_round_did_not_come_to_says_why():
    notes = Notes()
    notes.finding = Unexpected("a place", "none")
    with pytest.raises(Unexpected, match="expected a place, got none"):
        notes["late keys"]
