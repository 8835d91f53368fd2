"""Bytes in, bytes out: every answer and every refusal."""

import asyncio

import numpy as np
import pytest

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import manifest_pb2, model_pb2
from lightfr_harness.server.coordinator.refusals import Refusal
from tests.harness.server.coordinator.helpers import (
    CAPABILITIES,
    Clock,
    digest,
    feed,
    oracle,
    row_update,
    run,
    same_state,
    small,
    upload_request,
)


async def refusal_of(awaitable):
    with pytest.raises(Refusal) as refused:
        await awaitable
    return refused.value


def test_an_upload_gets_a_receipt_and_the_same_bytes_get_the_same_again(tmp_path):
    async def story():
        async with small(tmp_path) as it:
            place = await it.assignment("a")
            body = upload_request(place, 1)
            receipt = await it.upload("a", body)
            assert (receipt.upload_id, receipt.request_sha256) == (
                pb.UploadRequest.FromString(body).upload_id,
                digest(body),
            )
            assert await it.upload("a", body) == receipt
            assert (await it.status("a", place.round_id)).upload_count == 1

    run(story())


def test_two_copies_at_the_same_moment_are_one_upload(tmp_path):
    async def story():
        async with small(tmp_path) as it:
            place = await it.assignment("a")
            body = upload_request(place, 1)
            first, second = await asyncio.gather(it.upload("a", body), it.upload("a", body))
            assert first == second
            assert (await it.status("a", place.round_id)).upload_count == 1

    run(story())


def test_the_receipt_is_there_after_the_round_has_closed_and_after_a_restart(tmp_path):
    async def story():
        clock = Clock()
        async with small(tmp_path, clock, goal=1) as it:
            place = await it.assignment("a")
            body = upload_request(place, 1)
            receipt = await it.upload("a", body)
            assert await it.coordinator.end_due_round()
            clock.now += 10_000
            assert await it.upload("a", body) == receipt
            other = await refusal_of(it.upload("a", upload_request(place, 2)))
            assert other.name == "upload_conflict"
        async with small(tmp_path, clock, goal=1) as it:
            assert await it.upload("a", body) == receipt

    run(story())


def test_receipts_of_sixteen_rounds_are_kept_and_then_the_round_is_unknown(tmp_path):
    async def story():
        async with small(tmp_path, goal=1) as it:
            bodies = []
            for n in range(17):
                place = await it.assignment("a")
                bodies.append(upload_request(place, n))
                await it.upload("a", bodies[-1])
                assert await it.coordinator.end_due_round()
            for body in bodies[1:]:
                assert (await it.upload("a", body)).request_sha256 == digest(body)
            assert (await refusal_of(it.upload("a", bodies[0]))).name == "round_unknown"

    run(story())


def changed(place, **changes):
    return upload_request(place, 1, **changes)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda place: b"\xff\xff", "malformed"),
        (lambda place: b"", "malformed"),
        (lambda place: changed(place, round_id=bytes(15)), "malformed"),
        (lambda place: changed(place, upload_id=bytes(17)), "malformed"),
        (lambda place: changed(place, manifest_sha256=b""), "malformed"),
        (lambda place: changed(place, round_id=bytes(16)), "round_unknown"),
        (lambda place: changed(place, manifest_sha256=bytes(32)), "model_mismatch"),
        (lambda place: changed(place, row_update=None), "upload_invalid"),
        (lambda place: changed(place, row_update=model_update(code_bits=8)), "upload_invalid"),
        (lambda place: changed(place, row_update=model_update(item_indices=b"\0")), "upload_invalid"),
        (lambda place: changed(place, row_update=closed_row()), "upload_invalid"),
    ],
)
def test_a_wrong_upload_is_refused_with_its_reason_and_not_counted(tmp_path, make, reason):
    async def story():
        async with small(tmp_path) as it:
            place = await it.assignment("a")
            assert (await refusal_of(it.upload("a", make(place)))).name == reason
            status = await it.status("a", place.round_id)
            assert (status.upload_count, status.has_your_upload) == (0, False)
            # The refused one has not taken the device's turn.
            await it.upload("a", upload_request(place, 2))

    run(story())


def model_update(**changes):
    update = row_update(np.random.default_rng(0), 2)
    for name, value in changes.items():
        setattr(update, name, value)
    return update


def closed_row():
    return model_update(item_indices=np.array([3, 29], "<u4").tobytes())


def test_a_device_without_a_place_is_refused(tmp_path):
    async def story():
        async with small(tmp_path) as it:
            place = await it.assignment("a")
            assert (await refusal_of(it.upload("b", upload_request(place, 1)))).name == "not_assigned"

    run(story())


def test_after_goal_or_deadline_the_round_is_closed(tmp_path):
    async def story():
        clock = Clock()
        async with small(tmp_path, clock, goal=1, over_selection=3) as it:
            place = await it.assignment("a")
            await it.assignment("b")
            await it.upload("a", upload_request(place, 1))
            assert (await refusal_of(it.upload("b", upload_request(place, 2)))).name == "round_closed"
            assert await it.coordinator.end_due_round()
            assert (await refusal_of(it.upload("b", upload_request(place, 2)))).name == "round_closed"
            place = await it.assignment("b")
            clock.now += 60
            assert (await refusal_of(it.upload("b", upload_request(place, 3)))).name == "round_closed"

    run(story())


def test_a_round_below_the_minimum_is_abandoned_and_its_uploads_are_not_used(tmp_path):
    async def story():
        clock = Clock()
        async with small(tmp_path, clock, minimum=2) as it:
            place = await it.assignment("a")
            await it.upload("a", upload_request(place, 1))
            clock.now += 60
            assert await it.coordinator.end_due_round()
            status = await it.status("a", place.round_id)
            assert (status.state, status.next_model_version) == (pb.ROUND_STATE_ABANDONED, 0)
            again = await it.assignment("a")
            assert again.model_version == 1
            assert again.round_id != place.round_id
            assert same_state(it.coordinator._rule, oracle())

    run(story())


def test_a_finished_round_makes_the_version_that_the_rule_makes_of_its_uploads(tmp_path):
    async def story():
        async with small(tmp_path) as it:
            expected = oracle()
            for number in range(2):
                places = [await it.assignment(device) for device in "abc"]
                bodies = [upload_request(place, [number, n]) for n, place in enumerate(places)]
                for device, body in zip("abc", bodies, strict=True):
                    await it.upload(device, body)
                assert await it.coordinator.end_due_round()
                feed(expected, bodies)
                assert same_state(it.coordinator._rule, expected)
                status = await it.status("a", places[0].round_id)
                assert (status.state, status.next_model_version) == (pb.ROUND_STATE_FINISHED, number + 2)
            manifest = await manifest_of(it)
            assert manifest.model_version == 3
            content = (tmp_path / "artifacts" / manifest.codes.sha256.hex()).read_bytes()
            assert content == expected.codes.tobytes()
            assert (await it.assignment("a")).manifest_sha256 == it.coordinator.version.sha256

    run(story())


async def manifest_of(it, known=0):
    request = pb.GetManifestRequest(capabilities=CAPABILITIES, known_model_version=known)
    answer = pb.GetManifestResponse.FromString(await it.service.get_manifest("a", request.SerializeToString()))
    return (
        manifest_pb2.Manifest.FromString(answer.signed_manifest.manifest)
        if answer.HasField("signed_manifest")
        else None
    )


def test_the_manifest_is_left_out_for_who_has_it(tmp_path):
    async def story():
        async with small(tmp_path) as it:
            assert await manifest_of(it, known=1) is None
            assert (await manifest_of(it, known=0)).model_version == 1
            assert (await manifest_of(it, known=7)).model_version == 1

    run(story())


@pytest.mark.parametrize("method", ["get_manifest", "check_in"])
@pytest.mark.parametrize(
    ("versions", "kinds", "reason"),
    [
        ([], [1], "malformed"),
        (range(17), [1], "malformed"),
        ([1], [1] * 17, "malformed"),
        ([2, 3], [1], "wire_version"),
    ],
)
def test_capabilities_outside_the_contract_are_refused(tmp_path, method, versions, kinds, reason):
    async def story():
        async with small(tmp_path) as it:
            request = pb.CheckInRequest(
                capabilities=pb.Capabilities(wire_versions=versions, upload_kinds=kinds, privacy_modes=[1])
            )
            refusal = await refusal_of(getattr(it.service, method)("a", request.SerializeToString()))
            assert refusal.name == reason
            assert list(refusal.detail.wire_versions) == ([1] if reason == "wire_version" else [])

    run(story())


@pytest.mark.parametrize(
    "lacking", [{"upload_kinds": [model_pb2.UPLOAD_KIND_EXACT], "privacy_modes": [1]}, {"upload_kinds": [1]}]
)
def test_a_device_that_cannot_take_part_is_told_to_come_back_much_later(tmp_path, lacking):
    async def story():
        async with small(tmp_path) as it:
            request = pb.CheckInRequest(capabilities=pb.Capabilities(wire_versions=[1], **lacking))
            answer = pb.CheckInResponse.FromString(await it.service.check_in("a", request.SerializeToString()))
            assert answer.retry_window.reason == pb.RETRY_REASON_NOT_CAPABLE
            assert answer.retry_window.earliest_ms >= 3_600_000

    run(story())


def test_check_ins_beyond_the_places_and_after_the_upload_wait(tmp_path):
    async def story():
        async with small(tmp_path, goal=2, over_selection=1) as it:
            place = await it.assignment("a")
            assert await it.assignment("a") == place
            await it.assignment("b")
            assert (await it.check_in("c")).retry_window.reason == pb.RETRY_REASON_ROUND_FULL
            await it.upload("a", upload_request(place, 1))
            assert (await it.check_in("a")).retry_window.reason == pb.RETRY_REASON_ALREADY_UPLOADED

    run(story())


def test_after_the_last_round_training_is_finished_until_more_rounds_are_asked_for(tmp_path):
    async def story():
        async with small(tmp_path, goal=1, rounds=1) as it:
            place = await it.assignment("a")
            await it.upload("a", upload_request(place, 1))
            assert await it.coordinator.end_due_round()
            assert (await it.check_in("a")).retry_window.reason == pb.RETRY_REASON_TRAINING_FINISHED
        async with small(tmp_path, goal=1, rounds=1) as it:
            assert (await it.check_in("b")).retry_window.reason == pb.RETRY_REASON_TRAINING_FINISHED
        async with small(tmp_path, goal=1, rounds=2) as it:
            assert (await it.assignment("b")).model_version == 2

    run(story())


def test_a_round_status_needs_a_round_that_there_is(tmp_path):
    async def story():
        async with small(tmp_path) as it:
            assert (await refusal_of(it.status("a", bytes(16)))).name == "round_unknown"
            assert (await refusal_of(it.status("a", b"short"))).name == "malformed"
            assert (await refusal_of(it.service.get_round_status("a", b"\xff"))).name == "malformed"

    run(story())


def test_the_largest_legal_upload_is_within_its_limit_and_what_is_larger_is_illegal(tmp_path):
    """The limit leaves room for the ids and little more."""

    async def story():
        async with small(tmp_path) as it:
            place = await it.assignment("a")
            largest = upload_request(place, 1, row_update=row_update(np.random.default_rng(0), 25))
            assert len(largest) <= place.upload_limit_bytes <= len(largest) + 5 * 8 + 200
            await it.upload("a", largest)

    run(story())


def test_a_device_that_asks_twice_at_once_for_a_place_that_another_process_took_is_told_to_come_back(tmp_path):
    """World 8017: the second request saw the place of the first one, which could not be kept."""

    async def story():
        async with small(tmp_path) as it:
            full = "UPDATE rounds SET places_taken = places"
            await it.coordinator._storage.database.submit(lambda connection: connection.execute(full))
            answers = await asyncio.gather(it.check_in("a"), it.check_in("a"))
            assert [answer.retry_window.reason for answer in answers] == [pb.RETRY_REASON_ROUND_FULL] * 2
            assert it.coordinator.book.current.assigned == {}

    run(story())
