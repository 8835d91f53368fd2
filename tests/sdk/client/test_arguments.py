"""Arguments of the wrong kind: each is an error of the SDK that names the argument, and changes nothing."""

import math
import os
from fractions import Fraction

import numpy as np
import pytest

from lightfr import (
    Budget,
    Client,
    Device,
    FileKey,
    ItemSet,
    OpenRows,
    PassphraseKey,
    Prior,
    RatingScale,
    UserCode,
    discard,
    rank,
    rank_batch,
    recommend,
)
from lightfr.codes import ItemCodes
from lightfr.errors import InvalidInputError, ItemIdError, OutOfRangeError, RatingError, StoreKeyError
from lightfr.keys import CallbackKey
from lightfr.v1 import manifest_pb2
from tests.certificates import client_pem
from tests.sdk.client.publisher import random_codes


@pytest.fixture
def device(publisher, open_device):
    publisher.publish(1, random_codes(1))
    client = open_device()
    client.sync()
    client.rate("item 1", 5)
    return client


@pytest.mark.parametrize("rating", ["5", None, [5], np.array([1, 2])], ids=["text", "None", "list", "array"])
def test_a_rating_that_is_no_number_is_refused(device, rating):
    with pytest.raises(RatingError):
        device.rate("item 2", rating)
    assert device.ratings() == [("item 1", 5)]


@pytest.mark.parametrize(
    ("call", "error", "reason"),
    [
        (lambda device: device.rate_many([("item 2", 5, 1)]), InvalidInputError, "takes pairs"),
        (lambda device: device.rate_many(7), InvalidInputError, "takes pairs"),
        (lambda device: device.seen(["item 2"]), ItemIdError, "item id"),
        (lambda device: device.recommend("10"), InvalidInputError, "k must be a whole number, not str"),
        (lambda device: device.recommend(2.5), InvalidInputError, "k must be a whole number, not float"),
        (lambda device: device.similar("item 1", None), InvalidInputError, "k must be a whole number, not NoneType"),
        (lambda device: device.explain("item 1", "3"), InvalidInputError, "k must be a whole number, not str"),
        (lambda device: device.recommend(exclude=None), InvalidInputError, "exclude must be a list, not NoneType"),
        (lambda device: device.recommend(among=7), InvalidInputError, "among must be a list, not int"),
        (lambda device: device.export_views(None), InvalidInputError, "path must be a path, not NoneType"),
        (lambda device: device.export_views("a\0b"), InvalidInputError, "path has a NUL"),
        (lambda device: device.export_views("/"), InvalidInputError, "path must be that of a file"),
    ],
)
def test_an_argument_of_the_wrong_kind_is_refused_by_its_name(device, call, error, reason):
    with pytest.raises(error, match=reason):
        call(device)
    assert device.ratings() == [("item 1", 5)]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"minimum_cohort": "256"}, "minimum_cohort must be a whole number"),
        ({"require_dp": "8"}, "require_dp must be"),
        ({"scale": (1, 5)}, "scale must be a RatingScale"),
        ({"server": 7}, "https://host:port"),
        ({"key": "app-keys/user"}, r"key must be a key provider such as FileKey\(path\), not str"),
        ({"key": FileKey}, r"key must be a key provider such as FileKey\(path\), not type"),
        ({"budget": 12}, "budget must be a Budget, not int"),
        ({"budget": Budget(rounds_per_month="12")}, "budget.rounds_per_month must be a number, not str"),
        ({"budget": Budget(rounds_per_month=2.5)}, "budget.rounds_per_month must be a whole number"),
        ({"identity": "a\0b"}, "identity has a NUL"),
        ({"trust": "a\0b"}, "trust has a NUL"),
    ],
)
def test_an_option_of_the_wrong_kind_is_refused_by_its_name(publisher, open_device, options, reason):
    with pytest.raises(InvalidInputError, match=reason):
        open_device(**{"allow_clear_uploads": False, **options})


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda folder: Device.enroll({"server": "https://localhost"}, folder), "invitation must be a path, not dict"),
        (lambda folder: Device.load(None), "folder must be a path, not NoneType"),
        (lambda folder: FileKey(None), "path must be a path, not NoneType"),
        (lambda folder: FileKey(""), "path must be that of a file"),
        (lambda folder: PassphraseKey("", "secret"), "path must be that of a file"),
        (lambda folder: discard(folder, "app-keys/user"), "key must be a key provider"),
        (lambda folder: discard(None, FileKey(folder / "key")), "folder must be a path"),
    ],
)
def test_devices_keys_and_discard_refuse_what_is_none(tmp_path, call, reason):
    with pytest.raises(InvalidInputError, match=reason):
        call(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_scale_of_other_kinds_of_numbers_is_there_when_the_folder_is_opened_again(publisher, open_device):
    open_device(scale=RatingScale(np.float64(0), Fraction(21, 2))).close()
    assert open_device().export_my_data()["rating_scale"] == [0, 10.5]


def test_an_app_may_change_its_working_directory(publisher, authority, tmp_path, monkeypatch):
    publisher.publish(1, random_codes(1))
    identity, here, elsewhere = client_pem(authority, tmp_path), tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir(), elsewhere.mkdir()
    monkeypatch.chdir(here)
    identity, trust = os.path.relpath(identity), os.path.relpath(authority.folder / "trust.pem")
    client = Client.open("data", server=publisher.server.url, identity=identity, trust=trust, key=FileKey("keys/user"))
    monkeypatch.chdir(elsewhere)
    assert client.sync()
    client.rate("item 1", 5)
    assert client.export_views("views.json") == 0
    client.forget()
    assert [path.name for path in elsewhere.iterdir()] == ["views.json"]
    assert [path for path in here.rglob("*") if path.is_file()] == []


def test_a_budget_without_an_end_is_one(publisher, open_device):
    open_device(budget=Budget(rounds_per_month=math.inf, gate_refreshes_per_month=math.inf))


def test_whole_numbers_of_other_types_are_whole_numbers(device, open_device):
    assert len(device.recommend(np.int64(3))) == 3
    device.close()
    assert type(open_device(minimum_cohort=np.int64(256))._terms.minimum_cohort) is int


@pytest.mark.parametrize("server", ["https://example..com:8443", "https://" + "a" * 64 + ".com", "https://.com"])
def test_an_address_that_no_server_can_have_is_refused(publisher, open_device, server):
    with pytest.raises(InvalidInputError, match="https://host:port"):
        open_device(server=server).sync()


def test_k_has_one_range_however_items_are_ranked(publisher, open_device):
    message = publisher.publish(1, random_codes(1))
    message.rankings.extend([manifest_pb2.Ranking(by=2)] * 4)
    publisher.sign(message)
    client = open_device()
    client.sync()
    codes, prior = ItemCodes(bytes(80), 64), Prior([(0, 1)])
    for k in (0, -1, 2**31):
        with pytest.raises(OutOfRangeError):
            client.recommend(k)
        with pytest.raises(OutOfRangeError):
            rank(UserCode(bytes(8)), codes, k, among=[1, 2, 3], prior=prior)


@pytest.mark.parametrize("kept", ["text", 7])
def test_a_keystore_that_returns_no_bytes_is_refused(kept):
    with pytest.raises(StoreKeyError, match=f"load returned {type(kept).__name__}"):
        CallbackKey(lambda: kept, lambda secret: None, lambda: None).load()


CODES, USER = ItemCodes(bytes(80), 64), UserCode(bytes(8))


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: UserCode(8), "a user code must be bytes, not int"),  # bytes(8) would be a code of 64 bits
        (lambda: UserCode("12345678"), "a user code must be bytes, not str"),
        (lambda: UserCode([300] * 8), "a user code must be bytes, not list"),
        (lambda: UserCode.random("64"), "code_bits must be a whole number, not str"),
        (lambda: ItemCodes("12345678", 64), "item codes must be bytes without gaps, which this str is not"),
        (lambda: ItemCodes(None, 64), "item codes must be bytes without gaps, which this NoneType is not"),
        (lambda: ItemCodes(np.zeros((10, 16), np.uint8)[:, ::2], 64), "without gaps, which this ndarray is not"),
        (lambda: ItemCodes(bytes(80), 64.0), "code_bits must be a whole number, not float"),
        (lambda: ItemCodes.open("a\0b", 64), "path has a NUL"),
        (lambda: ItemCodes.open(99, 64), "path must be a path, not int"),
        (lambda: ItemCodes(bytes(80), 64, bytes(2)), "open_rows must be OpenRows, not bytes"),
        (lambda: ItemCodes.open("items", 64, open_rows=bytes(2)), "open_rows must be OpenRows, not bytes"),
        (lambda: ItemCodes.open("items", 64, n_items="10"), "n_items must be a whole number, not str"),
        (lambda: CODES.row("1"), "item_index must be a whole number, not str"),
        (lambda: rank(USER, CODES, 2, exclude={1, 2}), "as `exclude` an ItemSet"),
        (lambda: rank(USER, CODES, 2, prior=[(0, 1)]), "as `prior` a Prior"),
        (lambda: rank(bytes(8), CODES, 2), "a search takes a UserCode and ItemCodes"),
        (lambda: rank(USER, bytes(80), 2), "a search takes a UserCode and ItemCodes"),
        (lambda: rank_batch([USER, bytes(8)], CODES, 2), "a search takes a UserCode and ItemCodes"),
        (lambda: rank_batch(USER, CODES, 2), "user_codes must be a list, not UserCode"),
        (lambda: rank(USER, CODES, 2.5), "k must be a whole number, not float"),
        (lambda: rank(USER, CODES, "2", among=[1]), "k must be a whole number, not str"),
        (lambda: rank(USER, CODES, 2, among=3), "among must be item indices"),
        (lambda: rank(USER, CODES, 2, among=[1.5]), "among must be item indices"),
        (lambda: rank_batch([USER], CODES, None), "k must be a whole number, not NoneType"),
        (lambda: recommend(USER, CODES, 2, rated=["item 1"]), "item_index must be a whole number, not str"),
        (lambda: ItemSet(10, 3), "members must be a list, not int"),
        (lambda: ItemSet("10"), "n_items must be a whole number, not str"),
        (lambda: ItemSet(-5), "number of items is -5, expected 0 to 4294967295"),
        (lambda: ItemSet(64, bitmap=8), "bitmap must be bytes, not int"),
        (lambda: ItemSet(10).add("1"), "item_index must be a whole number, not str"),
        (lambda: OpenRows(8, 64), "the bitmap of open rows must be bytes, not int"),
        (lambda: OpenRows(bytes(8), "64"), "n_items must be a whole number, not str"),
        (lambda: OpenRows(bytes(8), 64).is_open("1"), "item_index must be a whole number, not str"),
        (lambda: OpenRows(bytes(8), 64).item_of(None), "row must be a whole number, not NoneType"),
        (lambda: Prior([(0, 1.9)]), "pairs of whole numbers"),
        (lambda: Prior([0, 1]), "pairs of whole numbers"),
        (lambda: Prior(None), "pairs of whole numbers"),
    ],
)
def test_codes_and_searches_refuse_an_argument_of_the_wrong_kind_by_its_name(call, reason):
    with pytest.raises(InvalidInputError, match=reason):
        call()
