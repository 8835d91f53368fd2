"""What the documents promise is what the code has."""

import builtins
import re
from itertools import pairwise
from pathlib import Path

import pytest

from lightfr import errors
from lightfr.v1 import coordinator_pb2, enrollment_pb2

ROOT = Path(__file__).parent.parent
EMBEDDING = (ROOT / "docs/embedding.md").read_text()


def section(title):
    """The text under a heading of docs/embedding.md."""
    (found,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", EMBEDDING, re.M | re.S)
    return found


def requests():
    """The messages that devices send: the inputs of every service."""
    for file in (coordinator_pb2.DESCRIPTOR, enrollment_pb2.DESCRIPTOR):
        for service in file.services_by_name.values():
            for method in service.methods:
                yield method.input_type


def reachable(messages):
    """These message types and all that they contain, however deep."""
    found, waiting = {}, list(messages)
    while waiting:
        message = waiting.pop()
        if message.full_name not in found:
            found[message.full_name] = message
            waiting += [field.message_type for field in message.fields if field.message_type]
    return found.values()


def test_every_service_is_known_here():
    assert {message.name for message in requests()} == {
        "EnrollRequest",
        "RenewCertificateRequest",
        "GetManifestRequest",
        "CheckInRequest",
        "UploadRequest",
        "GetRoundStatusRequest",
        "AdvertiseKeysRequest",
        "ShareKeysRequest",
        "AcknowledgeSharesRequest",
        "SignIncludedRequest",
        "SignSurvivorsRequest",
        "RevealSharesRequest",
        "GetStepRequest",
    }


def test_the_table_of_what_leaves_the_device_has_every_field_once_and_no_other():
    named = re.findall(r"^\| `(\w+\.\w+)` \|", section("What leaves the device"), re.M)
    sent = [f"{message.name}.{field.name}" for message in reachable(requests()) for field in message.fields]
    assert sorted(named) == sorted(sent)


def test_every_error_that_the_documents_name_exists():
    names = set(re.findall(r"`(\w+Error)\b", EMBEDDING))
    assert len(names) > 10
    missing = {name for name in names if not hasattr(errors, name) and not hasattr(builtins, name)}
    assert missing == set()


def test_the_calls_that_the_documents_name_exist():
    from lightfr import Client

    rows = re.findall(r"^\| (`.*?) \|", section("When to call what"), re.M)
    calls = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    public = {name for name in vars(Client) if not name.startswith("_")}
    assert calls == public - {"open", "close", "rotate_key"}


def test_the_commands_that_the_documents_name_exist():
    from lightfr.cli import _parser

    (named,) = re.findall(r"`lightfr (\w+(?:\|\w+)+)`", EMBEDDING)
    (commands,) = (action.choices for action in _parser()._actions if action.choices)
    assert named.split("|") != []
    assert set(named.split("|")) == set(commands)


DECLARATION = re.compile(r"^\s*(?:(?:message|enum|rpc) (\w+)|(?:repeated |optional )?[\w.]+ (\w+) = \d+;|(\w+) = \d+;)")


@pytest.mark.parametrize("file", sorted((ROOT / "proto/lightfr/v1").glob("*.proto")), ids=lambda file: file.stem)
def test_everything_in_the_contract_has_a_comment(file):
    """Messages, fields, enum values and calls: the line before each is a comment."""
    lines = file.read_text().splitlines()
    declared = [(line, before) for before, line in pairwise(lines) if DECLARATION.match(line)]
    assert len(declared) > 3
    silent = [line.strip() for line, before in declared if not before.strip().startswith("//")]
    assert silent == []
