"""Scripted servers, and channels to them."""

import pytest

from lightfr._wire import channel as channels
from lightfr._wire import tls
from lightfr._wire.channel import Channel
from tests.certificates import client_pem, credentials_of
from tests.sdk.wire.servers import ScriptedServer


@pytest.fixture(scope="module")
def identity(authority, tmp_path_factory):
    return client_pem(authority, tmp_path_factory.mktemp("identity"))


@pytest.fixture
def impatient(monkeypatch):
    """Pauses between tries are too short to be noticed."""
    monkeypatch.setattr(channels, "_FIRST_PAUSE", 0.001)


@pytest.fixture
def serve(authority, identity, impatient):
    """Start a server with this script and open a channel to it."""
    started = []

    def start(answer):
        server = ScriptedServer(credentials_of(authority).context(), answer)
        started.append((server.__enter__(), Channel(server.url, tls.context(authority.folder / "trust.pem", identity))))
        return started[-1]

    yield start
    for server, channel in started:
        channel.close()
        server.__exit__()
