"""Key rings and their anchors; in version 1 the anchor stood among the keys."""

import json

import pytest

from lightfr.errors import StoreKeyError
from lightfr.store._ring import KeyRing


def first_version(anchor, **changes):
    fields = {"version": 1, "store": "aa" * 16, "keys": {"bb" * 8: "cc" * 32}, "anchor": anchor, **changes}
    return json.dumps(fields).encode()


@pytest.mark.parametrize("anchor", [0, 1, 2**64 - 1])
def test_an_anchor_is_a_number_of_64_bits(anchor):
    assert KeyRing.decode(first_version(anchor), b"") == (b"\xaa" * 16, {b"\xbb" * 8: b"\xcc" * 32}, anchor)


@pytest.mark.parametrize("anchor", [-1, 2**64, True, 1.0, "1", None])
def test_any_other_anchor_is_refused(anchor):
    with pytest.raises(StoreKeyError, match="damaged"):
        KeyRing.decode(first_version(anchor), b"")


@pytest.mark.parametrize(
    "changes", [{"store": "aa" * 15}, {"keys": {}}, {"keys": {"bb" * 7: "cc" * 32}}, {"keys": {"bb" * 8: "cc" * 33}}]
)
def test_ids_and_keys_of_another_size_are_refused(changes):
    with pytest.raises(StoreKeyError, match="damaged"):
        KeyRing.decode(first_version(1, **changes), b"")


@pytest.mark.parametrize("anchor", [0, 1, 10**19, 2**64 - 1])
def test_a_ring_and_its_anchor_are_read_back(anchor):
    ring = KeyRing.new()._replace(anchor=anchor)
    assert KeyRing.decode(ring.encode(), ring.encode_anchor()) == ring


@pytest.mark.parametrize("number", [b"?", b"", b"-1", b"1" * 21])
def test_a_mark_without_its_number_is_no_anchor(number):
    ring = KeyRing.new()._replace(anchor=1)
    _, _, mark = ring.encode_anchor().partition(b" ")
    with pytest.raises(StoreKeyError, match="the anchor that is kept with the key"):
        KeyRing.decode(ring.encode(), number + b" " + mark)
