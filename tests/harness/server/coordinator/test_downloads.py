"""Artifacts: whole, in parts, not at all."""

import hashlib
from dataclasses import replace
from http.client import IncompleteRead

import pytest

from lightfr_harness.server.coordinator import downloads
from lightfr_harness.server.coordinator.limits import FOR_DEVICES
from tests.certificates import client_context, client_pem
from tests.harness.server.coordinator.live import Live, exchange

CONTENT = bytes(range(256)) * 4000
DIGEST = hashlib.sha256(CONTENT).hexdigest()
TAG = f'"{DIGEST}"'
SIZE = len(CONTENT)


@pytest.fixture(scope="module")
def get(tmp_path_factory, authority):
    folder = tmp_path_factory.mktemp("downloads")
    device = client_context(authority, client_pem(authority, folder))

    def get(method="GET", digest=DIGEST, **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return exchange(live.connection(device), method, f"/artifacts/{digest}", headers=named)

    with Live(folder / "folder", authority) as live:
        (live.folder / "artifacts" / DIGEST).write_bytes(CONTENT)
        yield get


def test_the_whole_has_its_digest_as_tag_and_may_be_kept_for_ever(get):
    status, headers, body = get()
    assert (status, body) == (200, CONTENT)
    assert headers["ETag"] == TAG
    assert "immutable" in headers["Cache-Control"]
    assert headers["Accept-Ranges"] == "bytes"
    assert "Server" not in headers


def test_head_tells_the_size_and_sends_nothing(get):
    status, headers, body = get("HEAD")
    assert (status, body, headers["Content-Length"], headers["ETag"]) == (200, b"", str(SIZE), TAG)


@pytest.mark.parametrize(
    ("asked", "start", "stop"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=0-", 0, SIZE),
        ("bytes=5-9", 5, 10),
        ("bytes=300000-", 300_000, SIZE),
        (f"bytes={SIZE - 1}-{SIZE + 50}", SIZE - 1, SIZE),
        ("bytes=-7", SIZE - 7, SIZE),
        ("bytes=-99999999", 0, SIZE),
    ],
)
def test_a_range_gives_its_part(get, asked, start, stop):
    status, headers, body = get(Range=asked)
    assert (status, body) == (206, CONTENT[start:stop])
    assert headers["Content-Range"] == f"bytes {start}-{stop - 1}/{SIZE}"
    assert headers["ETag"] == TAG


@pytest.mark.parametrize("asked", [f"bytes={SIZE}-", "bytes=-0", "bytes=9999999999999999999-"])
def test_a_range_of_nothing_is_not_satisfiable(get, asked):
    status, headers, body = get(Range=asked)
    assert (status, headers["Content-Range"], body) == (416, f"bytes */{SIZE}", b"")


@pytest.mark.parametrize(
    "asked",
    ["bytes=0-1,5-9", "bytes=9-5", "bytes=-", "items=0-5", "bytes=a-b", "bytes=1", "", "bytes=" + "9" * 30 + "-"],
)
def test_a_range_that_is_none_or_several_gives_the_whole(get, asked):
    status, _, body = get(Range=asked)
    assert (status, body) == (200, CONTENT)


@pytest.mark.parametrize(
    ("if_range", "status"),
    [(TAG, 206), ('"other"', 200), (f"W/{TAG}", 200), ("Mon, 16 Nov 2026 06:00:00 GMT", 200)],
)
def test_if_range_continues_only_what_is_the_same(get, if_range, status):
    answer = get(Range="bytes=10-", If_Range=if_range)
    assert answer[0] == status
    assert answer[2] == (CONTENT[10:] if status == 206 else CONTENT)


@pytest.mark.parametrize(("tags", "status"), [(TAG, 304), (f'"x", W/{TAG}', 304), ("*", 304), ('"x"', 200)])
def test_if_none_match_spares_what_the_device_has(get, tags, status):
    answer = get(If_None_Match=tags)
    assert (answer[0], answer[1]["ETag"]) == (status, TAG)
    assert answer[2] == (b"" if status == 304 else CONTENT)


@pytest.mark.parametrize("digest", ["0" * 64, "..%2f..%2fcoordinator.sqlite", DIGEST.upper(), DIGEST[:-1], ""])
def test_what_is_not_there_is_not_found(get, digest):
    assert get(digest=digest)[0] == 404


def test_a_device_that_goes_away_in_the_middle_is_no_fault(tmp_path, authority, caplog):
    """Devices lose their network all the time; whoever reads the log looks for what is wrong."""
    device = client_context(authority, client_pem(authority, tmp_path))
    with Live(tmp_path / "folder", authority) as live:
        with (live.folder / "artifacts" / DIGEST).open("wb") as file:
            file.truncate(64 << 20)  # More than the sockets in between can hold.
        connection = live.connection(device)
        connection.request("GET", f"/artifacts/{DIGEST}")
        assert connection.getresponse().read(1000) == bytes(1000)
        # Close for real: the response holds the socket too.
        connection.sock.shutdown(2)
        connection.close()
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


def test_who_stops_reading_gives_its_place_back_after_a_while(tmp_path, authority, monkeypatch, caplog):
    monkeypatch.setattr(downloads, "STALL_SECONDS", 0.2)
    device = client_context(authority, client_pem(authority, tmp_path))
    with Live(tmp_path / "folder", authority, for_devices=replace(FOR_DEVICES, requests_at_once=1)) as live:
        with (live.folder / "artifacts" / DIGEST).open("wb") as file:
            file.truncate(64 << 20)
        asleep = live.connection(device)
        asleep.request("GET", f"/artifacts/{DIGEST}")
        begun = asleep.getresponse()
        assert begun.read(1000) == bytes(1000)
        awake = live.connection(device)
        while exchange(awake, "GET", f"/artifacts/{DIGEST}", headers={"Range": "bytes=0-9"})[0] == 503:
            pass
        with pytest.raises((ConnectionError, IncompleteRead)):
            begun.read()
        begun.close()
        asleep.close()
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []
