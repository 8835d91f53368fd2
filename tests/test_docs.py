"""What the documents promise is what the code has."""

import builtins
import json
import re
import subprocess
import sysconfig
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
        "GetManifestRequest",
        "CheckInRequest",
        "UploadRequest",
        "GetRoundStatusRequest",
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


@pytest.fixture(scope="module")
def described():
    """The contract with its comments, as buf reads it."""
    buf = Path(sysconfig.get_path("scripts")) / "buf"
    if not buf.exists():
        pytest.skip("buf is installed with the linters")
    made = subprocess.run([buf, "build", ROOT / "proto", "-o", "-#format=json"], capture_output=True, check=True)
    return json.loads(made.stdout)["file"]


def parts(file):
    """(path in the descriptor, name) of everything in a file that wants a comment."""
    for m, message in enumerate(file.get("messageType", [])):
        yield (4, m), message["name"]
        for f, field in enumerate(message.get("field", [])):
            yield (4, m, 2, f), f"{message['name']}.{field['name']}"
    for e, enum in enumerate(file.get("enumType", [])):
        yield (5, e), enum["name"]
        for v, value in enumerate(enum["value"]):
            yield (5, e, 2, v), value["name"]
    for s, service in enumerate(file.get("service", [])):
        for r, method in enumerate(service["method"]):
            yield (6, s, 2, r), f"{service['name']}.{method['name']}"


def test_everything_in_the_contract_has_a_comment(described):
    """A field whose type is a message or an enum of ours may leave it to that type."""
    silent = set()
    for file in described:
        locations = file["sourceCodeInfo"]["location"]
        commented = {tuple(place.get("path", ())) for place in locations if place.get("leadingComments", "").strip()}
        silent |= {name for path, name in parts(file) if path not in commented}
    assert silent == set()
