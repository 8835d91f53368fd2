"""Whole rounds of secure aggregation, by bytes in and out: the sum is that of the clear run, or there is none."""

import asyncio
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from lightfr.model.bitmaps import read_bitmap
from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import manifest_pb2, model_pb2
from lightfr_harness.server.coordinator import secure_steps
from lightfr_harness.server.coordinator.phases import ADVERTISING, UPLOADING
from lightfr_harness.server.coordinator.refusals import Refusal
from tests.adversary.cohort import remembered_signatures
from tests.harness.server.coordinator.helpers import N_ITEMS, body_keys, is_in_files, oracle, run, same_state
from tests.harness.server.coordinator.secure import SECURE, STEPS, UNCOUNTED, rated_by, secure, update_of


def clear_result(seeds):
    """What the server makes of the same rows in the clear."""
    server = oracle()
    for seed in seeds:
        server.add(update_of(seed).SerializeToString())
    server.finish_round()
    return server


def some(n, rate, seed=0):
    return Random(seed).sample(range(n), int(rate * n))


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("rate", [0, 0.1, 0.3])
def test_the_model_is_that_of_the_clear_run_whoever_drops_out_at_a_step(tmp_path, step, rate):
    absent = some(10, rate)

    async def story():
        async with secure(tmp_path, goal=10) as it:
            await it.run_steps(it.devices(10), absent={step: absent})
            assert it.coordinator.version.manifest.model_version == 2
            is_in = STEPS.index(step) > STEPS.index("Upload")
            uploaded = [seed for seed in range(10) if is_in or seed not in absent]
            assert same_state(it.coordinator._rule, clear_result(uploaded))

    run(story())


@remembered_signatures()
def test_the_model_is_that_of_the_clear_run_when_some_drop_out_at_every_step_of_a_sparse_graph(tmp_path):
    absent = {step: range(5 * number, 5 * (number + 1)) for number, step in enumerate(STEPS)}

    async def story():
        async with secure(tmp_path, goal=135) as it:
            devices = await it.run_steps(it.devices(135), "SignSurvivors", absent=absent)
            assert not it.coordinator.book.current.cohort.roster.is_complete
            for device in devices:
                await device.deliver()
            await it.go_on()
            assert same_state(it.coordinator._rule, clear_result(range(25, 135)))

    run(story())


def test_without_dropping_out_no_phase_waits_for_its_deadline(tmp_path):
    async def story():
        async with secure(tmp_path) as it:
            started = it.clock.now
            await it.run_steps(it.devices(6))
            assert it.clock.now == started
            assert it.coordinator.version.manifest.model_version == 2

    run(story())


@pytest.mark.parametrize("step", STEPS[:-1])
def test_with_too_few_devices_the_round_is_dropped_and_nothing_is_unmasked(tmp_path, step):
    """Of ten, a minimum of four advertise, and seven are a quorum."""
    left = 3 if step == "AdvertiseKeys" else 6

    async def story():
        async with secure(tmp_path, goal=10, minimum=4) as it:
            devices = it.devices(10)
            before = {name: value.copy() for name, value in it.coordinator._rule.state().items()}
            await it.run_steps(devices, step, absent={step: range(left, 10)})
            status = await it.status(devices[0].name, devices[0].place.round_id)
            assert status.state == pb.ROUND_STATE_ABANDONED
            assert it.coordinator.version.manifest.model_version == 1
            state = it.coordinator._rule.state()
            assert all(np.array_equal(value, state[name]) for name, value in before.items())
            following = it.coordinator.book.current
            assert (following.model_version, following.cohort.phase) == (1, ADVERTISING)
            with pytest.raises(Refusal) as refused:
                await devices[0].step()
            assert refused.value.name == "round_closed"

    run(story())


def test_a_round_that_cannot_be_unmasked_is_dropped_and_its_codes_get_a_new_version(tmp_path):
    """Its devices have revealed on the old one, and do so once."""

    async def story():
        async with secure(tmp_path, goal=10) as it:
            devices = await it.run_steps(it.devices(10), absent={"RevealShares": range(5, 10)})
            before, now = it.coordinator.version.manifest, devices[0].place
            status = await it.status(devices[0].name, now.round_id)
            assert (status.state, status.next_model_version) == (pb.ROUND_STATE_ABANDONED, 0)
            assert (now.model_version, before.model_version) == (1, 2)
            assert it.coordinator.book.current.model_version == 2
            assert before.codes == manifest_pb2.Manifest.FromString(it.coordinator._manifests[1]).codes
            assert "sum_dropped" in it.log.getvalue()
            assert (await devices[0].step()).HasField("done")
            # Nobody lied, so nobody is left out.
            await it.run_steps(it.devices(10))
            assert it.coordinator.version.manifest.model_version == 3

    run(story())


def test_the_wire_says_open_until_the_masks_come_off_and_done_afterwards(tmp_path):
    async def story():
        async with secure(tmp_path) as it:
            devices = it.devices(6)
            await it.run_steps(devices, STEPS[0])
            for _ in STEPS[1:-1]:
                status = await it.status(devices[0].name, devices[0].place.round_id)
                assert status.state == pb.ROUND_STATE_OPEN
                for device in devices:
                    await device.deliver()
                await it.go_on()
            await devices[0].deliver()
            assert (await devices[0].step()).HasField("done")
            for device in devices[1:]:
                await device.deliver()
            await it.go_on()
            status = await it.status(devices[0].name, devices[0].place.round_id)
            assert (status.state, status.next_model_version) == (pb.ROUND_STATE_FINISHED, 2)
            assert (status.upload_count, status.has_your_upload) == (6, True)
            assert (await devices[1].step()).HasField("done")

    run(story())


def test_a_place_says_who_the_device_is_what_to_add_and_how_much(tmp_path):
    async def story():
        async with secure(tmp_path) as it:
            devices = it.devices(6)
            await it.run_steps(devices, "SignIncluded")
            places = [device.place for device in devices]
            assert len({place.peer_id for place in places}) == 6
            assert {place.kind for place in places} == {pb.ROUND_KIND_TRAINING}
            await devices[0].deliver()
            largest = len(devices[0].sent["Upload"])
            assert largest <= places[0].upload_limit_bytes == it.service.limit_bytes("Upload") <= largest + 200
            model = it.coordinator.version.manifest.model
            assert model.privacy_mode == model_pb2.PRIVACY_MODE_SECAGG

    run(story())


def test_devices_without_the_mode_are_told_so(tmp_path):
    async def story():
        async with secure(tmp_path) as it:
            answer = await it.check_in("clear only")
            assert answer.retry_window.reason == pb.RETRY_REASON_NOT_CAPABLE

    run(story())


def test_later_devices_come_back_for_another_round_and_earlier_ones_keep_their_place(tmp_path):
    async def story():
        async with secure(tmp_path) as it:
            devices = await it.run_steps(it.devices(6), "AdvertiseKeys")
            with pytest.raises(AssertionError, match="ROUND_FULL"):
                await it.devices(1, first=50)[0].check_in()
            peer_id = devices[0].place.peer_id
            await devices[0].check_in()
            assert devices[0].place.peer_id == peer_id

    run(story())


def test_who_missed_a_phase_is_told_to_come_back_later(tmp_path):
    async def story():
        async with secure(tmp_path) as it:
            devices = it.devices(6)
            await it.run_steps(devices, "ShareKeys", absent={"ShareKeys": [0]})
            with pytest.raises(Refusal) as refused:
                await devices[0].step()
            assert refused.value.name == "round_closed"
            with pytest.raises(AssertionError, match="ROUND_FULL"):
                await devices[0].check_in()

    run(story())


def test_asking_waits_for_the_step_but_no_longer_than_it_may(tmp_path):
    async def story():
        async with secure(tmp_path, goal=6, over_selection=100) as it:
            devices = it.devices(6)
            await it.run_steps(devices, "AdvertiseKeys")
            assert (await devices[0].step()).wait_ms == 3000  # 600 places, 200 questions a second
            assert (await devices[0].step(max_wait_ms=1)).HasField("wait_ms")
            waiting = [asyncio.create_task(device.step(20_000)) for device in devices]
            await asyncio.sleep(0)
            it.clock.now += 60
            await it.go_on()
            assert all(answer.HasField("share") for answer in await asyncio.gather(*waiting))

    run(story())


def test_when_too_many_wait_the_next_is_told_to_come_back(tmp_path, monkeypatch):
    monkeypatch.setattr(secure_steps, "MOST_WAITING", 1)

    async def story():
        async with secure(tmp_path) as it:
            devices = await it.run_steps(it.devices(6), "AdvertiseKeys", absent={"AdvertiseKeys": [5]})
            await asyncio.gather(*(device.deliver() for device in devices[:2]))
            first = asyncio.create_task(devices[0].step(20_000))
            await asyncio.sleep(0)
            assert (await devices[1].step(20_000)).wait_ms == 50
            it.coordinator.steps.wake()
            assert (await first).wait_ms == 50

    run(story())


def test_a_larger_round_from_before_a_restart_still_gets_its_uploads(tmp_path):
    async def story():
        async with secure(tmp_path, goal=17) as it:
            await it.run_steps(devices := it.devices(17), "SignIncluded")
        async with secure(tmp_path, goal=2) as again:
            for device in devices:
                device._call = again.call
            await devices[0].deliver()
            assert len(devices[0].sent["Upload"]) <= again.service.limit_bytes("Upload")

    run(story())


def gate_plan(**plan):
    return {"items": UNCOUNTED, "settings": replace(SECURE, gate=5), "goal": 8, **plan}


def test_the_first_two_rounds_count_who_rates_what_and_open_rows_by_it(tmp_path):
    async def story():
        async with secure(tmp_path, **gate_plan()) as it:
            (shared,) = it.coordinator._rule.codes.copy()
            counts = []
            for first_device in (0, 8):
                absent = first_device + 2
                devices = await it.run_steps(it.devices(8, first_device), absent={"Upload": [absent]})
                assert devices[0].place.kind == pb.ROUND_KIND_GATE_REFRESH
                seeds = set(range(first_device, first_device + 8)) - {absent}
                counts.append(sum(rated_by(seed).astype(int) for seed in seeds))
            server = it.coordinator._rule
            is_open = np.minimum(*counts) >= 5
            assert np.array_equal(server.open_rows, is_open)
            assert 2 < is_open.sum() < N_ITEMS - 2
            assert np.array_equal(server.codes[-1], shared)
            assert len(np.unique(server.codes[:-1], axis=0)) == is_open.sum()
            assert not server.memory.any()
            bitmap = it.coordinator.version.manifest.open_rows
            published = read_bitmap(tmp_path / "artifacts" / bitmap.sha256.hex(), N_ITEMS)
            assert published == np.packbits(is_open, bitorder="little").tobytes()
            assert it.coordinator.book.current.kind == pb.ROUND_KIND_TRAINING

    run(story())


def test_counts_are_asked_for_again_after_so_many_rounds_also_across_restarts(tmp_path):
    async def kinds(folder, n):
        for number in range(n):
            async with secure(folder, goal=2, gate_every=2) as it:
                seen.append(it.coordinator.book.current.kind)
                await it.run_steps(it.devices(2, first=2 * number))

    seen = []
    run(kinds(tmp_path, 4))
    training, refresh = pb.ROUND_KIND_TRAINING, pb.ROUND_KIND_GATE_REFRESH
    assert seen == [training, training, refresh, refresh]


def test_the_second_refresh_of_a_pair_has_no_device_of_the_first(tmp_path):
    async def story():
        async with secure(tmp_path, **gate_plan()) as it:
            await it.run_steps(it.devices(8), absent={"Upload": [2]})
        async with secure(tmp_path, **gate_plan()) as again:
            for device in again.devices(8):
                if device.seed == 2:
                    await device.check_in()  # It was not counted.
                    assert device.place.kind == pb.ROUND_KIND_GATE_REFRESH
                else:
                    with pytest.raises(AssertionError, match="ROUND_FULL"):
                        await device.check_in()
            again.clock.now += 60
            await again.go_on()
            await again.run_steps(again.devices(8, first=8))
            for device in again.devices(8):  # Training is for all.
                await device.check_in()
                assert device.place.kind == pb.ROUND_KIND_TRAINING

    run(story())


def test_noise_is_in_the_manifest(tmp_path):
    noise = {f"noise_{name}_thousandths": level for name, level in (("rows", 1500), ("sums", 70_000), ("counts", 900))}
    settings = replace(SECURE, privacy="secagg+dp", **noise)

    async def story():
        async with secure(tmp_path, settings=settings) as it:
            model = manifest_pb2.Manifest.FromString(it.coordinator.version.serialised).model
            assert model.privacy_mode == model_pb2.PRIVACY_MODE_SECAGG_DP
            assert (model.noise.rows_thousandths, model.noise.sums_thousandths) == (1500, 70_000)
            assert model.noise.counts_thousandths == 900
            assert model.upload_kind == model_pb2.UPLOAD_KIND_EXACT

    run(story())


def test_shares_keys_and_masked_vectors_are_gone_from_every_file_afterwards(tmp_path):
    """Public keys and peer ids are overwritten. The rest is encrypted under a key that is."""

    async def story():
        async with secure(tmp_path) as it:
            devices = await it.run_steps(it.devices(6), "SignSurvivors")
            await devices[0].deliver()
            sent = dict(devices[0].sent)
            # What is signed goes to the whole cohort.
            signed = [sent.pop(method) for method in ("AdvertiseKeys", "SignIncluded", "SignSurvivors")]
            assert not any(is_in_files(tmp_path, body[-40:]) for body in sent.values())
            secrets = [*body_keys(tmp_path), signed[0][20:50], *(one.place.peer_id for one in devices)]
            assert all(is_in_files(tmp_path, secret) for secret in secrets)
            for device in devices[1:]:
                await device.deliver()
            assert it.coordinator.book.current.cohort.delivered[UPLOADING]
            await it.go_on()
        assert not any(is_in_files(tmp_path, secret) for secret in secrets)

    run(story())
