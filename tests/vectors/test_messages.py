"""Every message of proto/lightfr/v1, as vectors/v1 writes it by hand."""

import importlib

import pytest
from google.protobuf import json_format
from google.protobuf.message import DecodeError

from tests.vectors.reading import by_name, vector

MODULES = [
    importlib.import_module(f"lightfr.v1.{name}_pb2")
    for name in ("coordinator", "enrollment", "error", "manifest", "model", "secure", "update")
]
KINDS = {name: getattr(module, name) for module in MODULES for name in module.DESCRIPTOR.message_types_by_name}
CASES = vector("messages")["messages"]


def each(cases):
    named = [{**case, "name": f"{case['message']} {case['note']}".strip()} for case in cases]
    return by_name(named)


def test_there_is_one_of_every_message():
    assert {case["message"] for case in CASES} == set(KINDS)


def test_there_is_one_of_every_field():
    used = {name: set() for name in KINDS}
    for case in CASES:
        message = KINDS[case["message"]].FromString(bytes.fromhex(case["bytes"]))
        used[case["message"]].update(field.name for field, _ in message.ListFields())
    assert used == {name: set(kind.DESCRIPTOR.fields_by_name) for name, kind in KINDS.items()}


@pytest.mark.parametrize(**each(CASES))
def test_bytes_and_json_are_the_same_message(known):
    kind = KINDS[known["message"]]
    message = kind.FromString(bytes.fromhex(known["bytes"]))
    assert json_format.MessageToDict(message) == known["json"]
    written = json_format.ParseDict(known["json"], kind()).SerializeToString(deterministic=True)
    assert written.hex() == known["bytes"]


@pytest.mark.parametrize("form", ["other_order", "unknown_fields"])
@pytest.mark.parametrize(**each(CASES))
def test_other_orders_and_unknown_fields_change_nothing(known, form):
    message = KINDS[known["message"]].FromString(bytes.fromhex(known[form]))
    assert json_format.MessageToDict(message) == known["json"]


@pytest.mark.parametrize(**by_name(vector("messages")["read_as"]))
def test_what_every_reader_must_understand(known):
    message = KINDS[known["message"]].FromString(bytes.fromhex(known["bytes"]))
    assert json_format.MessageToDict(message) == known["json"]


@pytest.mark.parametrize(**by_name(vector("messages")["refused"]))
def test_what_no_reader_takes(known):
    with pytest.raises(DecodeError):
        KINDS[known["message"]].FromString(bytes.fromhex(known["bytes"]))
