"""What a coordinator refuses in the steps of secure aggregation, and by which name."""

import pytest

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import secure_pb2
from lightfr_harness.server.coordinator.cohort import SHARING
from lightfr_harness.server.coordinator.refusals import Refusal
from tests.harness.server.coordinator.helpers import run, small, upload_request
from tests.harness.server.coordinator.secure import STEPS, SecureDevice, secure

METHODS = dict(zip(STEPS, ("AdvertiseKeys", "ShareKeys", "Upload", "RevealShares"), strict=True))


async def refusal_of(awaitable):
    with pytest.raises(Refusal) as refused:
        await awaitable
    return refused.value.name


def with_changed(body, kind, field, value):
    request = kind.FromString(body)
    setattr(request, field, value)
    return request.SerializeToString()


CHANGED = {
    "AdvertiseKeys": (secure_pb2.AdvertiseKeysRequest, "mask_public_key", bytes(range(32))),
    "ShareKeys": (secure_pb2.ShareKeysRequest, "sealed_shares", bytes(5 * 98)),
    "Upload": (pb.UploadRequest, "upload_id", bytes(16)),
    "RevealShares": (secure_pb2.RevealSharesRequest, "self_masks", b""),
}


@pytest.mark.parametrize("step", STEPS)
def test_the_same_bytes_again_change_nothing_and_others_are_a_conflict(tmp_path, step):
    method = METHODS[step]

    async def story():
        async with secure(tmp_path) as it:
            devices = await it.run_steps(it.devices(6), STEPS[STEPS.index(step) - 1]) if step != "advertise" else []
            device = devices[0] if devices else it.devices(1)[0]
            if not devices:
                await device.check_in()
            await getattr(device, step)()
            answer = await device.call(method, device.sent[method])
            assert answer == await device.call(method, device.sent[method])
            other = with_changed(device.sent[method], *CHANGED[method])
            assert await refusal_of(device.call(method, other)) == "upload_conflict"

    run(story())


@pytest.mark.parametrize("step", STEPS)
def test_who_comes_too_late_for_a_step_is_out_of_the_round(tmp_path, step):
    async def story():
        async with secure(tmp_path) as it:
            devices = it.devices(6)
            before = STEPS[: STEPS.index(step)]
            if before:
                await it.run_steps(devices, before[-1])
            else:
                for device in devices:
                    await device.check_in()
            due = None if step == "advertise" else await devices[0].step()
            it.clock.now += 60
            late = getattr(devices[0], step)(*([due] if due else []))
            assert await refusal_of(late) == "round_closed"

    run(story())


def test_after_the_end_shares_may_come_again_and_nothing_else(tmp_path):
    async def story():
        async with secure(tmp_path) as it:
            devices = await it.run_steps(it.devices(6))
            assert it.coordinator.version.manifest.model_version == 2
            sent = devices[0].sent
            assert await devices[0].call("RevealShares", sent["RevealShares"]) == b""
            assert await devices[0].call("Upload", sent["Upload"])
            for method in ("AdvertiseKeys", "ShareKeys"):
                assert await refusal_of(devices[0].call(method, sent[method])) == "round_closed"

    run(story())


def test_once_the_others_have_gone_on_a_step_is_over(tmp_path):
    async def story():
        async with secure(tmp_path) as it:
            devices = it.devices(6)
            await it.run_steps(devices[:5], "advertise")
            await devices[5].check_in()
            it.clock.now += 60
            await it.go_on()
            assert it.coordinator.book.current.cohort.phase == SHARING
            assert await refusal_of(devices[5].advertise()) == "round_closed"

    run(story())


def test_strangers_and_unknown_rounds_are_refused(tmp_path):
    async def story():
        async with secure(tmp_path) as it:
            devices = await it.run_steps(it.devices(6), "upload")
            await devices[0].reveal()
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
            await device.advertise()
            for method in (*METHODS.values(), "GetStep"):
                assert await refusal_of(device.call(method, b"\xff\xff")) == "malformed"
                assert await refusal_of(device.call(method, b"\x0a\x01x")) == "malformed"
            for field in ("mask_public_key", "share_public_key"):
                short = with_changed(device.sent["AdvertiseKeys"], secure_pb2.AdvertiseKeysRequest, field, bytes(31))
                assert await refusal_of(device.call("AdvertiseKeys", short)) == "malformed"
            assert await refusal_of(device.step(20_001)) == "malformed"

    run(story())


@pytest.mark.parametrize("wrong", ["another's", "twice", "low order"])
def test_keys_that_would_make_others_leave_are_refused(tmp_path, wrong):
    async def story():
        async with secure(tmp_path) as it:
            honest, liar = it.devices(2)
            for device in (honest, liar):
                await device.check_in()
            await honest.advertise()
            taken = secure_pb2.AdvertiseKeysRequest.FromString(honest.sent["AdvertiseKeys"])
            new = bytes([9] + 31 * [7])
            keys = {"another's": (taken.share_public_key, new), "twice": (new, new), "low order": (bytes(32), new)}
            mask_key, share_key = keys[wrong]
            request = secure_pb2.AdvertiseKeysRequest(
                round_id=liar.place.round_id, mask_public_key=mask_key, share_public_key=share_key
            )
            assert await refusal_of(liar.send("AdvertiseKeys", request)) == "upload_invalid"
            await liar.advertise()  # It may still do better.

    run(story())


def swapped(records):
    return records[98:196] + records[:98] + records[196:]


@pytest.mark.parametrize(
    "lie",
    [
        lambda records: records[:-98],
        lambda records: records + records[-98:],
        lambda records: records[:-1],
        swapped,
        lambda records: b"\x06\0\0\0" + records[4:],
        lambda _: b"",
    ],
)
def test_sealed_shares_for_others_than_the_neighbours_are_refused(tmp_path, lie):
    async def story():
        async with secure(tmp_path) as it:
            device = (await it.run_steps(it.devices(6), "advertise"))[1]
            body = await device.only_prepare("share", "ShareKeys")
            records = secure_pb2.ShareKeysRequest.FromString(body).sealed_shares
            false = with_changed(body, secure_pb2.ShareKeysRequest, "sealed_shares", lie(records))
            assert await refusal_of(device.call("ShareKeys", false)) == "upload_invalid"
            await device.call("ShareKeys", body)

    run(story())


def test_masked_vectors_of_another_size_kind_or_model_are_refused(tmp_path):
    async def story():
        async with secure(tmp_path) as it:
            device = (await it.run_steps(it.devices(6), "share"))[0]
            body = await device.only_prepare("upload", "Upload")
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
        ("self_masks", lambda own, dropped: own[49:]),
        ("self_masks", lambda own, dropped: own + own[-49:]),
        ("self_masks", lambda own, dropped: own + dropped),
        ("self_masks", lambda own, dropped: own[:-1]),
        ("self_masks", lambda own, dropped: own[:-33] + b"\xff" * 33),
        ("mask_keys", lambda own, dropped: b""),
        ("mask_keys", lambda own, dropped: own[:49]),
        ("mask_keys", lambda own, dropped: bytes(16) + dropped[16:]),
    ],
)
def test_shares_of_others_than_those_asked_for_are_refused(tmp_path, field, lie):
    async def story():
        async with secure(tmp_path) as it:
            device = (await it.run_steps(it.devices(6), "upload", absent={"upload": [5]}))[0]
            body = await device.only_prepare("reveal", "RevealShares")
            request = secure_pb2.RevealSharesRequest.FromString(body)
            assert len(request.mask_keys) == 49
            false = lie(request.self_masks, request.mask_keys)
            wrong = with_changed(body, secure_pb2.RevealSharesRequest, field, false)
            assert await refusal_of(device.call("RevealShares", wrong)) == "upload_invalid"
            await device.call("RevealShares", body)

    run(story())


def test_a_false_share_ends_the_round_without_a_sum(tmp_path):
    async def story():
        async with secure(tmp_path) as it:
            devices = await it.run_steps(it.devices(6), "upload")
            for device in devices[:-1]:
                await device.reveal()
            body = await devices[-1].only_prepare("reveal", "RevealShares")
            shares = secure_pb2.RevealSharesRequest.FromString(body).self_masks
            false = shares[:16] + bytes(33) + shares[49:]
            await devices[-1].call(
                "RevealShares", with_changed(body, secure_pb2.RevealSharesRequest, "self_masks", false)
            )
            await it.go_on()
            status = await it.status(devices[0].name, devices[0].place.round_id)
            assert status.state == pb.ROUND_STATE_ABANDONED
            assert it.coordinator.version.manifest.model_version == 1

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
            masked = upload_request(place, 1, row_update=None, masked_vector=b"x")
            assert await refusal_of(it.service.upload("a", masked)) == "upload_invalid"

    run(story())


def test_steps_are_read_no_further_than_the_roster_allows(tmp_path):
    async def story():
        async with secure(tmp_path, goal=10) as it:
            limits = {method: it.service.limit_bytes(method) for method in METHODS.values()}
            devices = await it.run_steps(it.devices(10), "upload")
            await devices[0].reveal()
            for method, body in devices[0].sent.items():
                assert len(body) <= limits[method] <= len(body) + 1100

    run(story())
