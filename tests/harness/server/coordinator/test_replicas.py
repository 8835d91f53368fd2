"""Several coordinators on one PostgreSQL: any of them answers any call, and together they do what one does."""

import asyncio
from dataclasses import replace

import pytest

from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import manifest_pb2
from lightfr_harness.server.coordinator.options import SettingsError
from lightfr_harness.server.coordinator.plan import Plan
from lightfr_harness.server.coordinator.refusals import Refusal
from lightfr_harness.server.coordinator.rounds import FINISHED
from lightfr_harness.server.coordinator.secure_steps import REQUESTS
from tests.harness.server.coordinator.helpers import CHECK_IN as CLEAR_CHECK_IN
from tests.harness.server.coordinator.helpers import SETTINGS, Clock, Small, run, upload_request
from tests.harness.server.coordinator.replicas import Replicas, replicas
from tests.harness.server.coordinator.secure import CHECK_IN, SECURE, secure
from tests.harness.server.coordinator.test_evaluations import Boaster

N = 4


def codes_of(coordinator):
    return coordinator.version.manifest.codes.sha256


@pytest.mark.parametrize("seed", range(3))
def test_devices_that_ask_any_replica_make_the_versions_of_one_coordinator(tmp_path, postgres, seed):
    # One of each cohort.
    absent = {"Upload": [102, 105, 111]}

    async def story():
        expected = []
        async with secure(tmp_path / "one", goal=N, cohorts=3, minimum=2, evaluate_every=0) as it:
            for first in (0, 100):
                await it.run_steps(it.devices(3 * N, first), absent=absent if first else None)
                expected.append(codes_of(it.coordinator))
        options = {"evaluate_every": 0, "seed": seed}
        async with replicas(tmp_path / "many", postgres.database(), 3, goal=N, cohorts=3, **options) as it:
            for first, codes in zip((0, 100), expected, strict=True):
                await it.run_steps(it.devices(3 * N, first), absent=absent if first else None)
                for replica in it.all:
                    await replica.catch_up()
                    assert codes_of(replica) == codes

    run(story())


def test_what_one_replica_acknowledged_all_of_them_know(tmp_path, postgres):
    async def story():
        async with replicas(tmp_path, postgres.database(), 2, goal=N, evaluate_every=0) as it:
            device, *others = it.devices(N)
            for each in (device, *others):
                await each.check_in()
            await device.deliver()
            sent = device.sent["AdvertiseKeys"]
            for replica in it.all:
                assert await it.services[replica].methods["AdvertiseKeys"](device.name, sent) == b""
                placed = pb.CheckInResponse.FromString(await it.services[replica].check_in(device.name, CHECK_IN))
                assert placed.assignment.peer_id == device.place.peer_id
            changed = REQUESTS[1].FromString(sent)
            changed.signature = bytes(64)
            for replica in it.all:
                with pytest.raises(Refusal) as refused:
                    await it.services[replica].methods["AdvertiseKeys"](device.name, changed.SerializeToString())
                assert refused.value.name == "upload_conflict"

    run(story())


def test_no_replica_tells_of_an_older_version_than_another_one_told_of(tmp_path, postgres):
    """A device refuses a version that is older than its own, and its next call may reach any replica."""
    body = pb.GetManifestRequest(capabilities=pb.CheckInRequest.FromString(CHECK_IN).capabilities).SerializeToString()

    async def story():
        async with replicas(tmp_path, postgres.database(), 2, goal=N, evaluate_every=0) as it:
            one, other = it.all
            for device in await it.run_steps(it.devices(N), until="SignSurvivors"):
                await device.deliver()
            while await one.end_due_round():
                pass
            told = [await it.services[replica].methods["GetManifest"]("device", body) for replica in (one, other)]
            assert told[0] == told[1]
            manifest = pb.GetManifestResponse.FromString(told[0]).signed_manifest.manifest
            assert manifest_pb2.Manifest.FromString(manifest).model_version == 2

    run(story())


def test_a_phase_that_all_replicas_end_at_once_has_one_result(tmp_path, postgres):
    async def story():
        async with replicas(tmp_path, postgres.database(), 3, goal=N, evaluate_every=0) as it:
            devices = it.devices(N)
            for device in devices:
                await device.check_in()
            for _ in range(6):
                await asyncio.gather(*(device.deliver() for device in devices))
                await asyncio.gather(*(replica.end_due_phase() for replica in it.all))
                for replica in it.all:
                    await replica.catch_up()
                settled = {replica.book.current.cohort.settled for replica in it.all}
                assert len(settled) == 1

    run(story())


def test_a_key_that_comes_to_two_replicas_is_refused_by_the_second(tmp_path, postgres):
    """The database knows it, whichever replica asks; the device may still bring another one."""

    async def story():
        async with replicas(tmp_path, postgres.database(), 2, goal=N, evaluate_every=0) as it:
            one, other = it.all
            devices = it.devices(N)
            own, devices[1].member = devices[1].member, devices[0].member
            for device in devices:
                await device.check_in()
            seconds = it.services[other]
            await it.services[one].methods["AdvertiseKeys"](devices[0].name, devices[0].participant.outgoing.request)
            with pytest.raises(Refusal, match="a key is not new"):
                await seconds.methods["AdvertiseKeys"](devices[1].name, devices[1].participant.outgoing.request)
            devices[1].member = own
            await devices[1].check_in()
            for device in devices[1:]:
                await seconds.methods["AdvertiseKeys"](device.name, device.participant.outgoing.request)
            await it.go_on()
            for replica in it.all:
                await replica.catch_up()
            first, second = (replica.book.current.cohort for replica in it.all)
            assert first.settled == second.settled
            assert first.roster.size == N

    run(story())


def test_all_replicas_leave_out_the_same_suspects_and_forget_them_together(tmp_path, postgres):
    async def story():
        async with replicas(tmp_path, postgres.database(), 3, goal=N, evaluate_every=1) as it:
            await it.run_steps(it.devices(N))
            await it.run_steps([*it.devices(N - 1), Boaster(N - 1, it.call)])
            for replica in it.all:
                await replica.catch_up()
            names = [device.name for device in it.devices(N)]
            (current,) = {replica.book.current.round_id for replica in it.all}
            told = [[replica.standing.turned_away(name, replica.book.current, 0.0) for name in names]
                    for replica in it.all]  # fmt: skip
            assert told[0] == told[1] == told[2]
            assert sum(reason == pb.RETRY_REASON_ROUND_FULL for reason in told[0]) == N // 2
            # Too few come to the next round, and so nobody is left out of the one after it.
            (device,) = it.devices(1, 100)
            await device.check_in()
            it.clock.now += it.all[0].plan.deadline_seconds
            await it.go_on()
            for replica in it.all:
                await replica.catch_up()
                assert replica.book.current.round_id != current
                assert not any(replica.standing.turned_away(name, replica.book.current, 0.0) for name in names)

    run(story())


def test_rounds_in_the_clear_take_the_goal_and_no_more(tmp_path, postgres):
    async def story():
        async with replicas(
            tmp_path, postgres.database(), 2, settings=SETTINGS, goal=3, over_selection=2.0, minimum=1
        ) as it:
            places = {}
            for n in range(6):
                answer = await it.call(f"device-{n}", "CheckIn", CLEAR_CHECK_IN)
                places[n] = pb.CheckInResponse.FromString(answer).assignment
            uploads = [it.call(f"device-{n}", "Upload", upload_request(places[n], n)) for n in range(6)]
            done = await asyncio.gather(*uploads, return_exceptions=True)
            assert sum(isinstance(one, Refusal) for one in done) == 3
            await it.go_on()
            status = await it.call("device-0", "GetRoundStatus", pb.GetRoundStatusRequest(round_id=places[0].round_id)
                                   .SerializeToString())  # fmt: skip
            found = pb.GetRoundStatusResponse.FromString(status)
            assert (found.state, found.upload_count, found.next_model_version) == (FINISHED, 3, 2)

    run(story())


def test_a_replica_with_other_settings_is_refused_with_a_sentence(tmp_path, postgres):
    async def story():
        database = postgres.database()
        async with replicas(tmp_path, database, 1):
            other = Replicas(tmp_path / "x", database, 1, Plan(goal=6, minimum=2), replace(SECURE, bits=32))
            with pytest.raises(SettingsError, match="--bits was 16, now 32"):
                await other.all[0].start()
            await other.all[0].close()

    run(story())


def test_one_coordinator_on_sqlite_needs_no_data_base(tmp_path):
    async def story():
        it = Small(tmp_path, Clock(), Plan(goal=1))
        await it.coordinator.start()
        assert not it.coordinator._storage.is_shared
        await it.coordinator.close()

    run(story())
