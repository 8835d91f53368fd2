"""A catalogue that changes, on the device: parts, open and removed items, and models that do not fit together."""

import zlib

import numpy as np
import pytest

from lightfr.errors import ArtifactFileError, ManifestError, NotSyncedError, UnknownItemError
from lightfr.v1 import coordinator_pb2, manifest_pb2
from lightfr_harness.server.artifacts import make_bitmap, make_delta
from tests.sdk.client.publisher import ITEMS, asked, files_of, random_codes

N = len(ITEMS)
NEW_ITEMS = [f"new {number}" for number in range(40)]
IS_OPEN = np.isin(np.arange(N), [*range(100), 150, 499])
ROWS = random_codes(1)[: IS_OPEN.sum() + 1]


@pytest.fixture
def device(publisher, open_device):
    """A device that holds version 1, in which 102 of 500 items are open."""
    publisher.publish(1, ROWS, is_open=IS_OPEN)
    client = open_device()
    client.sync()
    client.rate_many([("item 1", 5), ("item 150", 4), ("item 300", 5)])
    publisher.server.requests.clear()
    return client


def full_matrix(rows, is_open):
    """A row for each item, the last of `rows` for those that are closed."""
    return np.where(is_open[:, None], rows[np.minimum(np.cumsum(is_open) - 1, len(rows) - 1)], rows[-1])


def test_recommendations_are_those_of_the_full_matrix(publisher, device):
    device._store.put("user_code", bytes(8))
    device._user.forget_computed()
    found = device.recommend(N)
    alike, why = device.similar("item 400", N), device.explain("item 150", N)
    publisher.publish(2, full_matrix(ROWS, IS_OPEN))
    device.sync()
    assert device.recommend(N) == found
    assert (device.similar("item 400", N), device.explain("item 150", N)) == (alike, why)
    assert device.score("item 400") == next(item for item in found if item.item_id == "item 400")


def test_items_that_join_cost_their_own_part_and_the_rows_that_changed(publisher, device):
    is_open = np.concatenate([IS_OPEN, np.arange(40) == 7])
    rows = np.insert(ROWS, 102, random_codes(5)[0], axis=0)
    message = publisher.publish(2, rows, parts=[NEW_ITEMS], is_open=is_open, deltas_from=[])
    moved_from = np.array([*range(102), -1, 102])
    delta = message.codes_deltas.add(from_sha256=_digest(publisher, ROWS))
    delta.artifact.CopyFrom(publisher.keep(make_delta(ROWS, rows, moved_from)))
    publisher.sign(message)
    assert device.sync()
    fetched = [message.catalogue_parts[1], message.open_rows, message.codes_deltas[0].artifact]
    assert sorted(asked(publisher)) == sorted(file.sha256.hex() for file in fetched)
    assert device.status().item_count == N + 40
    assert {"new 7", "new 39"} <= {item.item_id for item in device.recommend(N + 40)}
    assert device._user.model.codes.row(N + 7) == random_codes(5)[0].tobytes()


def test_an_item_that_left_is_unknown_until_it_comes_back(publisher, device):
    removed = np.isin(np.arange(N), [300, 400])
    publisher.publish(2, ROWS, is_open=IS_OPEN, removed=removed)
    device.sync()
    gone = {"item 300", "item 400"}
    assert not gone & {item.item_id for item in device.recommend(N, exclude_rated=False)}
    assert not gone & {item.item_id for item in device.recommend(N, exclude_rated=False, among=ITEMS)}
    assert not gone & {item.item_id for item in device.similar("item 399", N)}
    assert not gone & {item.item_id for item in device.explain("item 1", N)}
    for ask in (device.score, device.similar, device.explain):
        with pytest.raises(UnknownItemError):
            ask("item 400")
    status = device.status()
    assert (status.rating_count, status.unknown_ratings, status.item_count) == (3, 1, N - 2)
    publisher.publish(3, ROWS, is_open=IS_OPEN)
    device.sync()
    assert device.status().unknown_ratings == 0
    assert "item 300" in {item.item_id for item in device.recommend(N, exclude_rated=False)}


def test_popular_items_are_those_that_have_not_left(publisher, device):
    message = publisher.publish(2, ROWS, is_open=IS_OPEN, removed=np.isin(np.arange(N), [102, 103]))
    message.prior.first_items.append(0)
    message.prior.popularities.append(5)
    message.rankings.extend([manifest_pb2.Ranking(by=manifest_pb2.RANK_BY_POPULARITY)] * 4)
    publisher.sign(message)
    device.sync()
    found = [item.item_id for item in device.recommend(3, exclude=ITEMS[:101])]
    assert found == ["item 101", "item 104", "item 105"]


def test_only_open_items_are_uploaded_by_their_indices(publisher, device):
    publisher.assignment()
    device.rate("item 2", 5)  # the newest is kept back
    assert device.participate().took_part
    update = coordinator_pb2.UploadRequest.FromString(publisher.uploads[0]).row_update
    assert list(memoryview(update.item_indices).cast("I")) == [1, 150]


def _digest(publisher, rows):
    return publisher.keep(rows.tobytes()).sha256


def bad_models():
    """What a server may sign that does not fit together, and what the device says."""
    more, open_and_removed = IS_OPEN.copy(), np.arange(N) == 150
    more[200] = True
    bitmap = np.packbits(IS_OPEN, bitorder="little").tobytes()
    return {
        "a bitmap of more items than rows": ({"is_open": more}, {}, "codes file has"),
        "an open item that left": ({"removed": open_and_removed}, {}, "an item that left the catalogue is open"),
        "a catalogue that most items have left": ({"removed": ~IS_OPEN}, {}, "more than half of its items have left"),
        "a bitmap that is too long": ({}, {"open_rows": zlib.compress(bitmap + b"\0")}, "bitmap file is corrupt"),
        "a bitmap that is too short": ({}, {"open_rows": zlib.compress(bitmap[:-1])}, "bitmap file is corrupt"),
        "no bitmap": ({}, {"removed_items": b"nothing"}, "bitmap file is corrupt"),
        "too few ids": ({"ids": ITEMS[:-1]}, {}, "the catalogue has 499 items, expected 500"),
        "too many ids": ({"parts": [NEW_ITEMS]}, {}, "the catalogue has 540 items, expected 500"),
        "ids of two kinds": ({"ids": ITEMS[:-1], "parts": [[7]]}, {}, "one catalogue file has integers"),
        "a catalogue that is none": ({}, {"catalogue_parts": b"LFRC" + bytes(100)}, "catalogue"),
    }


@pytest.mark.parametrize("name", bad_models())
def test_a_model_that_does_not_fit_together_is_refused_and_the_old_one_stays(publisher, device, open_device, name):
    fields, files, said = bad_models()[name]
    before, kept = device.recommend(N), files_of(device)
    message = publisher.publish(2, ROWS, **{"is_open": IS_OPEN, **fields})
    for field, content in files.items():
        if field == "catalogue_parts":
            del message.catalogue_parts[:]
            message.catalogue_parts.append(publisher.keep(content))
        else:
            getattr(message, field).CopyFrom(publisher.keep(content))
    publisher.sign(message)
    for _ in range(2):
        with pytest.raises(ArtifactFileError, match=said):
            device.sync()
        assert device.status().model_version == 1
        assert device.recommend(N) == before
    assert files_of(device) == kept
    device.close()
    client = open_device()
    assert len(client.recommend(N)) == len(before)
    publisher.publish(3, random_codes(3))
    assert client.sync()


def test_a_catalogue_whose_directory_is_out_of_order_is_refused_before_it_is_used(publisher, device):
    """Its header and size are right: only a walk through it finds out."""
    ids = list(range(1000))
    is_open = np.arange(1000) < 102
    message = publisher.publish(2, ROWS[:103], ids=ids, is_open=is_open)
    content = bytearray(publisher.files[message.catalogue_parts[0].sha256.hex()])
    firsts = 16 + 4 * 5
    content[firsts : firsts + 16] = content[firsts + 8 : firsts + 16] + content[firsts : firsts + 8]
    message.catalogue_parts[0].CopyFrom(publisher.keep(bytes(content)))
    publisher.sign(message)
    with pytest.raises(ArtifactFileError):
        device.sync()
    assert device.status().model_version == 1


def test_a_first_model_that_is_refused_leaves_nothing(publisher, open_device):
    message = publisher.publish(1, ROWS, is_open=np.ones(N, bool))
    client = open_device()
    with pytest.raises(ArtifactFileError, match="codes file has"):
        client.sync()
    assert files_of(client) == set()
    with pytest.raises(NotSyncedError):
        client.recommend(3)
    message.open_rows.CopyFrom(publisher.keep(make_bitmap(IS_OPEN)))
    publisher.sign(message)
    assert client.sync()


def test_codes_that_no_bitmap_explains_are_refused_before_anything_is_fetched(publisher, device):
    publisher.publish(2, ROWS, item_count=N)
    with pytest.raises(ManifestError, match="the codes have another size"):
        device.sync()
    assert asked(publisher) == []
