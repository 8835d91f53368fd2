"""A sync that fails anywhere changes nothing: disks that refuse, kills, connections that break."""

import errno

import pytest

from lightfr.errors import LightFRError, StoreWriteError
from lightfr.model import deltas
from lightfr_harness.devices.link import Link, Loop
from tests.sdk.client.publisher import ITEMS, files_of, names_of, random_codes, served, with_changed_rows
from tests.sdk.store.faults import CrashError, Files


def versions_of(publisher, device, codes):
    """Publish ever newer versions, by delta and whole in turn, for as long as the test likes."""
    version, held = device.status().model_version, codes
    while True:
        version += 1
        new = with_changed_rows(held, 3) if version % 2 else random_codes(version)
        publisher.publish(version, new, deltas_from=[held])
        yield version, (version, new[0].tobytes())
        held = new


def count_operations(files, device, versions):
    """The most operations that a sync takes, of one by delta and one whole."""
    counts = []
    for _ in range(2):
        next(versions)
        files.arm(0, "refuse")
        assert device.sync()
        counts.append(len(files.log))
    assert min(counts) > 8
    return max(counts)


def test_a_sync_refused_by_the_disk_at_any_operation_leaves_the_old_version(publisher, device, codes, monkeypatch):
    files = Files(monkeypatch)
    versions, refused = versions_of(publisher, device, codes), 0
    for at in range(1, count_operations(files, device, versions) + 1):
        for _ in ("delta", "whole"):
            before, (_, after) = served(device), next(versions)
            files.arm(at, "refuse", errno.ENOSPC)
            try:
                assert device.sync()
            except StoreWriteError as error:
                refused += error.errno == errno.ENOSPC
                assert served(device) == before
                files.heal()
                assert device.sync()
            files.heal()
            assert served(device) == after
    assert refused > 15
    message = publisher.publish(10_000, random_codes(0))
    device.sync()
    assert files_of(device) == names_of(message)


def test_a_sync_killed_at_any_operation_leaves_one_whole_version(publisher, device, open_device, codes, monkeypatch):
    """Killed before the operation, or in the middle of it where that is a write."""
    files = Files(monkeypatch)
    versions, killed = versions_of(publisher, device, codes), 0
    for at in range(1, count_operations(files, device, versions) + 1):
        for _ in ("delta", "whole"):
            before, (_, after) = served(device), next(versions)
            files.arm(at, "torn")
            try:
                device.sync()
            except CrashError:
                killed += 1
            files.heal()
            device.close()
            device = open_device()
            assert served(device) in (before, after)
            device.sync()
            assert served(device) == after
    assert killed > 15
    message = publisher.publish(10_000, random_codes(0))
    device.sync()
    assert files_of(device) == names_of(message)


def test_a_full_disk_while_a_delta_is_applied_leaves_the_old_version(publisher, device, codes, monkeypatch):
    before = served(device)
    publisher.publish(2, with_changed_rows(codes), deltas_from=[codes])

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(deltas, "apply_delta", full)
        with pytest.raises(StoreWriteError, match="No space left"):
            device.sync()
    assert served(device) == before
    assert device.sync()


def test_a_connection_that_breaks_after_any_number_of_bytes_leaves_the_old_version(publisher, device, open_device):
    """Some of these syncs come through, because each connection brings a part; the others change nothing."""
    device.close()
    failed = came_through = 0
    address = ("127.0.0.1", publisher.server.server_address[1])
    with Loop() as loop, Link(loop, address) as proxy:
        client = open_device(f"https://localhost:{proxy.port}")
        for version, n_bytes in enumerate(range(0, 20_000, 1300), start=2):
            before, codes = served(client), random_codes(version)
            publisher.publish(version, codes, ids=[f"{version} {item}" for item in ITEMS])
            client._channel.close()
            proxy.break_after = n_bytes
            try:
                assert client.sync()
                came_through += 1
            except LightFRError:
                failed += 1
                assert served(client) == before
                proxy.break_after = None
                client._channel.close()
                assert client.sync()
            assert served(client) == (version, codes[0].tobytes())
        assert files_of(client) == names_of(publisher.message)
        client.close()
    assert failed > 2
    assert came_through > 2
