"""Artifacts from the address that a manifest names: a cache that works, and every way in which one does not."""

import errno
import logging
import re
import socket

import numpy as np
import pytest

from lightfr import _files
from lightfr._wire import channel as channels
from lightfr._wire import downloads
from lightfr.errors import ArtifactError, StoreWriteError
from tests.certificates import credentials_of, plain_server_context, server_pem
from tests.sdk.client.publisher import random_codes, refusal, with_changed_rows
from tests.sdk.wire.servers import ScriptedServer


class Cache:
    """A server that has what the publisher has, unless a test writes `answer(name, headers, good)` itself."""

    def __init__(self, publisher):
        self._publisher, self.answer = publisher, None

    def __call__(self, verb, path, headers, body):
        good = self._publisher(verb, path, headers, body)
        return self.answer(path.rsplit("/", 1)[-1], headers, good) if self.answer else good


@pytest.fixture
def cache(authority, publisher):
    made = Cache(publisher)
    with ScriptedServer(credentials_of(authority).context(), made) as made.server:
        yield made


@pytest.fixture
def publish(publisher, cache):
    """Publish a version that names the cache, or another address."""

    def publish(version, codes, address=None, **fields):
        message = publisher.publish(version, codes, **fields)
        message.artifacts_address = cache.server.url if address is None else address
        return publisher.sign(message)

    return publish


def asked(server):
    """Names and ranges of the artifacts that a server was asked for, in that order."""
    return [
        (path.removeprefix("/artifacts/"), headers.get("Range"))
        for _, path, headers, _ in server.requests
        if path.startswith("/artifacts/")
    ]


def whole(*artifacts):
    return [(artifact.sha256.hex(), None) for artifact in artifacts]


def test_artifacts_come_from_the_cache_and_calls_go_to_the_coordinator(publisher, cache, publish, open_device):
    codes = random_codes(1)
    first, client = publish(1, codes), open_device()
    assert client.sync()
    second = publish(2, with_changed_rows(codes), deltas_from=[codes], is_open=np.arange(500) < 499)
    publisher.assignment()
    assert client.participate().took_part
    delta = second.codes_deltas[0].artifact
    assert asked(cache.server) == whole(first.catalogue_parts[0], first.codes, second.open_rows, delta)
    assert len(cache.server.requests) == 4
    assert asked(publisher.server) == []
    # One connection for each sync.
    assert cache.server.connections == 2


def test_without_an_address_the_coordinator_is_asked(publisher, cache, publish, open_device):
    message = publish(1, random_codes(1), address="")
    assert open_device().sync()
    assert (asked(cache.server), asked(publisher.server)) == ([], whole(message.catalogue_parts[0], message.codes))


def unreachable():
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"https://localhost:{listener.getsockname()[1]}"


@pytest.mark.parametrize("address", [unreachable, lambda: "https://cache.invalid:443"], ids=["no port", "no host"])
def test_a_cache_that_cannot_be_reached_is_done_without(publisher, publish, open_device, address):
    message = publish(1, random_codes(1), address())
    assert open_device().sync()
    assert asked(publisher.server) == whole(message.catalogue_parts[0], message.codes)


def test_a_cache_that_says_nothing_is_done_without_sooner_than_a_coordinator(
    publisher, publish, open_device, monkeypatch
):
    timeouts = {}

    class Watched(channels.Connection):
        def __init__(self, host, port, *, context, timeout):
            timeouts[port] = timeout
            super().__init__(host, port, context=context, timeout=timeout)

    monkeypatch.setattr(channels, "Connection", Watched)
    monkeypatch.setattr(downloads, "_CACHE_TIMEOUT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        message = publish(1, random_codes(1), f"https://localhost:{port}")
        assert open_device().sync()
    assert asked(publisher.server) == whole(message.catalogue_parts[0], message.codes)
    assert timeouts == {port: 0.2, publisher.server.server_address[1]: 40.0}


def test_a_cache_that_does_not_know_the_device_is_done_without(publisher, cache, publish, open_device):
    cache.answer = lambda *_: refusal("unauthenticated", 401, "IDENTITY")
    message = publish(1, random_codes(1))
    assert open_device().sync()
    assert asked(publisher.server) == whole(message.catalogue_parts[0], message.codes)


@pytest.mark.parametrize("status", [400, 403, 404, 416, 429, 500, 502, 503, 504])
def test_a_cache_that_refuses_is_asked_once_in_a_sync(publisher, cache, publish, open_device, status, caplog):
    cache.answer = lambda *_: (status, {"Content-Type": "text/html"}, b"<h1>no</h1>")
    message = publish(1, random_codes(1))
    assert open_device().sync()
    assert asked(cache.server) == whole(message.catalogue_parts[0])
    assert asked(publisher.server) == whole(message.catalogue_parts[0], message.codes)
    (warning,) = caplog.record_tuples
    assert warning[:2] == ("lightfr.downloads", logging.WARNING)
    assert re.fullmatch(r"the cache localhost failed \(\w+Error\): the coordinator is asked instead", warning[2])


@pytest.mark.parametrize("fault", ["expired", "other_authority", "wrong_host"])
def test_a_cache_that_is_not_trusted_hears_nothing_and_is_done_without(
    authority, publisher, publish, open_device, tmp_path, fault
):
    context = plain_server_context(server_pem(authority, tmp_path, "localhost", fault))
    with ScriptedServer(context, publisher) as stranger:
        message = publish(1, random_codes(1), stranger.url)
        assert open_device().sync()
    assert stranger.requests == []
    assert asked(publisher.server) == whole(message.catalogue_parts[0], message.codes)


@pytest.mark.parametrize(
    "spoilt",
    [
        lambda content: content[::-1],
        lambda content: content + b"more",
        lambda content: content[:-1],
        lambda content: b"",
    ],
    ids=["other bytes", "longer", "shorter", "nothing"],
)
def test_what_a_cache_has_wrong_is_fetched_from_the_coordinator(publisher, cache, publish, open_device, spoilt):
    def wrong(_name, _headers, good):
        return 200, {}, spoilt(good[2])

    cache.answer = wrong
    publish(1, random_codes(1))
    client = open_device()
    assert client.sync()
    assert bytes(client._user.model.codes.row(0)) == random_codes(1)[0].tobytes()


def breaks_off(change=lambda content: content, after=400):
    """A cache that promises all, sends so many bytes once, and is dead from then on."""
    seen = []

    def answer(name, _headers, good):
        seen.append(name)
        if len(seen) > 1:
            return 503, {"Connection": "close"}, b""
        return 200, {"Content-Length": str(len(good[2])), "Connection": "close"}, change(good[2])[:after]

    return answer


def test_the_coordinator_goes_on_where_the_cache_broke_off(publisher, cache, publish, open_device):
    cache.answer = breaks_off()
    message = publish(1, random_codes(1))
    assert open_device().sync()
    name = message.catalogue_parts[0].sha256.hex()
    assert asked(cache.server) == [(name, None), (name, "bytes=400-")]
    assert asked(publisher.server) == [(name, "bytes=400-"), *whole(message.codes)]


def test_a_wrong_beginning_from_the_cache_is_thrown_away_and_all_comes_from_the_coordinator(
    publisher, cache, publish, open_device
):
    cache.answer = breaks_off(lambda content: content[::-1])
    message = publish(1, random_codes(1))
    assert open_device().sync()
    assert asked(publisher.server) == [
        (message.catalogue_parts[0].sha256.hex(), "bytes=400-"),
        *whole(message.catalogue_parts[0], message.codes),
    ]


def test_a_coordinator_that_is_wrong_too_is_refused(publisher, publish, open_device):
    message = publish(1, random_codes(1))
    publisher.files[message.codes.sha256.hex()] = bytes(message.codes.size_bytes)
    client = open_device()
    with pytest.raises(ArtifactError):
        client.sync()
    assert client.status().model_version == 0


def test_a_full_disk_is_not_blamed_on_the_cache(publisher, publish, open_device, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    publish(1, random_codes(1))
    client = open_device()
    monkeypatch.setattr(_files, "write", full)
    with pytest.raises(StoreWriteError, match="No space left"):
        client.sync()
    assert asked(publisher.server) == []


def test_a_real_coordinator_names_the_cache_and_serves_devices_that_cannot_reach_it(start_coordinator, open_client):
    address = unreachable()
    client = open_client(start_coordinator(artifacts_address=address, goal=1000))
    assert client.sync()
    assert client._user.model.manifest.message.artifacts_address == address
