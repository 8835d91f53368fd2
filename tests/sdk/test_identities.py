"""The keys that a device makes for an identity: on the disk before they are used, the same after an interruption."""

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from lightfr.errors import EnrollmentError, InvalidInputError
from lightfr.identities import kept_keys


def test_keys_are_on_the_disk_before_anyone_sees_them_and_come_back_the_same(tmp_path):
    path = tmp_path / "enrolling.pem"
    keys, again = kept_keys(path), kept_keys(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert (again.private_key, again.signing_request) == (keys.private_key, keys.signing_request)
    assert again.member_key.private == keys.member_key.private
    request = x509.load_der_x509_csr(keys.signing_request)
    assert request.public_key() == load_pem_private_key(keys.private_key, None).public_key()


@pytest.mark.parametrize("left", [bytes(1), bytes(900)])
def test_zeros_that_an_interrupted_removal_left_are_no_keys_and_new_ones_are_made(tmp_path, left):
    path = tmp_path / "enrolling.pem"
    path.write_bytes(left)
    made = kept_keys(path)
    assert path.read_bytes().startswith(made.private_key)


@pytest.mark.parametrize("damaged", [b"", b"\x01" * 900, bytes(900) + b"!", b"-----BEGIN PRIVATE KEY-----"])
def test_anything_else_is_damaged_and_stays_for_a_person_to_look_at(tmp_path, damaged):
    path = tmp_path / "enrolling.pem"
    path.write_bytes(damaged)
    with pytest.raises(InvalidInputError, match=f"{path} is damaged: remove it and enrol again"):
        kept_keys(path)
    assert path.read_bytes() == damaged


def test_keys_that_cannot_be_read_now_are_named_and_stay(tmp_path):
    path = tmp_path / "enrolling.pem"
    path.mkdir()
    with pytest.raises(EnrollmentError, match=f"{path} cannot be read: Is a directory"):
        kept_keys(path)
    assert path.is_dir()
