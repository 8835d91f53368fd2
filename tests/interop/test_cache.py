"""The cache of docs/cache.md: what real devices and a real nginx make of each other, over mutual TLS."""

import hashlib
import http.client
import os
import shutil
import ssl
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from lightfr.errors import ServerUnavailableError
from lightfr_harness.server.authority import Authority
from tests.certificates import CLIENT_FAULTS, client_context, client_pem, common_name_of, connect
from tests.harness.server.coordinator.live import COORDINATOR, exchange
from tests.interop.cached import SLICE_BYTES, Cached, eventually, slices

# Two slices of the cache and a part of a third.
SIZE = 2_500_000


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    made = Authority.init(tmp_path_factory.mktemp("authority") / "ca", ["localhost", "127.0.0.1"])
    yield made
    made.close()


@pytest.fixture
def cached(tmp_path, authority, monkeypatch):
    with Cached(tmp_path, authority, monkeypatch) as it:
        yield it


@pytest.fixture
def device(authority, tmp_path):
    """The TLS context of a device in good standing."""
    return client_context(authority, client_pem(authority, tmp_path))


@pytest.fixture
def content():
    return os.urandom(SIZE)


def test_the_first_device_misses_and_the_second_hits(cached, device, content):
    digest = cached.publish(content)
    for expected in ("MISS", "HIT", "HIT"):
        status, headers, body = cached.get(device, digest)
        assert (status, headers["X-Cache-Status"], headers["ETag"]) == (200, expected, f'"{digest}"')
        assert body == content
    assert cached.asked_for(digest) == slices(SIZE)


def test_ranges_come_from_the_cache_and_are_those_of_the_file(cached, device, content):
    digest = cached.publish(content)
    cached.get(device, digest)
    for start, stop in [(0, 1), (5, 10), (SLICE_BYTES - 1, SLICE_BYTES + 1), (1_500_000, SIZE), (SIZE - 1, SIZE)]:
        asked = f"bytes={start}-" if stop == SIZE else f"bytes={start}-{stop - 1}"
        for condition in ({}, {"If_Range": f'"{digest}"'}):
            status, headers, body = cached.get(device, digest, Range=asked, **condition)
            assert (status, headers["X-Cache-Status"], headers["ETag"]) == (206, "HIT", f'"{digest}"')
            assert headers["Content-Range"] == f"bytes {start}-{stop - 1}/{SIZE}"
            assert body == content[start:stop]
    assert cached.asked_for(digest) == slices(SIZE)


def test_a_range_of_a_file_that_is_not_there_yet_costs_the_slices_that_it_touches(cached, device, content):
    digest = cached.publish(content)
    status, headers, body = cached.get(device, digest, Range="bytes=1500000-")
    assert (status, headers["X-Cache-Status"], body) == (206, "MISS", content[1_500_000:])
    assert cached.asked_for(digest) == slices(SIZE)[1:]


def test_conditions_on_the_tag_hold(cached, device, content):
    digest = cached.publish(content)
    for _ in ("cold", "warm"):
        status, headers, body = cached.get(device, digest, If_None_Match=f'"{digest}"')
        assert (status, headers["ETag"], body) == (304, f'"{digest}"', b"")
    assert cached.get(device, digest, If_None_Match='"other"')[::2] == (200, content)
    assert cached.get(device, digest, Range="bytes=10-", If_Range='"other"')[::2] == (200, content)
    status, headers, body = cached.get(device, digest, Range=f"bytes={SIZE}-")
    assert (status, headers["Content-Range"]) == (416, f"bytes */{SIZE}")
    assert cached.get(device, digest, Range="bytes=0-1,5-9")[::2] == (200, content)


def test_a_crowd_that_comes_at_once_costs_the_coordinator_one_download(cached, device, content):
    digest = cached.publish(content)
    with ThreadPoolExecutor(8) as crowd:
        answers = list(crowd.map(lambda _: cached.get(device, digest), range(8)))
    assert all((status, body) == (200, content) for status, _, body in answers)
    assert sorted(cached.asked_for(digest)) == sorted(slices(SIZE))


def test_an_artifact_that_was_asked_for_too_early_is_found_later(cached, device, content):
    digest = hashlib.sha256(content).hexdigest()
    assert cached.get(device, digest)[0] == 404
    cached.publish(content)
    assert cached.get(device, digest)[::2] == (200, content)


def test_what_the_cache_has_it_serves_while_the_coordinator_has_lost_it(cached, device, content):
    digest = cached.publish(content)
    cached.get(device, digest)
    (cached.live.folder / "artifacts" / digest).unlink()
    assert cached.get(device, digest)[::2] == (200, content)


def test_nothing_but_artifacts_passes(cached, device):
    connection = http.client.HTTPSConnection("localhost", cached.nginx.port, context=device)
    assert exchange(connection, "POST", f"{COORDINATOR}GetManifest", b"")[0] == 404
    digest = cached.manifest.codes.sha256.hex()
    assert cached.get(device, digest, "POST")[0] == 403
    assert cached.get(device, digest.upper())[0] == 404
    assert cached.get(device, f"../artifacts/{digest[:-1]}")[0] == 404
    assert cached.asked == []


def refused(cached, context):
    """Whether the cache gives nothing to whoever has this context."""
    status, _, body = cached.get(context, cached.manifest.codes.sha256.hex())
    return status == 400 and b"SSL certificate" in body


@pytest.mark.parametrize("fault", [fault for fault in CLIENT_FAULTS if fault != "revoked"])
def test_a_client_without_a_good_certificate_gets_nothing(cached, authority, tmp_path, fault):
    assert refused(cached, client_context(authority))
    assert refused(cached, client_context(authority, client_pem(authority, tmp_path, fault)))
    assert cached.asked == []


def test_a_revoked_device_gets_nothing_once_the_list_is_reloaded(cached, authority, tmp_path):
    pem = client_pem(authority, tmp_path)
    context = client_context(authority, pem)
    with connect(context, cached.nginx.port) as connection:
        connection.settimeout(20)
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 404")
        session = connection.session
    assert session.has_ticket
    assert not refused(cached, context)
    authority.revoke(common_name_of(pem))
    shutil.copy(authority.folder / "crl.pem", cached.folder / "cache" / "crl.pem")
    cached.nginx.reload()
    assert refused(cached, context)
    with connect(context, cached.nginx.port, session=session) as connection:
        assert not connection.session_reused
    assert not refused(cached, client_context(authority, client_pem(authority, tmp_path)))


def test_the_cache_takes_nothing_from_a_coordinator_of_another_name(cached, device, content):
    configuration = cached.folder / "cache" / "nginx.conf"
    other = configuration.read_text().replace("proxy_ssl_name localhost;", "proxy_ssl_name elsewhere.example;")
    assert other != configuration.read_text()
    configuration.write_text(other)
    cached.nginx.reload()
    digest = cached.publish(content)
    assert cached.get(device, digest)[0] == 502
    assert cached.asked_for(digest) == []


def test_tls_1_2_is_refused(cached, authority, tmp_path):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(authority.folder / "authority.pem")
    context.load_cert_chain(client_pem(authority, tmp_path))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError, match=r"(?i)version"):
        connect(context, cached.nginx.port)


def digests(cached):
    """What a device without a model fetches."""
    return [cached.manifest.catalogue_parts[0].sha256.hex(), cached.manifest.codes.sha256.hex()]


def sync(device):
    """Sync in a client that is opened for it; the file of each artifact is then what its name says."""
    with device.open() as client:
        assert client.sync()
        assert len(client.recommend(3)) == 3
    for name in device.models.iterdir():
        assert name.name in ("current", hashlib.sha256(name.read_bytes()).hexdigest())


def require_each_slice_asked_for_once(cached):
    """The coordinator has sent every byte of what devices fetch once, and only to the cache."""
    catalogue, codes = digests(cached)
    assert sorted(cached.asked_for(catalogue)) == sorted(slices(cached.manifest.catalogue_parts[0].size_bytes))
    assert cached.asked_for(codes) == slices(cached.manifest.codes.size_bytes)


def test_the_second_device_takes_everything_from_the_cache(cached):
    for expected in ("MISS", "HIT"):
        sync(cached.new_device())
        lines = eventually(lambda n=2 if expected == "MISS" else 4: len(cached.nginx.log()) == n and cached.nginx.log())
        assert [(line["status"], line["cache"]) for line in lines[-2:]] == [("200", expected)] * 2
    require_each_slice_asked_for_once(cached)


def logged(cached, digest, asked):
    """The log's line about the request for this range of an artifact; nginx writes it when the request is over."""
    (line,) = eventually(lambda: [line for line in cached.nginx.log(digest) if line["range"] == asked])
    return line


@pytest.mark.parametrize("is_warm", [False, True], ids=["cold", "warm"])
def test_a_device_resumes_a_broken_download_at_the_byte_where_it_broke(cached, is_warm):
    """Cut in the middle, and then all links are dead; later, in another process' stead, the device is opened anew."""
    if is_warm:
        sync(cached.new_device())
    device, (catalogue,) = cached.new_device(), cached.manifest.catalogue_parts
    cached.cache_link.break_after, cached.cache_link.is_last_cut = 1_500_000, True
    with device.open() as client, pytest.raises(ServerUnavailableError):
        client.sync()
    (part,) = device.models.glob("*.part")
    durable = part.stat().st_size
    assert 1_000_000 < durable < 1_500_000
    # Without the cache the device turned to the coordinator, at that byte, and got no answer through either.
    cached.asked.remove((catalogue.sha256.hex(), f"bytes={durable}-"))
    cached.mend()
    sync(device)
    resumed = logged(cached, catalogue.sha256.hex(), f"bytes={durable}-")
    assert (resumed["status"], resumed["cache"]) == ("206", "HIT")
    assert int(resumed["sent"]) == catalogue.size_bytes - durable
    require_each_slice_asked_for_once(cached)


def test_a_link_that_breaks_again_and_again_costs_no_byte_twice(cached):
    """Within one sync, and all of it from the cache."""
    cached.cache_link.break_after = 400_000
    sync(cached.new_device())
    # Each connection brought a part of the catalogue, and the last one the codes too.
    eventually(lambda: len(cached.nginx.log()) == cached.cache_link.connections + 1)
    asked = [line["range"] for line in cached.nginx.log(digests(cached)[0])]
    starts = sorted(0 if each == "-" else int(each.removeprefix("bytes=").removesuffix("-")) for each in asked)
    assert len(starts) > 6
    # TLS and headers take a part of what a connection lets through; a byte that came is never asked for again.
    assert all(300_000 < later - earlier < 400_000 for earlier, later in pairwise(starts))
    require_each_slice_asked_for_once(cached)


def test_without_the_cache_devices_go_to_the_coordinator(cached):
    with cached.nginx.stopped():
        sync(cached.new_device())
    assert cached.asked == [(digest, None) for digest in digests(cached)]
