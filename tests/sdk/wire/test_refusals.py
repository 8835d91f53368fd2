"""Which exception a device makes of an answer that is not 200. The known answers are in tests/vectors."""

import base64
import json

import pytest

from lightfr._wire.refusals import refusal
from lightfr.errors import IdentityRefusedError, RefusedError, ServerUnavailableError, UpdateRequiredError
from lightfr.v1 import error_pb2


def answer(code, message="told", details=()):
    values = [base64.b64encode(detail.SerializeToString()).decode().rstrip("=") for detail in details]
    told = [{"type": "lightfr.v1.ErrorDetail", "value": value} for value in values]
    return json.dumps({"code": code, "message": message, "details": told}).encode()


def because(reason, **fields):
    return error_pb2.ErrorDetail(reason=error_pb2.ErrorReason.Value(f"ERROR_REASON_{reason}"), **fields)


@pytest.mark.parametrize("status", [502, 503, 504])
def test_what_a_proxy_says_when_the_server_is_away_means_to_try_again(status):
    error = refusal(status, b"<html>")
    assert type(error) is ServerUnavailableError
    assert str(error) == f"the server answered {status}: try again later"


@pytest.mark.parametrize("status", [201, 400, 404, 500, 501, 505])
def test_any_other_status_without_a_connect_error_is_a_refusal_with_the_status_as_its_code(status):
    error = refusal(status, b"<html>")
    assert type(error) is RefusedError
    assert (error.code, error.reason) == (f"HTTP {status}", "UNSPECIFIED")
    assert "no Connect error in the answer" in str(error)


def test_the_code_unavailable_means_to_try_again_whatever_the_status():
    assert type(refusal(400, answer("unavailable"))) is ServerUnavailableError
    assert type(refusal(503, answer("unavailable"))) is ServerUnavailableError
    assert type(refusal(400, answer("internal"))) is RefusedError


@pytest.mark.parametrize("status", [403, 503])
def test_an_identity_that_is_revoked_is_not_tried_again(status):
    code = "unavailable" if status == 503 else "permission_denied"
    assert type(refusal(status, answer(code, details=[because("IDENTITY")]))) is IdentityRefusedError


@pytest.mark.parametrize("count", range(1, 7))
def test_a_detail_is_read_whatever_padding_was_left_out(count):
    error = refusal(400, answer("failed_precondition", details=[because("WIRE_VERSION", wire_versions=[2] * count)]))
    assert type(error) is UpdateRequiredError
    assert (error.code, error.reason) == ("failed_precondition", "WIRE_VERSION")
    assert str([2] * count) in str(error)


def test_the_first_detail_of_ours_counts_and_those_of_others_do_not():
    told = json.loads(answer("not_found", details=[because("ROUND_UNKNOWN"), because("ROUND_CLOSED")]))
    told["details"].insert(0, {"type": "google.rpc.RetryInfo", "value": "AAAA"})
    assert refusal(404, json.dumps(told).encode()).reason == "ROUND_UNKNOWN"


def test_a_reason_of_a_later_release_is_none_that_this_one_acts_on():
    error = refusal(400, answer("aborted", details=[error_pb2.ErrorDetail(reason=99)]))
    assert (type(error), error.code, error.reason) == (RefusedError, "aborted", "UNSPECIFIED")


@pytest.mark.parametrize("value", ["CAI!", "CAI\n", "C A I", "CAI=="])
def test_a_detail_that_is_not_base64_makes_the_answer_no_connect_error(value):
    told = {"code": "aborted", "details": [{"type": "lightfr.v1.ErrorDetail", "value": value}]}
    assert refusal(400, json.dumps(told).encode()).code == "HTTP 400"


def test_a_refusal_needs_neither_a_message_nor_details():
    error = refusal(409, b'{"code": "aborted"}')
    assert (error.code, str(error)) == ("aborted", "the server refused (aborted, UNSPECIFIED): ")


def test_what_a_server_says_is_shown_without_control_characters_and_cut_at_200_characters():
    loud = "\x1b[31m\nä" + "x" * 300
    error = refusal(400, answer(loud, loud))
    shown = "?[31m?ä" + "x" * 193
    assert error.code == shown
    assert str(error).endswith(f": {shown}")


def test_of_the_wire_versions_of_a_server_16_are_shown():
    versions = list(range(1, 30))
    error = refusal(400, answer("failed_precondition", details=[because("WIRE_VERSION", wire_versions=versions)]))
    assert str(error).endswith(f"it speaks wire versions {versions[:16]}")
