"""The suite's masked devices, and its plain view of what a server says, are what docs/secagg.md says."""

import os

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import secure_pb2, update_pb2
from lightfr_harness.conformance.cohort import VOUCHER_BYTES, Cohort, records_of, sealed_by_receiver
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
    made = vector_of(Contribution.of(update), is_open, None, common["devices"])
    assert [made[block.name].tolist() for block in made.blocks] == known["before_noise"]


def cohort_of(known, **changes):
    numbers = {name: known[name] for name in ("degree", "holders", "threshold")}
    parts = {name: bytes.fromhex(known[name]) for name in ("entries", "vouchers") if name in known}
    return Cohort(assignment_of(known), secure_pb2.ShareStep(**{**numbers, **parts, **changes}))


def assignment_of(known):
    names = ("round_id", "manifest_sha256")
    return pb.Assignment(kind=known["kind"], **{name: bytes.fromhex(known[name]) for name in names})


@pytest.mark.parametrize("known", vector("secagg_roster"))
def test_digest_and_neighbours_are_the_known_ones(known):
    cohort = cohort_of(known)
    assert cohort.digest.hex() == known["digest"]
    for index, neighbours in known["neighbours"].items():
        assert cohort.neighbours(int(index)) == neighbours


def test_the_quorum_is_the_known_one():
    cohort = cohort_of(vector("secagg_roster")[0])
    for cohort.size, quorum in vector("secagg_agreement")["quorums"]:
        assert cohort.quorum == quorum


KNOWN = vector("secagg_round")
SIGNED = {name: bytes.fromhex(value) for name, value in KNOWN.items() if isinstance(value, str)}


def server_key():
    return Ed25519PrivateKey.from_private_bytes(SIGNED["server_private_key"]).public_key()


def test_signatures_of_the_server_are_those_of_the_exact_bytes():
    cohort, key = cohort_of(KNOWN), server_key()
    cohort_of(KNOWN, signature=SIGNED["roster_signature"]).require_signed(key)
    with pytest.raises(Unexpected, match="a roster signed"):
        cohort_of(KNOWN, signature=SIGNED["roster_signature"], threshold=9).require_signed(key)
    included = {"included": SIGNED["included"], "signature": SIGNED["included_signature"]}
    cohort.require_included_signed(key, secure_pb2.IncludedStep(**included))
    with pytest.raises(Unexpected, match="an included set signed"):
        cohort.require_included_signed(key, secure_pb2.IncludedStep(**{**included, "included": b"\x01"}))
    step = secure_pb2.SurvivorsStep(survivors=SIGNED["survivors"], signature=SIGNED["survivors_signature"])
    cohort.require_survivors_signed(key, SIGNED["included"], step)
    with pytest.raises(Unexpected, match="a survivor set signed"):
        cohort.require_survivors_signed(key, b"\x0f", step)


def test_signers_must_be_a_quorum_of_the_set_and_have_signed():
    cohort, included = cohort_of(KNOWN), SIGNED["included"]
    signers, signatures = SIGNED["included_signers"], SIGNED["included_signatures"]
    message = cohort.included_message(included)
    cohort.require_signers(secure_pb2.UploadStep(signers=signers, signatures=signatures), included, message)
    first = cohort.bits([next(i for i in range(cohort.size) if signers[i // 8] >> i % 8 & 1)])
    for step, allowed, expected in (
        ((signers, signatures), first, "signers that are all in the set"),
        ((first, signatures[:64]), included, f"at least {cohort.quorum} signers"),
        ((signers, signatures[64:]), included, "bytes of the signatures"),
        ((signers, signatures[64:] + signatures[:64]), included, "a set that device"),
        ((signers + b"\0", signatures), included, "size of the bitmap"),
    ):
        with pytest.raises(Unexpected, match=expected):
            cohort.require_signers(secure_pb2.UploadStep(signers=step[0], signatures=step[1]), allowed, message)


def test_bitmaps_begin_with_the_low_bit():
    cohort = cohort_of(vector("secagg_roster")[1])
    expected = bytes([1, 2, *bytes((cohort.size + 7) // 8 - 2)])
    assert cohort.bitmap([cohort.ids[0], cohort.ids[9]]) == cohort.bits([0, 9]) == expected


def test_a_roster_in_another_order_or_with_other_numbers_is_found():
    cohort = cohort_of(KNOWN)
    vouched = list(zip(cohort.entries, records_of(cohort.step.vouchers, VOUCHER_BYTES), strict=True))
    cohort.require_entries(vouched[::-1])
    cohort.require_usual()
    swapped = b"".join([cohort.entries[1], cohort.entries[0], *cohort.entries[2:]])
    with pytest.raises(Unexpected, match="by ascending peer id"):
        cohort_of(KNOWN, entries=swapped).require_entries(vouched)
    with pytest.raises(Unexpected, match="vouchers, in the order of the entries"):
        cohort_of(KNOWN, vouchers=cohort.step.vouchers[::-1]).require_entries(vouched)
    with pytest.raises(Unexpected, match="degree, holders and threshold"):
        cohort_of(KNOWN, threshold=KNOWN["threshold"] + 1).require_usual()


def test_an_inbox_that_is_not_what_others_sent_is_found():
    cohort = cohort_of(KNOWN)
    sent = {sender: {0: os.urandom(94)} for sender in (1, 2, 4)} | {3: {1: os.urandom(94)}}
    records = [sender.to_bytes(4, "little") + sent[sender][0] for sender in (1, 2, 4)]
    cohort.require_inbox(secure_pb2.AcknowledgeStep(sealed_shares=b"".join(records)), 0, sent)
    for wrong in (records[::-1], records[1:], [records[0], *records]):
        with pytest.raises(Unexpected, match="sealed shares for device 0"):
            cohort.require_inbox(secure_pb2.AcknowledgeStep(sealed_shares=b"".join(wrong)), 0, sent)


def test_sealed_shares_are_taken_apart_by_receiver():
    request = secure_pb2.ShareKeysRequest(sealed_shares=b"\1\0\0\0" + b"a" * 94 + b"\3\1\0\0" + b"b" * 94)
    assert sealed_by_receiver(request) == {1: b"a" * 94, 259: b"b" * 94}


def test_what_a_shared_round_did_not_come_to_says_why():
    notes = Notes()
    notes.finding = Unexpected("a place", "none")
    with pytest.raises(Unexpected, match="expected a place, got none"):
        notes["late keys"]
