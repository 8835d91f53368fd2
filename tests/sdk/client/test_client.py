"""What an app sees: the same client, offline and online, against a real coordinator over mutual TLS."""

import threading
import time

import pytest

from lightfr import Client, FileKey, RatingScale, discard
from lightfr.errors import (
    InvalidInputError,
    LightFRError,
    NotPrivateError,
    NotSyncedError,
    RatingError,
    ServerUnavailableError,
    StoreClosedError,
    StoreLockedError,
)
from lightfr.v1 import manifest_pb2
from tests.sdk.client.publisher import COORDINATED_ITEMS as ITEMS


def test_a_session_from_enrolment_to_recommendations(coordinator, open_client):
    client = open_client(coordinator)
    assert client.sync()
    client.rate("item 3", 5)
    client.rate_many([("item 4", 1), ("item 5", 4.5)])
    ids = [item.item_id for item in client.recommend(5)]
    assert len(set(ids)) == 5
    assert set(ids) <= set(ITEMS) - {"item 3", "item 4", "item 5"}
    status = client.status()
    assert (status.model_version, status.item_count, status.code_bits, status.rating_count) == (1, 300, 64, 3)
    assert status.item_id_kind == "str"


def test_everything_but_sync_and_participate_works_offline(coordinator, open_client):
    client = open_client(coordinator)
    client.sync()
    client.close()
    offline = open_client(coordinator, client.device, server="https://localhost:1")
    offline.rate("item 1", 2)
    assert len(offline.recommend(3)) == 3
    assert offline.unrate("item 1")
    assert not offline.unrate("item 1")
    with pytest.raises(ServerUnavailableError):
        offline.sync()
    assert len(offline.recommend(3)) == 3


def test_before_the_first_sync_ratings_are_kept_and_recommending_says_what_to_do(coordinator, open_client):
    client = open_client(coordinator)
    client.rate("item 7", 5)
    with pytest.raises(NotSyncedError, match=r"sync\(\)"):
        client.recommend()
    client.sync()
    assert "item 7" not in [item.item_id for item in client.recommend(300)]


def test_ratings_of_unknown_items_wait_for_a_catalogue_that_has_them(coordinator, open_client):
    client = open_client(coordinator)
    client.sync()
    client.rate("of another catalogue", 5)
    client.rate(17, 5)
    assert len(client.recommend(300)) == 300
    assert client.status().rating_count == 2


def test_ratings_survive_closing_and_keep_their_order(coordinator, open_client):
    client = open_client(coordinator)
    client.rate_many([("b", 1), ("a", 3), ("b", 5)])
    client.close()
    again = open_client(coordinator, client.device)
    assert again.export_my_data()["ratings"] == [{"item_id": "a", "rating": 3.0}, {"item_id": "b", "rating": 5.0}]


@pytest.mark.parametrize("bad", [0.99, 5.01, float("nan"), float("inf")])
def test_a_rating_outside_the_scale_is_refused_and_nothing_of_its_batch_is_kept(coordinator, open_client, bad):
    client = open_client(coordinator)
    with pytest.raises(RatingError):
        client.rate_many([("x", 3), ("y", bad)])
    assert client.status().rating_count == 0


@pytest.mark.parametrize("bad", ["", "x" * 256, "\ud800", 2**63, True, None, 1.5])
def test_an_item_id_outside_its_domain_is_refused_without_being_repeated(coordinator, open_client, bad):
    client = open_client(coordinator)
    for call in (lambda: client.rate(bad, 3), lambda: client.unrate(bad)):
        with pytest.raises(InvalidInputError) as refused:
            call()
        assert "xxx" not in str(refused.value)


def test_a_folder_keeps_its_rating_scale(coordinator, open_client):
    client = open_client(coordinator, scale=RatingScale(0, 10))
    client.rate("x", 7)
    client.close()
    with pytest.raises(InvalidInputError, match="0 to 10"):
        open_client(coordinator, client.device, scale=RatingScale(1, 5))
    again = open_client(coordinator, client.device)
    assert again.export_my_data()["ratings"] == [{"item_id": "x", "rating": 7.0}]
    assert again.export_my_data()["rating_scale"] == [0, 10]


def test_a_second_sync_finds_nothing_new(coordinator, open_client):
    client = open_client(coordinator)
    assert client.sync()
    assert not client.sync()


def test_a_folder_is_open_once(coordinator, open_client):
    client = open_client(coordinator)
    with pytest.raises(StoreLockedError):
        open_client(coordinator, client.device)


def test_a_closed_client_says_so(coordinator, open_client):
    client = open_client(coordinator)
    client.close()
    client.close()
    with pytest.raises(StoreClosedError):
        client.rate("x", 1)
    with pytest.raises(LightFRError):
        client.recommend()


def test_forget_leaves_nothing_behind(coordinator, open_client, tmp_path):
    client = open_client(coordinator)
    client.sync()
    client.rate("item 1", 5)
    folder = client.device.identity.parent
    client.forget()
    left = {file.name for file in (folder / "data").iterdir()}
    assert left == set()
    assert not (folder / "key").exists()
    assert open_client(coordinator, client.device).status().rating_count == 0


def test_rotating_the_key_changes_nothing_else(coordinator, open_client):
    client = open_client(coordinator)
    client.rate("item 1", 5)
    client.rotate_key()
    client.rate("item 2", 5)
    client.close()
    assert open_client(coordinator, client.device).status().rating_count == 2


def test_threads_may_share_a_client(coordinator, open_client):
    client = open_client(coordinator)
    client.sync()
    errors = []

    def work(thread):
        try:
            for number in range(10):
                client.rate(f"item {thread * 10 + number}", 3)
                assert len(client.recommend(5)) == 5
                client.status()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
    threads.append(threading.Thread(target=client.sync))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert client.status().rating_count == 40


def test_an_address_that_is_not_https_and_an_identity_that_is_not_there_are_refused(tmp_path):
    how = {"trust": tmp_path / "trust.pem", "key": FileKey(tmp_path / "key")}
    with pytest.raises(InvalidInputError, match="not https://host:port"):
        Client.open(tmp_path / "data", server="http://localhost:1", identity=tmp_path / "identity.pem", **how)
    with pytest.raises(InvalidInputError, match="enrol this device first"):
        Client.open(tmp_path / "data", server="https://localhost:1", identity=tmp_path / "identity.pem", **how)
    assert list(tmp_path.iterdir()) == []


def test_a_call_that_is_over_is_interrupted_without_harm_to_the_next(coordinator, open_client):
    client, over = open_client(coordinator), threading.Event()
    client._interrupt(None)
    client._interrupt(over)
    assert over.is_set()
    assert client.sync()


def test_integer_item_ids(start_coordinator, open_client):
    ids = [2**62, -5, 0, 17]
    client = open_client(start_coordinator(ids, integer_ids=True))
    client.sync()
    client.rate(-5, 5)
    assert {item.item_id for item in client.recommend(10)} == {2**62, 0, 17}
    assert client.status().item_id_kind == "int"


def test_a_device_trains_and_its_receipt_is_durable(start_coordinator, open_client):
    coordinator = start_coordinator(goal=2, rounds=2, over_selection=1.0)
    first, second = open_client(coordinator), open_client(coordinator)
    for client in (first, second):
        client.sync()
        client.rate_many([(item, 5) for item in ITEMS[:30]])
    before = [first._user.model.codes.row(row) for row in range(len(ITEMS))]
    assert first.participate().took_part
    waits = first.participate()
    assert not waits.took_part
    assert waits.reason == "already_uploaded"
    assert waits.retry_after_seconds > 0
    assert second.participate().took_part
    while not first.sync():
        time.sleep(0.05)
    assert first.status().model_version == 2
    assert (first.status().rounds, first.status().upload_pending) == (1, False)
    assert [first._user.model.codes.row(row) for row in range(len(ITEMS))] != before


def test_a_device_declines_rounds_in_the_clear_wherever_the_server_is(coordinator, open_client):
    client = open_client(coordinator, allow_clear_uploads=False)
    answer = client.participate()
    assert (answer.took_part, answer.reason) == (False, "not_capable")
    client.sync()
    client.rate("item 1", 5)
    with pytest.raises(NotPrivateError, match="allow_clear_uploads"):
        client.participate()
    assert not client.status().upload_pending
    client.close()
    assert open_client(coordinator, client.device, allow_clear_uploads=True).participate().took_part


def test_no_repr_tells_anything(coordinator, open_client):
    client = open_client(coordinator)
    client.sync()
    client.rate("item 1", 5)
    client.recommend()
    assert repr(client) == "<Client at model version 1>"
    assert "item 1" not in repr(client.status())


@pytest.mark.parametrize("damage", ["manifest", "codes", "signer"])
def test_a_model_that_is_damaged_or_not_trusted_any_more_is_fetched_anew(coordinator, open_client, damage):
    client = open_client(coordinator)
    client.sync()
    client.rate("item 3", 5)
    models = client.device.identity.parent / "data" / "models"
    codes = models / client._user.model.manifest.message.codes.sha256.hex()
    client.close()
    if damage == "manifest":
        (models / "current").write_bytes(b"torn")
    elif damage == "codes":
        codes.write_bytes(codes.read_bytes()[:-8])
    else:
        signed = manifest_pb2.SignedManifest.FromString((models / "current").read_bytes())
        signed.key_id = bytes(8)
        (models / "current").write_bytes(signed.SerializeToString())
    again = open_client(coordinator, client.device)
    with pytest.raises(NotSyncedError):
        again.recommend()
    assert again.sync()
    assert len(again.recommend(3)) == 3


@pytest.mark.parametrize("minimum", [1, 8193])
def test_a_minimum_cohort_that_no_roster_can_have_is_refused_at_once(coordinator, open_client, minimum):
    with pytest.raises(InvalidInputError, match="minimum_cohort"):
        open_client(coordinator, minimum_cohort=minimum)


def test_a_store_whose_key_is_lost_can_be_discarded(synced):
    folder = synced.device.identity.parent
    synced.close()
    (folder / "key").unlink()
    discard(folder / "data", FileKey(folder / "key"))
    assert not (folder / "data" / "store.lfr").exists()


def test_the_log_says_what_happened_and_nothing_of_the_user(synced, caplog):
    caplog.set_level("DEBUG", "lightfr")
    synced.rate("item 299", 5)
    synced.participate()
    synced.recommend(3)
    said = [record for record in caplog.records if record.name.startswith("lightfr")]
    assert [record.message for record in said][-1] == "took part in a round"
    assert not any(
        "item" in record.message or synced._store.get("user_code").hex() in record.message for record in said
    )
