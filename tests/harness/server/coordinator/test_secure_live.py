"""Secure aggregation over real mutual TLS: devices in threads that wait for each other's steps."""

import asyncio
import threading

from lightfr.device import Identity, Trust
from lightfr.v1 import coordinator_pb2 as pb
from tests.certificates import client_context, client_pem
from tests.harness.server.coordinator.helpers import oracle, same_state
from tests.harness.server.coordinator.live import COORDINATOR, PROTO, TIMEOUT_SECONDS, Live, exchange
from tests.harness.server.coordinator.secure import SECURE, STEPS, SecureDevice, update_of

N_DEVICES = 4


def pems_of(authority, folder, n):
    """The identities of new devices."""
    pems = []
    for number in range(n):
        (folder / str(number)).mkdir()
        pems.append(client_pem(authority, folder / str(number)))
    return pems


def device_of(live, pem, seed):
    key, context = live.credentials.manifest_key.public_key().public_bytes_raw(), client_context(live.authority, pem)
    identity = Identity(pem, Trust(live.authority.folder / "trust.pem"))

    async def call(_, method, body):
        status, _, answer = exchange(live.connection(context), "POST", COORDINATOR + method, body, PROTO)
        assert status == 200, answer
        return answer

    return SecureDevice(seed, call, key, identity.member(), live.credentials.membership_keys)


async def take_part(device):
    await device.check_in()
    await device.deliver()
    for _ in STEPS[1:]:
        await device.deliver(await device.step(max_wait_ms=20_000))
    assert (await device.step()).HasField("done")


def test_devices_in_threads_train_and_the_model_is_that_of_the_clear_run(tmp_path, authority):
    pems = pems_of(authority, tmp_path, N_DEVICES)
    how = {"goal": N_DEVICES, "over_selection": 1.0, "minimum": 2, "rounds": 1}
    expected = oracle()
    for seed in range(N_DEVICES):
        expected.add(update_of(seed).SerializeToString())
    expected.finish_round()
    with Live(tmp_path / "folder", authority, settings=SECURE, **how) as live:
        devices = [device_of(live, pem, seed) for seed, pem in enumerate(pems)]
        threads = [threading.Thread(target=lambda d=device: asyncio.run(take_part(d))) for device in devices]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(TIMEOUT_SECONDS)
        status = asyncio.run(finished(devices[0]))
        assert (status.upload_count, status.next_model_version) == (N_DEVICES, 2)
        assert same_state(live.coordinator._rule, expected)
        assert b'lightfr_privacy_mode{mode="secagg"} 1.0' in live.operations("GET", "/metrics")[2]


async def finished(device):
    """The round's status once the masks are off."""
    request = pb.GetRoundStatusRequest(round_id=device.place.round_id)
    while True:
        status = await device.call("GetRoundStatus", request, pb.GetRoundStatusResponse)
        if status.state == pb.ROUND_STATE_FINISHED:
            return status
        await asyncio.sleep(0.02)


def test_a_wait_ends_before_the_request_may_take_no_longer(tmp_path, authority):
    (pem,) = pems_of(authority, tmp_path, 1)
    how = {"goal": N_DEVICES, "over_selection": 1.0, "minimum": 2}
    with Live(tmp_path / "folder", authority, settings=SECURE, **how) as live:
        device = device_of(live, pem, 1)
        asyncio.run(device.check_in())
        asyncio.run(device.deliver())
        in_a_hurry = PROTO | {"Connect-Timeout-Ms": "200"}
        request = b"\x0a\x10" + device.place.round_id + b"\x10\xa0\x9c\x01"  # max_wait_ms: 20,000
        connection = live.connection(client_context(authority, pem))
        status, _, body = exchange(connection, "POST", COORDINATOR + "GetStep", request, in_a_hurry)
        assert (status, body) == (200, b"\x08\x32")  # wait_ms: 50


def test_metrics_and_page_show_mode_phase_and_devices(tmp_path, authority):
    (pem,) = pems_of(authority, tmp_path, 1)
    with Live(tmp_path / "folder", authority, settings=SECURE, goal=3, minimum=2, tolerance=0.05) as live:
        device = device_of(live, pem, 1)
        asyncio.run(device.check_in())
        asyncio.run(device.deliver())
        metrics, page = (live.operations("GET", path)[2].decode() for path in ("/metrics", "/"))
        assert "lightfr_round_phase 1.0" in metrics
        assert 'lightfr_phase_devices{phase="advertising"} 1.0' in metrics
        assert "Round 1: open, advertising" in page
        assert "1 of 5 advertising" in page
        assert "secagg" in page
        assert "in the clear" not in page
