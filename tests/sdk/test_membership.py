"""Memberships: what the authority vouches for is believed, and nothing else."""

import subprocess
import sys

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from lightfr.errors import PrivacyError
from lightfr.membership import MEMBERSHIP_CONTEXT, MemberKey, require_membership

AUTHORITY, OTHER = MemberKey.new(), MemberKey.new()
MEMBER = MemberKey.new()
ENDS = 1_800_000_000


def membership_of(key=MEMBER.public, ends=ENDS, signer=AUTHORITY, context=MEMBERSHIP_CONTEXT):
    statement = key + ends.to_bytes(8, "little")
    return statement + signer.sign(context + statement)


def test_a_membership_names_its_key_until_the_second_in_which_it_ends():
    assert len(membership_of()) == 104
    assert require_membership(membership_of(), [AUTHORITY.public], ENDS - 0.001) == MEMBER.public
    for now in (ENDS, ENDS + 1):
        with pytest.raises(PrivacyError, match="has ended"):
            require_membership(membership_of(), [AUTHORITY.public], now)


def test_any_of_the_authoritys_keys_will_do_while_one_is_replaced():
    for keys in ([OTHER.public, AUTHORITY.public], [AUTHORITY.public, OTHER.public]):
        assert require_membership(membership_of(), keys, 0) == MEMBER.public


@pytest.mark.parametrize("keys", [[], [OTHER.public], [MEMBER.public]])
def test_nobody_else_can_vouch_for_a_device(keys):
    with pytest.raises(PrivacyError, match="not signed by the authority"):
        require_membership(membership_of(), keys, 0)


@pytest.mark.parametrize("at", [0, 31, 32, 39, 40, 103])
def test_a_changed_byte_is_noticed(at):
    changed = bytearray(membership_of())
    changed[at] ^= 1
    with pytest.raises(PrivacyError, match="not signed by the authority"):
        require_membership(bytes(changed), [AUTHORITY.public], 0)


@pytest.mark.parametrize("length", [0, 32, 103, 105])
def test_another_length_is_refused(length):
    content = (membership_of() + b"x")[:length]
    with pytest.raises(PrivacyError, match=f"has {length} bytes, not 104"):
        require_membership(content, [AUTHORITY.public], 0)


def test_a_signature_for_another_purpose_is_no_membership():
    with pytest.raises(PrivacyError):
        require_membership(membership_of(context=b"lightfr manifest v1\n"), [AUTHORITY.public], 0)


def test_a_member_key_signs_and_comes_back_from_its_private_bytes():
    again = MemberKey.from_private(MEMBER.private)
    assert again.public == MEMBER.public
    Ed25519PublicKey.from_public_bytes(MEMBER.public).verify(again.sign(b"message"), b"message")
    with pytest.raises(ValueError, match="32"):
        MemberKey.from_private(bytes(31))


def test_a_member_key_does_not_show_itself():
    assert MEMBER.private.hex() not in f"{MEMBER!r} {MEMBER} {vars(MEMBER)}"


def test_checking_a_membership_loads_no_parser_of_certificates():
    code = "import sys, lightfr.membership; print('cryptography.x509' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
