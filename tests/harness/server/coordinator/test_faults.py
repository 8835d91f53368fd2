"""A device that lies is named, gets no more places, and training goes on without it."""

import json

import numpy as np
import pytest

from lightfr.secagg.views import entry_message
from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import secure_pb2
from lightfr_harness.server.coordinator.refusals import Refusal
from lightfr_harness.server.coordinator.standing import MOST_FAULTS, PAUSE_SECONDS, REFUSED
from tests.harness.server.coordinator.helpers import run
from tests.harness.server.coordinator.secure import CHECK_IN, STEPS, SecureDevice, secure

N, LIAR = 12, 5


class Garbage(SecureDevice):
    def vector(self, kind, devices):
        made, rng = super().vector(kind, devices), np.random.default_rng(1)
        for block in made.blocks:
            np.asarray(made[block.name])[:] = rng.integers(-(2 ** (block.bits - 1)), 2 ** (block.bits - 1), block.count)
        return made


class Pusher(SecureDevice):
    def vector(self, kind, devices):
        made = super().vector(kind, devices)
        # As much as the block has room for, which is more than all devices can say. Other rounds have no rows.
        if kind == pb.ROUND_KIND_TRAINING:
            np.asarray(made["rows"])[16:32] = 2 ** (made.blocks[0].bits - 1) - 2
        return made


class Changed(SecureDevice):
    """Sends something else in one step."""

    method, kind, field = "", None, ""

    async def send(self, method, request):
        if method == self.method:
            message = self.kind.FromString(request)
            setattr(message, self.field, self.lie(getattr(message, self.field)))
            request = message.SerializeToString()
        return await super().send(method, request)


class Sealer(Changed):
    method, kind, field = "ShareKeys", secure_pb2.ShareKeysRequest, "sealed_shares"

    def lie(self, records):
        return b"".join(records[at : at + 4] + bytes(94) for at in range(0, len(records), 98))


class Complainer(Changed):
    method, kind, field = "AcknowledgeShares", secure_pb2.AcknowledgeSharesRequest, "unopened"

    def lie(self, bitmap):
        everybody = int.from_bytes(bitmap, "little") | (1 << N) - 1
        own = sorted(self.others).index(self.place.peer_id)
        return (everybody & ~(1 << own)).to_bytes(len(bitmap), "little")


class Revealer(Changed):
    method, kind, field = "RevealShares", secure_pb2.RevealSharesRequest, "seeds"

    def lie(self, records):
        return b"".join(records[at : at + 4] + bytes(33) for at in range(0, len(records), 37))


class Framer(Changed):
    """Reveals false shares of one device's seed alone, to have that one blamed."""

    method, kind, field = "RevealShares", secure_pb2.RevealSharesRequest, "seeds"

    def lie(self, records):
        victim = sorted(self.others).index(self.victim).to_bytes(4, "little")
        parts = [records[at : at + 37] for at in range(0, len(records), 37)]
        return b"".join(part[:4] + bytes(33) if part[:4] == victim else part for part in parts)


class Thief(Changed):
    """Shows the member key of a device, known from a roster of before, as its own mask key, to keep that one out."""

    method, kind, field = "AdvertiseKeys", secure_pb2.AdvertiseKeysRequest, "mask_public_key"

    async def send(self, method, request):
        if method == self.method:
            message = self.kind.FromString(request)
            message.mask_public_key = self.victim.member.key.public
            keys = message.mask_public_key, message.share_public_key
            message.signature = self.member.key.sign(entry_message(message.round_id, self.place.peer_id, *keys))
            request = message.SerializeToString()
        return await SecureDevice.send(self, method, request)


class Signer(Changed):
    method, kind, field = "SignIncluded", secure_pb2.SignIncludedRequest, "signature"

    def lie(self, signature):
        return bytes(64)


async def try_round(it, make):
    """A round of all devices that get a place; those who are refused leave it."""
    devices = [(make if seed == LIAR else SecureDevice)(seed, it.call) for seed in range(N)]
    present = []
    for device in devices:
        answer = await device.call("CheckIn", CHECK_IN, pb.CheckInResponse)
        if answer.HasField("assignment"):
            device.begin(answer.assignment)
            present.append(device)
    for device in present:
        device.others = [one.place.peer_id for one in present]
    for _ in STEPS:
        staying = []
        for device in present:
            try:
                await device.deliver()
                staying.append(device)
            except Refusal:
                pass
        present, phase = staying, where(it)
        await it.go_on()
        if where(it) == phase:  # Somebody left, or a place was not taken.
            it.clock.now += 60
            await it.go_on()


def where(it):
    current = it.coordinator.book.current
    return current.number, current.cohort.phase


def events(it, name):
    return [event for line in it.log.getvalue().splitlines() if (event := json.loads(line))["event"] == name]


@pytest.mark.parametrize("kind", [Sealer, Complainer, Revealer, Garbage, Pusher])
def test_a_liar_is_named_and_gets_no_more_places_while_training_goes_on(tmp_path, kind):
    async def story():
        async with secure(tmp_path, goal=N, minimum=3, evaluate_every=0) as it:
            for _ in range(30):
                await try_round(it, kind)
                named = events(it, "fault")
                if named and named[-1]["count"] >= MOST_FAULTS:
                    break
            assert {event["device"] for event in named} == {f"device-{LIAR}"}
            finished = it.coordinator._schedule.finished
            assert finished > 0 or kind is Garbage
            await refused_as_faulty(it)
            await try_round(it, kind)
            assert it.coordinator._schedule.finished == finished + 1
        async with secure(tmp_path, goal=N, minimum=3, evaluate_every=0, clock=it.clock) as again:
            await refused_as_faulty(again)  # It is remembered,
            again.clock.now += PAUSE_SECONDS
            await SecureDevice(LIAR, again.call).check_in()  # and has one more chance later.

    async def refused_as_faulty(it):
        answer = await SecureDevice(LIAR, it.call).call("CheckIn", CHECK_IN, pb.CheckInResponse)
        assert answer.retry_window.reason == pb.RETRY_REASON_FAULTY
        assert answer.retry_window.earliest_ms >= 3_600_000

    run(story())


def test_two_that_lie_about_a_third_do_not_have_it_named(tmp_path):
    async def story():
        async with secure(tmp_path, goal=N, minimum=3, evaluate_every=0) as it:
            devices = [(Framer if seed in (5, 9) else SecureDevice)(seed, it.call) for seed in range(N)]
            for device in devices:
                await device.check_in()
            for device in devices:
                device.others, device.victim = [one.place.peer_id for one in devices], devices[3].place.peer_id
            for _ in STEPS:
                for device in devices:
                    await device.deliver()
                await it.go_on()
            assert it.coordinator.version.manifest.model_version == 2
            assert not events(it, "fault")

    run(story())


def test_a_device_that_shows_the_member_key_of_another_is_named_and_the_other_is_not_paused(tmp_path):
    async def story():
        async with secure(tmp_path, goal=N, minimum=3, evaluate_every=0) as it:
            victim = SecureDevice(7, it.call)
            for count in range(1, MOST_FAULTS + 1):
                devices = [(Thief if seed == LIAR else SecureDevice)(seed, it.call) for seed in range(N)]
                devices[LIAR].victim = devices[7] = victim
                for device in devices:
                    await device.check_in()
                for device in devices:
                    if device is victim:
                        with pytest.raises(Refusal, match="a key is not new"):
                            await device.deliver()
                    else:
                        await device.deliver()
                for _ in STEPS:  # Nobody goes on: the round ends by its deadlines.
                    it.clock.now += 60
                    await it.go_on()
                counts = {event["device"]: event["count"] for event in events(it, "fault")}
                assert counts == {f"device-{LIAR}": count, victim.name: 0}
            answer = await SecureDevice(LIAR, it.call).call("CheckIn", CHECK_IN, pb.CheckInResponse)
            assert answer.retry_window.reason == pb.RETRY_REASON_FAULTY
            await victim.check_in()

    run(story())


def test_garbage_publishes_the_same_codes_under_a_new_number(tmp_path):
    async def story():
        async with secure(tmp_path, goal=N, minimum=3) as it:
            before = it.coordinator.version.manifest
            await try_round(it, Garbage)
            after = it.coordinator.version.manifest
            assert (before.model_version, after.model_version) == (1, 2)
            assert before.codes == after.codes
            (event,) = events(it, "sum_dropped")
            assert "rows" in event["reason"] or "weight" in event["reason"]

    run(story())


def test_a_device_that_is_only_refused_is_named_and_may_come_again(tmp_path):
    async def story():
        async with secure(tmp_path, goal=N, minimum=3) as it:
            for _ in range(MOST_FAULTS + 1):
                await try_round(it, Signer)
            assert it.coordinator._schedule.finished == MOST_FAULTS + 1
            named = events(it, "fault")
            assert {(event["device"], event["reason"], event["count"]) for event in named} == {
                (f"device-{LIAR}", REFUSED, 0)
            }
            await SecureDevice(LIAR, it.call).check_in()

    run(story())


@pytest.mark.parametrize("step", STEPS)
def test_a_device_that_leaves_is_not_at_fault(tmp_path, step):
    async def story():
        async with secure(tmp_path, goal=6) as it:
            await it.run_steps(it.devices(6), absent={step: [2]})
            assert it.coordinator.version.manifest.model_version == 2
            assert not events(it, "fault")

    run(story())
