"""Downloads: where they go on, what is thrown away, and what a loss of power leaves."""

import errno
import hashlib
import logging
import os
from contextlib import suppress

import pytest

from lightfr import _files
from lightfr._wire.downloads import Sources, download, keep
from lightfr.errors import ArtifactError, ServerUnavailableError, StoreWriteError
from lightfr.v1 import manifest_pb2
from tests.sdk.store.faults import Files

# No two places look alike, and none like what was never written.
CONTENT = b"".join(number.to_bytes(3, "big") for number in range(2**16, 2**16 + 86_000))
NAME = hashlib.sha256(CONTENT).hexdigest()
ARTIFACT = manifest_pb2.Artifact(sha256=bytes.fromhex(NAME), size_bytes=len(CONTENT))


def ranged(_verb, path, headers, _body):
    """A server that does ranges."""
    assert path == f"/artifacts/{NAME}"
    if "Range" not in headers:
        return 200, {}, CONTENT
    assert headers["If-Range"] == f'"{NAME}"'
    start = int(headers["Range"].removeprefix("bytes=").removesuffix("-"))
    return 206, {"Content-Range": f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}"}, CONTENT[start:]


def test_a_download_is_checked_and_named_by_its_digest(serve, tmp_path):
    server, channel = serve(ranged)
    assert download(channel, ARTIFACT, tmp_path).read_bytes() == CONTENT
    assert [file.name for file in tmp_path.iterdir()] == [NAME]
    download(channel, ARTIFACT, tmp_path)
    assert len(server.requests) == 1


@pytest.mark.parametrize("have", [1, 65_536, len(CONTENT) - 1, len(CONTENT)])
def test_a_download_goes_on_at_the_byte_where_it_broke(serve, tmp_path, have):
    server, channel = serve(ranged)
    (tmp_path / f"{NAME}.part").write_bytes(CONTENT[:have])
    assert download(channel, ARTIFACT, tmp_path).read_bytes() == CONTENT
    asked = [headers["Range"] for _, _, headers, _ in server.requests]
    assert asked == ([f"bytes={have}-"] if have < len(CONTENT) else [])


def test_a_server_without_ranges_sends_the_whole_again(serve, tmp_path):
    _, channel = serve(lambda *_: (200, {}, CONTENT))
    (tmp_path / f"{NAME}.part").write_bytes(b"something else")
    assert download(channel, ARTIFACT, tmp_path).read_bytes() == CONTENT


def test_a_part_that_is_longer_than_the_whole_is_begun_anew(serve, tmp_path):
    server, channel = serve(ranged)
    (tmp_path / f"{NAME}.part").write_bytes(CONTENT + b"!")
    assert download(channel, ARTIFACT, tmp_path, tries=1).read_bytes() == CONTENT
    assert "Range" not in server.requests[0][2]


def test_nothing_of_a_part_that_is_longer_than_the_whole_stays_behind_the_new_content(serve, tmp_path):
    """Not even when the server calls the whole a part that begins at 0."""
    _, channel = serve(lambda *_: (206, {"Content-Range": f"bytes 0-{len(CONTENT) - 1}/{len(CONTENT)}"}, CONTENT))
    (tmp_path / f"{NAME}.part").write_bytes(CONTENT + b"!")
    assert download(channel, ARTIFACT, tmp_path).read_bytes() == CONTENT


def test_when_the_whole_comes_again_nothing_of_the_old_part_is_kept(serve, tmp_path):
    """What was new breaks off before the end of what was old."""
    broken = {"Content-Length": str(len(CONTENT)), "Connection": "close"}
    answers = iter([(200, broken, CONTENT[:9])])
    server, channel = serve(lambda *request: next(answers, None) or ranged(*request))
    (tmp_path / f"{NAME}.part").write_bytes(b"?" * 100)
    assert download(channel, ARTIFACT, tmp_path).read_bytes() == CONTENT
    assert [headers["Range"] for _, _, headers, _ in server.requests] == ["bytes=100-", "bytes=9-"]


@pytest.mark.parametrize("content_range", [f"bytes 0-{len(CONTENT) - 1}/{len(CONTENT)}", None])
def test_a_part_from_elsewhere_than_it_was_asked_for_is_taken_as_the_whole(serve, tmp_path, content_range):
    """If it is not, its digest says so."""
    _, channel = serve(lambda *_: (206, {"Content-Range": content_range}, CONTENT))
    (tmp_path / f"{NAME}.part").write_bytes(CONTENT[:100])
    assert download(channel, ARTIFACT, tmp_path).read_bytes() == CONTENT


def test_a_whole_that_is_said_to_go_on_is_still_the_whole(serve, tmp_path):
    _, channel = serve(lambda *_: (200, {"Content-Range": f"bytes 100-{len(CONTENT) - 1}/{len(CONTENT)}"}, CONTENT))
    (tmp_path / f"{NAME}.part").write_bytes(CONTENT[:100])
    assert download(channel, ARTIFACT, tmp_path).read_bytes() == CONTENT


def test_a_server_that_cannot_go_on_is_asked_for_the_whole_and_its_page_is_no_content(serve, tmp_path):
    answers = iter([(416, {"Content-Range": f"bytes */{len(CONTENT)}"}, b"<html>")])
    server, channel = serve(lambda *request: next(answers, None) or ranged(*request))
    (tmp_path / f"{NAME}.part").write_bytes(CONTENT[:100])
    assert download(channel, ARTIFACT, tmp_path).read_bytes() == CONTENT
    assert [headers.get("Range") for _, _, headers, _ in server.requests] == ["bytes=100-", None]
    assert server.connections == 1


@pytest.mark.parametrize(
    ("says", "page"), [({}, bytes(200_000)), ({"Content-Length": "3" * 60, "Connection": "close"}, b"<html>")]
)
def test_a_page_without_end_in_the_place_of_a_file_is_not_read_to_its_end(serve, tmp_path, says, page):
    answers = iter([(416, {"Content-Range": "bytes */9", **says}, page)])
    server, channel = serve(lambda *request: next(answers, None) or ranged(*request))
    assert download(channel, ARTIFACT, tmp_path).read_bytes() == CONTENT
    assert server.connections == 2


def test_a_download_that_breaks_off_again_and_again_still_ends(serve, tmp_path):
    """Each answer promises all and stops after 40,000 bytes."""

    def stingy(*request):
        status, headers, content = ranged(*request)
        if len(content) <= 40_000:
            return status, headers, content
        return status, {**headers, "Content-Length": str(len(content)), "Connection": "close"}, content[:40_000]

    server, channel = serve(stingy)
    assert download(channel, ARTIFACT, tmp_path).read_bytes() == CONTENT
    assert len(server.requests) == 7


def test_a_download_without_progress_is_given_up_and_its_beginning_kept(serve, tmp_path):
    broken = {"Content-Length": str(len(CONTENT)), "Connection": "close"}
    answers = iter([(200, broken, CONTENT[:9])])
    nothing = (503, {"Connection": "close"}, b"")
    server, channel = serve(lambda *_: next(answers, nothing))
    with pytest.raises(ServerUnavailableError):
        download(channel, ARTIFACT, tmp_path)
    assert (tmp_path / f"{NAME}.part").read_bytes() == CONTENT[:9]
    assert len(server.requests) == 4


def test_one_byte_is_progress_enough_to_go_on(serve, tmp_path):
    broken = {"Content-Length": str(len(CONTENT)), "Connection": "close"}
    answers = iter([(200, broken, CONTENT[:1])])
    _, channel = serve(lambda *request: next(answers, None) or ranged(*request))
    assert download(channel, ARTIFACT, tmp_path, tries=1).read_bytes() == CONTENT


@pytest.mark.parametrize("tries", [1, 3])
def test_a_server_that_brings_nothing_is_asked_as_often_as_it_may_fail(serve, tmp_path, tries):
    server, channel = serve(lambda *_: (503, {}, b""))
    with pytest.raises(ServerUnavailableError, match="503"):
        download(channel, ARTIFACT, tmp_path, tries=tries)
    assert len(server.requests) == tries


def test_an_answer_that_ends_early_without_an_error_says_where_the_download_stands(serve, tmp_path):
    _, channel = serve(lambda *_: (200, {}, CONTENT[:-1]))
    at = len(CONTENT) - 1
    with pytest.raises(ServerUnavailableError, match=f"broke off at {at} of {len(CONTENT)} bytes"):
        download(channel, ARTIFACT, tmp_path, tries=1)


@pytest.mark.parametrize("wrong", [CONTENT[:-1] + b"?", CONTENT + b"?"])
def test_other_content_than_the_manifest_names_is_thrown_away(serve, tmp_path, wrong):
    _, channel = serve(lambda *_: (200, {}, wrong))
    with pytest.raises(ArtifactError):
        download(channel, ARTIFACT, tmp_path)
    assert not (tmp_path / NAME).exists()


def test_a_download_without_end_is_stopped_at_the_size_of_the_manifest(serve, tmp_path):
    """The server says nothing about the length and goes on: the disk must not fill up."""
    endless = {"Content-Length": None, "Connection": "close"}
    _, channel = serve(lambda *_: (200, endless, CONTENT * 20))
    with pytest.raises(ArtifactError, match=f"longer than the {len(CONTENT)} bytes"):
        download(channel, ARTIFACT, tmp_path)
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= len(CONTENT)


def test_a_part_that_went_bad_on_disk_is_not_kept_and_the_next_try_succeeds(serve, tmp_path):
    _, channel = serve(ranged)
    (tmp_path / f"{NAME}.part").write_bytes(b"?" * 100)
    with pytest.raises(ArtifactError):
        download(channel, ARTIFACT, tmp_path)
    assert download(channel, ARTIFACT, tmp_path).read_bytes() == CONTENT


def test_a_full_disk_is_not_blamed_on_the_server(serve, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    _, channel = serve(ranged)
    monkeypatch.setattr(_files, "write", full)
    with pytest.raises(StoreWriteError, match="No space left"):
        download(channel, ARTIFACT, tmp_path)


def test_a_file_that_was_kept_is_whole_after_a_loss_of_power(tmp_path, monkeypatch):
    files = Files(monkeypatch)
    part = tmp_path / f"{NAME}.part"
    part.write_bytes(CONTENT)
    keep(part, tmp_path / NAME)
    files.lose_power(tmp_path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {NAME: CONTENT}


def test_a_file_that_was_kept_is_not_left_open(tmp_path):
    part, final = tmp_path / f"{NAME}.part", tmp_path / NAME
    part.write_bytes(CONTENT)
    keep(part, final)
    assert final.stat().st_ino not in open_inodes()


def open_inodes():
    """Of all files that this process has open."""
    found = set()
    for file in os.listdir("/dev/fd"):
        with suppress(OSError):  # that of the list itself is closed again
            found.add(os.fstat(int(file)).st_ino)
    return found


# A cache, and the coordinator behind it.


class Other:
    """Stands for the coordinator's channel: remembers where else it was asked to go, and with what patience."""

    def __init__(self):
        self.asked = []

    def to(self, server, timeout_seconds):
        self.asked.append((server, timeout_seconds))


def test_a_cache_has_ten_seconds_and_without_an_address_there_is_none():
    other = Other()
    Sources(other, "https://cache.example:443")
    Sources(other, "")
    assert other.asked == [("https://cache.example:443", 10.0)]


@pytest.fixture
def sources(serve):
    """Give each of both servers its script: the servers, and where a device downloads from."""

    def start(cache, coordinator):
        (cached, _), (central, channel) = serve(cache), serve(coordinator)
        return cached, central, Sources(channel, cached.url)

    return start


def test_a_cache_that_has_the_content_is_the_only_one_asked_and_its_connection_is_closed(sources, tmp_path):
    cached, central, both = sources(ranged, ranged)
    with both:
        assert both.download(ARTIFACT, tmp_path).read_bytes() == CONTENT
        assert both._cache._connection is not None
    assert both._cache._connection is None
    assert (len(cached.requests), len(central.requests)) == (1, 0)


def test_the_coordinator_goes_on_where_the_cache_broke_off_and_the_cache_is_not_asked_again(sources, tmp_path, caplog):
    broken = {"Content-Length": str(len(CONTENT)), "Connection": "close"}
    answers = iter([(200, broken, CONTENT[:100])])
    cached, central, both = sources(lambda *_: next(answers, (503, {}, b"")), ranged)
    with both:
        assert both.download(ARTIFACT, tmp_path).read_bytes() == CONTENT
        (tmp_path / NAME).unlink()
        assert both.download(ARTIFACT, tmp_path).read_bytes() == CONTENT
    assert [headers.get("Range") for _, _, headers, _ in cached.requests] == [None, "bytes=100-"]
    assert [headers.get("Range") for _, _, headers, _ in central.requests] == ["bytes=100-", None]
    told = "the cache localhost failed (ServerUnavailableError): the coordinator is asked instead"
    assert caplog.record_tuples == [("lightfr.downloads", logging.WARNING, told)]


def test_false_bytes_of_a_cache_do_not_spoil_what_the_coordinator_sends(sources, tmp_path):
    broken = {"Content-Length": str(len(CONTENT)), "Connection": "close"}
    answers = iter([(200, broken, b"?" * 100)])
    _, central, both = sources(lambda *_: next(answers, (503, {}, b"")), ranged)
    with both:
        assert both.download(ARTIFACT, tmp_path).read_bytes() == CONTENT
    assert [headers.get("Range") for _, _, headers, _ in central.requests] == ["bytes=100-", None]


def test_a_coordinator_with_false_bytes_of_its_own_is_believed_no_more_than_a_cache(sources, tmp_path):
    wrong = CONTENT[:-1] + b"?"
    _, central, both = sources(lambda *_: (404, {}, b""), lambda *_: (200, {}, wrong))
    with both, pytest.raises(ArtifactError, match="another digest"):
        both.download(ARTIFACT, tmp_path)
    assert not list(tmp_path.iterdir())
    assert len(central.requests) == 2
