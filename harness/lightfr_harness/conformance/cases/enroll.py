"""How devices get their identity."""

from __future__ import annotations

from lightfr.v1 import enrollment_pb2
from lightfr_harness.authority.certificates import new_key
from lightfr_harness.conformance.expectations import expect_equal
from lightfr_harness.conformance.kit import make_signing_request
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.world import World

PLACE = "proto/lightfr/v1/enrollment.proto#EnrollmentService"


def _request(token: str) -> enrollment_pb2.EnrollRequest:
    return enrollment_pb2.EnrollRequest(token=token, signing_request=make_signing_request(new_key()))


@case("enroll.same-again", "A device whose answer was lost asks again and must get the same certificate.", PLACE)
def same_again(world: World) -> None:
    request = _request(world.token())
    first = world.enroll(request).message(enrollment_pb2.EnrollResponse)
    second = world.enroll(request).message(enrollment_pb2.EnrollResponse)
    expect_equal("certificates for the same request again", list(second.certificates), list(first.certificates))


@case("enroll.unknown-token", "An invitation that nobody gave must open nothing.", PLACE)
def unknown_token(world: World) -> None:
    world.enroll(_request("never-given-out-to-anybody")).refusal("TOKEN")
