"""What a coordinator refuses in the steps of secure aggregation, and by which name."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lightfr.membership import MEMBERSHIP_CONTEXT, Member, MemberKey
from lightfr.secagg.views import entry_message
from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import secure_pb2
from lightfr_harness.server.coordinator.phases import SHARING
from lightfr_harness.server.coordinator.refusals import Refusal
from lightfr_harness.simulation.secure import simulated_member
from tests.harness.server.coordinator.helpers import MEMBERSHIP_KEY, run, small, upload_request
from tests.harness.server.coordinator.secure import STEPS, SecureDevice, secure


async def refusal_of(awaitable):
    with pytest.raises(Refusal) as refused:
        await awaitable
    return refused.value.name


def with_changed(body, kind, field, value):
    request = kind.FromString(body)
    setattr(request, field, value)
    return request.SerializeToString()


SIGNATURE = bytes(64)
CHANGED = {
    "AdvertiseKeys": (secure_pb2.AdvertiseKeysRequest, "mask_public_key", bytes(range(32))),
    "ShareKeys": (secure_pb2.ShareKeysRequest, "sealed_shares", bytes(5 * 98)),
    "AcknowledgeShares": (secure_pb2.AcknowledgeSharesRequest, "unopened", b"\x04"),
    "SignIncluded": (secure_pb2.SignIncludedRequest, "signature", SIGNATURE),
    "Upload": (pb.UploadRequest, "upload_id", bytes(16)),
    "SignSurvivors": (secure_pb2.SignSurvivorsRequest, "signature", SIGNATURE),
    "RevealShares": (secure_pb2.RevealSharesRequest, "seeds", b""),
}


async def placed(it, n=6):
    devices = it.devices(n)
    for device in devices:
        await device.check_in()
    return devices


async def come_to(it, step):
    """Six devices whose next step is this one."""
    before = STEPS[: STEPS.index(step)]
    return await it.run_steps(it.devices(6), before[-1]) if before else await placed(it)


@pytest.mark.parametrize("step", STEPS)
def test_the_same_bytes_again_change_nothing_and_others_are_a_conflict(tmp_path, step):
    async def story():
        async with secure(tmp_path) as it:
            device = (await come_to(it, step))[0]
            await device.deliver()
            answer = await device.call(step, device.sent[step])
            assert answer == await device.call(step, device.sent[step])
            other = with_changed(device.sent[step], *CHANGED[step])
            assert await refusal_of(device.call(step, other)) == "upload_conflict"

    run(story())


@pytest.mark.parametrize("step", STEPS)
def test_who_comes_too_late_for_a_step_is_out_of_the_round(tmp_path, step):
    async def story():
        async with secure(tmp_path) as it:
            device = (await come_to(it, step))[0]
            late = await device.only_prepare()
            it.clock.now += 60
            assert await refusal_of(device.call(step, late)) == "round_closed"

    run(story())


@pytest.mark.parametrize("ending", ["finished", "abandoned", "restarted"])
def test_after_the_end_the_same_bytes_get_the_same_answer_and_others_are_a_conflict(tmp_path, ending):
    async def story():
        async with secure(tmp_path) as it:
            absent = {"RevealShares": range(2, 6)} if ending == "abandoned" else {}
            device = (await it.run_steps(it.devices(6), absent=absent))[0]
            status = await it.status(device.name, device.place.round_id)
            assert status.state == (pb.ROUND_STATE_ABANDONED if absent else pb.ROUND_STATE_FINISHED)
            answers = await again(device)
        if ending == "restarted":
            async with secure(tmp_path) as it:
                device._call = it.call
                assert await again(device) == answers

    async def again(device):
        assert (await device.step()).HasField("done")
        answers = [await device.call(step, device.sent[step]) for step in STEPS]
        for step in STEPS:
            other = with_changed(device.sent[step], *CHANGED[step])
            assert await refusal_of(device.call(step, other)) == "upload_conflict"
        return answers

    run(story())


def test_after_the_end_of_a_round_it_takes_nothing_new(tmp_path):
    async def story():
        async with secure(tmp_path) as it:
            devices = it.devices(6)
            await it.run_steps(devices, absent={"ShareKeys": [5]})
            sent = devices[0].sent
            assert await refusal_of(devices[5].step()) == "round_closed"
            for step in STEPS[1:]:
                assert await refusal_of(devices[5].call(step, sent[step])) == "round_closed"

    run(story())


def test_once_the_others_have_gone_on_a_step_is_over(tmp_path):
    async def story():
        async with secure(tmp_path) as it:
            devices = it.devices(6)
            await it.run_steps(devices[:5], "AdvertiseKeys")
            await devices[5].check_in()
            it.clock.now += 60
            await it.go_on()
            assert it.coordinator.book.current.cohort.phase == SHARING
            assert await refusal_of(devices[5].deliver()) == "round_closed"

    run(story())


def test_strangers_and_unknown_rounds_are_refused(tmp_path):
    async def story():
        async with secure(tmp_path) as it:
            devices = await it.run_steps(it.devices(6), "SignSurvivors")
            await devices[0].deliver()
            stranger = SecureDevice(99, it.call)
            stranger.place = devices[0].place
            assert await refusal_of(stranger.step()) == "not_assigned"
            for method, body in devices[0].sent.items():
                assert await refusal_of(stranger.call(method, body)) == "not_assigned"
                kind = CHANGED[method][0]
                unknown = with_changed(body, kind, "round_id", bytes(16))
                assert await refusal_of(devices[0].call(method, unknown)) == "round_unknown"

    run(story())


def test_messages_of_the_wrong_shape_are_malformed(tmp_path):
    async def story():
        async with secure(tmp_path) as it:
            (device,) = it.devices(1)
            await device.check_in()
            await device.deliver()
            for method in (*STEPS, "GetStep"):
                assert await refusal_of(device.call(method, b"\xff\xff")) == "malformed"
                assert await refusal_of(device.call(method, b"\x0a\x01x")) == "malformed"
            for field in ("mask_public_key", "share_public_key", "membership", "signature"):
                short = with_changed(device.sent["AdvertiseKeys"], secure_pb2.AdvertiseKeysRequest, field, bytes(31))
                assert await refusal_of(device.call("AdvertiseKeys", short)) == "malformed"
            for method in ("SignIncluded", "SignSurvivors"):
                request = CHANGED[method][0](round_id=device.place.round_id, signature=bytes(63))
                assert await refusal_of(device.call(method, request)) == "malformed"
            assert await refusal_of(device.step(20_001)) == "malformed"

    run(story())


def signed_keys(device, mask_key, share_key, member=None):
    """Keys as a device advertises them, signed by the member, the device's own if there is none."""
    member, place = member or device.member, device.place
    message = entry_message(place.round_id, place.peer_id, mask_key, share_key)
    return secure_pb2.AdvertiseKeysRequest(
        round_id=place.round_id,
        mask_public_key=mask_key,
        share_public_key=share_key,
        membership=member.membership,
        signature=member.key.sign(message),
    ).SerializeToString()


@pytest.mark.parametrize(
    "wrong", ["another's", "twice", "low order", "member twice", "stranger", "ended", "ends soon", "not signed"]
)
def test_keys_that_would_make_others_leave_are_refused(tmp_path, wrong):
    async def story():
        async with secure(tmp_path) as it:
            honest, liar = (await placed(it))[:2]
            await honest.deliver()
            taken = secure_pb2.AdvertiseKeysRequest.FromString(honest.sent["AdvertiseKeys"])
            new, other = bytes([9] + 31 * [7]), bytes([9] + 31 * [8])
            request = {
                "another's": lambda: signed_keys(liar, taken.share_public_key, new),
                "twice": lambda: signed_keys(liar, new, new),
                "low order": lambda: signed_keys(liar, bytes(32), new),
                "member twice": lambda: signed_keys(liar, new, other, honest.member),
                "stranger": lambda: signed_keys(liar, new, other, simulated_member(Ed25519PrivateKey.generate())),
                "ended": lambda: signed_keys(liar, new, other, member_until(it.clock.now - 1)),
                "ends soon": lambda: signed_keys(liar, new, other, member_until(it.clock.now + 59)),
                "not signed": lambda: with_changed(
                    signed_keys(liar, new, other), secure_pb2.AdvertiseKeysRequest, "signature", bytes(64)
                ),
            }[wrong]()
            assert await refusal_of(liar.call("AdvertiseKeys", request)) == "upload_invalid"
            await liar.deliver()  # It may still do better.

    run(story())


def member_until(seconds):
    key = MemberKey.new()
    statement = key.public + int(seconds).to_bytes(8, "little")
    return Member(key, statement + MEMBERSHIP_KEY.sign(MEMBERSHIP_CONTEXT + statement))


def swapped(records):
    return records[98:196] + records[:98] + records[196:]


@pytest.mark.parametrize(
    "lie",
    [
        lambda records: records[:-98],
        lambda records: records + records[-98:],
        lambda records: records[:-1],
        swapped,
        lambda records: records[:-98] + b"\x06\0\0\0" + records[-94:],
        lambda _: b"",
    ],
)
def test_sealed_shares_for_others_than_as_many_holders_are_refused(tmp_path, lie):
    async def story():
        async with secure(tmp_path) as it:
            device = (await come_to(it, "ShareKeys"))[1]
            body = await device.only_prepare()
            records = secure_pb2.ShareKeysRequest.FromString(body).sealed_shares
            false = with_changed(body, secure_pb2.ShareKeysRequest, "sealed_shares", lie(records))
            assert await refusal_of(device.call("ShareKeys", false)) == "upload_invalid"
            await device.call("ShareKeys", body)

    run(story())


@pytest.mark.parametrize("lie", [b"", b"\0\0", b"\xff", b"\x40"])
def test_complaints_that_cannot_be_are_refused(tmp_path, lie):
    """A device did not send itself a share, and a seventh one is not there."""

    async def story():
        async with secure(tmp_path) as it:
            device = (await come_to(it, "AcknowledgeShares"))[0]
            body = await device.only_prepare()
            false = with_changed(body, secure_pb2.AcknowledgeSharesRequest, "unopened", lie)
            assert await refusal_of(device.call("AcknowledgeShares", false)) == "upload_invalid"
            await device.call("AcknowledgeShares", body)

    run(story())


@pytest.mark.parametrize("step", ["SignIncluded", "SignSurvivors"])
def test_a_signature_of_something_else_is_refused(tmp_path, step):
    async def story():
        async with secure(tmp_path) as it:
            one, other = (await come_to(it, step))[:2]
            body, others = await one.only_prepare(), await other.only_prepare()
            assert await refusal_of(one.call(step, others)) == "upload_invalid"
            assert await refusal_of(one.call(step, with_changed(body, *CHANGED[step]))) == "upload_invalid"
            await one.call(step, body)

    run(story())


def test_masked_vectors_of_another_size_kind_or_model_are_refused(tmp_path):
    async def story():
        async with secure(tmp_path) as it:
            device = (await come_to(it, "Upload"))[0]
            body = await device.only_prepare()
            vector = pb.UploadRequest.FromString(body).masked_vector
            for false in (vector[:-1], vector + b"\0", b"", vector[:-1] + b"\xff"):
                wrong = with_changed(body, pb.UploadRequest, "masked_vector", false)
                assert await refusal_of(device.call("Upload", wrong)) == "upload_invalid"
            assert await refusal_of(device.call("Upload", upload_request(device.place, 1))) == "upload_invalid"
            other_model = with_changed(body, pb.UploadRequest, "manifest_sha256", bytes(32))
            assert await refusal_of(device.call("Upload", other_model)) == "model_mismatch"
            await device.call("Upload", body)

    run(story())


@pytest.mark.parametrize(
    ("field", "lie"),
    [
        ("seeds", lambda seeds, dropped: seeds[37:]),
        ("seeds", lambda seeds, dropped: seeds + seeds[-37:]),
        ("seeds", lambda seeds, dropped: seeds + dropped),
        ("seeds", lambda seeds, dropped: seeds[:-1]),
        ("seeds", lambda seeds, dropped: seeds[:-33] + b"\xff" * 33),
        ("mask_keys", lambda seeds, dropped: b""),
        ("mask_keys", lambda seeds, dropped: seeds[:37]),
        ("mask_keys", lambda seeds, dropped: b"\xff" * 4 + dropped[4:]),
    ],
)
def test_shares_of_others_than_those_asked_for_are_refused(tmp_path, field, lie):
    async def story():
        async with secure(tmp_path) as it:
            device = (await it.run_steps(it.devices(6), "SignSurvivors", absent={"Upload": [5]}))[0]
            body = await device.only_prepare()
            request = secure_pb2.RevealSharesRequest.FromString(body)
            assert len(request.mask_keys) == 37
            wrong = with_changed(body, secure_pb2.RevealSharesRequest, field, lie(request.seeds, request.mask_keys))
            assert await refusal_of(device.call("RevealShares", wrong)) == "upload_invalid"
            await device.call("RevealShares", body)

    run(story())


def test_a_step_before_its_time_is_the_devices_fault(tmp_path):
    async def story():
        async with secure(tmp_path) as it:
            (device,) = it.devices(1)
            await device.check_in()
            place = device.place
            early = secure_pb2.ShareKeysRequest(round_id=place.round_id).SerializeToString()
            assert await refusal_of(device.call("ShareKeys", early)) == "upload_invalid"
            assert await refusal_of(device.call("Upload", device.upload_request(b"x"))) == "upload_invalid"
            assert (await device.step()).wait_ms == 50

    run(story())


def test_rounds_in_the_clear_have_no_steps(tmp_path):
    async def story():
        async with small(tmp_path) as it:
            place = await it.assignment("a")
            assert (place.peer_id, place.kind) == (b"", 0)
            request = secure_pb2.GetStepRequest(round_id=place.round_id).SerializeToString()
            assert await refusal_of(it.service.get_step("a", request)) == "upload_invalid"
            assert await refusal_of(it.service.get_step("b", request)) == "not_assigned"
            shares = secure_pb2.ShareKeysRequest(round_id=place.round_id).SerializeToString()
            assert await refusal_of(it.service.share_keys("a", shares)) == "upload_invalid"
            masked = upload_request(place, 1, row_update=None, masked_vector=b"x")
            assert await refusal_of(it.service.upload("a", masked)) == "upload_invalid"
            it.clock.now += 60
            await it.coordinator.end_due_round()
            assert await refusal_of(it.service.share_keys("a", shares)) == "upload_invalid"

    run(story())


def test_steps_are_read_no_further_than_the_roster_allows(tmp_path):
    async def story():
        async with secure(tmp_path, goal=10) as it:
            limits = {method: it.service.limit_bytes(method) for method in STEPS}
            devices = await it.run_steps(it.devices(10), "SignSurvivors")
            await devices[0].deliver()
            for method, body in devices[0].sent.items():
                assert len(body) <= limits[method] <= len(body) + 1100

    run(story())
