"""Enrolment when the server's answer is no good."""

import json

import pytest

from lightfr import enroll, enrollment
from lightfr.errors import EnrollmentError


@pytest.fixture
def invitation(authority, tmp_path):
    path = tmp_path / "invitation.json"
    path.write_text(json.dumps(authority.invite("https://localhost:1", "https://localhost:2", 600)))
    return path


@pytest.mark.parametrize("fault", ["garbage", "for another key", "garbage after a good one"])
def test_certificates_that_are_no_use_are_not_kept_and_the_next_try_works(
    authority, invitation, tmp_path, monkeypatch, fault
):
    from tests.certificates import signing_request

    def spoiled(invited, trust, request):
        good, other = authority.issue(request)[1], authority.issue(signing_request())[1]
        return {"garbage": [b"0" * 500], "for another key": [other]}.get(fault, [good, b"0" * 500])

    folder = tmp_path / "device"
    with monkeypatch.context() as patch:
        patch.setattr(enrollment, "_certificates", spoiled)
        with pytest.raises(EnrollmentError, match="certificate"):
            enroll(invitation, folder)
    assert not list(folder.glob("identity*"))
    monkeypatch.setattr(enrollment, "_certificates", lambda invited, trust, request: [authority.issue(request)[1]])
    assert enroll(invitation, folder).identity.exists()
