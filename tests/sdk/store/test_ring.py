"""The key ring of version 1, whose anchor stood among the keys."""

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
