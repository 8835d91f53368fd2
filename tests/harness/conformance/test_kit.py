"""The kit: what a server of any language is started with."""

import json
import re
import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from typer.testing import CliRunner

from lightfr.device import Trust
from lightfr.errors import PrivacyError
from lightfr.membership import MemberKey, require_membership
from lightfr_harness.cli import app
from lightfr_harness.conformance.kit import (
    GATE,
    JOINED,
    LEFT,
    LEFT_LATER,
    NOISE,
    RETURNED,
    SIZES,
    UPLOADS,
    Kit,
    make_kit,
    make_signing_request,
)
from lightfr_harness.conformance.registry import KITS
from lightfr_harness.conformance.vectors import DEFAULT_FOLDER, Vectors
from lightfr_harness.errors import CannotRunError
from lightfr_harness.server.authority import Authority, TokenError
from lightfr_harness.server.authority.certificates import common_name, new_key
from lightfr_harness.server.rules import balance_of


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    return make_kit(tmp_path_factory.mktemp("kit") / "kit", "clear", "localhost", Vectors.read(DEFAULT_FOLDER))


def test_the_settings_are_those_of_the_document(kit):
    assert json.loads((kit.folder / "settings.json").read_text()) == {
        "privacy": "clear",
        "code_bits": 32,
        "item_count": 80,
        "gate": 10,
        "max_rows": 64,
        "places": 6,
        "goal": 4,
        "minimum": 2,
        "deadline_seconds": 3,
        "integer_ids": False,
        "gate_refreshes": False,
        "noise": None,
        "evaluate_every": 0,
        "objective": "catalogue",
        "upload_kind": "ternary",
        "balance": 0,
    }
    assert kit.settings.kind == "clear"


def test_the_document_has_the_sizes_and_the_noise_of_every_kit():
    """A device refuses less noise: whoever sets a server up from the document must not have less."""
    text = (Path(__file__).parents[3] / "docs/conformance.md").read_text()
    rows = {cells[1]: cells[2:8] for line in text.splitlines() if len(cells := re.split(r"\s*\|\s*", line)) > 8}
    kinds = rows["setting"]
    listed = zip(*(rows[f"`{name}`"] for name in ("places", "goal", "minimum", "deadline_seconds")), strict=True)
    assert {kind: tuple(map(int, sizes)) for kind, sizes in zip(kinds, listed, strict=True)} == {
        kind: SIZES[kind] for kind in kinds
    }
    assert rows["`noise`"] == [", ".join(map(str, NOISE.values())) if kind == "noise" else "null" for kind in kinds]
    assert kinds == [kind for kind in KITS if kind not in UPLOADS]


def test_the_first_codes_and_the_gate_are_those_of_the_vectors(kit):
    vectors = Vectors.read(DEFAULT_FOLDER)
    assert kit.codes == vectors.codes
    assert kit.open_rows == vectors.open_rows == [True] * 72 + [False] * 8
    assert len(set(kit.item_ids)) == 80


def test_the_next_lists_have_items_that_join_leave_and_return_and_none_that_opens_or_closes(kit):
    second, third = kit.next_items.values()
    assert (set(kit.items) - set(second), set(second) - set(kit.items)) == (set(LEFT), set(JOINED))
    assert (set(second) - set(third), set(third) - set(second)) == (set(LEFT_LATER), {RETURNED})
    for before, after in ((kit.items, second), (second, third)):
        assert list(after.values()) == sorted(after.values(), reverse=True)
        for item, count in after.items():
            assert (count >= GATE) == (item in before and before[item] >= GATE), item
    assert any(kit.items[item] >= GATE for item in LEFT)
    assert next(iter(third)) == "item-71"


def test_the_authority_knows_the_tokens_and_the_last_has_expired(kit):
    listed = json.loads((kit.folder / "tokens.json").read_text())
    now = datetime.now(UTC).timestamp()
    assert [one["expires_unix_seconds"] > now for one in listed] == [True] * (len(listed) - 1) + [False]
    authority, request = Authority.open(kit.authority), (make_signing_request(new_key()), MemberKey.new().public)
    try:
        assert authority.enroll(listed[-2]["token"], *request)
        with pytest.raises(TokenError, match="expired"):
            authority.enroll(listed[-1]["token"], *request)
    finally:
        authority.close()


def certificate_of(path):
    return x509.load_pem_x509_certificate(path.read_bytes())


@pytest.mark.parametrize(
    "name",
    [
        *("expired", "not-yet-valid", "other-authority", "false-authority", "self-signed", "server", "unnamed"),
        *("named-by-a-device", "revoked", "revoked-renewed", "good"),
    ],
)
def test_each_bad_identity_has_its_own_fault_and_a_key_that_fits(kit, name):
    path = kit.tester(name)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_cert_chain(path)
    certificate, authority = certificate_of(path), certificate_of(kit.authority / "authority.pem")
    device = certificate_of(kit.tester("good"))
    now = datetime.now(UTC)
    revoked = x509.load_pem_x509_crl((kit.authority / "crl.pem").read_bytes())
    faults = {
        "expired": certificate.not_valid_after_utc < now,
        "not-yet-valid": certificate.not_valid_before_utc > now,
        "other-authority": certificate.issuer not in (authority.subject, certificate.subject, device.subject),
        "false-authority": certificate.issuer == authority.subject and not is_signed_by(certificate, authority),
        "self-signed": is_signed_by(certificate, certificate),
        # It shows the device's certificate too, so that a server can follow the chain.
        "named-by-a-device": is_signed_by(certificate, device)
        and device.public_bytes(Encoding.PEM) in path.read_bytes(),
        "server": certificate == certificate_of(kit.authority / "coordinator" / "server.pem"),
        "unnamed": certificate.subject == common_name("somebody"),
        "revoked": revoked.get_revoked_certificate_by_serial_number(certificate.serial_number) is not None,
    }
    expected = {"good": [], "revoked-renewed": ["revoked"]}.get(name, [name])
    assert [fault for fault, has_it in faults.items() if has_it] == expected


def test_the_revoked_device_has_two_certificates_of_one_name(kit):
    first, second = (certificate_of(kit.tester(name)) for name in ("revoked", "revoked-renewed"))
    assert first.subject == second.subject
    assert first.serial_number != second.serial_number


def test_the_suite_can_make_memberships_of_the_kit_that_have_ended(kit):
    key, keys = MemberKey.new().public, Trust(kit.trust).membership_keys
    assert require_membership(kit.membership(key, 1000), keys, 999.0) == key
    with pytest.raises(PrivacyError, match="has ended"):
        require_membership(kit.membership(key, 1000), keys, 1000.0)


def is_signed_by(certificate, issuer):
    try:
        certificate.verify_directly_issued_by(issuer)
    except Exception:
        return False
    return True


def test_the_server_is_named_by_host_and_address(kit):
    for folder in (kit.authority, kit.authority / "coordinator"):
        extensions = certificate_of(folder / "server.pem").extensions
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert [str(name.value) for name in names] == ["localhost", "127.0.0.1"]
    assert load_pem_private_key((kit.authority / "coordinator" / "manifest.key").read_bytes(), None)


def test_a_kit_is_not_made_twice_in_a_folder(kit):
    with pytest.raises(CannotRunError, match="name a folder that is not there"):
        make_kit(kit.folder, "clear", "localhost", Vectors.read(DEFAULT_FOLDER))


def test_a_folder_that_is_no_kit_says_how_to_make_one(tmp_path):
    with pytest.raises(CannotRunError, match="lightfr-harness conformance-kit"):
        Kit(tmp_path)


def test_the_command_makes_the_crowd_too(tmp_path):
    arguments = ["conformance-kit", str(tmp_path / "kit"), "--privacy", "secagg", "--crowd"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    crowd = Kit(tmp_path / "kit")
    assert (crowd.settings.kind, crowd.settings.places, len(crowd.tokens) > 132) == ("crowd", 130, True)
    wrong = CliRunner().invoke(app, ["conformance-kit", str(tmp_path / "other"), "--privacy", "clear", "--crowd"])
    assert wrong.exit_code == 2
    assert "secagg alone, or with one of --crowd, --gate and --evaluation" in " ".join(wrong.output.split())


def test_the_command_makes_a_kit_without_counts(tmp_path):
    arguments = ["conformance-kit", str(tmp_path / "kit"), "--privacy", "secagg", "--gate"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    gate = Kit(tmp_path / "kit")
    assert (gate.settings.kind, gate.settings.gate, any(gate.open_rows)) == ("gate", 3, False)
    assert (gate.folder / "items.tsv").read_text().startswith("item-00\nitem-01\n")


@pytest.mark.parametrize("uploads", ["exact", "paper", "codes"])
def test_the_command_makes_a_kit_for_each_kind_of_upload(uploads, tmp_path):
    arguments = ["conformance-kit", str(tmp_path / "kit"), "--uploads", uploads, "--privacy"]
    assert CliRunner().invoke(app, [*arguments, "clear"]).exit_code == 0
    kit = Kit(tmp_path / "kit")
    assert (kit.settings.kind, kit.settings.privacy, kit.settings.max_rows) == (uploads, "clear", 0)
    # Our coordinator, started so, has the very balance of the kit.
    balance = balance_of(kit.serve_options()["lambda"], kit.settings.code_bits)
    assert balance == kit.settings.balance == (0 if uploads == "exact" else 10_322)
    wrong = CliRunner().invoke(app, [*arguments, "secagg"])
    assert wrong.exit_code == 2
    assert "with --privacy clear" in wrong.output


def test_the_command_makes_a_kit_with_evaluations(tmp_path):
    arguments = ["conformance-kit", str(tmp_path / "kit"), "--privacy", "secagg", "--evaluation"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    kit = Kit(tmp_path / "kit")
    assert (kit.settings.kind, kit.settings.evaluate_every, kit.counts[0]) == ("evaluation", 1, 100)
    both = CliRunner().invoke(app, ["conformance-kit", str(tmp_path / "other"), *arguments[2:], "--gate"])
    assert both.exit_code == 2
