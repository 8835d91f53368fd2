"""Syncing: what is fetched, and what is refused."""

import logging
import threading
import time
import tracemalloc
import zlib

import pytest

from lightfr._wire.channel import Channel
from lightfr.errors import (
    ArtifactError,
    ArtifactFileError,
    LightFRError,
    ManifestError,
    ProtocolError,
    ServerUnavailableError,
    StoreClosedError,
)
from tests.sdk.client.publisher import (
    COORDINATED_ITEMS,
    ITEMS,
    asked,
    files_of,
    names_of,
    random_codes,
    served,
    with_changed_rows,
)


def test_a_delta_from_the_held_codes_is_taken_instead_of_the_codes(publisher, device, codes):
    changed = with_changed_rows(codes)
    message = publisher.publish(2, changed, deltas_from=[random_codes(2), codes])
    assert device.sync()
    assert asked(publisher) == [message.codes_deltas[1].artifact.sha256.hex()]
    assert served(device) == (2, changed[0].tobytes())
    assert files_of(device) == names_of(message)


def test_a_delta_that_is_not_smaller_is_left_alone(publisher, device, codes):
    message = publisher.publish(2, random_codes(3), deltas_from=[codes])
    assert message.codes_deltas[0].artifact.size_bytes >= message.codes.size_bytes
    device.sync()
    assert asked(publisher) == [message.codes.sha256.hex()]


def test_a_delta_from_codes_that_are_not_held_is_left_alone(publisher, device, codes):
    other = random_codes(2)
    message = publisher.publish(2, with_changed_rows(other), deltas_from=[other])
    device.sync()
    assert asked(publisher) == [message.codes.sha256.hex()]


def test_a_delta_that_leads_to_other_codes_falls_back_to_the_whole(publisher, device, codes):
    wrong = publisher.publish(9, with_changed_rows(codes, 7), deltas_from=[codes]).codes_deltas[0]
    message = publisher.publish(2, with_changed_rows(codes, 5))
    message.codes_deltas.append(wrong)
    publisher.sign(message)
    assert device.sync()
    assert asked(publisher) == [wrong.artifact.sha256.hex(), message.codes.sha256.hex()]
    assert served(device) == (2, with_changed_rows(codes)[0].tobytes())
    assert files_of(device) == names_of(message)


@pytest.mark.parametrize("lie", [b"", b"no delta", bytes(400)])
def test_a_delta_that_is_none_falls_back_to_the_whole(publisher, device, codes, lie, caplog):
    message = publisher.publish(2, with_changed_rows(codes))
    message.codes_deltas.add(from_sha256=_digest(codes), artifact=publisher.keep(lie))
    publisher.sign(message)
    assert device.sync()
    assert served(device) == (2, with_changed_rows(codes)[0].tobytes())
    said = "a delta could not be used (ArtifactError): the whole codes are fetched instead"
    assert caplog.record_tuples == [("lightfr.model", logging.WARNING, said)]


def test_a_delta_whose_download_has_another_digest_falls_back_to_the_whole(publisher, device, codes):
    message = publisher.publish(2, with_changed_rows(codes), deltas_from=[codes])
    delta = message.codes_deltas[0].artifact
    publisher.files[delta.sha256.hex()] = bytes(delta.size_bytes)
    assert device.sync()
    assert served(device)[0] == 2


def test_held_codes_that_vanished_do_not_stop_a_sync(publisher, device, codes):
    (device._user.models._path / _digest(codes).hex()).unlink()
    publisher.publish(2, with_changed_rows(codes), deltas_from=[codes])
    assert device.sync()
    assert served(device) == (2, with_changed_rows(codes)[0].tobytes())


@pytest.mark.parametrize("version", [1, 2])
def test_a_version_that_is_not_newer_is_refused(publisher, device, codes, version):
    """Signed long ago and genuine, and still not to be gone back to."""
    publisher.publish(3, random_codes(3))
    device.sync()
    publisher.server.requests.clear()
    publisher.publish(version, codes)
    with pytest.raises(ManifestError, match=f"version {version} after 3"):
        device.sync()
    assert asked(publisher) == []
    assert served(device)[0] == 3


def test_the_same_version_with_other_content_is_refused(publisher, device):
    publisher.publish(1, random_codes(7))
    publisher.answers["GetManifest"] = lambda _: publisher._GetManifest(b"")
    with pytest.raises(ManifestError, match="version 1 after 1"):
        device.sync()


def test_a_version_is_remembered_over_a_restart(publisher, device, open_device, codes):
    publisher.publish(3, random_codes(3))
    device.sync()
    device.close()
    publisher.publish(2, codes)
    with pytest.raises(ManifestError, match="version 2 after 3"):
        open_device().sync()


def test_codes_that_are_not_those_of_the_manifest_are_refused(publisher, device, codes):
    before = served(device)
    message = publisher.publish(2, random_codes(2))
    right = publisher.files[message.codes.sha256.hex()]
    publisher.files[message.codes.sha256.hex()] = right[::-1]
    with pytest.raises(ArtifactError):
        device.sync()
    assert served(device) == before
    publisher.files[message.codes.sha256.hex()] = right
    assert device.sync()


@pytest.mark.parametrize(
    "fields",
    [
        {"objective": 0},
        {"objective": 99},
        {"upload_kind": 0},
        {"balance": 1},
        {"mean_user": b"odd"},
        {"mean_user": bytes(126)},
    ],
)
def test_a_signed_model_outside_the_protocol_is_refused_and_the_old_one_stays(publisher, device, fields):
    before = served(device)
    publisher.publish(2, random_codes(2), **fields)
    with pytest.raises(ProtocolError):
        device.sync()
    assert served(device) == before
    publisher.publish(3, random_codes(3))
    assert device.sync()


def test_a_catalogue_of_another_size_than_the_codes_is_refused_and_the_old_model_stays(publisher, device):
    before = served(device)
    publisher.publish(2, random_codes(2), ids=ITEMS[:-1])
    with pytest.raises(LightFRError):
        device.sync()
    assert served(device) == before


def test_leftovers_are_swept(publisher, device, codes):
    folder = device._user.models._path
    for name in ("0" * 64, "1" * 64 + ".part", "2" * 64 + ".patched", "current.new"):
        (folder / name).write_bytes(b"left by a crash")
    message = publisher.publish(2, with_changed_rows(codes), deltas_from=[codes])
    device.sync()
    assert files_of(device) == names_of(message)


def test_a_part_of_the_next_version_is_gone_on_with_after_a_restart(publisher, device, open_device):
    message = publisher.publish(2, random_codes(2))
    name = message.codes.sha256.hex()
    device.close()
    (device._user.models._path / f"{name}.part").write_bytes(publisher.files[name][:1000])
    client = open_device()
    assert client.sync()
    ranges = [headers.get("Range") for _, path, headers, _ in publisher.server.requests if path.endswith(name)]
    assert ranges == ["bytes=1000-"]
    assert served(client)[0] == 2


def test_parts_of_versions_that_were_never_whole_do_not_pile_up(publisher, device):
    """A slow device may never get a version whole before the server has the next one."""
    for version in (2, 3, 4):
        message = publisher.publish(version, random_codes(version))
        name = message.codes.sha256.hex()
        publisher.answers[name] = (200, {"Content-Length": "4000", "Connection": "close"}, publisher.files[name][:3000])
        with pytest.raises(ServerUnavailableError):
            device.sync()
        assert {file for file in files_of(device) if file.endswith(".part")} == {f"{name}.part"}
    assert served(device)[0] == 1


def test_a_small_bitmap_of_very_many_items_is_not_inflated(publisher, device):
    """A million items to the kilobyte: the catalogue, which takes bytes for each item, gives the lie away first."""
    n_items = 2**30
    message = publisher.publish(2, random_codes(2))
    message.model.item_count = n_items
    message.codes.CopyFrom(publisher.keep(bytes(8)))
    message.open_rows.CopyFrom(publisher.keep(zlib.compress(bytes(n_items // 8), 1)))
    publisher.sign(message)
    tracemalloc.start()
    with pytest.raises(ArtifactFileError, match="the catalogue has 500 items"):
        device.sync()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 2**20
    assert served(device)[0] == 1


def test_recommending_goes_on_from_the_old_model_while_a_sync_is_under_way(publisher, device):
    message, go_on, waiting = publisher.publish(2, random_codes(2)), threading.Event(), threading.Event()
    name = message.codes.sha256.hex()

    def slow(_body):
        waiting.set()
        go_on.wait(20)
        return 200, {}, publisher.files[name]

    publisher.answers[name] = slow
    thread = threading.Thread(target=device.sync)
    thread.start()
    try:
        assert waiting.wait(20)
        device.rate("item 2", 1)
        assert served(device)[0] == 1
        assert device.unrate("item 2")
        assert thread.is_alive()
    finally:
        go_on.set()
        thread.join()
    assert served(device)[0] == 2


def test_codes_of_another_length_replace_the_model_and_the_user_code(publisher, device):
    publisher.assignment()
    assert device.participate().took_part
    assert len(device._store.get("user_code")) == 8
    publisher.publish(2, random_codes(2, code_bits=128))
    assert device.sync()
    assert device.status().code_bits == 128
    assert served(device)[0] == 2
    publisher.assignment()
    assert device.participate().took_part
    assert len(device._store.get("user_code")) == 16


def test_ratings_find_their_rows_anew_in_a_catalogue_of_another_order(publisher, device):
    publisher.publish(2, random_codes(1), ids=ITEMS[::-1])
    device.recommend(1)
    device.sync()
    assert "item 1" not in {item.item_id for item in device.recommend(500)}
    assert len(device.recommend(500)) == 499


def test_a_closed_client_does_not_sync(publisher, device):
    publisher.publish(2, random_codes(2))
    device.close()
    for call in (device.sync, device.participate, device.recommend):
        with pytest.raises(StoreClosedError):
            call()
    assert publisher.server.requests == []


def test_devices_of_a_real_coordinator_take_its_deltas(start_coordinator, open_client, monkeypatch):
    """The first round moves most rows, so a delta from its codes saves nothing; later ones move fewer."""
    coordinator = start_coordinator(goal=1, rounds=8)
    trains, follows = open_client(coordinator), open_client(coordinator)
    trains.rate_many([(item, 5) for item in COORDINATED_ITEMS[:30]])
    asked, get = [], Channel.get
    monkeypatch.setattr(Channel, "get", lambda self, path, *how: (asked.append(path), get(self, path, *how))[1])
    follows.sync()
    deltas = 0
    for _ in range(8):
        old = follows._user.model.manifest.message.codes.sha256
        assert trains.participate().took_part
        asked.clear()
        while not follows.sync():
            time.sleep(0.02)
        manifest = follows._user.model.manifest
        delta = manifest.delta_from(old)
        assert f"/artifacts/{(delta or manifest.message.codes).sha256.hex()}" in asked
        deltas += delta is not None
    assert deltas > 0


def _digest(codes):
    from hashlib import sha256

    return sha256(codes.tobytes()).digest()
