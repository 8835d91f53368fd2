"""The suite's own readers of the files that devices download: they read the good vectors and find every fault."""

import json
import struct

import pytest

from lightfr_harness.conformance.expectations import Unexpected
from lightfr_harness.conformance.files import apply_delta, read_bitmap, read_part
from lightfr_harness.conformance.vectors import DEFAULT_FOLDER

# Whatever a case raises is a finding about the server.
FINDINGS = (Unexpected, ValueError, IndexError, struct.error)


def vector(name):
    return json.loads((DEFAULT_FOLDER / f"{name}.json").read_text())


def test_ids_of_every_good_catalogue_of_strings_are_read():
    good = [one for one in vector("catalogue")["good"] if one["kind"] == "str"]
    assert len(good) == 3
    for known in good:
        parts = [read_part((DEFAULT_FOLDER / name).read_bytes()) for name in known["files"]]
        assert [one.decode() for part in parts for one in part] == known["ids"]


def ids_of(known):
    ids = [one for file in known["files"] for one in read_part(bytes.fromhex(file))]
    if len(ids) != known["item_count"]:
        raise Unexpected(str(known["item_count"]), str(len(ids)))


@pytest.mark.parametrize("known", vector("catalogue")["refused"], ids=lambda known: known["name"].replace(" ", "-"))
def test_a_catalogue_with_a_fault_is_a_finding(known):
    with pytest.raises(FINDINGS):
        ids_of(known)


def test_bitmaps_are_read_and_faults_in_them_are_findings():
    known = vector("bitmaps")
    for one in known["good"]:
        bits = read_bitmap(bytes.fromhex(one["file"]), known["item_count"])
        assert [item for item, is_set in enumerate(bits) if is_set] == known["items"]
    for one in known["refused"]:
        with pytest.raises(FINDINGS):
            read_bitmap(bytes.fromhex(one["file"]), known["item_count"])


def test_deltas_lead_to_the_new_codes():
    for known in vector("deltas")["good"]:
        delta, old = bytes.fromhex(known["delta"]), bytes.fromhex(known["old"])
        assert apply_delta(delta, old, known["code_bits"]).hex() == known["new"]


def test_deltas_with_faults_are_findings():
    bad = vector("deltas")["bad"]
    for known in bad["refused"]:
        with pytest.raises(FINDINGS):
            apply_delta(bytes.fromhex(known["delta"]), bytes.fromhex(bad["old"]), bad["code_bits"])
