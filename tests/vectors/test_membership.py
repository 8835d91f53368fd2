"""The known memberships, as a device and an authority see them."""

from datetime import UTC, datetime

import pytest

from lightfr.errors import PrivacyError
from lightfr.membership import MEMBERSHIP_CONTEXT, MemberKey, require_membership
from tests.vectors.reading import vector

KNOWN = vector("membership")
KEYS = [bytes.fromhex(key) for key in KNOWN["membership_keys"]]


def test_the_known_membership_is_made_and_believed():
    signer = MemberKey.from_private(bytes.fromhex(KNOWN["authority_private_key"]))
    member = MemberKey.from_private(bytes.fromhex(KNOWN["member_private_key"]))
    assert member.public.hex() == KNOWN["member_key"]
    statement = member.public + KNOWN["ends"].to_bytes(8, "little")
    membership = statement + signer.sign(MEMBERSHIP_CONTEXT + statement)
    assert membership.hex() == KNOWN["membership"]
    for now in KNOWN["good_at"]:
        assert require_membership(membership, KEYS, now) == member.public
    assert datetime.fromtimestamp(KNOWN["ends"], UTC).year == 2027


@pytest.mark.parametrize("case", KNOWN["refused"], ids=lambda case: case["name"])
def test_every_other_membership_is_refused(case):
    with pytest.raises(PrivacyError):
        require_membership(bytes.fromhex(case["membership"]), KEYS, case["now"])
