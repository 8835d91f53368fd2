"""Downloads, against a server on this machine; no test here needs the internet."""

import hashlib
import io
import threading
import zipfile
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from lightfr_harness.data import fetch, load, sources
from lightfr_harness.data.errors import (
    DatasetError,
    DownloadError,
    InvalidOptionError,
    UntrustedDownloadError,
)

RATINGS = b"1::10::5::100\n1::20::3::101\n"


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


class BreakingHandler(BaseHTTPRequestHandler):
    """Announces more than it sends, as a broken connection does."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"PK")

    def log_message(self, *arguments):
        pass


def serve(handler):
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}/"


@pytest.fixture
def site(tmp_path):
    """A folder and the address under which it is served."""
    folder = tmp_path / "site"
    folder.mkdir()
    server, url = serve(partial(QuietHandler, directory=str(folder)))
    yield folder, url
    server.shutdown()
    server.server_close()


def publish(site, monkeypatch, entries, *, name="ml-1m", md5="right"):
    """Put a zip on the site and make its checksum the known one."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as zipped:
        for path, content in entries.items():
            zipped.writestr(path, content)
    source = sources.SOURCES[name]
    (site[0] / source.archive).write_bytes(packed.getvalue())
    digest = hashlib.md5(packed.getvalue()).hexdigest() if md5 == "right" else md5
    monkeypatch.setitem(sources.SOURCES, name, replace(source, md5=digest))


def remains(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


ML_1M = {
    "ml-1m/": b"",
    "ml-1m/ratings.dat": RATINGS,
    "ml-1m/README": b"licence",
    "ml-1m/movies.dat": b"-",
}


def test_a_data_set_is_downloaded_checked_unpacked_and_readable(tmp_path, site, monkeypatch):
    publish(site, monkeypatch, ML_1M)
    path = fetch("ml-1m", tmp_path / "data", base_url=site[1])
    assert path == tmp_path / "data" / "ml-1m" / "ratings.dat"
    assert len(load(path, sources.SOURCES["ml-1m"].format)) == 2
    assert remains(path.parent) == ["README", "ratings.dat"]
    assert remains(tmp_path / "data") == ["ml-1m"]


def test_what_is_already_there_is_neither_downloaded_nor_changed(tmp_path):
    path = tmp_path / "ml-1m" / "ratings.dat"
    path.parent.mkdir()
    path.write_bytes(b"mine")
    assert fetch("ml-1m", tmp_path, base_url="http://127.0.0.1:1/") == path
    assert path.read_bytes() == b"mine"


def test_a_folder_without_the_ratings_file_is_left_alone(tmp_path):
    (tmp_path / "ml-1m").mkdir()
    with pytest.raises(DownloadError, match="Move it away"):
        fetch("ml-1m", tmp_path, base_url="http://127.0.0.1:1/")


def test_a_wrong_checksum_is_refused_and_leaves_nothing(tmp_path, site, monkeypatch):
    publish(site, monkeypatch, ML_1M, md5="0" * 32)
    with pytest.raises(UntrustedDownloadError, match=f"but {'0' * 32} is published"):
        fetch("ml-1m", tmp_path / "data", base_url=site[1])
    assert remains(tmp_path / "data") == []


def test_a_source_without_a_known_checksum_is_still_fetched(tmp_path, site, monkeypatch):
    publish(site, monkeypatch, {"ratings.txt": b"1 1 2\n"}, name="filmtrust", md5=None)
    assert len(load(fetch("filmtrust", tmp_path, base_url=site[1]), "filmtrust")) == 1


def test_an_unknown_name_lists_the_known_ones(tmp_path):
    with pytest.raises(InvalidOptionError, match="ml-100k, ml-1m, ml-25m, ml-latest-small, filmtrust"):
        fetch("netflix", tmp_path)


def test_no_network_is_an_error_that_says_what_to_do(tmp_path):
    with pytest.raises(DownloadError, match=r"bring ratings.dat by hand"):
        fetch("ml-1m", tmp_path / "data", base_url="http://127.0.0.1:1/")
    assert remains(tmp_path / "data") == []


def test_an_address_the_server_does_not_have_is_an_error(tmp_path, site):
    with pytest.raises(DownloadError, match="404"):
        fetch("ml-1m", tmp_path / "data", base_url=site[1])


def test_a_connection_that_breaks_leaves_nothing(tmp_path):
    server, url = serve(BreakingHandler)
    with pytest.raises(DownloadError, match="broke after 2 of 1000 bytes"):
        fetch("filmtrust", tmp_path / "data", base_url=url)
    server.shutdown()
    server.server_close()
    assert remains(tmp_path / "data") == []


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "ml-1m/../../evil", "C:/evil", "..\\evil"])
def test_an_archive_that_points_outside_is_refused_whole(tmp_path, site, monkeypatch, name):
    publish(site, monkeypatch, {**ML_1M, name: b"evil"})
    with pytest.raises(UntrustedDownloadError):
        fetch("ml-1m", tmp_path / "data", base_url=site[1])
    assert remains(tmp_path / "data") == []
    assert not list(tmp_path.rglob("evil"))


def test_an_archive_without_the_ratings_file_is_refused(tmp_path, site, monkeypatch):
    publish(site, monkeypatch, {"ml-1m/README": b"licence"})
    with pytest.raises(DatasetError, match=r"has no ratings.dat"):
        fetch("ml-1m", tmp_path / "data", base_url=site[1])


def test_a_download_that_is_no_zip_is_refused(tmp_path, site):
    (site[0] / "filmtrust.zip").write_bytes(b"<html>moved</html>")
    with pytest.raises(DownloadError, match="not a sound zip"):
        fetch("filmtrust", tmp_path / "data", base_url=site[1])
    assert remains(tmp_path / "data") == []


@pytest.fixture
def unreachable(monkeypatch):
    source = replace(sources.SOURCES["ml-100k"], base_url="http://127.0.0.1:1/")
    monkeypatch.setitem(sources.SOURCES, "ml-100k", source)


def pip_that_brings(content, monkeypatch):
    """Replace pip by one that leaves a wheel with this ratings file."""

    def download(stage):
        with zipfile.ZipFile(stage / sources.RECBOLE_WHEEL, "w") as packed:
            packed.writestr(sources.RECBOLE_MEMBER, content)
        return True

    monkeypatch.setattr(sources, "_pip_download", download)


INTER = b"user_id:token\titem_id:token\trating:float\ttimestamp:float\n1\t2\t3\t4\n"


def test_ml_100k_comes_through_pip_when_its_publisher_is_out_of_reach(tmp_path, unreachable, monkeypatch):
    pip_that_brings(INTER, monkeypatch)
    monkeypatch.setattr(sources, "RECBOLE_SHA256", hashlib.sha256(INTER).hexdigest())
    path = fetch("ml-100k", tmp_path)
    assert path == tmp_path / "ml-100k" / "ml-100k.inter"
    assert len(load(path, "ml-100k")) == 1
    assert fetch("ml-100k", tmp_path) == path


def test_what_pip_brings_is_checked_too(tmp_path, unreachable, monkeypatch):
    pip_that_brings(INTER, monkeypatch)
    with pytest.raises(UntrustedDownloadError):
        fetch("ml-100k", tmp_path)
    assert remains(tmp_path) == []


def test_when_both_ways_fail_the_error_says_so(tmp_path, unreachable, monkeypatch):
    monkeypatch.setattr(sources, "_pip_download", lambda stage: False)
    with pytest.raises(DownloadError, match="through pip failed too"):
        fetch("ml-100k", tmp_path)


def test_pip_is_asked_for_one_wheel_by_its_hash(tmp_path, monkeypatch):
    """A wheel is only unpacked. Of a source distribution pip would run the code."""
    commands = []
    monkeypatch.setattr(sources.subprocess, "run", lambda command, **_: commands.append(command))
    assert sources._pip_download(tmp_path)
    assert commands[0][1:4] == ["-m", "pip", "download"]
    assert {"--no-deps", "--only-binary", ":all:", "--require-hashes"} <= set(commands[0])
    assert (tmp_path / "recbole.txt").read_text() == f"recbole==1.2.1 --hash=sha256:{sources.RECBOLE_WHEEL_SHA256}\n"
