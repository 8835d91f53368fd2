"""Two devices that compare notes hold a proof when the server lied to one of them, and none when it did not."""

import os

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from typer.testing import CliRunner

from lightfr.secagg.views import included_message, roster_message, survivors_message
from lightfr.views import View, exported
from lightfr_harness.cli import app

SERVER = Ed25519PrivateKey.generate()
ROUNDS = [bytes([number]) * 16 for number in range(3)]
DIGEST, INCLUDED, SURVIVORS = b"d" * 32, b"\xff\x03", b"\xff\x01"


def told(round_id, digest=DIGEST, included=INCLUDED, survivors=SURVIVORS, server=SERVER):
    """What a device was told, signed."""
    return View(
        round_id=round_id,
        manifest_sha256=b"m" * 32,
        kind=1,
        server_key=server.public_key().public_bytes_raw(),
        roster_digest=digest,
        roster_signature=server.sign(roster_message(digest)),
        included=included,
        included_signature=server.sign(included_message(digest, included)) if included else b"",
        survivors=survivors,
        survivors_signature=server.sign(survivors_message(digest, included, survivors)) if survivors else b"",
    )


@pytest.fixture
def audit(tmp_path):
    def run(one, other, *more):
        files = [tmp_path / "one.json", tmp_path / "other.json"]
        for file, views in zip(files, (one, other), strict=True):
            file.write_bytes(views if isinstance(views, bytes) else exported(views))
        return CliRunner().invoke(app, ["audit", "views", *map(str, files), *map(str, more)])

    return run


def test_devices_that_were_told_the_same_have_nothing_to_complain_about(audit):
    views = [told(round_id) for round_id in ROUNDS]
    answer = audit(views, views[1:])
    assert answer.exit_code == 0
    assert answer.output.count("holds") == 3
    assert "0 of 2 in common" in answer.output


@pytest.mark.parametrize(
    ("lie", "about"),
    [
        ({"digest": b"e" * 32}, "the roster"),
        ({"included": b"\xfe\x03"}, "who is included"),
        ({"survivors": b"\xfe\x01"}, "who uploaded"),
    ],
)
def test_two_signed_statements_that_differ_are_a_proof(audit, lie, about):
    honest = [told(round_id) for round_id in ROUNDS]
    answer = audit(honest, [honest[0], told(ROUNDS[1], **lie), honest[2]])
    assert answer.exit_code == 1
    assert f"broken  rounds in which two devices were told different things about {about}: 1 of 3" in answer.output
    assert ROUNDS[1].hex() in answer.output
    assert answer.output.count("holds") == 2


def test_that_two_rosters_are_of_one_round_is_left_to_the_devices(audit):
    """A digest does not show its round: whoever renames a round in a file has all signatures with it."""
    honest = [told(ROUNDS[0]), told(ROUNDS[1], digest=b"e" * 32)]
    renamed = audit(honest, [honest[1]._replace(round_id=ROUNDS[0])])
    assert "that both rosters are of one round, only the two devices can tell" in " ".join(renamed.output.split())
    for lie in ({"included": b"\xfe\x03"}, {"survivors": b"\xfe\x01"}):
        assert "only the two devices" not in audit([told(ROUNDS[0])], [told(ROUNDS[0], **lie)]).output


def test_what_one_of_them_never_heard_is_no_difference(audit):
    left_early = told(ROUNDS[0], included=b"", survivors=b"")
    answer = audit([told(ROUNDS[0])], [left_early])
    assert answer.exit_code == 0


def test_without_a_common_round_nothing_can_be_said(audit):
    answer = audit([told(ROUNDS[0])], [told(ROUNDS[1])])
    assert answer.exit_code == 2
    assert "no round in common" in answer.output


@pytest.mark.parametrize(
    "changes",
    [
        {"included": b"\xfe\x03"},
        {"included_signature": bytes(64), "included": b"\xfe\x03"},
        {"included_signature": b"", "included": b"\xfe\x03"},
        {"server_key": b"", "included": b"\xfe\x03"},
        {"roster_digest": b"e" * 32},
    ],
)
def test_a_file_that_somebody_changed_proves_nothing(audit, changes):
    answer = audit([told(ROUNDS[0])], [told(ROUNDS[0])._replace(**changes)])
    assert answer.exit_code == 2
    assert "prove nothing" in answer.output


def test_statements_of_different_keys_prove_nothing_unless_both_keys_are_trusted(audit, tmp_path):
    other = Ed25519PrivateKey.generate()
    views = [told(ROUNDS[0])], [told(ROUNDS[0], included=b"\xfe\x03", server=other)]
    assert audit(*views).exit_code == 2
    assert audit(*views, "--trust", trust_of(tmp_path, SERVER)).exit_code == 2
    assert audit(*views, "--trust", trust_of(tmp_path, SERVER, other)).exit_code == 1


def trust_of(folder, *servers):
    """A trust file with these manifest keys."""
    keys = [key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo) for key in servers]
    member = keys[0].replace(b"PUBLIC KEY", b"LIGHTFR MEMBERSHIP KEY")
    (folder / "trust.pem").write_bytes(b"".join([*keys, member]))
    return folder / "trust.pem"


@pytest.mark.parametrize("content", [b"", b"{}", b'{"format": "lightfr views v1", "views": [{}]}'])
def test_a_file_that_has_no_views_ends_as_one_sentence(audit, content):
    answer = audit([told(ROUNDS[0])], content)
    assert answer.exit_code == 2
    assert answer.output.startswith("Error: ")
    assert "other.json" in answer.output


def test_a_file_that_is_not_there_ends_as_one_sentence(tmp_path):
    answer = CliRunner().invoke(app, ["audit", "views", str(tmp_path / "none"), str(tmp_path / "none")])
    assert answer.exit_code == 2
    assert answer.output.startswith("Error: cannot use")


def test_random_rounds_are_compared_by_their_id_whatever_their_order(audit):
    views = [told(os.urandom(16)) for _ in range(5)]
    assert audit(views, views[::-1]).exit_code == 0
