"""What is sealed between two devices; the keys have known answers in test_vectors.py."""

import pytest

from lightfr.errors import PrivacyError
from lightfr.secagg.agreement import seal, unseal

KEY, NONCE = bytes(range(32)), bytes(12)


def test_what_was_sealed_opens():
    assert unseal(KEY, seal(KEY, NONCE, b"two shares"), 10) == b"two shares"


@pytest.mark.parametrize("plain_bytes", [9, 11])
def test_a_genuine_message_of_another_size_is_refused(plain_bytes):
    with pytest.raises(PrivacyError, match=f"38 bytes, expected {28 + plain_bytes}"):
        unseal(KEY, seal(KEY, NONCE, b"two shares"), plain_bytes)
