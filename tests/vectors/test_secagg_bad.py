"""What devices and servers refuse in a round of secure aggregation, as vectors/v1 says."""

import pytest

from lightfr.errors import LightFRError
from lightfr.v1 import coordinator_pb2, error_pb2, secure_pb2
from lightfr_harness.server.coordinator.refusals import Refusal
from lightfr_harness.server.rules.secagg import SecureSumError
from tests.vectors.reading import by_name, vector
from tests.vectors.replaying import METHODS, ROUND, STEPS, Server, inbox_of, of, session_of, walk

BAD = vector("secagg_bad")
SERVER = BAD["server_refuses"]
REQUESTS = {
    name: getattr(coordinator_pb2 if name == "Upload" else secure_pb2, f"{name}Request") for name in METHODS
}  # fmt: skip


def titled(cases, key):
    """Cases whose names repeat from step to step."""
    return by_name([{**case, "name": f"{case[key]}: {case['name']}"} for case in cases])


@pytest.mark.parametrize(**titled(BAD["device_refuses"], "step"))
def test_a_device_refuses(known):
    """Device 0 walks up to the step with what is good, and is then told something else."""
    device, told = ROUND["devices"][0], {**ROUND, "inbox": inbox_of(0).hex()}
    session = session_of(ROUND, device, known["minimum_cohort"])
    for step in STEPS[: STEPS.index(known["step"])]:
        walk(session, step, told, device)
    before = session.to_bytes()
    with pytest.raises(LightFRError):
        walk(session, known["step"], {**told, **known["changed"]}, device)
    assert session.to_bytes() == before, "nothing has changed"


@pytest.fixture
def server(tmp_path):
    made = Server(tmp_path, of(SERVER, "fifteenth_peer_id"))
    yield made
    made.close()


def test_a_server_settles_and_signs_what_the_vector_has(server):
    server.reach("RevealShares")
    settled = server.cohort.settled
    names = ("vouchers", "roster_signature", "included", "included_signature", "included_signers", "survivors",
             "survivors_signature", "survivors_signers")  # fmt: skip
    assert {name: getattr(settled, name).hex() for name in names} == {name: ROUND[name] for name in names}
    step = secure_pb2.GetStepResponse.FromString(server.cohort.step_for(server.names[0]))
    assert step.reveal.signatures.hex() == ROUND["survivors_signatures"]


def test_a_server_gets_the_sum_in_spite_of_a_liar_and_names_it(server):
    server.reach("RevealShares")
    server.deliver_all("RevealShares")
    assert [block.tolist() for block in server.cohort.finish().values()] == ROUND["sum"]
    assert sorted(server.cohort.faults) == [f"device {i}" for i in ROUND["faulty"]]


@pytest.mark.parametrize(**titled(SERVER["cases"], "method"))
def test_a_server_refuses(known, server):
    """After the refusal everybody delivers what is good: nothing of what was refused was kept."""
    method = known["method"]
    server.reach(method)
    name = "fifteenth" if method == "AdvertiseKeys" else server.names[0]
    if method == "AdvertiseKeys":
        server.deliver_all(method)
    request = REQUESTS[method].FromString(of(known, "request"))
    with pytest.raises(Refusal) as refused:
        server.take(method, name, request)
    assert error_pb2.ErrorReason.Name(refused.value.reason) == SERVER["reason"]
    if method == "AdvertiseKeys":
        server.take(method, name, REQUESTS[method].FromString(of(SERVER, "good_fifteenth")))
        return
    for later in METHODS[METHODS.index(method) :]:
        server.deliver_all(later)
        if later != METHODS[-1]:
            server.cohort.advance(server.key)
    assert [block.tolist() for block in server.cohort.finish().values()] == ROUND["sum"]


@pytest.mark.parametrize(**by_name(BAD["round_ends_without_a_sum"]))
def test_a_round_ends_without_a_sum(known, server):
    server.reach("RevealShares")
    for index, answer in known["answers"].items():
        request = secure_pb2.RevealSharesRequest(seeds=of(answer, "seeds"), mask_keys=of(answer, "mask_keys"))
        server.take("RevealShares", f"device {index}", request)
    with pytest.raises(SecureSumError):
        server.cohort.finish()
